"""Points of the figures that are made of trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ncmesh_papers import core_nc
from ncmesh_papers.reproduce.claims import Spread
from ncmesh_papers.reproduce.experiment import Scale
from ncmesh_papers.reproduce.piece import Piece

SEED = 1
LABELS = {
    "forwarding_unconstrained": "forwarding",
    "forwarding_constrained": "forwarding, fair MAC",
    "cope": "COPE-like",
    "core_no_feedback_no_recoding": "CORE, no feedback, no recoding",
    "core_no_feedback": "CORE, no feedback",
    "core": "CORE",
}


@dataclass(frozen=True)
class Mean:
    """Mean transmissions per packet over trials, and its standard error."""

    value: float
    error: float

    def over(self, other: float, where: str = "") -> Spread:
        """Return the ratio to a known number, with 2 standard errors to either side."""
        low, middle, high = ((self.value + 2 * side * self.error) / other for side in (-1, 0, 1))
        return Spread(low, middle, high, f"± 2 standard errors{where}")


@dataclass(frozen=True)
class Trials:
    """Means of trials that end as the paper's simulations, and as its analysis counts."""

    both: Mean
    one: Mean


def of_trials(
    scheme: str, e_x: float, e_oh: float, generation: int, field: str, trials: int
) -> Trials:
    """Run trials until both destinations have their flow, and others until one has."""
    simulate = partial(
        core_nc.simulate,
        scheme,
        e_x,
        e_oh,
        generation=generation,
        field=field,
        trials=trials,
        seed=SEED,
    )
    return Trials(_mean(simulate(until="both")), _mean(simulate(until="one")))


def _mean(values: NDArray[np.float64]) -> Mean:
    return Mean(float(values.mean()), float(np.std(values, ddof=1)) / math.sqrt(len(values)))


def piece(
    scheme: str, e_x: float, e_oh: float, scale: Scale, generation: int = 64, field: str = "gf256"
) -> Piece:
    """Return a point of a figure."""
    losses = {"e_x": e_x, "e_oh": e_oh}
    code = {"generation": generation, "field": field}
    return Piece(of_trials, {"scheme": scheme, **losses, **code, "trials": scale.trials})


def losses(most: float, scale: Scale) -> list[float]:
    """Return losses from 0 to `most`."""
    steps = math.floor(most / scale.loss_step + 1e-9)
    return [round(step * scale.loss_step, 6) for step in range(steps + 1)]


def size(scale: Scale) -> dict[str, str]:
    """Return the size of the experiments, for the page."""
    return {
        "scale": f"{scale.name}: {scale.trials} trials a point, losses in steps of "
        f"{scale.loss_step:g}",
        "seeds": f"{SEED}: a trial's random streams have its number",
    }
