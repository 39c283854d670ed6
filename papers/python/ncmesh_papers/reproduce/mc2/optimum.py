"""How near runs come to the optimum, and whether the schedule or the engine keeps them from it."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh_papers import mc2
from ncmesh_papers.reproduce.claims import SHARE, Claim, holds, over_topologies
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.mc2 import ideal
from ncmesh_papers.reproduce.mc2.examples import Q
from ncmesh_papers.reproduce.mc2.mesh import Flow, Matrix, Mesh, across, diamond, hexagon, slots_of
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

# Our targets.
SIMPLE, RANDOM = 0.97, 0.9
# The engine's K.
K = 3.0
DELIVERIES = (0.2, 0.5, 0.8)
# Random meshes: their number, their nodes, the probability of a link, and its least delivery.
MESHES, NODES, JOINED, LEAST = 12, 8, 0.4, 0.2
# Delivery between neighbours in the grid and the line.
NEIGHBOUR = 0.7
IDEAL_SLOTS = 20_000
# Request timeout of a destination that hardly ever asks, in ms.
PATIENT = 5000
PARTS = ("best", "greedy", "patient", "engine")


@dataclass(frozen=True)
class Instance:
    """Flows in a mesh, over `paths` paths each."""

    kind: str
    mesh: Mesh
    flows: tuple[Flow, ...]
    paths: int
    number: int

    @property
    def case(self) -> Case:
        """The case of its run."""
        return Case(f"{self.mesh.name}, {self.paths} paths", self.number)

    @property
    def patient(self) -> Case:
        """The case of its run with a long request timeout."""
        return Case(f"{self.case.variant}, patient", self.number)


@functools.cache
def random_mesh(number: int) -> Mesh:
    """Return a random mesh with symmetric links, two paths and no direct link between its ends."""
    draw = np.random.default_rng(number)
    last = NODES - 1
    while True:
        delivery = np.zeros((NODES, NODES))
        for i, j in itertools.combinations(range(NODES), 2):
            if draw.random() < JOINED:
                delivery[i, j] = delivery[j, i] = draw.uniform(LEAST, 1.0)
        if delivery[0, last] == 0 and len(mc2.best_paths(delivery, 0, last, k=2)) > 1:
            return Mesh(f"random mesh {number}", delivery)


def _joined(nodes: int, pairs: Sequence[tuple[int, int]]) -> Matrix:
    delivery = np.zeros((nodes, nodes))
    for i, j in pairs:
        delivery[i, j] = delivery[j, i] = NEIGHBOUR
    return delivery


def _several() -> list[Instance]:
    """Return meshes with several flows."""
    beside = [(i, i + 1) for i in range(9) if i % 3 < 2]
    grid = Mesh("grid of nine", _joined(9, [*beside, *((i, i + 3) for i in range(6))]))
    line = Mesh("line of four", _joined(4, [(0, 1), (1, 2), (2, 3)]))
    crossing = Mesh("two that cross", _joined(5, [(0, 4), (1, 4), (2, 4), (3, 4)]))
    shared = Mesh(
        "three over two relays", _joined(8, [(i, j) for i in (0, 1, 2, 5, 6, 7) for j in (3, 4)])
    )
    kind = "several flows"
    return [
        Instance(kind, crossing, ((0, 2), (1, 3)), 4, 1),
        Instance(kind, shared, ((0, 5), (1, 6), (2, 7)), 4, 1),
        Instance(kind, line, ((0, 3), (1, 2)), 4, 1),
        Instance(kind, grid, ((0, 8), (2, 6), (3, 5), (1, 7)), 4, 1),
    ]


def instances(scale: Scale) -> list[Instance]:
    """Return all instances."""
    simple = [mesh(p, Q) for mesh in (diamond, hexagon) for p in DELIVERIES]
    found = [Instance("diamond and hexagon", mesh, tuple(across(mesh)), 2, 1) for mesh in simple]
    for paths in (2, 4):
        for number in range(1, _random_meshes(scale) + 1):
            mesh = random_mesh(number)
            found.append(
                Instance(f"eight nodes, {paths} paths", mesh, tuple(across(mesh)), paths, number)
            )
    return found + _several()


def bounds(
    delivery: Matrix, flows: Sequence[Flow], paths: int, slots: int, seed: int
) -> dict[str, list[float]]:
    """Return packets per slot at the optimum, and of credits alone with either schedule."""
    utility: mc2.Utility = "log" if len(flows) > 1 else "sum"
    best = mc2.optimum(delivery, flows, utility, paths=paths)
    return {
        "optimum": [float(rate) for rate in best["rates"]],
        "best": ideal.simulate(delivery, flows, paths, K, "best", slots, seed),
        "greedy": ideal.simulate(delivery, flows, paths, K, "greedy", slots, seed),
    }


def _runs(scale: Scale) -> Mapping[Case, Run]:
    made = {}
    for of in instances(scale):
        for case, settings in ((of.case, {"k": K}), (of.patient, {"k": K, "request_ms": PATIENT})):
            made[case] = of.mesh.run(of.flows, of.paths, of.number, slots_of(scale), settings)
    return made


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    slots = min(IDEAL_SLOTS, scale.slots // 10)
    return {
        of.case: Piece(
            bounds,
            {
                "delivery": of.mesh.delivery,
                "flows": of.flows,
                "paths": of.paths,
                "slots": slots,
                "seed": of.number,
            },
        )
        for of in instances(scale)
    }


def shares(rows: Rows, of: Instance, scale: Scale) -> dict[str, float]:
    """Return the geometric mean of the flows' rates over the optimum's, by part."""
    found = dict(rows.computed[of.case])
    slots = slots_of(scale).measured
    for part, case in (("engine", of.case), ("patient", of.patient)):
        found[part] = [flow["innovative"] / slots for flow in rows.rows[case]["flows"]]
    best = _mean(found["optimum"])
    return {part: _mean(found[part]) / best for part in PARTS}


def _mean(rates: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, rates))) if min(rates) > 0 else 0.0


def _target_claim(kind: str, target: float, found: Sequence[float]) -> Claim:
    below = sum(share < target for share in found)
    ours = f"{below} of {len(found)} below; {SHARE.spread(over_topologies(found))}"
    return holds(
        f"{kind}: each run at least {target:.0%} of the optimum (target)", ours, below == 0
    )


def _part_claims(kind: str, found: Sequence[Mapping[str, float]]) -> list[Claim]:
    """Judge which part causes the difference from the optimum."""
    mean = {part: fmean(of[part] for of in found) for part in PARTS}
    labels = {
        "best": "credits alone",
        "greedy": "by maximal sets",
        "patient": "the engine",
        "engine": "with early requests",
    }
    said = ", ".join(f"{label} {SHARE.write(mean[part])}" for part, label in labels.items())
    most = mean["best"] - mean["greedy"] >= mean["greedy"] - mean["engine"]
    return [holds(f"{kind}: maximal scheduling costs more than the engine", said, most)]


def _kinds(rows: Rows, scale: Scale) -> dict[str, list[dict[str, float]]]:
    kinds: dict[str, list[dict[str, float]]] = {}
    for of in instances(scale):
        kinds.setdefault(of.kind, []).append(shares(rows, of, scale))
    return kinds


def _figure(kinds: Mapping[str, Sequence[Mapping[str, float]]]) -> Figure:
    figure, axes = panels(len(kinds))
    for panel, (kind, found) in zip(axes, kinds.items(), strict=True):
        for part in PARTS:
            panel.plot(range(1, len(found) + 1), [of[part] for of in found], marker="o", label=part)
        panel.set_title(kind, fontsize="medium")
        panel.set_xlabel("mesh")
        panel.set_ylabel("share of the optimum")
        panel.set_ylim(0, 1.2)
        panel.legend(fontsize="small")
    return figure


def _table(rows: Rows, scale: Scale) -> list[dict[str, Any]]:
    return [
        {"kind": of.kind, "mesh": of.mesh.name, "paths": of.paths}
        | {part: round(share, 4) for part, share in shares(rows, of, scale).items()}
        for of in instances(scale)
    ]


def _size(scale: Scale) -> dict[str, str]:
    slots, random = slots_of(scale), _random_meshes(scale)
    return {
        "scale": f"{scale.name}: {slots.measured:,} slots after {slots.warm_up:,}",
        "seeds": f"1; a random mesh has its number, 1 to {random}",
    }


def _random_meshes(scale: Scale) -> int:
    return min(MESHES, scale.topologies + 2)


def _findings(rows: Rows, scale: Scale) -> Findings:
    kinds = _kinds(rows, scale)
    claims = []
    for kind, found in kinds.items():
        target = SIMPLE if kind.startswith("diamond") else RANDOM
        claims.append(_target_claim(kind, target, [of["engine"] for of in found]))
        claims += _part_claims(kind, found)
    return Findings(claims, _table(rows, scale), _figure(kinds))


EXPERIMENT = Experiment(
    name="mc2-optimum",
    title="The optimum, maximal scheduling, and the engine",
    reading=(
        "Shares of the linear program's optimum over the same paths. *best*: credits as 3.4 "
        "prints them, a code that never ends, no headers; the set of nodes with the largest sum "
        "of W sends. *greedy*: the same, but nodes send in order of W without conflicts, as in "
        "the runs. *patient*: runs in which a destination asks for missing packets after "
        f"{PATIENT / 1000:g} s. *engine*: runs with the default setting. The steps from 1 on show "
        "the cost of K, of maximal scheduling, of the engine (generations, headers, late "
        f"knowledge), and of requests for packets that are only slow. {MESHES} random meshes of "
        f"{NODES} nodes have links with probability {JOINED:g} and deliveries even from {LEAST:g} "
        "to 1. With several flows rates are geometric means, and the optimum is proportionally "
        "fair. Rates count innovative packets. The targets are ours, not the paper's."
    ),
    runs=_runs,
    findings=_findings,
    pieces=_pieces,
    size=_size,
)
