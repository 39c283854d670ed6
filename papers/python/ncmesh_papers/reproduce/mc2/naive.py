"""Multipath routing without coding or coordination, in slots: relays forward all packets (2.1)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from ncmesh_papers.mc2.mesh import independent_sets
from ncmesh_papers.reproduce.mc2.mesh import Mesh

# Packets that always wait at the source. It sets the scale of differences between queues.
WAITING = 30


def simulate(mesh: Mesh, paths: Sequence[Sequence[int]], slots: int, seed: int) -> float:
    """
    Return the packets per slot that arrive at the end of `paths`.

    The paths have both ends in common and no relay. A relay queues each packet that it receives
    from the node before it, whether or not another relay has it too, and sends it until the next
    node on its path has it. Packets that the destination already has do not count. In each slot the
    set of nodes without conflict sends that gains most: differences of queue lengths times
    deliveries. The first tenth of the slots is not counted.
    """
    return _Network(mesh, paths, seed).run(slots)


class _Network:
    def __init__(self, mesh: Mesh, paths: Sequence[Sequence[int]], seed: int) -> None:
        nodes = len(mesh.delivery)
        self.delivery = mesh.delivery
        self.source, self.destination = paths[0][0], paths[0][-1]
        self.hops = {path[at]: [path[at + 1]] for path in paths for at in range(1, len(path) - 1)}
        self.hops[self.source] = [path[1] for path in paths]
        self.queues: list[deque[int]] = [deque() for _ in range(nodes)]
        self.sets = independent_sets(mesh.delivery, list(self.hops), "shared_hearer")
        self.random = np.random.default_rng(seed)
        self.fresh = 0
        self.arrived: set[int] = set()

    def run(self, slots: int) -> float:
        before = 0
        for slot in range(slots):
            if slot == slots // 10:
                before = len(self.arrived)
            chosen = max(self.sets, key=lambda nodes: sum(self._gain(node) for node in nodes))
            # Senders use the queues of the slot's beginning.
            sent = [(node, self._head(node)) for node in chosen if self._gain(node) > 0]
            for node, packet in sent:
                self._send(node, packet)
        return (len(self.arrived) - before) / (slots - slots // 10)

    def _waiting(self, node: int) -> int:
        return WAITING if node == self.source else len(self.queues[node])

    def _gain(self, node: int) -> float:
        """Return the gain of a node's sending: packets move to shorter queues."""
        hops, waiting = self.hops[node], self._waiting(node)
        gain = sum(self.delivery[node, hop] * (waiting - self._waiting(hop)) for hop in hops)
        return max(0.0, float(gain))

    def _head(self, node: int) -> int:
        return self.fresh if node == self.source else self.queues[node][0]

    def _send(self, node: int, packet: int) -> None:
        heard = [hop for hop in self.hops[node] if self.random.random() < self.delivery[node, hop]]
        for hop in heard:
            if hop == self.destination:
                self.arrived.add(packet)
            else:
                self.queues[hop].append(packet)
        if node == self.source:
            self.fresh += 1
        elif heard:
            self.queues[node].popleft()
