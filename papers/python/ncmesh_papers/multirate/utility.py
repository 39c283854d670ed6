"""Utilities as users give them, converted for the compiled module."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from ncmesh_papers import _models
from ncmesh_papers.multirate.network import Network, plain

# Steps of a utility's table from rate 0 to the session's rate.
STEPS = 1024
# A slope counts as unbounded if it is `STEEPER` times larger within this share of the first step.
NEAR_ZERO = 1e-6
STEEPER = 10.0
ADD_XI = "use it at x + xi with a small xi (IV-A, footnote 6)"

Function = Callable[[float], Any]
Utility = str | Mapping[str, Any] | Function | tuple[Function, Function]
# One utility for all, a list with one for each session, or a dict by receiver or (session,
# receiver).
Utilities = Utility | Sequence[Utility] | Mapping[Hashable, Utility]


def of_receivers(utilities: Utilities, network: Network) -> list[dict[str, Any]]:
    """
    Return the utility of each receiver, session by session.

    Functions become tables of `STEPS` steps up to the session's rate, so that the simulator runs
    without Python.
    """
    tables: dict[Any, dict[str, Any]] = {}
    configured = []
    for session, receiver in network.seats:
        given = _of(utilities, session, receiver)
        most = network.rate(session)
        if isinstance(given, str | Mapping) and "value" not in given:
            config = _named(given)
        else:
            key = (id(given), most)
            if key not in tables:
                tables[key] = _tabulated(given, most)
            config = tables[key]
        # A setting that is None is one that was left out.
        config = {name: value for name, value in config.items() if value is not None}
        _check(config, session, receiver)
        configured.append(config)
    return configured


def free(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the utility without its minimum and penalty."""
    return {key: value for key, value in config.items() if key not in ("minimum", "penalty")}


def worth(config: Mapping[str, Any], rate: float) -> float:
    """Return the utility of a rate, without minimum and penalty."""
    return _models.multirate_worth(free(config), rate)


def steepest(config: Mapping[str, Any]) -> float:
    """Return the slope at rate 0, without minimum and penalty."""
    return _models.multirate_utility(free(config))[0]


def _of(utilities: Utilities, session: int, receiver: Hashable) -> Utility:
    if isinstance(utilities, Mapping) and not utilities.keys() & {"name", "value"}:
        by_receiver = cast(Mapping[Hashable, Utility], utilities)
        for key in ((session, receiver), receiver):
            if key in by_receiver:
                return by_receiver[key]
        raise ValueError(f"utilities: there is none for receiver {receiver} of session {session}")
    if isinstance(utilities, list):
        if session >= len(utilities):
            raise ValueError(f"utilities: there is none for session {session}")
        return cast(Utility, utilities[session])
    return cast(Utility, utilities)


def _named(given: str | Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {"name": given} if isinstance(given, str) else plain(given)
    if config["name"] == "sum":
        config["name"] = "linear"
    return config


def _check(config: dict[str, Any], session: int, receiver: Hashable) -> None:
    complete = {"penalty": 0.0, **config} if "minimum" in config else config
    try:
        _models.multirate_utility(complete)
    except ValueError as error:
        message = f"utility of receiver {receiver} of session {session}: {error}"
        raise ValueError(message) from None


def _tabulated(given: object, most: float) -> dict[str, Any]:
    """Return the table of a function, of a pair of functions, or of a dict with these."""
    value, slope, rest = _functions(given)
    step = (most or 1.0) / STEPS
    rates = step * np.arange(STEPS + 1)
    values = np.array([_number(value, rate) for rate in rates])
    if slope is None:
        _check_slope(value, values, step)
        slopes = _slopes(values, step)
    else:
        slopes = np.array([_number(slope, rate) for rate in rates])
    return {
        "name": "table",
        "step": step,
        "values": values.tolist(),
        "slopes": slopes.tolist(),
        **rest,
    }


def _functions(given: object) -> tuple[Function, Function | None, dict[str, Any]]:
    if isinstance(given, Mapping):
        rest = {key: item for key, item in given.items() if key not in ("value", "slope")}
        return given["value"], given.get("slope"), plain(rest)
    if isinstance(given, tuple) and len(given) == 2 and all(map(callable, given)):
        return given[0], given[1], {}
    if callable(given):
        return given, None, {}
    message = (
        f"utility {given!r}: needed is a name, a dict, a function, or functions for value and slope"
    )
    raise ValueError(message)


def _number(function: Function, rate: float) -> float:
    """Return a function's value, and NaN where it has none. cvxpy's functions return constants."""
    try:
        found = function(float(rate))
    except (ValueError, ZeroDivisionError, OverflowError):
        return math.nan
    constant: Any = getattr(found, "value", found)
    return float(constant)


def _check_slope(value: Function, values: np.ndarray[Any, Any], step: float) -> None:
    if not math.isfinite(values[0]):
        raise ValueError(f"utility: at rate 0 it is {values[0]}; {ADD_XI}")
    first = (values[1] - values[0]) / step
    nearer = (_number(value, NEAR_ZERO * step) - values[0]) / (NEAR_ZERO * step)
    if nearer > STEEPER * abs(first):
        raise ValueError(f"utility: its slope is unbounded at rate 0; {ADD_XI}")


def _slopes(values: np.ndarray[Any, Any], step: float) -> np.ndarray[Any, Any]:
    """Return the slopes at the rates of a table, from the steps before and after each rate."""
    chords = np.diff(values) / step
    first = chords[0] + (chords[0] - chords[1]) / 2
    last = chords[-1] - (chords[-2] - chords[-1]) / 2
    return np.concatenate(
        [[first], (chords[:-1] + chords[1:]) / 2, [max(last, min(chords[-1], 0.0))]]
    )
