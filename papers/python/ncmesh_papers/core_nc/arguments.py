"""Checks of the arguments of the analysis."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
# The equations with their errors corrected, or as printed.
Equations = Literal["fixed", "printed"]


def shares(name: str, values: ArrayLike) -> Numbers:
    """Return numbers from 0 to 1 as an array; `ValueError` for others."""
    given: Numbers = np.asarray(values, dtype=np.float64)
    outside = ~((given >= 0) & (given <= 1))
    if outside.any():
        raise ValueError(f"{name} = {given[outside].flat[0]}: allowed is 0 to 1")
    return given


def packets(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Return whole numbers from 1 as an array; `ValueError` for others."""
    given: NDArray[Any] = np.asarray(values)
    if given.dtype.kind not in "iu":
        raise ValueError(f"{name} is a whole number of packets, not {given.dtype}")
    if (given < 1).any():
        raise ValueError(f"{name} = {given[given < 1].flat[0]}: allowed is 1 and more")
    return given.astype(np.int64)


def check_equations(equations: str) -> None:
    """Raise `ValueError` for an unknown set of equations."""
    if equations not in ("fixed", "printed"):
        raise ValueError(f"equations = {equations!r}: allowed is 'fixed', 'printed'")
