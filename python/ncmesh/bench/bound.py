"""
Bounds on what any scheme can do: least transmissions, and the time that they imply.

The program is the minimum-cost one of Lun et al. (*Minimum-cost multicast over coded packet
networks*, IEEE Transactions on Information Theory 52, 2006) for independent broadcast erasure
links. For each receiver t there is a unit flow x_t from the source. Node i sends z_i packets per
packet of the file, and carries to any set J of its neighbours at most z_i (1 - product of the
losses to J). There are too many sets, so they are added as cuts when they are violated: the most
violated J is a prefix of the neighbours sorted by x / -ln(loss), because the limit is a concave
function of a sum over J. A program with fewer cuts is a lower bound too, so rounds end when they
gain little.

It knows no headers, feedback, collisions or idle time. Least transmissions minimise the sum of all
z_i: on one shared channel, where only one node sends at a time, their number times the mean time of
a frame is the least time. In a wide mesh nodes that are far apart send together. Nodes of a clique
of the conflict graph never do, so the least load, which minimises the sum of z_i over the most
loaded clique, bounds the time there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncmesh.bench.air import OUTER_FRAME, Air
from ncmesh.bench.meshes import Matrix
from ncmesh.failure import FailureError, Kind

# Violations below this are not cut off.
TOLERANCE = 1e-6
# Rounds of cuts end when one raises the bound by a smaller share than this.
LEAST_GAIN = 1e-4
# Variables that the program does not minimise have a small cost, so that no flow goes in circles.
SMALL_COST = 1e-9
# A lossless link counts as one with this loss.
LEAST_LOSS = 1e-300


class UnreachableError(ValueError):
    """A receiver has no path from the source."""


def least_transmissions(
    delivery: Matrix, source: int, receivers: Sequence[int], least_delivery: float = 0.0
) -> float:
    """
    Return the least transmissions of all nodes per packet of a file.

    `delivery[i, j]` is the probability that `j` receives what `i` sends. Links with
    `least_delivery` or less are left out, which is faster and raises the bound.

    Raises `UnreachableError` if a receiver has no path from the source.
    """
    return _Program(delivery, source, receivers, least_delivery).minimise_total()


def least_load(
    delivery: Matrix,
    source: int,
    receivers: Sequence[int],
    cliques: Collection[Collection[int]],
    least_delivery: float = 0.0,
) -> float:
    """
    Return the least transmissions per packet of a file in the most loaded of `cliques`.

    Raises `UnreachableError` as `least_transmissions` does.
    """
    return _Program(delivery, source, receivers, least_delivery).minimise_load(cliques)


def least_seconds(transmissions: float, size: int, air: Air) -> float:
    """
    Return the time that the transmissions of a file of `size` bytes take one after the other, s.

    `transmissions` is their number per packet. Packets fill frames of the MTU except for the
    outer frame, which no scheme can leave out.
    """
    return transmissions * math.ceil(size / (air.mtu - OUTER_FRAME)) * air.frame_s


def most_bps(transmissions: float, air: Air) -> float:
    """Return the goodput where each packet takes `transmissions` one after the other, bit/s."""
    return 8 * (air.mtu - OUTER_FRAME) / (transmissions * air.frame_s)


def worst_prefix(
    flow: NDArray[np.float64], delivery: NDArray[np.float64], sent: float
) -> NDArray[np.intp] | None:
    """
    Return the set of neighbours whose flow exceeds most what `sent` packets bring, if any does.

    `flow` and `delivery` are those to each neighbour.
    """
    strength = -np.log(np.maximum(1.0 - delivery, LEAST_LOSS))
    order = np.argsort(-flow / strength)
    order = order[flow[order] > TOLERANCE]
    if len(order) < 2:
        return None
    reach = 1.0 - np.exp(-np.cumsum(strength[order]))
    excess = np.cumsum(flow[order]) - sent * reach
    worst = int(np.argmax(excess))
    return order[: worst + 1] if excess[worst] > TOLERANCE else None


class Rows:
    """Rows to be added to a program: all are at most a limit, or all equal to one."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.columns: list[int] = []
        self.values: list[float] = []
        self.upper: list[float] = []

    def add(self, upper: float, *entries: tuple[int, float]) -> None:
        """Add a row: columns, each with its factor, and the limit of their sum."""
        self.starts.append(len(self.columns))
        self.upper.append(upper)
        for column, value in entries:
            self.columns.append(column)
            self.values.append(value)

    def move_to(self, solver: Any, *, equal: bool = False) -> None:  # noqa: ANN401 (no types)
        """Add them to the solver: at most `upper`, or equal to it."""
        upper = np.array(self.upper)
        solver.addRows(
            len(upper),
            upper if equal else np.full(len(upper), -np.inf),
            upper,
            len(self.columns),
            np.array(self.starts, np.int32),
            np.array(self.columns, np.int32),
            np.array(self.values),
        )


class _Program:
    """The program of a source and its receivers, and its solver, which goes on from cut to cut."""

    def __init__(
        self, delivery: Matrix, source: int, receivers: Sequence[int], least_delivery: float
    ) -> None:
        # Imported here, because only the scoreboard needs it.
        try:
            import highspy
        except ImportError as error:
            message = "bounds need the package highspy: pip install 'ncmesh[bench]'"
            raise FailureError(Kind.OTHER, message) from error

        self.delivery = delivery
        self.receivers = receivers
        self.nodes = len(delivery)
        usable = delivery > least_delivery
        np.fill_diagonal(usable, False)
        self.neighbours = [np.flatnonzero(row) for row in usable]
        degrees = [len(of) for of in self.neighbours]
        self.arcs = sum(degrees)

        # Columns: the load of the most loaded clique, the transmissions of each node, and for each
        # receiver the flow over each arc. The arcs of a node follow each other.
        self.sent = 1
        self.first = [self.sent + self.nodes + sum(degrees[:i]) for i in range(self.nodes)]
        self.width = self.sent + self.nodes + self.arcs * len(receivers)
        self.solver = highspy.Highs()
        self.solver.silent()
        self.solver.addVars(self.width, np.zeros(self.width), np.full(self.width, np.inf))
        self._conserve(source)
        self._begin_cuts()

    def minimise_total(self) -> float:
        """Minimise the transmissions of all nodes."""
        return self._solve(slice(self.sent, self.sent + self.nodes))

    def minimise_load(self, cliques: Collection[Collection[int]]) -> float:
        """Minimise the transmissions of the most loaded clique."""
        rows = Rows()
        for clique in cliques:
            rows.add(0.0, (0, -1.0), *((self.sent + node, 1.0) for node in clique))
        rows.move_to(self.solver)
        return self._solve(slice(0, 1))

    def _conserve(self, source: int) -> None:
        """Conserve flow at all nodes but the receiver; the source has one packet more."""
        rows = Rows()
        for number, receiver in enumerate(self.receivers):
            entries: list[list[tuple[int, float]]] = [[] for _ in range(self.nodes)]
            for i, neighbours in enumerate(self.neighbours):
                for place, j in enumerate(neighbours):
                    column = self._flow(number, i, place)
                    entries[i].append((column, 1.0))
                    entries[j].append((column, -1.0))
            for node in range(self.nodes):
                if node != receiver:
                    rows.add(1.0 if node == source else 0.0, *entries[node])
        rows.move_to(self.solver, equal=True)

    def _begin_cuts(self) -> None:
        """Begin with each neighbour alone, and with all of them."""
        rows = Rows()
        for number in range(len(self.receivers)):
            for i, neighbours in enumerate(self.neighbours):
                for place in range(len(neighbours)):
                    self._cut(rows, number, i, [place])
                if len(neighbours) > 1:
                    self._cut(rows, number, i, range(len(neighbours)))
        rows.move_to(self.solver)

    def _solve(self, minimised: slice) -> float:
        """Minimise the sum of some columns, and add cuts until they gain little."""
        import highspy

        cost = np.full(self.width, SMALL_COST)
        cost[minimised] = 1.0
        self.solver.changeColsCost(self.width, np.arange(self.width, dtype=np.int32), cost)
        bound = 0.0
        while True:
            self.solver.run()
            if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                raise UnreachableError("a receiver has no path from the source")
            solution = np.array(self.solver.getSolution().col_value)
            before, bound = bound, float(solution[minimised].sum())
            rows = Rows()
            for number in range(len(self.receivers)):
                for i in range(self.nodes):
                    self._cut_off(rows, solution, number, i)
            if not rows.upper or bound < before * (1.0 + LEAST_GAIN):
                return bound
            rows.move_to(self.solver)

    def _cut_off(self, rows: Rows, solution: NDArray[np.float64], number: int, sender: int) -> None:
        """Add the most violated set of a sender's neighbours for one receiver, if there is one."""
        neighbours = self.neighbours[sender]
        begin = self._flow(number, sender, 0)
        flow = solution[begin : begin + len(neighbours)]
        sent = float(solution[self.sent + sender])
        places = worst_prefix(flow, self.delivery[sender, neighbours], sent)
        if places is not None:
            self._cut(rows, number, sender, places)

    def _cut(
        self, rows: Rows, number: int, sender: int, places: Sequence[int] | NDArray[np.intp]
    ) -> None:
        """Limit the flow to a set of neighbours by the share of packets that any of it receives."""
        lost = np.prod(1.0 - self.delivery[sender, self.neighbours[sender][places]])
        flows = ((self._flow(number, sender, int(place)), 1.0) for place in places)
        rows.add(0.0, (self.sent + sender, float(lost) - 1.0), *flows)

    def _flow(self, number: int, sender: int, place: int) -> int:
        """Return the column of a receiver's flow to a neighbour of `sender`."""
        return self.first[sender] + number * self.arcs + place
