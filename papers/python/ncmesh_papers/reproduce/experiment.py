"""
An experiment: its runs, its pieces, and what it finds in their results.

A paper's module defines an `Experiment` for each figure or table. `runs` and `pieces` name what has
to be computed at a `Scale`; `findings` turns the results (`Rows`) into claims, a table and a
figure.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh_papers.reproduce.claims import Claim
from ncmesh_papers.reproduce.piece import Piece

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Scale:
    """Size of an experiment."""

    name: str
    topologies: int
    receivers: int
    file_bytes: int
    limit_s: float
    knobs: tuple[float, ...]
    trials: int
    """Trials of each point of a Monte-Carlo."""
    loss_step: float
    """Step between the points of a computed curve over loss."""
    slots: int
    """Slots of the longest run of a slotted model."""
    flow_s: float
    """Length of flows through tunnels."""
    lab: str | None = None
    """Program `ncmesh` for runs in the lab of real daemons; `None` skips them."""

    @property
    def indices(self) -> range:
        """Numbers of topologies, from 1. The number is the seed of everything in a topology."""
        return range(1, self.topologies + 1)


@dataclass(frozen=True)
class Case:
    """Key of a run in an experiment."""

    variant: str
    topology: int


class Rows:
    """Results of an experiment's runs and pieces."""

    def __init__(
        self, rows: Mapping[Case, Row], computed: Mapping[Hashable, Any] | None = None
    ) -> None:
        self.rows = rows
        self.computed = computed or {}
        """Values of pieces by name."""
        self.topologies = sorted({case.topology for case in rows})

    def throughputs(self, variant: str, topology: int) -> list[float]:
        """Return each receiver's throughput in bit/s; 0 without the whole file."""
        receivers = self.rows[Case(variant, topology)]["receivers"] or []
        return [receiver["throughput_bps"] or 0.0 for receiver in receivers]

    def pooled(self, variant: str) -> list[list[float]]:
        """Return the throughputs of all receivers by topology."""
        return [self.throughputs(variant, k) for k in self.topologies]

    def average(self, variant: str) -> list[float]:
        """Return the average throughput of each topology."""
        return [sum(values) / len(values) for values in self.pooled(variant)]

    def worst(self, variant: str) -> list[float]:
        """Return the throughput of each topology's worst receiver."""
        return [min(values) for values in self.pooled(variant)]

    def best(self, variant: str) -> list[float]:
        """Return the throughput of each topology's best receiver."""
        return [max(values) for values in self.pooled(variant)]

    def of(self, variant: str, column: str) -> list[float]:
        """Return a column of the runs by topology; for columns of lists their lengths."""
        values = [self.rows[Case(variant, k)][column] for k in self.topologies]
        return [float(len(value) if isinstance(value, list) else value) for value in values]


@dataclass(frozen=True)
class Findings:
    """Results of an experiment."""

    claims: Sequence[Claim]
    table: Sequence[Mapping[str, Any]]
    """Rows with the numbers of the figure."""
    figure: Figure


def of_meshes(scale: Scale) -> dict[str, str]:
    """Return the size of experiments in simulated meshes, for the page."""
    size = f"{scale.file_bytes / 1e6:g} MB"
    return {
        "scale": f"{scale.name}: {scale.topologies} topologies, {scale.receivers} receivers, "
        f"{size}",
        "seeds": f"1 to {scale.topologies}: topology k and everything drawn in it have seed k",
    }


def no_runs(_: Scale) -> Mapping[Case, Run]:
    """Runs of an experiment that simulates no mesh."""
    return {}


def no_pieces(_: Scale) -> Mapping[Hashable, Piece]:
    """Pieces of an experiment that only simulates meshes."""
    return {}


@dataclass(frozen=True)
class Experiment:
    """A figure or table of a paper, from runs in simulated meshes and computed pieces."""

    name: str
    title: str
    reading: str
    """How the paper is read: what is averaged over what, and what the paper leaves open."""
    findings: Callable[[Rows, Scale], Findings]
    runs: Callable[[Scale], Mapping[Case, Run]] = no_runs
    pieces: Callable[[Scale], Mapping[Hashable, Piece]] = no_pieces
    """Pieces by names that only this experiment uses."""
    size: Callable[[Scale], Mapping[str, str]] = of_meshes
    """Number, length and seeds of runs, for the page."""
