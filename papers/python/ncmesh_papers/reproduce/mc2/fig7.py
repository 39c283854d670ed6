"""Figure 7: four flows over 1, 2, 4 and 6 paths: their aggregate, and how fairly they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncmesh.campaign import Run
from ncmesh_papers.mc2 import Conflict
from ncmesh_papers.reproduce.claims import GAIN, SHARE, Claim, bootstrap, holds, within
from ncmesh_papers.reproduce.experiment import Case, Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.mc2.setting import (
    GENERATED,
    PATHS,
    SEVERAL,
    STUTTGART,
    Family,
    Instance,
    delivered,
    instances,
    optima,
    over_numbers,
    rates,
    runs,
    share_above,
    size,
)
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import distributions, panels

FLOWS = 4
FAMILIES = (GENERATED, STUTTGART)
CONFLICT: Conflict = "shared_hearer"
SOME_GAIN = 1.2
# Tolerances of "about 50 %" of the instances, and of "all".
HALF, ABOUT = 0.5, 0.15
NEARLY_ALL = 0.05

Rates = Mapping[Instance, Mapping[int, Sequence[float]]]
"""Packets per slot of each flow of an instance, by the number of paths."""


def _runs(scale: Scale) -> Mapping[Case, Run]:
    return runs(FAMILIES, FLOWS, scale)


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    return optima(FAMILIES, FLOWS, "log", (CONFLICT,), scale)


def _simulated(rows: Rows, family: Family, scale: Scale) -> Rates:
    every = instances(family, FLOWS, scale)
    return {of: {k: rates(rows, of, k, scale) for k in PATHS} for of in every}


def _optimal(rows: Rows, family: Family, scale: Scale) -> Rates:
    return {of: rows.computed[(of, CONFLICT)] for of in instances(family, FLOWS, scale)}


def _aggregate_gains(found: Rates, paths: int) -> dict[Instance, float]:
    """Return the sum of rates over the sum on single paths."""
    return {of: sum(by[paths]) / sum(by[1]) for of, by in found.items() if sum(by[1]) > 0}


def _utility_gains(found: Rates, paths: int) -> dict[Instance, float]:
    """Return gains of log-utility, without instances in which a flow carried nothing."""
    carried = {of: by for of, by in found.items() if min(*by[paths], *by[1]) > 0}
    return {of: _utility(by[paths]) - _utility(by[1]) for of, by in carried.items()}


def _utility(of_flows: Sequence[float]) -> float:
    return sum(map(math.log, of_flows))


def _share(
    text: str,
    paper: float,
    found: Mapping[Instance, float],
    limit: float,
    absolute: float,
    detail: str = "",
) -> Claim:
    share = share_above(limit)
    value = share(list(found.values()))
    spread = bootstrap(over_numbers(found), share)
    return within(text, SHARE, paper, value, spread=spread, absolute=absolute, detail=detail)


def _claims(found: Rates, of: str) -> list[Claim]:
    aggregate = [
        _share(
            f"{of}: aggregate over 20 % higher with {k} paths",
            HALF,
            _aggregate_gains(found, k),
            SOME_GAIN,
            ABOUT,
        )
        for k in SEVERAL[1:]
    ]
    return aggregate + [_utility_claim(found, of, k) for k in SEVERAL]


def _utility_claim(found: Rates, of: str, paths: int) -> Claim:
    gains = _utility_gains(found, paths)
    text = f"{of}: log-utility higher with {paths} paths"
    detail = f"all flows carried in {len(gains)} of {len(found)}"
    return _share(text, 1.0, gains, 0.0, NEARLY_ALL, detail)


def _balance_claim(found: Rates, of: str) -> Claim:
    slow, fast = _change(found, min), _change(found, max)
    said = f"slowest {GAIN.write(slow)}, fastest {GAIN.write(fast)}"
    return holds(f"{of}: 4 paths bring the slowest flow more than the fastest", said, slow > fast)


def _change(found: Rates, extreme: Callable[[Sequence[float]], float]) -> float:
    """Return the mean rate with 4 paths over that on one, of the slowest or fastest flows."""
    chosen = [(by, list(by[1]).index(extreme(by[1]))) for by in found.values()]
    four, single = (fmean(by[paths][flow] for by, flow in chosen) for paths in (4, 1))
    return four / single if single > 0 else 1.0


def _bars(panel: Axes, found: Rates) -> None:
    """Draw the rates of the first instance, as in (a)."""
    of, by = next(iter(found.items()))
    width = 0.8 / len(PATHS)
    for place, k in enumerate(PATHS):
        left = [flow + (place - (len(PATHS) - 1) / 2) * width for flow in range(FLOWS)]
        panel.bar(left, by[k], width, label=f"{k} paths")
    panel.set_xticks(range(FLOWS), [f"{a + 1}-{b + 1}" for a, b in of.flows])
    panel.set_xlabel(f"flow, first of {of.family.name}")
    panel.set_ylabel("packets per slot")
    panel.legend(fontsize="small")


def _figure(rows: Rows, scale: Scale) -> Figure:
    figure, axes = panels(4)
    generated, measured = (_simulated(rows, family, scale) for family in FAMILIES)
    best = _optimal(rows, GENERATED, scale)
    _bars(axes[0], generated)
    for panel, found in ((axes[1], generated), (axes[3], measured)):
        series = {f"{k} paths": list(_aggregate_gains(found, k).values()) for k in SEVERAL}
        distributions(panel, series, "aggregate over that of single paths")
    series = {f"{k} paths": list(_utility_gains(generated, k).values()) for k in SEVERAL}
    series |= {f"{k} paths, optimum": list(_utility_gains(best, k).values()) for k in SEVERAL}
    distributions(axes[2], series, "log-utility over that of single paths")
    for panel, title in zip(
        axes[1:], (GENERATED.name, GENERATED.name, STUTTGART.name), strict=True
    ):
        panel.set_ylabel("share of instances")
        panel.set_title(title, fontsize="medium")
    return figure


def _table(rows: Rows, family: Family, scale: Scale) -> list[dict[str, Any]]:
    found, best = _simulated(rows, family, scale), _optimal(rows, family, scale)
    return [
        {"mesh": family.name, "number": of.number, "flows": _ends(of)}
        | {f"aggregate_{k}": round(sum(by[k]), 4) for k in PATHS}
        | {f"delivered_{k}": round(sum(delivered(rows, of, k)), 4) for k in PATHS}
        | {f"utility_{k}": round(_utility(by[k]), 3) if min(by[k]) > 0 else None for k in PATHS}
        | {f"best_utility_{k}": round(_utility(best[of][k]), 3) for k in PATHS}
        for of, by in found.items()
    ]


def _ends(of: Instance) -> str:
    return " ".join(f"{source + 1}-{destination + 1}" for source, destination in of.flows)


def _findings(rows: Rows, scale: Scale) -> Findings:
    claims = []
    for family in FAMILIES:
        found = _simulated(rows, family, scale)
        claims += [*_claims(found, family.name), _balance_claim(found, family.name)]
        claims += _claims(_optimal(rows, family, scale), f"{family.name}, at the optimum")
    table = [row for family in FAMILIES for row in _table(rows, family, scale)]
    return Findings(claims, table, _figure(rows, scale))


EXPERIMENT = Experiment(
    name="mc2-fig7",
    title="Four flows over 1, 2, 4 and 6 paths",
    reading=(
        "Meshes and rates as in Figure 6, four flows between random pairs. Logarithms are "
        "natural. Instances in which a flow carried nothing have no utility and are left out, as "
        "in the paper. The optimum is the linear program's for proportional fairness over the "
        "same paths."
    ),
    findings=_findings,
    runs=_runs,
    pieces=_pieces,
    size=size,
)
