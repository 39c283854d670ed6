"""Figures 6 and 7: meshes, random flows, runs over 1 to 6 paths, and their optima."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ncmesh.campaign import Run
from ncmesh_papers import mc2
from ncmesh_papers.reproduce.experiment import Case, Rows, Scale
from ncmesh_papers.reproduce.mc2 import freifunk, roofnet
from ncmesh_papers.reproduce.mc2.mesh import Flow, Matrix, Mesh, Slots, slots_of
from ncmesh_papers.reproduce.piece import Piece

PATHS = (1, 2, 4, 6)
SEVERAL = PATHS[1:]
# Least delivery of the links that join a pair, in both directions. Nodes use links from half of it
# on.
USED = 0.1
# Gain that the link state must promise before a source uses further paths: the engine's default.
LEAST_GAIN = 0.1
# Changes below this share of the ratio are not distinguishable in runs.
NOTHING = 0.02


@dataclass(frozen=True)
class Family:
    """Meshes by number. A single measured mesh has every number."""

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
    """Index among the instances of the same number."""
    flows: tuple[Flow, ...]

    @property
    def mesh(self) -> Mesh:
        """The mesh."""
        return self.family.mesh(self.number)

    def case(self, paths: int) -> Case:
        """Return the case of the run over `paths` paths."""
        return Case(f"{self.family.name}, instance {self.place}, {paths} paths", self.number)


@functools.cache
def instances(family: Family, flows: int, scale: Scale) -> list[Instance]:
    """Return a hundred instances at full scale: ten in each of ten meshes, or all in one."""
    return [
        Instance(family, number, place, drawn)
        for number in scale.indices
        for place, drawn in enumerate(
            _drawn(family.mesh(number), number, flows, per_number(scale)), 1
        )
    ]


def per_number(scale: Scale) -> int:
    """Return the number of instances in each mesh."""
    return max(1, scale.trials // 100)


def _drawn(mesh: Mesh, number: int, flows: int, count: int) -> Iterator[tuple[Flow, ...]]:
    """Draw pairs of nodes that reach each other, from the number; none twice in an instance."""
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
    """Return for each node its part of the mesh, in which all nodes reach each other."""
    import networkx as nx  # Imported when needed: networkx takes a second.

    graph = nx.DiGraph(np.argwhere(mesh.delivery >= USED).tolist())
    graph.add_nodes_from(range(len(mesh.delivery)))
    parts = enumerate(nx.strongly_connected_components(graph))
    return {node: part for part, nodes in parts for node in nodes}


def slots(scale: Scale) -> Slots:
    """Return a quarter of the slots of the simple topologies, after the same warm-up."""
    whole = slots_of(scale)
    return Slots(whole.warm_up, whole.measured // 4)


def runs(families: Sequence[Family], flows: int, scale: Scale) -> dict[Case, Run]:
    """Return the runs of all instances over 1, 2, 4 and 6 paths; mesh k has seed k."""
    return {
        of.case(paths): of.mesh.run(
            of.flows, paths, of.number, slots(scale), {"least_gain": LEAST_GAIN}
        )
        for family in families
        for of in instances(family, flows, scale)
        for paths in PATHS
    }


def rates(rows: Rows, of: Instance, paths: int, scale: Scale) -> list[float]:
    """Return the innovative frames that each flow's destination received, per slot."""
    return [
        flow["innovative"] / slots(scale).measured for flow in rows.rows[of.case(paths)]["flows"]
    ]


def delivered(rows: Rows, of: Instance, paths: int) -> list[float]:
    """Return the packets that each flow's destination delivered in order, per slot."""
    return [flow["packets_per_slot"] for flow in rows.rows[of.case(paths)]["flows"]]


def over_numbers(found: Mapping[Instance, float]) -> list[list[float]]:
    """Return values grouped by the number of their mesh, for a bootstrap."""
    numbers = sorted({of.number for of in found})
    return [[value for of, value in found.items() if of.number == number] for number in numbers]


def share_above(limit: float) -> Callable[[list[float]], float]:
    """Return a function for the share of values above a limit; 0 without values."""
    return lambda values: sum(value > limit for value in values) / len(values) if values else 0.0


def optima(
    families: Sequence[Family],
    flows: int,
    utility: mc2.Utility,
    conflicts: Sequence[mc2.Conflict],
    scale: Scale,
) -> Mapping[Hashable, Piece]:
    """Return pieces with the optimum of each instance."""
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
    """Return the packets per slot of each flow at the optimum, by number of paths."""
    best = {k: mc2.optimum(delivery, flows, utility, conflict=conflict, paths=k) for k in PATHS}
    return {k: [float(rate) for rate in of["rates"]] for k, of in best.items()}


def size(scale: Scale) -> dict[str, str]:
    """Return the size of the experiments, for the page."""
    count, length = scale.topologies, slots(scale)
    return {
        "meshes": f"{count} generated, each with {per_number(scale)} draws of flows; "
        f"{count * per_number(scale)} draws in each measured one",
        "their runs": f"{length.measured:,} slots after {length.warm_up:,}",
    }
