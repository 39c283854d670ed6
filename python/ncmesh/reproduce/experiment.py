"""An experiment: its runs, and what is found in their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh.reproduce.claims import Claim

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Scale:
    """How large an experiment is."""

    name: str
    topologies: int
    receivers: int
    file_bytes: int
    limit_s: float
    knobs: tuple[float, ...]
    lab: str | None = None
    """The program `ncmesh` for experiments in the lab of real daemons; without it there are none."""

    @property
    def indices(self) -> range:
        """Topologies are numbered from 1; the number is the seed of all that is drawn for it."""
        return range(1, self.topologies + 1)


@dataclass(frozen=True)
class Case:
    """One run's place in an experiment."""

    variant: str
    topology: int


class Rows:
    """What came of an experiment's runs."""

    def __init__(self, rows: Mapping[Case, Row]) -> None:
        self.rows = rows
        self.topologies = sorted({case.topology for case in rows})

    def throughputs(self, variant: str, topology: int) -> list[float]:
        """Of each receiver, bit/s; 0 for one that never had all."""
        receivers = self.rows[Case(variant, topology)]["receivers"] or []
        return [receiver["throughput_bps"] or 0.0 for receiver in receivers]

    def pooled(self, variant: str) -> list[list[float]]:
        """Throughputs of all receivers, by topology."""
        return [self.throughputs(variant, k) for k in self.topologies]

    def average(self, variant: str) -> list[float]:
        """Average throughput of each topology's receivers."""
        return [sum(values) / len(values) for values in self.pooled(variant)]

    def worst(self, variant: str) -> list[float]:
        """Throughput of each topology's worst receiver."""
        return [min(values) for values in self.pooled(variant)]

    def best(self, variant: str) -> list[float]:
        """Throughput of each topology's best receiver."""
        return [max(values) for values in self.pooled(variant)]

    def of(self, variant: str, column: str) -> list[float]:
        """A column of the runs', by topology; of lists, their length."""
        values = [self.rows[Case(variant, k)][column] for k in self.topologies]
        return [float(len(value) if isinstance(value, list) else value) for value in values]


@dataclass(frozen=True)
class Findings:
    """What an experiment found."""

    claims: Sequence[Claim]
    table: Sequence[Mapping[str, Any]]
    """The numbers of its figure, a row each."""
    figure: Figure


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper."""

    name: str
    title: str
    reading: str
    """How the paper is read: what is averaged over what, and what it leaves open."""
    runs: Callable[[Scale], Mapping[Case, Run]]
    findings: Callable[[Rows, Scale], Findings]
