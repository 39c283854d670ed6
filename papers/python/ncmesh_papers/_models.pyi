from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "__version__",
    "cross_transmissions",
    "multirate_simulate",
    "multirate_trees",
    "multirate_utility",
    "multirate_worth",
]

__version__: str

def cross_transmissions(
    scheme: str,
    e_x: float,
    e_oh: float,
    generation: int,
    field: str,
    until: str,
    trials: int,
    seed: int,
) -> NDArray[np.float64]: ...
def multirate_trees(network: dict[str, Any]) -> list[dict[str, Any]]: ...
def multirate_worth(utility: Mapping[str, Any], rate: float) -> float: ...
def multirate_utility(
    utility: Mapping[str, Any],
) -> tuple[float, tuple[float, float, float] | None]: ...
def multirate_simulate(network: dict[str, Any], setup: dict[str, Any]) -> dict[str, Any]: ...
