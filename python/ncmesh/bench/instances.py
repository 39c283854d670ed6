"""
Random groups and pairs of each mesh: one source and its receivers, the same on every machine.

Two nodes are neighbours if a full frame passes in each direction with a probability of at least
`LEAST_DELIVERY`. Sources and receivers come from the largest set of nodes that such links connect,
so every receiver is reached, and answers, over links that can be used. Numbers count from 1; the
draw depends on mesh, service and number only, so that all schemes, sizes and link powers meet the
same groups.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncmesh.bench.meshes import Matrix, Mesh

LEAST_DELIVERY = 0.1
RECEIVERS = 4


# Seeds from one draw of an instance to the next.
DRAW_SEEDS = 1000


@dataclass(frozen=True)
class Instance:
    """One source and its receivers, and what is sent to them."""

    mesh: Mesh
    service: str
    case: str
    """Traffic; see the module of the service."""
    number: int
    source: str
    receivers: tuple[str, ...]
    rate_bps: int | None = None
    """Rate that is offered, where the case has one."""
    draw: int = 0
    """Number of the draw: each has a seed of its own."""

    @property
    def seed(self) -> int:
        """Seed of all random draws of its runs."""
        return self.number + DRAW_SEEDS * self.draw

    @property
    def title(self) -> str:
        """Name for people."""
        return f"{self.mesh.title}, {self.case}, {self.number}"

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of its runs, for people and for the table."""
        return {
            "mesh": self.mesh.name,
            "link_power": self.mesh.link_power,
            "case": self.case,
            "instance": self.number,
        }

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """Values that tell it apart from all other instances."""
        return (self.service, self.mesh.name, self.mesh.link_power or "", self.case, self.number)


def connected(delivery: Matrix) -> list[int]:
    """Return the largest set of nodes that links of `LEAST_DELIVERY` both ways connect."""
    usable = (delivery >= LEAST_DELIVERY) & (delivery.T >= LEAST_DELIVERY)
    left = set(range(len(delivery)))
    largest: set[int] = set()
    while left:
        reached: set[int] = set()
        edge = {min(left)}
        while edge:
            reached |= edge
            edge = {int(j) for i in edge for j in np.flatnonzero(usable[i])} - reached
        left -= reached
        largest = max(largest, reached, key=len)
    return sorted(largest)


def group(
    mesh: Mesh, service: str, number: int, receivers: int | None, *, is_gateway: bool = False
) -> tuple[str, list[str]]:
    """
    Draw a source and `receivers` other nodes: all for `None`, fewer where the mesh has fewer.

    With `is_gateway` the source is the gateway of the mesh, if it has one.
    """
    nodes = connected(mesh.delivery)
    draw = random.Random(f"{mesh.name}/{service}/{number}")
    source = draw.choice(nodes)
    if is_gateway and mesh.gateway is not None:
        source = mesh.names.index(mesh.gateway)
    others = [node for node in nodes if node != source]
    if receivers is not None:
        others = sorted(draw.sample(others, min(receivers, len(others))))
    return mesh.names[source], [mesh.names[node] for node in others]
