"""Meshes given by delivery probabilities, and runs in them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncmesh.campaign import Run, Scenario
from ncmesh_papers.reproduce.experiment import Scale

Matrix = NDArray[np.float64]
Flow = tuple[int, int]
"""Indices of source and destination."""

# Slotted access. Two nodes that hear each other, or that a third hears, do not send together.
MEDIUM = {"phy": "802.11b", "mac": "slotted", "conflict": "shared_hearer"}
BIT_RATE = 11e6
MTU, MAC_OVERHEAD = 1500, 36
PREAMBLE_S = 192e-6
# Probes of each link, from which nodes know it.
PROBES = 1000


@dataclass(frozen=True)
class Slots:
    """Length of a run."""

    warm_up: int
    measured: int


def slots_of(scale: Scale) -> Slots:
    """Return the slots that carry the paper's 15 MB at the rates of its simple topologies."""
    measured = scale.slots // 25
    return Slots(measured // 10, measured)


def slot_s(bit_rate: float) -> float:
    """Return the duration of a slot, which holds one frame of the MTU."""
    return PREAMBLE_S + 8 * (MTU + MAC_OVERHEAD) / bit_rate


@dataclass(frozen=True)
class Mesh:
    """`delivery[i, j]` is the probability that `j` receives what `i` sends; 0 is no link."""

    name: str
    delivery: Matrix
    bit_rate: float = BIT_RATE
    """Bit rate of frames; only the duration of a slot depends on it."""

    def scenario(self, flows: Sequence[Flow], slots: Slots) -> Scenario:
        """Return the scenario of backlogged flows, in slots."""
        length = slot_s(self.bit_rate)
        duration = {"warm_up_s": length * slots.warm_up, "seconds": length * slots.measured}
        names = self._names
        return Scenario(
            {
                "name": "mc2-mesh",
                "sealed": False,
                "nodes": names,
                "medium": {**MEDIUM, "bit_rate": int(self.bit_rate), "mtu": MTU},
                "link": self._links,
                "measure": {"seconds": float(PROBES), "bytes": MTU, "period_s": 1.0},
                "flow": [{"from": names[a], "to": names[b], **duration} for a, b in flows],
            }
        )

    def run(
        self,
        flows: Sequence[Flow],
        paths: int,
        seed: int,
        slots: Slots,
        settings: Mapping[str, Any] | None = None,
    ) -> Run:
        """Return MC2's run over `paths` paths, whatever they promise, with other settings of it."""
        changes = {
            f"protocol.mc2.{key}": value
            for key, value in {"paths": paths, "least_gain": 0.0, **(settings or {})}.items()
        }
        parameters = {"mesh": self.name, "flows": [list(flow) for flow in flows], **changes}
        return Run(self.scenario(flows, slots).varied(changes), "mc2", seed, None, parameters)

    @functools.cached_property
    def _names(self) -> list[str]:
        return [f"n{node}" for node in range(1, len(self.delivery) + 1)]

    @functools.cached_property
    def _links(self) -> list[dict[str, Any]]:
        names, loss = self._names, 1 - self.delivery
        pairs = itertools.combinations(range(len(names)), 2)
        return [
            {
                "from": names[i],
                "to": names[j],
                "loss": float(loss[i, j]),
                "loss_back": float(loss[j, i]),
            }
            for i, j in pairs
            if min(loss[i, j], loss[j, i]) < 1
        ]


def _both_ways(nodes: int, links: Sequence[tuple[int, int, float]]) -> Matrix:
    delivery = np.zeros((nodes, nodes))
    for i, j, p in links:
        delivery[i, j] = delivery[j, i] = p
    return delivery


def diamond(p: float, q: float, relays: int = 2) -> Mesh:
    """Return figure 1(b) with any number of relays; the source is first, the destination last."""
    last = relays + 1
    hops = [(0, relay, p) for relay in range(1, last)] + [
        (relay, last, q) for relay in range(1, last)
    ]
    return Mesh(f"diamond, {relays} relays, p = {p:g}, q = {q:g}", _both_ways(relays + 2, hops))


def hexagon(p: float, q: float) -> Mesh:
    """Return figure 1(a), 1-2-3-4 and 1-5-6-4; the destination, the paper's node 4, is last."""
    hops = [(0, 1, p), (0, 3, p), (1, 2, q), (2, 5, q), (3, 4, q), (4, 5, q)]
    return Mesh(f"hexagon, p = {p:g}, q = {q:g}", _both_ways(6, hops))


def across(mesh: Mesh) -> list[Flow]:
    """Return the flow of an example, from its first node to its last."""
    return [(0, len(mesh.delivery) - 1)]


def rate(row: Mapping[str, Any]) -> float:
    """Return packets per slot of all flows of a run."""
    return float(sum(flow["packets_per_slot"] for flow in row["flows"]))
