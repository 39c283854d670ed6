"""
Credits as section 3.4 prints them, in slots, with a code that never ends.

There are neither generations nor headers, nodes know at once who received what, and every packet is
as good as any other. The difference from the optimum is therefore the schedule's, and what an
engine lacks beyond that is the engine's.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ncmesh_papers import mc2
from ncmesh_papers.mc2.mesh import conflicts, independent_sets
from ncmesh_papers.reproduce.mc2.mesh import Flow, Matrix

Schedule = Literal["greedy", "best"]
"""Senders of a slot: greedily by W without conflicts, or the set with the largest sum of W."""

CONFLICT: mc2.Conflict = "shared_hearer"


@dataclass
class _Node:
    """A flow's credits at one node of its paths."""

    hops: tuple[int, ...]
    heard: tuple[float, ...]
    """Probability that each hop receives a frame of this node."""
    end: int
    """The destination, where credits end."""
    held: int = 0
    unlearned: list[int] = field(default_factory=list)
    """Credits given to each hop that it does not know of yet."""
    owed: dict[tuple[int, ...], int] = field(default_factory=dict)
    """TC by set of hops (their indices)."""
    quality: dict[tuple[int, ...], float] = field(default_factory=dict)
    """Q by set of hops."""
    weight: float = 0.0
    """W, from eq. (7)."""

    def __post_init__(self) -> None:
        places = range(len(self.hops))
        self.unlearned = [0] * len(self.hops)
        for size in range(1, len(self.hops) + 1):
            for chosen in itertools.combinations(places, size):
                missed = 1.0
                for place in chosen:
                    missed *= 1 - self.heard[place]
                self.owed[chosen], self.quality[chosen] = 0, 1 - missed

    def load(self, place: int) -> int:
        """Return CTC, and the credits that the hop does not know of."""
        return (
            sum(owed for chosen, owed in self.owed.items() if place in chosen)
            + self.unlearned[place]
        )

    def give(self, place: int) -> None:
        self.held -= 1
        self.unlearned[place] += self.hops[place] != self.end
        for chosen in self.owed:
            self.owed[chosen] += place in chosen
        self._weigh()

    def receive(self, places: set[int]) -> None:
        for chosen, owed in self.owed.items():
            if owed > 0 and not places.isdisjoint(chosen):
                self.owed[chosen] = owed - 1
        self._weigh()

    def _weigh(self) -> None:
        self.weight = sum(owed * self.quality[chosen] for chosen, owed in self.owed.items())


def simulate(
    delivery: Matrix,
    flows: Sequence[Flow],
    paths: int,
    k: float,
    schedule: Schedule,
    slots: int,
    seed: int,
) -> list[float]:
    """Return the packets per slot of each flow, without the first fifth of the slots."""
    return _Network(delivery, flows, paths, k, schedule, seed).run(slots)


class _Network:
    def __init__(
        self,
        delivery: Matrix,
        flows: Sequence[Flow],
        paths: int,
        k: float,
        schedule: Schedule,
        seed: int,
    ) -> None:
        self.delivery, self.flows, self.k, self.schedule = delivery, flows, k, schedule
        self.carriers = [_carriers(delivery, flow, paths) for flow in flows]
        senders = sorted({node for carriers in self.carriers for node in carriers})
        self.sets = independent_sets(delivery, senders, CONFLICT)
        self.apart = conflicts(delivery, CONFLICT)
        self.senders = senders
        self.random = random.Random(seed)
        self.insert_at = [0.0] * len(flows)
        self.arrived = [0] * len(flows)

    def run(self, slots: int) -> list[float]:
        before, warm_up = list(self.arrived), slots // 5
        for slot in range(slots):
            if slot == warm_up:
                before = list(self.arrived)
            self._insert(slot)
            for carriers in self.carriers:
                self._transfer(carriers)
            for node in self._chosen():
                self._send(node)
        counted = zip(self.arrived, before, strict=True)
        return [(arrived - early) / (slots - warm_up) for arrived, early in counted]

    def _insert(self, slot: int) -> None:
        """Insert K / |C| packets in a slot."""
        for index, (source, _) in enumerate(self.flows):
            own = self.carriers[index][source]
            self.insert_at[index] = max(self.insert_at[index], slot)
            while self.insert_at[index] < slot + 1:
                own.held += 1
                self.insert_at[index] += own.held / self.k

    def _transfer(self, carriers: dict[int, _Node]) -> None:
        """Transfer credits by RD, eq. (7), while it allows any."""
        for own in carriers.values():
            while willing := [
                place for place in range(len(own.hops)) if self._takes(carriers, own, place)
            ]:
                own.give(self.random.choice(willing))

    def _takes(self, carriers: dict[int, _Node], own: _Node, place: int) -> bool:
        hop = carriers.get(own.hops[place])
        return own.held > (hop.held if hop else 0) + own.load(place)

    def _weight(self, node: int) -> float:
        return max(of[node].weight for of in self.carriers if node in of)

    def _chosen(self) -> list[int]:
        weights = {node: self._weight(node) for node in self.senders}
        if self.schedule == "best":
            chosen = max(self.sets, key=lambda of: sum(weights[node] for node in of))
            return [node for node in chosen if weights[node] > 0]
        order = sorted(weights, key=lambda node: (-weights[node], self.random.random()))
        sending: list[int] = []
        for node in order:
            if weights[node] > 0 and not self.apart[node, sending].any():
                sending.append(node)
        return sending

    def _send(self, node: int) -> None:
        index = max(
            (index for index, of in enumerate(self.carriers) if node in of),
            key=lambda index: self.carriers[index][node].weight,
        )
        own = self.carriers[index][node]
        heard = {place for place, likely in enumerate(own.heard) if self.random.random() < likely}
        for place in heard:
            hop = self.carriers[index].get(own.hops[place])
            if hop:
                hop.held += own.unlearned[place]
            elif own.owed[place,] > 0:
                self.arrived[index] += 1
            own.unlearned[place] = 0
        own.receive(heard)


def _carriers(delivery: Matrix, flow: Flow, paths: int) -> dict[int, _Node]:
    """Return the nodes that send for a flow."""
    hops: dict[int, set[int]] = {}
    for path in mc2.best_paths(delivery, *flow, k=paths):
        for node, hop in itertools.pairwise(path):
            hops.setdefault(node, set()).add(hop)
    return {
        node: _Node(
            tuple(sorted(to)), tuple(float(delivery[node, hop]) for hop in sorted(to)), flow[1]
        )
        for node, to in hops.items()
    }
