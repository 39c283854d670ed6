"""The flow problems (3)-(7), (20) and (29), solved by cvxpy: no policy can exceed their optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np

from ncmesh_papers import _models
from ncmesh_papers.multirate.network import Network
from ncmesh_papers.multirate.utility import Utilities, free, of_receivers, worth

# Minimum rates count as met if they are missed by less than this share in total.
ROUNDING = 1e-6
# If they cannot be met, the shortfall may exceed the least one by this share, so that the solver
# finds its price.
SLACK = 1e-3


class Optimum(TypedDict):
    """Rates in packets per slot with the largest total utility."""

    rates: list[dict[Any, float]]
    """Rates of each session's receivers."""
    utility: float
    """Total utility, without penalties."""
    flows: list[dict[int, float]]
    """Flow on each link of each session's tree (f)."""
    drops: list[dict[int, float]]
    """Drops at each link of each session's tree (q)."""
    feasible: bool
    """Whether all minimum rates can be met. If not, the total shortfall is the least possible."""
    shortfall: float
    """Total by which minimum rates are missed."""
    multiplier: float
    """Least penalty per packet per slot with which the penalty method (30) meets the minima."""


def optimum(network: Mapping[str, Any], utility: Utilities = "sum") -> Optimum:
    """
    Find the rates that maximize the sum of utilities over the network's trees.

    `utility` is `"sum"` for the sum of rates (7), or what `simulate` takes as `utilities`. Minimum
    rates are constraints (29). Changes of capacity are ignored.

    Raises `ValueError` for an invalid network, tree or utility, and `RuntimeError` if the solver
    fails.
    """
    problem = _Problem(Network(network), utility)
    return problem.solve()


class _Problem:
    """Flows, their constraints and their utility."""

    def __init__(self, network: Network, utilities: Utilities) -> None:
        import cvxpy as cp  # Imported when needed: cvxpy takes a second.

        self.cp = cp
        self.network = network
        self.configs = of_receivers(utilities, network)
        self.flows = cp.Variable(len(network.hops), nonneg=True)
        self.rates = self.flows[np.array(network.last)]
        self.constraints = self._conservation() + self._capacities()
        minima = [config.get("minimum") or 0.0 for config in self.configs]
        self.minima = np.array(minima)

    def _conservation(self) -> list[Any]:
        """No link carries more than the one before it, or its source: (3), (4)."""
        hops = self.network.hops
        roots = [at for at, hop in enumerate(hops) if hop.parent is None]
        supply = np.array([self.network.rate(hops[at].session) for at in roots])
        inner = [(at, hop.parent) for at, hop in enumerate(hops) if hop.parent is not None]
        bounds = [self.flows[np.array(roots)] <= supply]
        if inner:
            after, before = np.array(inner).T
            bounds.append(self.flows[after] <= self.flows[before])
        return bounds

    def _capacities(self) -> list[Any]:
        """No link exceeds its capacity, and a radio shares its time among its links: (5)."""
        rows: dict[Any, Any] = {}
        for at, hop in enumerate(self.network.hops):
            link = self.network.links[hop.link]
            key = ("radio", str(link["from"])) if link.get("wireless") else ("wire", hop.link)
            row = rows.setdefault(key, np.zeros(len(self.network.hops)))
            row[at] = 1.0 / link["capacity"]
        return [np.array(list(rows.values())) @ self.flows <= 1]

    def solve(self) -> Optimum:
        """Find the least shortfall of the minimum rates, then the largest utility."""
        gain = self.cp.sum([self._worth(at) for at in range(len(self.configs))])
        shortfall = self._least_shortfall()
        feasible = shortfall <= ROUNDING * max(1.0, self.minima.sum())
        minima, price = self._meet_minima(feasible, shortfall)
        self._maximize(gain, minima)
        rates = [max(0.0, float(rate)) for rate in self.rates.value]
        values = [worth(config, rate) for config, rate in zip(self.configs, rates, strict=True)]
        return Optimum(
            rates=self.network.by_session(rates),
            utility=sum(values),
            flows=self._by_link([float(flow) for flow in self.flows.value]),
            drops=self._by_link(self._drops()),
            feasible=feasible,
            shortfall=0.0 if feasible else float(np.maximum(self.minima - rates, 0).sum()),
            multiplier=0.0 if price is None else float(np.max(price.dual_value)),
        )

    def _least_shortfall(self) -> float:
        """Return by how much the minimum rates are missed in total, at best."""
        if not self.minima.any():
            return 0.0
        missed = self.cp.sum(self.cp.pos(self.minima - self.rates))
        return float(self._maximize(-missed, []) * -1)

    def _meet_minima(self, feasible: bool, shortfall: float) -> tuple[list[Any], Any]:
        """Return constraints that meet the minima up to `shortfall`, and the one with the price."""
        bound = np.flatnonzero(self.minima)
        if not bound.size:
            return [], None
        if feasible:
            met = self.rates[bound] >= self.minima[bound] - max(shortfall, 0.0)
        else:
            missed = self.cp.sum(self.cp.pos(self.minima - self.rates))
            met = missed <= shortfall * (1 + SLACK)
        return [met], met

    # cvxpy is untyped.
    def _maximize(self, gain: Any, constraints: list[Any]) -> float:  # noqa: ANN401
        problem = self.cp.Problem(self.cp.Maximize(gain), self.constraints + constraints)
        problem.solve()
        if problem.status not in (self.cp.OPTIMAL, self.cp.OPTIMAL_INACCURATE):
            raise RuntimeError(f"the solver found no optimum: {problem.status}")
        return float(problem.value)

    def _worth(self, at: int) -> Any:  # noqa: ANN401 (cvxpy is untyped)
        """Return the utility of a receiver's rate as a cvxpy expression."""
        rate, config = self.rates[at], self.configs[at]
        _, formula = _models.multirate_utility(free(config))
        if formula is None:
            return (config.get("weight") or 1.0) * self._table(rate, config)
        weight, xi, alpha = formula
        if alpha == 0:
            return weight * rate
        if alpha == 1:
            return weight * self.cp.log(rate + xi)
        return weight * xi ** (1 - alpha) / (1 - alpha) * self.cp.power(1 + rate / xi, 1 - alpha)

    def _table(self, rate: Any, table: dict[str, Any]) -> Any:  # noqa: ANN401 (cvxpy is untyped)
        """Return the minimum of the lines through the steps of a table."""
        values = np.array(table["values"])
        chords = np.diff(values) / table["step"]
        rates = table["step"] * np.arange(chords.size)
        return self.cp.min(values[:-1] - chords * rates + chords * rate)

    def _drops(self) -> list[float]:
        """Return what arrives and is not sent on: (3), (4)."""
        flows, hops = self.flows.value, self.network.hops
        arriving = [
            self.network.rate(hop.session) if hop.parent is None else flows[hop.parent]
            for hop in hops
        ]
        return [max(0.0, float(a - flow)) for a, flow in zip(arriving, flows, strict=True)]

    def _by_link(self, values: list[float]) -> list[dict[int, float]]:
        split: list[dict[int, float]] = [{} for _ in self.network.table["sessions"]]
        for hop, value in zip(self.network.hops, values, strict=True):
            split[hop.session][hop.link] = value
        return split
