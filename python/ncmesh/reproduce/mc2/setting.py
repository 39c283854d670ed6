"""Figures 6 and 7: meshes, the flows drawn in them, runs over 1 to 6 paths, and what could be reached."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ncmesh import mc2
from ncmesh.campaign import Run
from ncmesh.extra import load
from ncmesh.reproduce.experiment import Case, Rows, Scale
from ncmesh.reproduce.mc2 import freifunk, roofnet
from ncmesh.reproduce.mc2.mesh import Flow, Matrix, Mesh, Slots, slots_of
from ncmesh.reproduce.piece import Piece

PATHS = (1, 2, 4, 6)
SEVERAL = PATHS[1:]
# Pairs are drawn that links of this delivery join, there and back; nodes use those from half of it on.
USED = 0.1
# A flow loses or gains nothing that runs could tell within so much of the ratio.
NOTHING = 0.02


@dataclass(frozen=True)
class Family:
    """Meshes by their number; a mesh that there is once stands under every number."""

    name: str
    mesh: Callable[[int], Mesh]


def _generated(bit_rate: float) -> Family:
    name = f"generated, {bit_rate / 1e6:g} Mbit/s"
    return Family(name, lambda number: roofnet.mesh(number, bit_rate))


def _measured(community: str) -> Family:
    return Family(f"Freifunk {community}", lambda _: freifunk.mesh(community))


GENERATED, GENERATED_FAST = _generated(5.5e6), _generated(11e6)
STUTTGART, LEIPZIG = (_measured(community) for community in freifunk.COMMUNITIES)


@dataclass(frozen=True)
class Instance:
    """A mesh with flows."""

    family: Family
    number: int
    place: int
    """Among the instances of the same number."""
    flows: tuple[Flow, ...]

    @property
    def mesh(self) -> Mesh:
        """Where the flows are."""
        return self.family.mesh(self.number)

    def case(self, paths: int) -> Case:
        """Of the run over so many paths."""
        return Case(f"{self.family.name}, instance {self.place}, {paths} paths", self.number)


@functools.cache
def instances(family: Family, flows: int, scale: Scale) -> list[Instance]:
    """A hundred in full: ten in each of ten meshes, or all in one."""
    return [
        Instance(family, number, place, drawn)
        for number in scale.indices
        for place, drawn in enumerate(_drawn(family.mesh(number), number, flows, per_number(scale)), 1)
    ]


def per_number(scale: Scale) -> int:
    """Instances under each number."""
    return max(1, scale.trials // 100)


def _drawn(mesh: Mesh, number: int, flows: int, count: int) -> Iterator[tuple[Flow, ...]]:
    """Pairs of nodes with paths there and back, at random from the number; in an instance none twice."""
    joined = _joined(mesh)
    draw = random.Random(1000 + number)
    for _ in range(count):
        chosen: list[Flow] = []
        while len(chosen) < flows:
            source, destination = draw.sample(range(len(mesh.delivery)), 2)
            if (source, destination) not in chosen and joined[source] == joined[destination]:
                chosen.append((source, destination))
        yield tuple(chosen)


def _joined(mesh: Mesh) -> dict[int, int]:
    """By node, which part of the mesh it is in, all of whose nodes reach each other."""
    graph = load("networkx").DiGraph(np.argwhere(mesh.delivery >= USED).tolist())
    graph.add_nodes_from(range(len(mesh.delivery)))
    parts = enumerate(load("networkx").strongly_connected_components(graph))
    return {node: part for part, nodes in parts for node in nodes}


def slots(scale: Scale) -> Slots:
    """A quarter as long as in the simple topologies, after as much of a warm-up."""
    whole = slots_of(scale)
    return Slots(whole.warm_up, whole.measured // 4)


def runs(families: Sequence[Family], flows: int, scale: Scale) -> dict[Case, Run]:
    """Of all instances over 1, 2, 4 and 6 paths; of mesh k with seed k."""
    return {
        of.case(paths): of.mesh.run(of.flows, paths, of.number, slots(scale))
        for family in families
        for of in instances(family, flows, scale)
        for paths in PATHS
    }


def rates(rows: Rows, of: Instance, paths: int, scale: Scale) -> list[float]:
    """Of each flow, innovative frames that its destination heard, per slot."""
    return [flow["innovative"] / slots(scale).measured for flow in rows.rows[of.case(paths)]["flows"]]


def delivered(rows: Rows, of: Instance, paths: int) -> list[float]:
    """Of each flow, packets that its destination handed on in their order, per slot."""
    return [flow["packets_per_slot"] for flow in rows.rows[of.case(paths)]["flows"]]


def over_numbers(found: Mapping[Instance, float]) -> list[list[float]]:
    """Values by the number of their mesh, for a bootstrap."""
    numbers = sorted({of.number for of in found})
    return [[value for of, value in found.items() if of.number == number] for number in numbers]


def share_above(limit: float) -> Callable[[list[float]], float]:
    """The share of values above a limit; 0 of none."""
    return lambda values: sum(value > limit for value in values) / len(values) if values else 0.0


def optima(
    families: Sequence[Family],
    flows: int,
    utility: mc2.Utility,
    conflicts: Sequence[mc2.Conflict],
    scale: Scale,
) -> Mapping[Hashable, Piece]:
    """What could be reached in each instance."""
    return {
        (of, conflict): Piece(
            optimum,
            {
                "delivery": of.mesh.delivery,
                "flows": of.flows,
                "utility": utility,
                "conflict": conflict,
            },
        )
        for family in families
        for of in instances(family, flows, scale)
        for conflict in conflicts
    }


def optimum(
    delivery: Matrix, flows: Sequence[Flow], utility: mc2.Utility, conflict: mc2.Conflict
) -> dict[int, list[float]]:
    """Packets per slot of each flow at the optimum over so many paths."""
    best = {k: mc2.optimum(delivery, flows, utility, conflict=conflict, paths=k) for k in PATHS}
    return {k: [float(rate) for rate in of["rates"]] for k, of in best.items()}


def size(scale: Scale) -> dict[str, str]:
    """For the head of the page."""
    count, length = scale.topologies, slots(scale)
    return {
        "meshes": f"{count} generated, each with {per_number(scale)} draws of flows; "
        f"{count * per_number(scale)} draws in each measured one",
        "their runs": f"{length.measured:,} slots after {length.warm_up:,}",
    }
