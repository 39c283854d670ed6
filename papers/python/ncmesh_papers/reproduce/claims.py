"""
Claims of a paper, and the verdict on each.

A claim is a number, a range of numbers or an order that a paper states. It agrees if our value is
within a tolerance that the experiment states beforehand (`within`), or if the order holds
(`holds`). A claim's text is its name: `--check` finds the recorded verdict by it, so it must not
contain results.

Some claims cannot hold, because the paper's own equations contradict them. Such a claim has the
verdict `paper` (`refuted`), with the computation that shows it. `differs` is left for what our
engines or settings may be the reason of.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")

# Resamples of a bootstrap.
RESAMPLES = 1000


@dataclass(frozen=True)
class Spread:
    """Spread of a value: least, median and largest over topologies, or a confidence interval."""

    low: float
    middle: float
    high: float
    kind: str = "min/median/max"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper and what we find."""

    text: str
    paper: str
    """Statement of the paper."""
    ours: str
    """Our finding."""
    spread: str
    tolerance: str
    agrees: bool
    value: float
    """Our finding, as a number."""
    proof: str = ""
    """The computation that shows that the claim contradicts the paper itself, if one does."""

    @property
    def verdict(self) -> str:
        """`agrees`, `paper` if the paper's own equations contradict the claim, or `differs`."""
        if self.agrees:
            return "agrees"
        return "paper" if self.proof else "differs"

    def record(self) -> dict[str, str]:
        """Return the claim as it is recorded, without `value`. Only verdict `paper` has a proof."""
        record = {
            "claim": self.text,
            "paper": self.paper,
            "ours": self.ours,
            "spread": self.spread,
            "tolerance": self.tolerance,
            "verdict": self.verdict,
        }
        return record | ({"proof": self.proof} if self.verdict == "paper" else {})

    def to_dict(self) -> dict[str, Any]:
        """Return the claim for the command's JSON."""
        return {**self.record(), "value": self.value}


@dataclass(frozen=True)
class Unit:
    """Notation of a kind of number."""

    write: Callable[[float], str]

    def spread(self, spread: Spread | None) -> str:
        """Write a spread: three numbers and its kind; an empty string for `None`."""
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
    detail: str = "",
) -> Claim:
    """
    Compare our value with a number or a range of the paper.

    `relative` is a share of the paper's number; for gains a share of the ratio, so that +50 % and
    0.2 allow +20 % to +80 %. `detail` is added to our value in parentheses.
    """
    low, high = expected if isinstance(expected, tuple) else (expected, expected)
    least, most = low * (1 - relative) - absolute, high * (1 + relative) + absolute
    paper = unit.write(low) if low == high else f"{unit.write(low)} to {unit.write(high)}"
    return Claim(
        text=text,
        paper=paper,
        ours=f"{unit.write(value)} ({detail})" if detail else unit.write(value),
        spread=unit.spread(spread),
        tolerance=f"{unit.write(least)} to {unit.write(most)}",
        agrees=least <= value <= most,
        value=value,
    )


def holds(text: str, ours: str, truth: bool) -> Claim:
    """Judge an order that the paper states: it holds or it does not."""
    return Claim(text, "holds", ours, "", "the order itself", truth, float(truth))


@dataclass(frozen=True)
class Proof:
    """A computation from a paper's own equations that contradicts a claim."""

    text: str
    """The computation and its result, in one or two sentences."""
    shown: bool
    """Whether it contradicts the claim."""


def refuted(claim: Claim, proof: Proof) -> Claim:
    """Give a claim the verdict `paper` if it does not agree and the proof shows that it cannot."""
    return replace(claim, proof=proof.text) if proof.shown else claim


def over_topologies(values: Sequence[float]) -> Spread:
    """Return least, median and largest value."""
    return Spread(min(values), statistics.median(values), max(values))


def bootstrap(groups: Sequence[Sequence[T]], statistic: Callable[[list[T]], float]) -> Spread:
    """
    Return the 95 % bootstrap interval of a statistic of pooled values.

    Whole groups (topologies) are resampled, since values within a group are not independent.
    """
    draw = random.Random(1)
    found = sorted(
        statistic([v for group in draw.choices(groups, k=len(groups)) for v in group])
        for _ in range(RESAMPLES)
    )
    low, high = found[round(0.025 * RESAMPLES)], found[round(0.975 * RESAMPLES) - 1]
    return Spread(low, statistics.median(found), high, "95 % bootstrap")


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile, interpolated linearly between ranks."""
    ranked = sorted(values)
    place = percent / 100 * (len(ranked) - 1)
    below = int(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (place - below) * (ranked[above] - ranked[below])
