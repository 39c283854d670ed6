"""An experiment: its runs, and what is found in their rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh.reproduce.claims import Claim
from ncmesh.reproduce.piece import Piece

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
    trials: int
    """Of each point that a Monte-Carlo computes."""
    loss_step: float
    """Between neighbouring points of a curve over loss that is computed."""
    slots: int
    """Of the longest runs of the slotted model."""
    flow_s: float
    """How long flows through tunnels run."""
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
    """What came of an experiment's runs and pieces."""

    def __init__(self, rows: Mapping[Case, Row], computed: Mapping[Hashable, Any] | None = None) -> None:
        self.rows = rows
        self.computed = computed or {}
        """Values of pieces, by their names."""
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


def of_meshes(scale: Scale) -> dict[str, str]:
    """How large experiments in simulated meshes are, for the head of a page."""
    size = f"{scale.file_bytes / 1e6:g} MB"
    return {
        "scale": f"{scale.name}: {scale.topologies} topologies, {scale.receivers} receivers, {size}",
        "seeds": f"1 to {scale.topologies}: number k of a topology is the seed of all drawn for it",
    }


def no_runs(_: Scale) -> Mapping[Case, Run]:
    """Of an experiment for which no mesh is simulated."""
    return {}


def no_pieces(_: Scale) -> Mapping[Hashable, Piece]:
    """Of an experiment that is simulated whole."""
    return {}


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper: from runs in simulated meshes, from pieces that are computed, or both."""

    name: str
    title: str
    reading: str
    """How the paper is read: what is averaged over what, and what it leaves open."""
    findings: Callable[[Rows, Scale], Findings]
    runs: Callable[[Scale], Mapping[Case, Run]] = no_runs
    pieces: Callable[[Scale], Mapping[Hashable, Piece]] = no_pieces
    """By names of the experiment's own."""
    size: Callable[[Scale], Mapping[str, str]] = of_meshes
    """Rows of the page's head that say how large it is."""
