"""Figure 9: throughput of the testbed's schemes against loss."""

from __future__ import annotations

import math
from typing import Any

from ncmesh.reproduce.claims import GAIN, Claim, Spread, holds, within
from ncmesh.reproduce.core.testbed import ACCESS, LOSSES, SCHEMES, pieces, runs_of, size, throughput
from ncmesh.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh.reproduce.plots import panels

CODED, PLAIN = ("core", "core_no_recoding"), ("cope", "forwarding")
# Gains are within so much of the ratio, as in the other figures of testbeds.
TOLERANCE = 0.2
# By loss and against whom.
GAINS = {(0.1, "cope"): 1.42, (0.1, "forwarding"): 1.42, (0.5, "cope"): 11.6, (0.5, "forwarding"): 7.98}
GAP_DB = 0.43


def _curve(rows: Rows, scheme: str, access: str) -> list[float]:
    return [throughput(rows, scheme, access, e).middle for e in LOSSES]


def _optimum(rows: Rows, access: str) -> list[float]:
    """(1 - e) s, with s the most that any scheme reaches (section 8)."""
    most = max(value for scheme in SCHEMES for value in _curve(rows, scheme, access))
    return [(1 - e) * most for e in LOSSES]


def _gain(rows: Rows, access: str, e: float, against: str, paper: float) -> Claim:
    core, other = (throughput(rows, scheme, access, e) for scheme in ("core", against))
    ratio = core.middle / other.middle if other.middle > 0 else math.inf
    each = Spread(core.low / core.middle * ratio, ratio, core.high / core.middle * ratio, core.kind)
    text = f"gain of CORE over {SCHEMES[against].label} at {e:.0%} loss, {access}"
    return within(text, GAIN, paper, ratio, spread=each, relative=TOLERANCE)


def _order(rows: Rows, access: str) -> list[Claim]:
    claims = []
    for scheme in CODED:
        curves = {other: _curve(rows, other, access) for other in (scheme, *PLAIN)}
        below = [
            f"{SCHEMES[other].label} at {e:.0%}"
            for other in PLAIN
            for e, mine, theirs in zip(LOSSES, curves[scheme], curves[other], strict=True)
            if mine <= theirs
        ]
        text = f"{SCHEMES[scheme].label} carries more than forwarding and COPE-like at all losses, {access}"
        claims.append(holds(text, f"not than {', '.join(below)}" if below else "at all 6", not below))
    return claims


def _gap(rows: Rows, access: str) -> Claim:
    found = zip(_curve(rows, "core", access), _optimum(rows, access), strict=True)
    gaps = {e: 10 * math.log10(most / mine) for e, (mine, most) in zip(LOSSES, found, strict=True)}
    worst = max(gaps, key=gaps.__getitem__)
    ours = f"at most {gaps[worst]:.2f} dB, at {worst:.0%}"
    text = f"CORE is within {GAP_DB} dB of (1 - e) s at all losses, {access}"
    return holds(text, ours, gaps[worst] <= GAP_DB)


def _findings(rows: Rows, _: Scale) -> Findings:
    claims: list[Claim] = []
    table: list[dict[str, Any]] = []
    figure, axes = panels(len(ACCESS))
    for panel, access in zip(axes, ACCESS, strict=True):
        claims += [_gain(rows, access, e, other, paper) for (e, other), paper in GAINS.items()]
        claims += [*_order(rows, access), _gap(rows, access)]
        for scheme in SCHEMES:
            curve = [v / 1e3 for v in _curve(rows, scheme, access)]
            panel.plot(LOSSES, curve, "o-", label=SCHEMES[scheme].label)
            table += [_row(rows, scheme, access, e) for e in LOSSES]
        panel.plot(LOSSES, [v / 1e3 for v in _optimum(rows, access)], "k--", label="(1 - e) s")
        panel.set_xlabel(f"loss of all links, {access}")
        panel.set_ylabel("throughput of both flows, kbit/s")
        panel.legend(fontsize="small")
    return Findings(claims, table, figure)


def _row(rows: Rows, scheme: str, access: str, e: float) -> dict[str, Any]:
    found = throughput(rows, scheme, access, e)
    costs = [measured.transmissions for measured in runs_of(rows, scheme, access, e)]
    return {
        "access": access,
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
        "The engines of the tunnels core_nc and cope, simulated; both sources always have something to send. "
        "The optimum is the paper's (1 - e) s, with s the most that any scheme reaches at any loss. "
        "Overhearing loses as much as the direct links."
    ),
    findings=_findings,
    pieces=lambda scale: pieces(LOSSES, scale),
    size=size,
)
