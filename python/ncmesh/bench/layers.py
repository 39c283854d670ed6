"""
The optimum of live streams in layers: which layers to whom at most, if the channel is shared.

Each layer of each stream is a multicast of its own, coded or not, with the program of `bound` for
packets instead of files: node i sends z_i packets of the layer a second, and a receiver t gets a
flow x_t of them from the source, at most the rate of the layer. Of a layer a receiver can use no
larger share than of the one below it. Nodes of a clique of the conflict graph send one after the
other, so all that they send of all layers fits into one second.

The program maximises the sum over receivers of log(xi + rate). It has tangents in place of
the logarithm, so its optimum is above that of the problem, by less than 0.01 a receiver. It is a
bound: it knows no headers of links, feedback, collisions or deadlines.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ncmesh.bench.bound import LEAST_GAIN, SMALL_COST, Rows, worst_prefix
from ncmesh.bench.meshes import Matrix
from ncmesh.failure import FailureError, Kind

# Tangents at the logarithm. Neighbouring ones are at most this factor apart.
TANGENT_RATIO = 1.3
# Rounds of cuts: each lowers the optimum of the program towards that of the problem.
ROUNDS = 40


@dataclass(frozen=True)
class Stream:
    """A stream that is offered. Nodes are numbered as in the matrix of deliveries."""

    source: int
    receivers: Sequence[int]
    layers: Sequence[float]
    """Rate of each layer, the base first, packets per second."""


@dataclass(frozen=True)
class Limit:
    """Nodes that send one after the other."""

    nodes: Collection[int]
    packets: float
    """Packets that they send in a second at most, together."""


@dataclass(frozen=True)
class Optimum:
    """Rates with the largest sum of utilities."""

    rates: list[list[list[float]]]
    """Packets per second of each layer, of each receiver, of each stream."""
    utility: float
    """Sum of log(xi + rate) of all receivers."""


def optimum(
    delivery: Matrix,
    streams: Sequence[Stream],
    limits: Sequence[Limit],
    xi: float,
    least_delivery: float = 0.0,
) -> Optimum:
    """
    Return which layers reach whom at most.

    `delivery[i, j]` is the probability that `j` receives what `i` sends. Links with
    `least_delivery` or less are left out. `xi` is added to each rate, packets per second.
    """
    return _Program(delivery, streams, limits, xi, least_delivery).solve()


def utility(rates: Sequence[float], xi: float) -> float:
    """Return the sum of log(xi + rate)."""
    return sum(math.log(xi + rate) for rate in rates)


@dataclass(frozen=True)
class _Layer:
    """Columns of one layer of a stream."""

    sent: int
    """The first of those of the nodes: what each sends."""
    rates: Sequence[int]
    """Layers of each receiver."""
    flows: Sequence[int]
    """The first of those of each receiver: its flow over each arc."""


class _Program:
    def __init__(
        self,
        delivery: Matrix,
        streams: Sequence[Stream],
        limits: Sequence[Limit],
        xi: float,
        least_delivery: float,
    ) -> None:
        # Imported here, because only the scoreboard needs it.
        try:
            import highspy
        except ImportError as error:
            message = "bounds need the package highspy: pip install 'ncmesh[bench]'"
            raise FailureError(Kind.OTHER, message) from error

        self.delivery = delivery
        self.streams = streams
        self.xi = xi
        self.nodes = len(delivery)
        usable = delivery > least_delivery
        np.fill_diagonal(usable, False)
        self.neighbours = [np.flatnonzero(row) for row in usable]
        degrees = [len(of) for of in self.neighbours]
        # The arcs of a node follow each other.
        self.first_arc = np.concatenate([[0], np.cumsum(degrees)])
        self.arcs = int(self.first_arc[-1])

        # Columns: the utility of each receiver, then those of each layer of each stream.
        self.width = sum(len(stream.receivers) for stream in streams)
        self.utilities = self.width
        self.layers = [[self._columns(stream) for _ in stream.layers] for stream in streams]
        lower, upper = np.zeros(self.width), np.full(self.width, np.inf)
        lower[: self.utilities] = -np.inf
        for stream, layers in zip(streams, self.layers, strict=True):
            for rate, layer in zip(stream.layers, layers, strict=True):
                upper[list(layer.rates)] = rate
        self.solver = highspy.Highs()
        self.solver.silent()
        self.solver.addVars(self.width, lower, upper)
        cost = np.full(self.width, SMALL_COST)
        cost[: self.utilities] = -1.0
        self.solver.changeColsCost(self.width, np.arange(self.width, dtype=np.int32), cost)
        self._conserve()
        self._begin(limits)

    def solve(self) -> Optimum:
        """Maximise the utility, and add cuts until they change little."""
        import highspy

        bound = math.inf
        for _ in range(ROUNDS):
            self.solver.run()
            if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                raise FailureError(Kind.OTHER, "the optimum of a stream has no solution")
            solution = np.array(self.solver.getSolution().col_value)
            before, bound = bound, float(solution[: self.utilities].sum())
            rows = Rows()
            for stream, layers in zip(self.streams, self.layers, strict=True):
                for layer in layers:
                    for receiver in range(len(stream.receivers)):
                        for node in range(self.nodes):
                            self._cut_off(rows, solution, layer, receiver, node)
            if not rows.upper or before - bound < LEAST_GAIN:
                break
            rows.move_to(self.solver)
        rates = [
            [
                [float(max(solution[layer.rates[at]], 0.0)) for layer in layers]
                for at in range(len(stream.receivers))
            ]
            for stream, layers in zip(self.streams, self.layers, strict=True)
        ]
        return Optimum(rates, bound)

    def _columns(self, stream: Stream) -> _Layer:
        """Take columns for a layer."""
        receivers = len(stream.receivers)
        sent = self.width
        rates = range(sent + self.nodes, sent + self.nodes + receivers)
        flows = [rates.stop + at * self.arcs for at in range(receivers)]
        self.width = rates.stop + receivers * self.arcs
        return _Layer(sent, rates, flows)

    def _conserve(self) -> None:
        """Conserve flow at all nodes but the receiver; the source has the rate more."""
        rows = Rows()
        for stream, layers in zip(self.streams, self.layers, strict=True):
            for layer in layers:
                for at, receiver in enumerate(stream.receivers):
                    entries: list[list[tuple[int, float]]] = [[] for _ in range(self.nodes)]
                    entries[stream.source].append((layer.rates[at], -1.0))
                    for i, neighbours in enumerate(self.neighbours):
                        for place, j in enumerate(neighbours):
                            column = layer.flows[at] + int(self.first_arc[i]) + place
                            entries[i].append((column, 1.0))
                            entries[j].append((column, -1.0))
                    for node in range(self.nodes):
                        if node != receiver:
                            rows.add(0.0, *entries[node])
        rows.move_to(self.solver, equal=True)

    def _begin(self, limits: Sequence[Limit]) -> None:
        """Limit what nodes send, add tangents, and begin with cuts of single neighbours and all."""
        rows = Rows()
        flat = [layer for layers in self.layers for layer in layers]
        for limit in limits:
            columns = [layer.sent + node for layer in flat for node in limit.nodes]
            rows.add(limit.packets, *((column, 1.0) for column in columns))

        utility = 0
        for stream, layers in zip(self.streams, self.layers, strict=True):
            for at in range(len(stream.receivers)):
                rates = [layer.rates[at] for layer in layers]
                for point in self._points(sum(stream.layers)):
                    # log(point) + (xi + rate - point) / point is above log(xi + rate).
                    upper = math.log(point) + self.xi / point - 1.0
                    slope = ((column, -1.0 / point) for column in rates)
                    rows.add(upper, (utility, 1.0), *slope)
                for above in range(1, len(layers)):
                    below = (rates[above - 1], -1.0 / stream.layers[above - 1])
                    rows.add(0.0, below, (rates[above], 1.0 / stream.layers[above]))
                utility += 1

        for layer in flat:
            for at in range(len(layer.rates)):
                for i, neighbours in enumerate(self.neighbours):
                    for place in range(len(neighbours)):
                        self._cut(rows, layer, at, i, np.array([place]))
                    if len(neighbours) > 1:
                        self._cut(rows, layer, at, i, np.arange(len(neighbours)))
        rows.move_to(self.solver)

    def _points(self, rate: float) -> NDArray[np.float64]:
        """Return where tangents touch the logarithm, for rates up to `rate`."""
        steps = math.ceil(math.log((self.xi + rate) / self.xi) / math.log(TANGENT_RATIO))
        return np.geomspace(self.xi, self.xi + rate, steps + 1)

    def _cut_off(
        self, rows: Rows, solution: NDArray[np.float64], layer: _Layer, at: int, node: int
    ) -> None:
        """Add the most violated set of a node's neighbours for one receiver, if there is one."""
        neighbours = self.neighbours[node]
        begin = layer.flows[at] + int(self.first_arc[node])
        flow = solution[begin : begin + len(neighbours)]
        places = worst_prefix(flow, self.delivery[node, neighbours], solution[layer.sent + node])
        if places is not None:
            self._cut(rows, layer, at, node, places)

    def _cut(self, rows: Rows, layer: _Layer, at: int, node: int, places: NDArray[np.intp]) -> None:
        """Limit the flow to a set of neighbours by the share of packets that any of it receives."""
        lost = np.prod(1.0 - self.delivery[node, self.neighbours[node][places]])
        begin = layer.flows[at] + int(self.first_arc[node])
        flows = ((begin + int(place), 1.0) for place in places)
        rows.add(0.0, (layer.sent + node, float(lost) - 1.0), *flows)
