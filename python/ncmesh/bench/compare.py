"""
Schemes beside each other, instance by instance, from the rows of the table.

The draws of an instance are paired: schemes meet the same seeds. What counts is the geometric mean
of the ratios of all draws, and its 95 % interval by Student's t, which tells chance and loss apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ncmesh.bench.meshes import title_of
from ncmesh.bench.service import Row

# A ratio is limited to these, so that a scheme that carried nothing has a geometric mean too.
LEAST_RATIO, MOST_RATIO = 0.01, 100.0
# Student's t of a two-sided 95 % interval, by degrees of freedom from 1 on; then the normal one.
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
NORMAL_95 = 1.96


@dataclass(frozen=True)
class Ratio:
    """How much better a scheme is than another one; 2 is twice as good."""

    mean: float
    low: float
    """Ends of the interval; the mean itself where there is one draw."""
    high: float

    @classmethod
    def of(cls, draws: Sequence[float]) -> Ratio:
        """Return the ratio from those of all draws."""
        logs = [math.log(draw) for draw in draws]
        mean = statistics.fmean(logs)
        freedom = len(logs) - 1
        half = 0.0
        if freedom:
            t = T_95[freedom - 1] if freedom <= len(T_95) else NORMAL_95
            half = t * statistics.stdev(logs) / math.sqrt(len(logs))
        return cls(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


@dataclass(frozen=True)
class Cell:
    """All schemes' runs of one instance."""

    service: str
    mesh: str
    """Title, which tells link powers apart."""
    family: str
    case: str
    number: int
    rows: Mapping[str, Sequence[Row]]
    """By scheme, one for each draw."""

    @property
    def title(self) -> str:
        """Name for people."""
        return f"{self.mesh}, {self.case}, {self.number}"

    def against(self, scheme: str, other: str) -> Ratio:
        """Return how much better `scheme` is than `other`."""
        pairs = zip(self.rows[scheme], self.rows[other], strict=True)
        return Ratio.of([_ratio(own["score"], their["score"]) for own, their in pairs])

    def best_other(self, scheme: str) -> str | None:
        """Return the other scheme that is best in the mean; none if there is no other."""
        others = [name for name in self.rows if name != scheme]
        return min(others, key=lambda name: self.against(scheme, name).mean, default=None)

    def against_best(self, scheme: str) -> Ratio | None:
        """Return how much better `scheme` is than the best other one; none if there is no other."""
        best = self.best_other(scheme)
        return None if best is None else self.against(scheme, best)


def cells(rows: Iterable[Row], service: str) -> list[Cell]:
    """Return the instances of a service, in the order of the table."""
    found: dict[tuple[str, str, str, int], dict[str, list[Row]]] = {}
    for row in rows:
        if row["service"] == service:
            mesh = title_of(row["mesh"], row["link_power"])
            key = (mesh, row["family"], row["case"], row["instance"])
            found.setdefault(key, {}).setdefault(row["scheme"], []).append(row)
    return [Cell(service, *key, by_scheme) for key, by_scheme in found.items()]


def schemes(of: Sequence[Cell]) -> list[str]:
    """Return the schemes of some instances, in the order of the table."""
    return list(dict.fromkeys(scheme for cell in of for scheme in cell.rows))


def cases(of: Iterable[Cell]) -> list[str]:
    """Return the cases of some instances, in the order of the table."""
    return list(dict.fromkeys(cell.case for cell in of))


def meshes(of: Iterable[Cell]) -> list[str]:
    """Return the titles of the meshes of some instances, in the order of the table."""
    return list(dict.fromkeys(cell.mesh for cell in of))


def rows(of: Iterable[Cell], scheme: str, case: str | None = None) -> list[Row]:
    """Return all runs of a scheme, or those of one case."""
    part = (cell for cell in of if case is None or cell.case == case)
    return [row for cell in part for row in cell.rows.get(scheme, ())]


def geometric_mean(ratios: Iterable[Ratio | None]) -> float | None:
    """Return the geometric mean of ratios; none of none."""
    known = [ratio.mean for ratio in ratios if ratio is not None]
    return statistics.geometric_mean(known) if known else None


def below(of: Iterable[Cell], scheme: str, floor: float) -> list[tuple[Ratio, Cell]]:
    """
    Return the instances where `scheme` is worse than `floor` of the best other, worst first.

    One counts if the upper end of its interval is below.
    """
    found = []
    for cell in of:
        ratio = cell.against_best(scheme) if scheme in cell.rows else None
        if ratio is not None and ratio.high < floor:
            found.append((ratio, cell))
    return sorted(found, key=lambda pair: pair[0].mean)


def _ratio(own: float, other: float) -> float:
    """Return a limited ratio; 1 if both are 0."""
    if own == other:
        return 1.0
    ratio = own / other if other else math.inf
    return min(max(ratio, LEAST_RATIO), MOST_RATIO)
