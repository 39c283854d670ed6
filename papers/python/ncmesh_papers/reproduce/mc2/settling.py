"""How soon credits and rate settle in the diamond, slot by slot (figure 4c)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ncmesh
from ncmesh_papers.reproduce.mc2.examples import Q
from ncmesh_papers.reproduce.mc2.mesh import Slots, across, diamond

# As many slots as a run has samples, so that each slot has its own.
SLOTS = 200
# The paper does not state the p of its figure.
P = 0.5
# A value has settled when it stays within this share of the mean over the last half.
NEAR = 0.1
# Slots over which the rate, 0 or 1 in a slot, is averaged.
WINDOW = 5

Array = NDArray[np.float64]


def follow(k: float, runs: int) -> dict[str, list[float]]:
    """Return means over runs with a K: credits of nodes 1 to 4 and innovative packets by slot."""
    mesh = diamond(P, Q)
    run = mesh.run(across(mesh), 2, 1, Slots(0, SLOTS), {"k": k})
    found = [_series(run.scenario.table, seed) for seed in range(1, runs + 1)]
    return {name: np.mean([one[name] for one in found], axis=0).tolist() for name in found[0]}


def _series(scenario: Mapping[str, Any], seed: int) -> dict[str, Array]:
    (flow,) = ncmesh.run(scenario, seed, scheme="mc2").flows
    held = {name[1:]: np.array(of[:SLOTS]) for name, of in flow.series.credits.items()}
    return {
        **{node: held.get(node, np.zeros(SLOTS)) for node in "1234"},
        "innovative": np.diff(flow.series.innovative[: SLOTS + 1]),
    }


def settled_after(values: list[float]) -> int:
    """Return the slots after which all values are near the mean of the last half."""
    series = np.array(values)
    final = series[len(series) // 2 :].mean()
    away = np.flatnonzero(np.abs(series - final) > NEAR * final)
    return int(away.max()) + 1 if away.size else 0


def smooth(values: list[float]) -> list[float]:
    """Return means over windows."""
    kernel = np.ones(WINDOW) / WINDOW
    return list(np.convolve(values, kernel, mode="valid"))
