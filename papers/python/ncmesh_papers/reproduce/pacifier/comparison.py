"""Claims of figures that compare two protocols."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from ncmesh_papers.reproduce.claims import GAIN, NUMBER, SHARE, Claim, over_topologies, within
from ncmesh_papers.reproduce.experiment import Rows

# Tolerances: our ten topologies are not the paper's. They are shares of a ratio of means, of an
# extreme, of source redundancy, and of the number of topologies.
RATIO = 0.2
EXTREME = 0.33
REDUNDANCY = 0.25
SOME_OF_TEN = 0.2


def ratios(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the ratio of each pair of values; infinity where the second is 0."""
    pairs = zip(ours, others, strict=True)
    return [a / b if b > 0 else float("inf") for a, b in pairs]


def average_gain(rows: Rows, one: str, other: str, expected: float) -> Claim:
    """Judge the gain of average throughput, averaged over topologies. `expected` is the ratio."""
    gains = ratios(rows.average(one), rows.average(other))
    return _mean(f"average throughput, {one} over {other}", gains, expected)


def change(rows: Rows, one: str, other: str, column: str, text: str, expected: float) -> Claim:
    """Judge the change of a count, averaged over topologies. `expected` is the ratio."""
    changes = ratios(rows.of(one, column), rows.of(other, column))
    return _mean(f"{text}, {one} against {other}", changes, expected)


def _mean(text: str, found: Sequence[float], expected: float) -> Claim:
    """Judge the mean of the topologies' ratios."""
    spread = over_topologies(found)
    return within(text, GAIN, expected, fmean(found), spread=spread, relative=RATIO)


def source_redundancy(rows: Rows, variant: str, expected: float) -> Claim:
    """Judge the bytes that the source sends over the bytes of the file."""
    values = rows.of(variant, "source_redundancy")
    return within(
        f"source redundancy, {variant}",
        NUMBER,
        expected,
        fmean(values),
        spread=over_topologies(values),
        relative=REDUNDANCY,
    )


def share_higher(rows: Rows, one: str, other: str, expected: float) -> Claim:
    """Judge the share of topologies in which average throughput is higher."""
    gains = ratios(rows.average(one), rows.average(other))
    return within(
        f"topologies in which {one} is faster than {other}",
        SHARE,
        expected,
        sum(gain > 1 for gain in gains) / len(gains),
        absolute=SOME_OF_TEN,
    )


def extreme_gain(text: str, gains: Sequence[float], expected: float, value: float) -> Claim:
    """Judge the least or largest gain."""
    return within(text, GAIN, expected, value, spread=over_topologies(gains), relative=EXTREME)
