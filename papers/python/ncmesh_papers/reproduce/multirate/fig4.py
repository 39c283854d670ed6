"""Figure 4: how MMT follows a change of capacity, and how long its queues get."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ncmesh_papers.multirate import simulate
from ncmesh_papers.reproduce.claims import NUMBER, Claim, holds, over_topologies, within
from ncmesh_papers.reproduce.experiment import Experiment, Findings, Rows, Scale
from ncmesh_papers.reproduce.multirate.setting import (
    A_TO_B,
    B_TO_C,
    B_TO_D,
    B_TO_E,
    D_MAX,
    V,
    figure_3,
    over_seeds,
    size,
)
from ncmesh_papers.reproduce.piece import Piece
from ncmesh_papers.reproduce.plots import panels

# The paper's moving window and our sampling interval, in slots.
WINDOW = 100
SAMPLE = 10
CAPACITIES = [round(1 - 0.1 * step, 1) for step in range(11)]
# Tolerance of c's average throughput in an interval, in packets per slot.
THROUGHPUT = 0.05
# c has followed a change when its window is this near the optimum; the limit is in slots.
NEAR = 0.1
QUICKLY = 500
# A second V, to show which part of the gap depends on V.
LARGER_V = 100


def follow(v: float, seed: int, interval: int) -> dict[str, Any]:
    """Run through all capacities; return c's throughput by windows and intervals, and backlogs."""
    changes = tuple(
        {"slot": step * interval, "link": link, "capacity": x}
        for step, x in enumerate(CAPACITIES)
        for link in (B_TO_D, B_TO_E)
        if step
    )
    slots = interval * len(CAPACITIES)
    network = figure_3(CAPACITIES[0], {"rate": 1.0}, changes)
    run = simulate(network, "mmt", v, D_MAX, slots, seed, series=SAMPLE)
    received = run["series"]["received"][:, 1]
    windows = np.convolve(received, np.full(WINDOW // SAMPLE, SAMPLE / WINDOW))[: received.size]
    queues = {(queue["session"], queue["link"]): at for at, queue in enumerate(run["queues"])}
    backlog = {name: run["series"]["Q"][:, queues[key]] for name, key in _QUEUES.items()}
    samples = interval // SAMPLE
    # The first window of an interval contains packets of the previous one.
    intervals = received.reshape(-1, samples)[:, WINDOW // SAMPLE :]
    return {
        "windows": windows.tolist(),
        "average": intervals.mean(axis=1).tolist(),
        "settled": [
            _settled(windows[k * samples : (k + 1) * samples], 1 - x)
            for k, x in enumerate(CAPACITIES)
        ],
        "backlog": {name: values.tolist() for name, values in backlog.items()},
        "most": {name: run["queues"][queues[key]]["Q"]["max"] for name, key in _QUEUES.items()},
        "bound": run["bounds"]["Q"],
    }


_QUEUES = {
    "b to c": (0, B_TO_C),
    "a to b, session 1": (0, A_TO_B),
    "a to b, session 2": (1, A_TO_B),
}


def _settled(windows: np.ndarray[Any, Any], optimum: float) -> float:
    """Return the slots until a window is near the optimum, or the whole interval."""
    near = np.flatnonzero(np.abs(windows - optimum) <= NEAR)
    return float(SAMPLE * (near[0] + 1) if near.size else SAMPLE * windows.size)


def _pieces(scale: Scale) -> Mapping[Hashable, Piece]:
    # At least five windows at a small scale.
    interval = max(scale.slots // 500, 5 * WINDOW)
    return {
        (v, seed): Piece(follow, {"v": v, "seed": seed, "interval": interval})
        for v in (V, LARGER_V)
        for seed in scale.indices
    }


def _averages(rows: Rows, v: float, step: int) -> list[float]:
    return [run["average"][step] for run in over_seeds(rows, v)]


def _claims(rows: Rows) -> list[Claim]:
    runs = over_seeds(rows, V)
    claims = [
        within(
            f"average throughput of c at x = {x}",
            NUMBER,
            1 - x,
            fmean(_averages(rows, V, step)),
            spread=over_topologies(_averages(rows, V, step)),
            absolute=THROUGHPUT,
        )
        for step, x in enumerate(CAPACITIES)
    ]
    settled = [fmean(run["settled"][step] for run in runs) for step in range(1, len(CAPACITIES))]
    most = {name: max(run["most"][name] for run in runs) for name in _QUEUES}
    longest = max(most.values())
    return [
        *claims,
        holds(
            f"c follows each change within {QUICKLY} slots",
            f"after {fmean(settled):.0f} slots, at most {max(settled):.0f} (mean over seeds)",
            max(settled) <= QUICKLY,
        ),
        holds(
            "backlog at b toward c is never above 25",
            f"{most['b to c']:.0f} at most",
            most["b to c"] <= 25,
        ),
        holds(
            "no backlog exceeds V + 2 d_max = 35",
            f"{longest:.0f} at most, from a to b",
            longest <= runs[0]["bound"],
        ),
    ]


def _figure(rows: Rows) -> Figure:
    figure, (left, right) = panels(2)
    run = rows.computed[(V, 1)]
    slots = SAMPLE * np.arange(1, len(run["windows"]) + 1)
    interval = slots[-1] / len(CAPACITIES)
    left.plot(slots, run["windows"], linewidth=0.6, label=f"MMT, windows of {WINDOW} slots")
    optimum = [
        1 - CAPACITIES[min(int((slot - 1) // interval), len(CAPACITIES) - 1)] for slot in slots
    ]
    left.plot(slots, optimum, color="gray", label="optimum")
    left.set_xlabel("slot")
    left.set_ylabel("throughput of c, packets/slot")
    left.legend(fontsize="small")
    for name, backlog in reversed(run["backlog"].items()):
        right.plot(slots, backlog, linewidth=0.6, label=name)
    right.axhline(run["bound"], color="black", linestyle="dotted", label="bound")
    right.set_xlabel("slot")
    right.set_ylabel("backlog, packets")
    right.legend(fontsize="small")
    return figure


def _findings(rows: Rows, _: Scale) -> Findings:
    table = [
        {
            "V": v,
            "x": x,
            "optimum": round(1 - x, 1),
            "throughput": fmean(_averages(rows, v, step)),
            "least": min(_averages(rows, v, step)),
            "most": max(_averages(rows, v, step)),
        }
        for v in (V, LARGER_V)
        for step, x in enumerate(CAPACITIES)
    ]
    return Findings(_claims(rows), table, _figure(rows))


EXPERIMENT = Experiment(
    name="mmu-fig4",
    title="MMT follows changes of capacity",
    reading=(
        "Figure 3 with V = 25 and d_max = 5, x from 1 down to 0 in steps of 0.1. The paper does "
        "not say how long each x lasts; here it lasts 2,000 slots, and averages leave out the "
        "first window of 100. The links to d and e carry x packets per slot in whole packets. The "
        f"table has the same with V = {LARGER_V}."
    ),
    findings=_findings,
    pieces=_pieces,
    size=size,
)
