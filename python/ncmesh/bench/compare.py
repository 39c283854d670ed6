"""Schemes beside each other, instance by instance, from the rows of the table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ncmesh.bench.meshes import title_of
from ncmesh.bench.service import Row

# A ratio is limited to these, so that a scheme that carried nothing has a geometric mean too.
LEAST_RATIO, MOST_RATIO = 0.01, 100.0


@dataclass(frozen=True)
class Cell:
    """All schemes' runs of one instance."""

    service: str
    mesh: str
    """Title, which tells link powers apart."""
    family: str
    case: str
    number: int
    rows: Mapping[str, Row]
    """By scheme."""

    @property
    def title(self) -> str:
        """Name for people."""
        return f"{self.mesh}, {self.case}, {self.number}"

    def against(self, scheme: str, other: str) -> float:
        """Return how much better `scheme` is than `other`; 2 is twice as good."""
        return _ratio(self.rows[scheme]["score"], self.rows[other]["score"])

    def against_best(self, scheme: str) -> float | None:
        """Return the same against the best other scheme; none if there is no other."""
        others = [row["score"] for name, row in self.rows.items() if name != scheme]
        return _ratio(self.rows[scheme]["score"], max(others)) if others else None


def cells(rows: Iterable[Row], service: str) -> list[Cell]:
    """Return the instances of a service, in the order of the table."""
    found: dict[tuple[str, str, str, int], dict[str, Row]] = {}
    for row in rows:
        if row["service"] == service:
            mesh = title_of(row["mesh"], row["link_power"])
            key = (mesh, row["family"], row["case"], row["instance"])
            found.setdefault(key, {})[row["scheme"]] = row
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


def geometric_mean(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of ratios; none of none."""
    known = [ratio for ratio in ratios if ratio is not None]
    return statistics.geometric_mean(known) if known else None


def below(of: Iterable[Cell], scheme: str, floor: float) -> list[tuple[float, Cell]]:
    """Return the instances where `scheme` is worse than `floor` of the best other, worst first."""
    found = []
    for cell in of:
        ratio = cell.against_best(scheme) if scheme in cell.rows else None
        if ratio is not None and ratio < floor:
            found.append((ratio, cell))
    return sorted(found, key=lambda pair: pair[0])


def _ratio(own: float, other: float) -> float:
    """Return a limited ratio; 1 if both are 0."""
    if own == other:
        return 1.0
    ratio = own / other if other else math.inf
    return min(max(ratio, LEAST_RATIO), MOST_RATIO)
