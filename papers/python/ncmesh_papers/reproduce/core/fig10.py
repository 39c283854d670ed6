"""Figure 10: time of generations at 50 % loss."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from ncmesh_papers.reproduce.claims import Claim, holds
from ncmesh_papers.reproduce.core.daemons import lab_runs, sizes, with_lab, worlds
from ncmesh_papers.reproduce.core.testbed import World, pieces, runs_of
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.plots import distributions, panels

LOSS = 0.5
CODED, PLAIN = ("core", "core_no_recoding"), ("cope", "forwarding")


def _times(rows: Rows, scheme: str, world: World) -> list[float]:
    return [
        t for measured in runs_of(rows, scheme, world.name, LOSS) for t in measured.generations_s
    ]


def _moments(rows: Rows, scheme: str, world: World) -> tuple[float, float]:
    times = _times(rows, scheme, world)
    if len(times) < 2:
        return float("inf"), float("inf")
    return fmean(times), stdev(times)


def _claims(rows: Rows, world: World) -> list[Claim]:
    found = {scheme: _moments(rows, scheme, world) for scheme in world.schemes}
    coded = world.known(CODED)
    by = "both CORE schemes" if len(coded) > 1 else world.schemes[coded[0]].label
    claims = []
    for place, what in enumerate(("mean time", "standard deviation of the time")):
        ours = ", ".join(f"{world.schemes[s].label} {found[s][place]:.2f} s" for s in world.schemes)
        lower = max(found[s][place] for s in coded) < min(found[s][place] for s in PLAIN)
        claims.append(holds(f"{what} of a generation is less with {by}, {world.name}", ours, lower))
    return claims


def _findings(rows: Rows, scale: Scale) -> Findings:
    rows = with_lab(rows, scale)
    claims: list[Claim] = []
    table: list[dict[str, Any]] = []
    figure, axes = panels(len(worlds(scale)))
    for panel, world in zip(axes, worlds(scale), strict=True):
        claims += _claims(rows, world)
        times = {
            named.label: _times(rows, scheme, world) for scheme, named in world.schemes.items()
        }
        known = {name: of for name, of in times.items() if of}
        distributions(panel, known, f"time of a generation, s, {world.name}")
        panel.set_ylabel("share of generations")
        for scheme in world.schemes:
            mean, deviation = _moments(rows, scheme, world)
            count = len(_times(rows, scheme, world))
            row = {"access": world.name, "scheme": scheme, "generations": count}
            table.append({**row, "mean_s": mean, "deviation_s": deviation})
    return Findings(claims, table, figure)


EXPERIMENT = Experiment(
    name="core-fig10",
    title="Time per generation at 50 % loss",
    reading=(
        "Time from the delivery of each 64th packet of a flow to that of the next, for both flows "
        "and all runs, with a resolution of a two-hundredth of the run, in the lab 20 ms. Figure "
        "10 gives no numbers, the text gives orders."
    ),
    findings=_findings,
    runs=lambda scale: lab_runs((LOSS,), scale),
    pieces=lambda scale: pieces((LOSS,), scale),
    size=sizes,
)
