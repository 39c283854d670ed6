"""
The largest rates that coding over broadcast links carries, as a convex program.

Eq. (1) for any mesh and several flows, in the form of D. S. Lun, M. Medard, R. Koetter, M. Effros,
*On coding for reliable communication over packet networks*, Physical Communication 1(1), 2008. Node
i sends packets of flow c in a share alpha_ci of the slots, and brings flow to its next hops at
rates x_cij such that for every set J of next hops

    sum over j in J of x_cij <= alpha_ci (1 - product over j in J of (1 - p_ij)).

Random linear codes over long generations get arbitrarily close. Packets of different flows are not
coded together. A linear program starts with few of these bounds and adds those that its solution
exceeds, until it exceeds none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ncmesh import UnreachableError
from ncmesh_papers.mc2.mesh import (
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
"""Index of a flow and a link that may carry it."""

MOST_LINKS = 20_000
"""Limit of links times flows. More make a program of minutes."""

ACCURACY = 1e-8
"""Tolerance of a bound, in packets per slot or their logarithm."""

SMALLEST = 1e-9
"""Smallest rate of the logarithm, in packets per slot."""

FIRST_TANGENTS = [2.0**-k for k in range(21)]
"""Rates at which tangents bound the logarithm from the start."""

SOLVER = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
"""Tolerances of HiGHS, finer than `ACCURACY`."""


class Optimum(TypedDict):
    """
    Result of `optimum`. Rates are in packets per slot, nodes are indices of the matrix.

    Numbers are accurate to about 1e-7. With `"log"` rates are accurate to about 1e-4 of themselves,
    since the utility hardly changes near the optimum. If several solutions are best, this is one of
    them.
    """

    rates: Array
    """Rate of each flow, in the order given."""
    total: float
    """Their sum."""
    utility: float
    """The maximum: the sum of the rates, or of their natural logarithms."""
    activations: Array
    """Flows x nodes: the share alpha of the slots in which a node sends for a flow."""
    links: Array
    """Flows x nodes x nodes: the rate x of a flow from one node to the next."""
    schedule: list[tuple[list[int], float]]
    """Sets of nodes that send together, with their shares of the slots, largest first."""


def optimum(
    delivery: ArrayLike,
    flows: Iterable[Flow],
    utility: Utility = "sum",
    *,
    conflict: Conflict = "shared_hearer",
    paths: int | None = None,
) -> Optimum:
    """
    Find the rates of `flows` that maximize the sum of the rates, or of their logarithms.

    `delivery` is n x n: `delivery[i][j]` is the probability that `j` receives what `i` broadcasts,
    0 where there is no link; the diagonal is ignored. Losses are independent. `flows` are pairs of
    source and destination. `utility` is `"sum"`, or `"log"` for proportional fairness.

    Nodes in `conflict` do not send in the same slot. With `"audible"`, the rule as section 4.1
    prints it, two nodes conflict if either hears the other; a node that hears two at once loses
    nothing. With `"shared_hearer"` two nodes that a third hears conflict too. A link counts however
    weak it is. The paper's numbers need the second rule and links in both directions: 0.5 for the
    lossless diamond, where the first rule gives 2/3.

    With `paths` a flow uses only the links of its best paths (`best_paths`), without it all links.
    `paths=1` is routing along a single path, where overhearing gains nothing.

    A flow without a path has rate 0 with `"sum"`. With `"log"` it is an `UnreachableError`, as is a
    flow whose rate would be below 1e-9.

    Raises `ValueError` for a matrix that is not square or has entries outside 0 to 1, for missing
    flows or unknown nodes, unknown names, and meshes that are too large; `RuntimeError` if the
    solver fails, as it may with `"log"` where rates come near 1e-9.
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
    """A node that sends for a flow: its entries of x, and how well their far ends receive it."""

    flow: int
    node: int
    entries: Indices
    heard: Array

    def bounds(self, x: Array) -> tuple[list[Indices], Array, Array]:
        """
        Return sets of next hops, one of which needs the largest alpha.

        The three values are the sets' entries of x, their flow, and the probability that any of
        them receives. This probability is a concave function of the sum of -ln(1 - p_j), so these
        sets suffice: the first one, two, ... next hops by decreasing x_j / -ln(1 - p_j).
        """
        with np.errstate(divide="ignore"):
            weight = -np.log1p(-self.heard)
        carried = x[self.entries]
        order = np.argsort(-carried / weight, kind="stable")
        sets = [self.entries[order[: size + 1]] for size in range(len(order))]
        return sets, np.cumsum(carried[order]), -np.expm1(-np.cumsum(weight[order]))

    def need(self, x: Array) -> float:
        """Return the least alpha that carries x."""
        _, carried, heard = self.bounds(x)
        return float(np.max(carried / heard))


class _Rows:
    """Linear constraints: in each row a sum of terms is at most, or equals, a limit."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, float]] = []
        self.limits: list[float] = []

    def add(self, terms: Iterable[tuple[int, float]], limit: float = 0.0) -> None:
        """Append a row of (column, factor)."""
        self.entries += [(len(self.limits), column, factor) for column, factor in terms]
        self.limits.append(limit)

    def matrix(self, columns: int) -> "csr_array":
        """Return the factors as a sparse matrix."""
        row, column, factor = zip(*self.entries, strict=True)
        shape = len(self.limits), columns
        from scipy.sparse import csr_array  # Imported when needed: scipy takes a second.

        return csr_array((factor, (row, column)), shape=shape)


class _Program:
    """
    The linear program, with the bounds added so far.

    Bounds are those on sets of next hops and, with `"log"`, tangents of the logarithm. Columns are
    x, alpha, the shares of the sets of senders, the rates, and the utilities of the rates.
    """

    def __init__(
        self,
        flows: list[Flow],
        links: list[FlowLink],
        senders: list[_Sender],
        sets: list[list[int]],
        utility: Utility,
    ) -> None:
        self.flows, self.links, self.senders, self.sets, self.utility = (
            flows,
            links,
            senders,
            sets,
            utility,
        )
        self.reached = sorted({flow for flow, _, _ in links})
        sizes = [len(of) for of in (links, senders, sets, self.reached, self.reached)]
        _, self.alpha, self.share, self.rate, self.worth, self.columns = np.cumsum(
            [0, *sizes]
        ).tolist()
        self.known: set[tuple[int, object]] = set()
        self.exact, self.bounds = _Rows(), _Rows()
        self._conserve()
        self._schedule()
        self._value()
        # Flow over every link and no sender: no solution, but it selects the first bounds.
        self.solution = np.ones(self.columns)
        self.solution[self.alpha : self.share] = self.solution[self.worth :] = 0.0

    def solve(self) -> None:
        """Solve, adding the bounds that the solution exceeds, until it exceeds none."""
        from scipy.optimize import linprog  # Imported when needed: scipy takes a second.

        while self._add_exceeded():
            cost = np.zeros(self.columns)
            cost[self.worth :] = -1.0
            result = linprog(
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
        """Make nodes send on what they receive, and the source receive the rate."""
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
        """A node sends for all its flows no longer than the sets that contain it."""
        self.exact.add([(self.share + index, 1.0) for index in range(len(self.sets))], 1.0)
        for node in sorted({sender.node for sender in self.senders}):
            sends = [
                (self.alpha + k, 1.0)
                for k, sender in enumerate(self.senders)
                if sender.node == node
            ]
            may = [(self.share + k, -1.0) for k, nodes in enumerate(self.sets) if node in nodes]
            self.bounds.add(sends + may)

    def _value(self) -> None:
        """The utility of a rate is the rate, or at most a tangent of its logarithm."""
        for index in range(len(self.reached)):
            if self.utility == "sum":
                self.bounds.add([(self.worth + index, 1.0), (self.rate + index, -1.0)])
            else:
                for rate in FIRST_TANGENTS:
                    self._add_tangent(index, rate)

    def _add_exceeded(self) -> bool:
        """Add the bounds that the solution exceeds, and say whether there were any."""
        before = len(self.bounds.limits)
        x, alpha = self.solution[: self.alpha], self.solution[self.alpha : self.share]
        for index, sender in enumerate(self.senders):
            for entries, carried, heard in zip(*sender.bounds(x), strict=True):
                if carried > alpha[index] * heard + ACCURACY:
                    self._add_hops(index, entries.tolist(), float(heard))
        if self.utility == "log":
            rates, worth = self.solution[self.rate : self.worth], self.solution[self.worth :]
            for index in np.flatnonzero(
                worth > np.log(np.maximum(rates, SMALLEST)) + ACCURACY
            ).tolist():
                self._add_tangent(index, max(rates[index], SMALLEST))
        return len(self.bounds.limits) > before

    def _add_hops(self, sender: int, entries: list[int], heard: float) -> None:
        """Bound the flow to these next hops by alpha times the probability that any receives."""
        if self._is_new((sender, frozenset(entries))):
            self.bounds.add([*((entry, 1.0) for entry in entries), (self.alpha + sender, -heard)])

    def _add_tangent(self, index: int, rate: float) -> None:
        """Bound the utility of a rate by the tangent of the logarithm at `rate`."""
        if self._is_new((index, rate)):
            terms = [(self.worth + index, 1.0), (self.rate + index, -1.0 / rate)]
            self.bounds.add(terms, np.log(rate) - 1.0)

    def _is_new(self, bound: tuple[int, object]) -> bool:
        if bound in self.known:
            return False
        self.known.add(bound)
        return True

    def optimum(self, nodes: int) -> Optimum:
        """Return the solution as a result."""
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
        result["schedule"] = sorted(
            (row for row in shares if row[1] > ACCURACY), key=lambda row: -row[1]
        )
        return result


def _nothing(flows: int, nodes: int) -> Optimum:
    """Return the optimum of flows without any path."""
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
        raise UnreachableError(
            f"flow {flow}: no path leads there, which the utility log does not allow"
        )
