"""Figure 5: throughput against offered load."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncmesh_papers.core_nc import throughput
from ncmesh_papers.reproduce.claims import GAIN, SHARE, Claim, holds, within
from ncmesh_papers.reproduce.core.trials import LABELS, piece, size
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

# The paper's 33 % is a third, since its 44 % is 4/9.
LOSSES = (0.0, 1 / 3)
# By loss: the load at which forwarding peaks, and from which on it is at its constrained level.
PEAKS = {0.0: (0.5, 0.67), 1 / 3: (0.33, 0.44)}
# Tolerance: the digits that the paper gives.
DIGITS = 0.01
# Tolerance of figure 3.
TOLERANCE = 0.1
CODED = ("cope", "core")
CURVES = {"forwarding": "forwarding", **{scheme: LABELS[scheme] for scheme in CODED}}
LOADS = np.linspace(0, 1, 1001)


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    return {(e, scheme): piece(scheme, e, e, scale) for e in LOSSES for scheme in CODED}


def _peak(carried: NDArray[np.float64]) -> float:
    return float(LOADS[carried.argmax()])


def _settles(carried: NDArray[np.float64]) -> float:
    """Return the load from which on throughput is constant."""
    differs = np.flatnonzero(np.abs(carried - carried[-1]) > 1e-9)
    return float(LOADS[differs[-1] + 1])


def _claims(rows: Rows, e: float) -> list[Claim]:
    forwarding = throughput("forwarding", LOADS, e)
    peak, settles = PEAKS[e]
    at = f"at {e:.0%} loss"
    cope, core = (float(throughput(scheme, 1.0, e)) for scheme in CODED)
    needed = rows.computed[e, "core"].both.over(1 / core)
    return [
        within(
            f"load at which forwarding peaks, {at}", SHARE, peak, _peak(forwarding), absolute=DIGITS
        ),
        within(
            f"load at which forwarding falls to its constrained level, {at}",
            SHARE,
            settles,
            _settles(forwarding),
            absolute=DIGITS,
        ),
        _coded(at, cope, core, alike=e == 0),
        within(
            f"transmissions per packet of CORE, simulation over analysis, {at}",
            GAIN,
            1.0,
            needed.middle,
            spread=needed,
            relative=TOLERANCE,
        ),
    ]


def _coded(at: str, cope: float, core: float, *, alike: bool) -> Claim:
    ours = f"CORE {core:.3f}, COPE-like {cope:.3f}"
    if alike:
        return holds(
            f"COPE-like and CORE have the same throughput {at}", ours, bool(np.isclose(cope, core))
        )
    return holds(f"CORE has more throughput than COPE-like {at}", ours, core > cope)


def _table(rows: Rows) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = []
    for e in LOSSES:
        for scheme in CURVES:
            most = 1 / rows.computed[e, scheme].both.value if scheme in CODED else None
            carried = throughput(scheme, LOADS[::20], e)
            table += [
                {
                    "e": e,
                    "scheme": scheme,
                    "offered": load,
                    "throughput": value,
                    "simulated_most": most,
                }
                for load, value in zip(LOADS[::20].tolist(), carried.tolist(), strict=True)
            ]
    return table


def _findings(rows: Rows, _: Scale) -> Findings:
    figure, axes = panels(len(LOSSES))
    claims: list[Claim] = []
    for own, e in zip(axes, LOSSES, strict=True):
        claims += _claims(rows, e)
        for scheme, label in CURVES.items():
            (line,) = own.plot(LOADS, throughput(scheme, LOADS, e), label=label)
            if scheme in CODED:
                own.plot(1.0, 1 / rows.computed[e, scheme].both.value, "o", color=line.get_color())
        own.set_xlabel(f"offered load, {e:.0%} loss")
        own.set_ylabel("throughput")
        own.set_ylim(0, 0.75)
        own.legend(fontsize="small", loc="upper left")
    return Findings(claims, _table(rows), figure)


EXPERIMENT = Experiment(
    name="core-fig5",
    title="Throughput against offered load",
    reading=(
        "Packets of both flows per transmission that the channel carries. Overhearing loses as "
        "much as the direct links, and 33 % is a third. Between its peak and its constrained "
        "level forwarding gets what the sources leave of the channel. Dots are reciprocals of the "
        "trials' transmissions per packet."
    ),
    findings=_findings,
    pieces=_pieces,
    size=size,
)
