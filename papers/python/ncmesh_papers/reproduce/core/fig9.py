"""Figure 9: throughput of the testbed's schemes against loss."""

from __future__ import annotations

import math
from typing import Any

from ncmesh_papers.reproduce.claims import GAIN, Claim, Spread, holds, refuted, within
from ncmesh_papers.reproduce.core import proofs
from ncmesh_papers.reproduce.core.daemons import LAB, lab_runs, sizes, with_lab, worlds
from ncmesh_papers.reproduce.core.testbed import LOSSES, World, pieces, runs_of, throughput
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.plots import panels

CODED, PLAIN = ("core", "core_no_recoding"), ("cope", "forwarding")
# Their names in the analysis. The testbed has feedback, so without recoding is a bound from above.
ANALYSED = {
    "core": "core",
    "core_no_recoding": "core_no_feedback_no_recoding",
    "cope": "cope",
    "forwarding": "forwarding_unconstrained",
}
# Tolerance of gains, as a share of the ratio.
TOLERANCE = 0.2
# The paper's gains, by loss and by the scheme compared with.
GAINS = {
    (0.1, "cope"): 1.42,
    (0.1, "forwarding"): 1.42,
    (0.5, "cope"): 11.6,
    (0.5, "forwarding"): 7.98,
}
GAP_DB = 0.43


def _curve(rows: Rows, scheme: str, world: World) -> list[float]:
    return [throughput(rows, scheme, world.name, e).middle for e in world.losses]


def _optimum(rows: Rows, world: World) -> list[float]:
    """Return (1 - e) s, with s the largest throughput of any scheme (section 8)."""
    most = max(value for scheme in world.schemes for value in _curve(rows, scheme, world))
    return [(1 - e) * most for e in world.losses]


def _gain(rows: Rows, world: World, e: float, against: str, paper: float) -> Claim:
    core, other = (throughput(rows, scheme, world.name, e) for scheme in ("core", against))
    ratio = core.middle / other.middle if other.middle > 0 else math.inf
    each = Spread(core.low / core.middle * ratio, ratio, core.high / core.middle * ratio, core.kind)
    text = f"gain of CORE over {world.schemes[against].label} at {e:.0%} loss, {world.name}"
    return within(text, GAIN, paper, ratio, spread=each, relative=TOLERANCE)


def _order(rows: Rows, world: World) -> list[Claim]:
    claims = []
    for scheme in world.known(CODED):
        curves = {other: _curve(rows, other, world) for other in (scheme, *PLAIN)}
        at = [
            (other, e)
            for other in PLAIN
            for e, mine, theirs in zip(world.losses, curves[scheme], curves[other], strict=True)
            if mine <= theirs
        ]
        below = [f"{world.schemes[other].label} at {e:.0%}" for other, e in at]
        label = world.schemes[scheme].label
        text = f"{label} carries more than forwarding and COPE-like at all losses, {world.name}"
        ours = f"not than {', '.join(below)}" if below else f"at all {len(world.losses)}"
        # "More" cannot hold where the equations give both schemes as many transmissions.
        shown = [proofs.of_order(ANALYSED[scheme], ANALYSED[other], [(e, e)]) for other, e in at]
        claim = holds(text, ours, not below)
        claims.append(refuted(claim, shown[0]) if all(p.shown for p in shown) and shown else claim)
    return claims


def _gap(rows: Rows, world: World) -> Claim:
    found = zip(_curve(rows, "core", world), _optimum(rows, world), strict=True)
    gaps = {
        e: 10 * math.log10(most / mine) for e, (mine, most) in zip(world.losses, found, strict=True)
    }
    worst = max(gaps, key=gaps.__getitem__)
    ours = f"at most {gaps[worst]:.2f} dB, at {worst:.0%}"
    text = f"CORE is within {GAP_DB} dB of (1 - e) s at all losses, {world.name}"
    return holds(text, ours, gaps[worst] <= GAP_DB)


def _findings(rows: Rows, scale: Scale) -> Findings:
    rows = with_lab(rows, scale)
    claims: list[Claim] = []
    table: list[dict[str, Any]] = []
    figure, axes = panels(len(worlds(scale)))
    for panel, world in zip(axes, worlds(scale), strict=True):
        claims += [_gain(rows, world, e, other, paper) for (e, other), paper in GAINS.items()]
        claims += [*_order(rows, world), _gap(rows, world)]
        for scheme, named in world.schemes.items():
            curve = [v / 1e3 for v in _curve(rows, scheme, world)]
            panel.plot(world.losses, curve, "o-", label=named.label)
            table += [_row(rows, scheme, world.name, e) for e in world.losses]
        panel.plot(world.losses, [v / 1e3 for v in _optimum(rows, world)], "k--", label="(1 - e) s")
        panel.set_xlabel(f"loss of all links, {world.name}")
        panel.set_ylabel("throughput of both flows, kbit/s")
        panel.legend(fontsize="small")
    return Findings(claims, table, figure)


def _row(rows: Rows, scheme: str, world: str, e: float) -> dict[str, Any]:
    found = throughput(rows, scheme, world, e)
    costs = [measured.transmissions for measured in runs_of(rows, scheme, world, e)]
    return {
        "access": world,
        "scheme": scheme,
        "loss": e,
        "throughput_bps": found.middle,
        "low_bps": found.low,
        "high_bps": found.high,
        "transmissions_per_packet": sum(costs) / len(costs),
    }


EXPERIMENT = Experiment(
    name="core-fig9",
    title="Throughput of the testbed's schemes",
    reading=(
        "The engines `core_nc` and `cope`, simulated with backlogged sources. The optimum is the "
        "paper's (1 - e) s, with s the largest throughput of any scheme at any loss. Overhearing "
        "loses as much as the direct links. In the lab (`--lab`) five daemons carry the kernel's "
        "UDP with `core_nc`, `cope` (with its 80 % rule) and `forward` over 802.11b at 11 Mbit/s."
    ),
    findings=_findings,
    runs=lambda scale: lab_runs(LAB.losses, scale),
    pieces=lambda scale: pieces(LOSSES, scale),
    size=sizes,
)
