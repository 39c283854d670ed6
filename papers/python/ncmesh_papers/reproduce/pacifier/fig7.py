"""Figure 7: all protocols together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ncmesh_papers.reproduce.claims import (
    GAIN,
    KBIT,
    TIMES,
    Claim,
    bootstrap,
    over_topologies,
    percentile,
    within,
)
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.pacifier.comparison import EXTREME, RATIO, average_gain, ratios
from ncmesh_papers.reproduce.pacifier.setting import runs
from ncmesh_papers.reproduce.pacifier.tables import per_topology, with_extremes_and_distributions

ALL = ("MORE", "TREE", "TREE+RL", "Pacifier")
OTHERS = ("TREE+RL", "TREE", "MORE")
AVERAGE = (1.60, 1.90, 2.71)
# Gains of percentiles of all receivers' throughputs over each of the other protocols.
PERCENTILES = {50: (1.20, 1.49, 2.78), 90: (1.70, 1.77, 2.59), 10: (1.80, 4.00, 5.50)}


def percentile_gain(
    rows: Rows, one: str, other: str, percent: float, expected: float | tuple[float, float]
) -> Claim:
    """Judge the gain of a percentile of the throughputs of all receivers of all topologies."""
    pairs = [
        list(zip(*pair, strict=True))
        for pair in zip(rows.pooled(one), rows.pooled(other), strict=True)
    ]
    gain: Callable[[list[tuple[float, float]]], float] = partial(_gain, percent=percent)
    return within(
        f"{percent:g}th percentile, {one} over {other}",
        GAIN,
        expected,
        gain([pair for group in pairs for pair in group]),
        spread=bootstrap(pairs, gain),
        relative=EXTREME,
    )


def _gain(pairs: list[tuple[float, float]], percent: float) -> float:
    one, other = zip(*pairs, strict=True)
    (gain,) = ratios([percentile(one, percent)], [percentile(other, percent)])
    return gain


def _receivers(rows: Rows, one: str, other: str) -> list[float]:
    """Return each topology's largest gain of a receiver."""
    pairs = zip(rows.pooled(one), rows.pooled(other), strict=True)
    return [max(ratios(ours, others)) for ours, others in pairs]


def _findings(rows: Rows, _: Scale) -> Findings:
    claims = [
        average_gain(rows, "Pacifier", other, expected)
        for other, expected in zip(OTHERS, AVERAGE, strict=True)
    ]
    for percent, expected in PERCENTILES.items():
        for other, gain in zip(OTHERS, expected, strict=True):
            claims.append(percentile_gain(rows, "Pacifier", other, percent, gain))
    groups = rows.pooled("Pacifier")
    ninetieth = partial(percentile, percent=90)
    claims.append(
        within(
            "90th percentile of Pacifier's receivers",
            KBIT,
            223e3,
            ninetieth([bps for group in groups for bps in group]),
            spread=bootstrap(groups, ninetieth),
            relative=RATIO,
        )
    )
    most = _receivers(rows, "Pacifier", "MORE")
    claims.append(
        within(
            "largest gain of a receiver over MORE",
            TIMES,
            20.0,
            max(most),
            spread=over_topologies(most),
            relative=EXTREME,
        )
    )
    figure = with_extremes_and_distributions(rows, ALL)
    return Findings(claims, per_topology(rows, ALL), figure)


EXPERIMENT = Experiment(
    name="pacifier-fig7",
    title="MORE, TREE, TREE+RL and Pacifier",
    reading=(
        "Pacifier with knob 1, as from IV-B.5 on. Average gains are averages over topologies; "
        "percentiles are of the throughputs of all receivers of all topologies."
    ),
    runs=lambda scale: runs(ALL, scale),
    findings=_findings,
)
