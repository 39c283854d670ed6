"""What a paper says, what we find, and whether they agree."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

# Resamples of a bootstrap.
RESAMPLES = 1000


@dataclass(frozen=True)
class Spread:
    """How a figure varies: least, median and most over topologies, or a confidence interval."""

    low: float
    middle: float
    high: float
    kind: str = "min/median/max"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper beside ours."""

    text: str
    paper: str
    """As the paper has it."""
    ours: str
    spread: str
    tolerance: str
    agrees: bool
    value: float
    """Ours as a number."""

    @property
    def verdict(self) -> str:
        """The word for it."""
        return "agrees" if self.agrees else "differs"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "claim": self.text,
            "paper": self.paper,
            "ours": self.ours,
            "value": self.value,
            "spread": self.spread,
            "tolerance": self.tolerance,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Unit:
    """How numbers of a kind are written."""

    write: Callable[[float], str]

    def spread(self, spread: Spread | None) -> str:
        """Three numbers and what they are; nothing if there are none."""
        if spread is None:
            return ""
        numbers = " / ".join(self.write(v) for v in (spread.low, spread.middle, spread.high))
        return f"{numbers} ({spread.kind})"


GAIN = Unit(lambda ratio: f"{100 * (ratio - 1):+.0f} %")
TIMES = Unit(lambda ratio: f"{ratio:.1f}x")
NUMBER = Unit(lambda value: f"{value:.3g}")
KBIT = Unit(lambda bps: f"{bps / 1e3:.1f} kbit/s")
SHARE = Unit(lambda share: f"{share:.0%}")


def within(
    text: str,
    unit: Unit,
    expected: float | tuple[float, float],
    value: float,
    *,
    spread: Spread | None = None,
    relative: float = 0.0,
    absolute: float = 0.0,
) -> Claim:
    """
    A number of the paper's, or a range of numbers, and ours: they agree within a tolerance.

    `relative` is a share of the paper's number, of gains a share of the ratio: +50 % and 0.2 allow
    +20 % to +80 %.
    """
    low, high = expected if isinstance(expected, tuple) else (expected, expected)
    least, most = low * (1 - relative) - absolute, high * (1 + relative) + absolute
    paper = unit.write(low) if low == high else f"{unit.write(low)} to {unit.write(high)}"
    return Claim(
        text=text,
        paper=paper,
        ours=unit.write(value),
        spread=unit.spread(spread),
        tolerance=f"{unit.write(least)} to {unit.write(most)}",
        agrees=least <= value <= most,
        value=value,
    )


def holds(text: str, ours: str, truth: bool) -> Claim:
    """An order that the paper finds, which holds or does not."""
    return Claim(text, "holds", ours, "", "the order itself", truth, float(truth))


def over_topologies(values: Sequence[float]) -> Spread:
    """Least, median and most."""
    return Spread(min(values), statistics.median(values), max(values))


def bootstrap(groups: Sequence[Sequence[T]], statistic: Callable[[list[T]], float]) -> Spread:
    """The 95 % interval of a statistic of pooled values, whole groups (topologies) drawn anew."""
    draw = random.Random(1)
    found = sorted(
        statistic([v for group in draw.choices(groups, k=len(groups)) for v in group])
        for _ in range(RESAMPLES)
    )
    low, high = found[round(0.025 * RESAMPLES)], found[round(0.975 * RESAMPLES) - 1]
    return Spread(low, statistics.median(found), high, "95 % bootstrap")


def percentile(values: Sequence[float], percent: float) -> float:
    """Between the ranks it lies between, linearly."""
    ranked = sorted(values)
    place = percent / 100 * (len(ranked) - 1)
    below = int(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (place - below) * (ranked[above] - ranked[below])
