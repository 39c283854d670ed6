"""
The most that coding over broadcast links carries, as a convex program.

Eq. (1) for any mesh and several flows, in the form of D. S. Lun, M. Medard, R. Koetter, M. Effros, *On coding
for reliable communication over packet networks*, Physical Communication 1(1), 2008: node i sends packets of
flow c in a share alpha_ci of the slots and brings flow to its next hops at rates x_cij such that for every
set J of them

    sum over j in J of x_cij <= alpha_ci (1 - product over j in J of (1 - p_ij)).

Random linear codes over long generations get arbitrarily close. Packets of different flows are not coded
together.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ncmesh._ncmesh import UnreachableError
from ncmesh.extra import load
from ncmesh.mc2.mesh import (
    Conflict,
    Flow,
    Matrix,
    checked_delivery,
    checked_flows,
    checked_paths,
    independent_sets,
    links_of,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Utility = Literal["sum", "log"]
FlowLink = tuple[int, int, int]
"""Index of a flow, and a link over which it may go."""

MOST_LINKS = 20_000
"""Links times flows; more make a program of minutes."""

ACCURACY = 1e-8
"""By how much a solution may exceed a bound: packets per slot, or their logarithm."""

SMALLEST = 1e-9
"""Packets per slot; the logarithm is not followed to smaller rates."""

FIRST_TANGENTS = [2.0**-k for k in range(21)]
"""Rates at which the logarithm is bounded from the start."""

SOLVER = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
"""Tolerances of HiGHS, finer than `ACCURACY`."""


class Optimum(TypedDict):
    """
    Rates are in packets per slot, nodes are indices of the matrix.

    Numbers are good to about 1e-7, but with `"log"` rates only to about 1e-4 of themselves: near the optimum
    its utility hardly changes with them. Where several solutions are best, it is one of them.
    """

    rates: Array
    """Of each flow, in the order given."""
    total: float
    """Their sum."""
    utility: float
    """What was made as large as can be: the sum of the rates, or of their natural logarithms."""
    activations: Array
    """Flows x nodes: the share of the slots in which a node has to send for a flow, alpha."""
    links: Array
    """Flows x nodes x nodes: the rate at which a flow goes from one node to the next, x."""
    schedule: list[tuple[list[int], float]]
    """Sets of nodes that send together and their shares of the slots, the largest first."""


def optimum(
    delivery: ArrayLike,
    flows: Iterable[Flow],
    utility: Utility = "sum",
    *,
    conflict: Conflict = "shared_hearer",
    paths: int | None = None,
) -> Optimum:
    """
    Find the rates of `flows` that make the sum of the rates, or of their logarithms, as large as can be.

    `delivery` is n x n: `delivery[i][j]` the probability that `j` hears what `i` broadcasts, 0 where there is
    no link; the diagonal is not looked at. Losses are independent. `flows` are pairs of source and
    destination. `utility` is `"sum"`, or `"log"` for proportional fairness.

    Only nodes without `conflict` send in the same slot. With `"audible"`, the rule as section 4.1 prints it,
    two conflict if either hears the other; who hears two at once loses nothing. With `"shared_hearer"` two
    that a third hears conflict too. A link counts however faint. The paper's numbers need the second, and
    links in both directions: 0.5 for the lossless diamond, where the first gives 2/3.

    With `paths` a flow goes only over the links of its best paths, which `best_paths` finds; without, over
    all links. `paths=1` is routing along a single path, where overhearing brings nothing.

    A flow that no path leads to has the rate 0 with `"sum"`, and is an `UnreachableError` with `"log"`, as is
    one whose rate would be below 1e-9.

    Raises `ValueError` for a matrix that is not square or has entries outside 0 to 1, flows that are none or
    between nodes that are none, unknown names, and meshes that are too large; `ImportError` without the
    extra `analysis`; `RuntimeError` if the solver fails, as it may with `"log"` where rates come near 1e-9.
    """
    known = checked_delivery(delivery)
    wanted = checked_flows(flows, len(known))
    _check_name("utility", utility, get_args(Utility))
    _check_name("conflict", conflict, get_args(Conflict))
    limit = None if paths is None else checked_paths(paths)
    links = [(c, *link) for c, flow in enumerate(wanted) for link in links_of(known, flow, limit)]
    if len(links) > MOST_LINKS:
        message = f"flows: their links are {len(links):,}: allowed are {MOST_LINKS:,}"
        raise ValueError(f"{message}; restrict paths, or leave out flows")
    if utility == "log":
        _check_reached(wanted, links)
    if not links:
        return _nothing(len(wanted), len(known))
    senders = _senders(known, links)
    sets = independent_sets(known, sorted({sender.node for sender in senders}), conflict)
    program = _Program(wanted, links, senders, sets, utility)
    program.solve()
    return program.optimum(len(known))


@dataclass(frozen=True)
class _Sender:
    """A node that sends for a flow: which entries of x are its, and how well their far ends hear it."""

    flow: int
    node: int
    entries: Indices
    heard: Array

    def bounds(self, x: Array) -> tuple[list[Indices], Array, Array]:
        """
        Sets of next hops, one of which needs the largest alpha; what each gets and how often any of it hears.

        How often is a concave function of the sum of -ln(1 - p_j). So of all sets these suffice: the first
        one, two, ... next hops by decreasing x_j / -ln(1 - p_j).
        """
        with np.errstate(divide="ignore"):
            weight = -np.log1p(-self.heard)
        carried = x[self.entries]
        order = np.argsort(-carried / weight, kind="stable")
        sets = [self.entries[order[: size + 1]] for size in range(len(order))]
        return sets, np.cumsum(carried[order]), -np.expm1(-np.cumsum(weight[order]))

    def need(self, x: Array) -> float:
        """The least alpha that carries x."""
        _, carried, heard = self.bounds(x)
        return float(np.max(carried / heard))


class _Rows:
    """Linear constraints: for each row the sum of terms is at most, or exactly, a limit."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, float]] = []
        self.limits: list[float] = []

    def add(self, terms: Iterable[tuple[int, float]], limit: float = 0.0) -> None:
        """One more row, of (column, factor)."""
        self.entries += [(len(self.limits), column, factor) for column, factor in terms]
        self.limits.append(limit)

    def matrix(self, columns: int) -> "csr_array":
        """The factors."""
        row, column, factor = zip(*self.entries, strict=True)
        shape = len(self.limits), columns
        return load("scipy.sparse").csr_array((factor, (row, column)), shape=shape)


class _Program:
    """
    A linear program with few of its bounds; those that a solution exceeds are added until there are none.

    Bounds are those on sets of next hops and, with `"log"`, tangents of the logarithm. Columns are x, alpha,
    the shares of the sets of senders, the rates, and what these are worth.
    """

    def __init__(
        self,
        flows: list[Flow],
        links: list[FlowLink],
        senders: list[_Sender],
        sets: list[list[int]],
        utility: Utility,
    ) -> None:
        self.flows, self.links, self.senders, self.sets, self.utility = flows, links, senders, sets, utility
        self.reached = sorted({flow for flow, _, _ in links})
        sizes = [len(of) for of in (links, senders, sets, self.reached, self.reached)]
        _, self.alpha, self.share, self.rate, self.worth, self.columns = np.cumsum([0, *sizes]).tolist()
        self.known: set[tuple[int, object]] = set()
        self.exact, self.bounds = _Rows(), _Rows()
        self._conserve()
        self._schedule()
        self._value()
        # Not one of this program: flow over every link and nobody who sends, for the first bounds.
        self.solution = np.ones(self.columns)
        self.solution[self.alpha : self.share] = self.solution[self.worth :] = 0.0

    def solve(self) -> None:
        """Find the solution."""
        while self._add_exceeded():
            cost = np.zeros(self.columns)
            cost[self.worth :] = -1.0
            result = load("scipy.optimize").linprog(
                cost,
                A_ub=self.bounds.matrix(self.columns),
                b_ub=self.bounds.limits,
                A_eq=self.exact.matrix(self.columns),
                b_eq=self.exact.limits,
                bounds=[(0, None)] * self.worth + [(None, None)] * len(self.reached),
                method="highs-ds",
                options=SOLVER,
            )
            if not result.success:
                raise RuntimeError(f"no optimum found: {result.message}")
            self.solution = result.x

    def _conserve(self) -> None:
        """What comes to a node but the destination goes on; to the source comes the rate."""
        terms: dict[tuple[int, int], list[tuple[int, float]]] = {}
        for entry, (flow, i, j) in enumerate(self.links):
            terms.setdefault((flow, i), []).append((entry, 1.0))
            if j != self.flows[flow][1]:
                terms.setdefault((flow, j), []).append((entry, -1.0))
        for index, flow in enumerate(self.reached):
            terms[flow, self.flows[flow][0]].append((self.rate + index, -1.0))
        for row in terms.values():
            self.exact.add(row)

    def _schedule(self) -> None:
        """A node sends for all its flows no longer than the sets that it is in."""
        self.exact.add([(self.share + index, 1.0) for index in range(len(self.sets))], 1.0)
        for node in sorted({sender.node for sender in self.senders}):
            sends = [(self.alpha + k, 1.0) for k, sender in enumerate(self.senders) if sender.node == node]
            may = [(self.share + k, -1.0) for k, nodes in enumerate(self.sets) if node in nodes]
            self.bounds.add(sends + may)

    def _value(self) -> None:
        for index in range(len(self.reached)):
            if self.utility == "sum":
                self.bounds.add([(self.worth + index, 1.0), (self.rate + index, -1.0)])
            else:
                for rate in FIRST_TANGENTS:
                    self._add_tangent(index, rate)

    def _add_exceeded(self) -> bool:
        """Whether there was any bound to add."""
        before = len(self.bounds.limits)
        x, alpha = self.solution[: self.alpha], self.solution[self.alpha : self.share]
        for index, sender in enumerate(self.senders):
            for entries, carried, heard in zip(*sender.bounds(x), strict=True):
                if carried > alpha[index] * heard + ACCURACY:
                    self._add_hops(index, entries.tolist(), float(heard))
        if self.utility == "log":
            rates, worth = self.solution[self.rate : self.worth], self.solution[self.worth :]
            for index in np.flatnonzero(worth > np.log(np.maximum(rates, SMALLEST)) + ACCURACY).tolist():
                self._add_tangent(index, max(rates[index], SMALLEST))
        return len(self.bounds.limits) > before

    def _add_hops(self, sender: int, entries: list[int], heard: float) -> None:
        """What a sender brings to these next hops is at most alpha times the chance that any hears it."""
        if self._is_new((sender, frozenset(entries))):
            self.bounds.add([*((entry, 1.0) for entry in entries), (self.alpha + sender, -heard)])

    def _add_tangent(self, index: int, rate: float) -> None:
        """A rate's logarithm is at most its tangent at `rate`."""
        if self._is_new((index, rate)):
            terms = [(self.worth + index, 1.0), (self.rate + index, -1.0 / rate)]
            self.bounds.add(terms, np.log(rate) - 1.0)

    def _is_new(self, bound: tuple[int, object]) -> bool:
        if bound in self.known:
            return False
        self.known.add(bound)
        return True

    def optimum(self, nodes: int) -> Optimum:
        """The solution as a result."""
        result = _nothing(len(self.flows), nodes)
        x, rates = self.solution[: self.alpha], result["rates"]
        rates[self.reached] = self.solution[self.rate : self.worth]
        if self.utility == "log" and rates.min() < SMALLEST:
            worst = self.flows[int(rates.argmin())]
            raise UnreachableError(f"flow {worst}: its rate is below {SMALLEST:g} packets per slot")
        result["total"] = float(rates.sum())
        result["utility"] = float((rates if self.utility == "sum" else np.log(rates)).sum())
        for (flow, i, j), rate in zip(self.links, x, strict=True):
            result["links"][flow, i, j] = rate
        for sender in self.senders:
            result["activations"][sender.flow, sender.node] = sender.need(x)
        shares = zip(self.sets, self.solution[self.share : self.rate].tolist(), strict=True)
        result["schedule"] = sorted((row for row in shares if row[1] > ACCURACY), key=lambda row: -row[1])
        return result


def _nothing(flows: int, nodes: int) -> Optimum:
    """The optimum where no flow has a path."""
    return {
        "rates": np.zeros(flows),
        "total": 0.0,
        "utility": 0.0,
        "activations": np.zeros((flows, nodes)),
        "links": np.zeros((flows, nodes, nodes)),
        "schedule": [],
    }


def _senders(delivery: Matrix, links: list[FlowLink]) -> list[_Sender]:
    entries: dict[tuple[int, int], list[int]] = {}
    for entry, (flow, i, _) in enumerate(links):
        entries.setdefault((flow, i), []).append(entry)
    return [
        _Sender(flow, i, np.array(of), np.array([delivery[i, links[entry][2]] for entry in of]))
        for (flow, i), of in entries.items()
    ]


def _check_name(of: str, name: str, allowed: tuple[str, ...]) -> None:
    if name not in allowed:
        raise ValueError(f"{of} = {name!r}: allowed is " + ", ".join(f'"{one}"' for one in allowed))


def _check_reached(flows: list[Flow], links: list[FlowLink]) -> None:
    without = set(range(len(flows))) - {flow for flow, _, _ in links}
    if without:
        flow = flows[min(without)]
        raise UnreachableError(f"flow {flow}: no path leads there, which the utility log does not allow")
