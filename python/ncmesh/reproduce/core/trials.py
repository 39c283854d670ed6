"""Points of the Monte-Carlo that figures are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ncmesh import core_nc
from ncmesh.reproduce.claims import Spread
from ncmesh.reproduce.experiment import Scale
from ncmesh.reproduce.piece import Piece

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
    """Transmissions per packet, averaged over trials, and the standard error of that."""

    value: float
    error: float

    def over(self, other: float, where: str = "") -> Spread:
        """Of its ratio to a number that is known."""
        low, middle, high = ((self.value + 2 * side * self.error) / other for side in (-1, 0, 1))
        return Spread(low, middle, high, f"± 2 standard errors{where}")


@dataclass(frozen=True)
class Trials:
    """As the paper's simulations end, and as its analysis counts."""

    both: Mean
    one: Mean


def of_trials(scheme: str, e_x: float, e_oh: float, generation: int, field: str, trials: int) -> Trials:
    """Trials that end when both destinations have their flow, and others that end when one has."""
    simulate = partial(
        core_nc.simulate, scheme, e_x, e_oh, generation=generation, field=field, trials=trials, seed=SEED
    )
    return Trials(_mean(simulate(until="both")), _mean(simulate(until="one")))


def _mean(values: NDArray[np.float64]) -> Mean:
    return Mean(float(values.mean()), float(np.std(values, ddof=1)) / math.sqrt(len(values)))


def piece(
    scheme: str, e_x: float, e_oh: float, scale: Scale, generation: int = 64, field: str = "gf256"
) -> Piece:
    """A point of a figure."""
    losses = {"e_x": e_x, "e_oh": e_oh}
    code = {"generation": generation, "field": field}
    return Piece(of_trials, {"scheme": scheme, **losses, **code, "trials": scale.trials})


def losses(most: float, scale: Scale) -> list[float]:
    """From 0 to `most`."""
    steps = math.floor(most / scale.loss_step + 1e-9)
    return [round(step * scale.loss_step, 6) for step in range(steps + 1)]


def size(scale: Scale) -> dict[str, str]:
    """For the head of a page."""
    return {
        "scale": f"{scale.name}: {scale.trials} trials a point, losses in steps of {scale.loss_step:g}",
        "seeds": f"{SEED}: with its number it names the random streams of a trial",
    }
