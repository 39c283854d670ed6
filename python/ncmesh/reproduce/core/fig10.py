"""Figure 10: how long generations take with half of everything lost."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

from ncmesh.reproduce.claims import Claim, holds
from ncmesh.reproduce.core.testbed import ACCESS, SCHEMES, pieces, runs_of, size
from ncmesh.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh.reproduce.plots import distributions, panels

LOSS = 0.5
CODED, PLAIN = ("core", "core_no_recoding"), ("cope", "forwarding")


def _times(rows: Rows, scheme: str, access: str) -> list[float]:
    return [t for measured in runs_of(rows, scheme, access, LOSS) for t in measured.generations_s]


def _moments(rows: Rows, scheme: str, access: str) -> tuple[float, float]:
    times = _times(rows, scheme, access)
    if len(times) < 2:
        return float("inf"), float("inf")
    return fmean(times), stdev(times)


def _claims(rows: Rows, access: str) -> list[Claim]:
    found = {scheme: _moments(rows, scheme, access) for scheme in SCHEMES}
    claims = []
    for place, what in enumerate(("mean time", "standard deviation of the time")):
        ours = ", ".join(f"{SCHEMES[s].label} {found[s][place]:.2f} s" for s in SCHEMES)
        lower = max(found[s][place] for s in CODED) < min(found[s][place] for s in PLAIN)
        claims.append(holds(f"{what} of a generation is less with both CORE schemes, {access}", ours, lower))
    return claims


def _findings(rows: Rows, _: Scale) -> Findings:
    claims: list[Claim] = []
    table: list[dict[str, Any]] = []
    figure, axes = panels(len(ACCESS))
    for panel, access in zip(axes, ACCESS, strict=True):
        claims += _claims(rows, access)
        times = {SCHEMES[scheme].label: _times(rows, scheme, access) for scheme in SCHEMES}
        known = {name: of for name, of in times.items() if of}
        distributions(panel, known, f"time of a generation, s, {access}")
        panel.set_ylabel("share of generations")
        for scheme in SCHEMES:
            mean, deviation = _moments(rows, scheme, access)
            count = len(_times(rows, scheme, access))
            row = {"access": access, "scheme": scheme, "generations": count}
            table.append({**row, "mean_s": mean, "deviation_s": deviation})
    return Findings(claims, table, figure)


EXPERIMENT = Experiment(
    name="core-fig10",
    title="Time per generation at 50 % loss",
    reading=(
        "From the delivery of each 64th packet of a flow to that of the next, of both flows and all runs, "
        "to a two-hundredth of the run. Figure 10 gives no numbers, the text orders."
    ),
    findings=_findings,
    pieces=lambda scale: pieces((LOSS,), scale),
    size=size,
)
