"""
Meshes of the scoreboard that a rule makes: lines, a star, a tree, dense meshes and clusters.

Losses are those of the links alone. All are drawn from seeds of their own, so that every run meets
the same mesh.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from typing import Any

from ncmesh.campaign.scenario import Scenario

RADIO = {"phy": "802.11b", "bit_rate": "11M"}
# Loss between nodes two hops apart, as in scenarios/line.toml.
NEXT_BUT_ONE = 0.8

# Dense meshes lie on a unit square. Up to the first distance nothing is lost, beyond the second
# one everything; between them loss rises, with a deviation of its own for each direction. So 60
# nodes have some 30 neighbours each, and most pairs are one or two hops apart.
NEAR, FAR = 0.4, 0.55
DEVIATION = 0.15
# Links that lose more are left out.
MOST_LOSS = 0.95

# Loss of the single links that join clusters.
BRIDGE_LOSS = 0.2

# Name of the first node of a star and of a tree, which are small: their gateway.
FIRST = "n1"

Point = tuple[float, float]


def line(hops: int, loss: float) -> Scenario:
    """Return nodes in a row; each hears its neighbours, and seldom the next but one."""
    names = _names(hops + 1)
    far = [_link(a, b, NEXT_BUT_ONE) for a, b in zip(names, names[2:], strict=False)]
    return _scenario(names, [*_row(names, loss), *far])


def hidden_line(hops: int, loss: float) -> Scenario:
    """Return nodes in a row that hear their neighbours and nobody else."""
    names = _names(hops + 1)
    return _scenario(names, _row(names, loss))


def star(clients: int, loss: float) -> Scenario:
    """Return a gateway, the first node, and clients that hear it and not each other."""
    names = _names(clients + 1)
    return _scenario(names, [_link(names[0], client, loss) for client in names[1:]])


def tree(depth: int, loss: float) -> Scenario:
    """Return a binary tree, whose nodes hear their parents and children and nobody else."""
    names = _names(2 ** (depth + 1) - 1)
    above = ((names[(node - 1) // 2], names[node]) for node in range(1, len(names)))
    return _scenario(names, [_link(parent, child, loss) for parent, child in above])


def dense(nodes: int, seed: int) -> Scenario:
    """Return nodes on a square of which most hear half of the others without loss."""
    draw = random.Random(f"dense/{nodes}/{seed}")
    names = _names(nodes)
    points = [(draw.random(), draw.random()) for _ in names]
    return _scenario(names, _links(names, points, draw))


def clustered(clusters: int, nodes: int, seed: int) -> Scenario:
    """Return dense clusters in a ring, each joined to the next by a single link."""
    draw = random.Random(f"clustered/{clusters}/{nodes}/{seed}")
    names = _names(clusters * nodes)
    parts = [names[first : first + nodes] for first in range(0, len(names), nodes)]
    links = []
    for part in parts:
        # All lie within the distance up to which most links lose nothing.
        points = [(NEAR * draw.random(), NEAR * draw.random()) for _ in part]
        links += _links(part, points, draw)
    ends = zip(parts, [*parts[1:], parts[0]], strict=True)
    bridges = [_link(draw.choice(a), draw.choice(b), BRIDGE_LOSS) for a, b in ends]
    return _scenario(names, [*links, *bridges])


def _links(names: Sequence[str], points: Sequence[Point], draw: random.Random) -> list[Any]:
    """Return the links between nodes at these points."""
    links = []
    for (a, at), (b, other) in itertools.combinations(zip(names, points, strict=True), 2):
        losses = [_loss(math.dist(at, other), draw) for _ in range(2)]
        if min(losses) < 1:
            links.append({**_link(a, b, losses[0]), "loss_back": losses[1]})
    return links


def _loss(distance: float, draw: random.Random) -> float:
    """Return the loss over a distance; 1 is no link."""
    if distance < NEAR:
        return 0.0
    if distance >= FAR:
        return 1.0
    share = (distance - NEAR) / (FAR - NEAR) + draw.uniform(-DEVIATION, DEVIATION)
    loss = min(max(share, 0.0), 1.0)
    return round(loss, 4) if loss <= MOST_LOSS else 1.0


def _names(count: int) -> list[str]:
    width = len(str(count))
    return [f"n{node:0{width}}" for node in range(1, count + 1)]


def _row(names: Sequence[str], loss: float) -> list[Any]:
    return [_link(a, b, loss) for a, b in itertools.pairwise(names)]


def _link(a: str, b: str, loss: float) -> dict[str, Any]:
    return {"from": a, "to": b, "loss": loss}


def _scenario(names: Sequence[str], links: Iterable[Any]) -> Scenario:
    return Scenario({"nodes": list(names), "link": list(links), "medium": RADIO})
