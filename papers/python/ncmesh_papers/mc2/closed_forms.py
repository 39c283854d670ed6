"""Rates of the paper's two examples (section 2), in which all links of a hop are alike."""

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Rates(TypedDict):
    """Packets per slot at the destination: floats, or arrays if the arguments are arrays."""

    coded: float | Array
    """All paths, with network coding."""
    naive: float | Array
    """All paths; each relay forwards whatever it receives."""
    single: float | Array
    """One path."""


def diamond(p: ArrayLike, q: ArrayLike, n: ArrayLike = 2) -> Rates:
    """
    Return the rates from a source over `n` relays to a destination; one node sends at a time (2.1).

    `p` is the delivery probability from the source to each relay, `q` from each relay to the
    destination, `n` a whole number from 1; scalars or arrays, which broadcast. The source sends in
    a share alpha of the slots, the relays in the others. p_b = 1 - (1 - p)^n is the probability
    that any relay receives a packet:

    - `coded`, eq. (3) and (4): p_b q / (p_b + q), at alpha = q / (p_b + q);
    - `naive`, eq. (5) and (6): p_b q / (n p + q), at alpha = q / (n p + q);
    - `single`, "fixed routing": p q / (p + q), at alpha = q / (p + q); the paper prints
      p / (p + q).

    With one relay all three are equal; where p or q is 0 they are 0.

    Raises `ValueError` for a `p` or `q` outside 0 to 1, an `n` that is not a whole number from 1,
    and shapes that do not broadcast.
    """
    first, second, relays = np.broadcast_arrays(_delivery("p", p), _delivery("q", q), _relays(n))
    some = _heard_by_some(first, relays)
    return {
        "coded": _rate(some, some, second),
        "naive": _rate(some, relays * first, second),
        "single": _rate(first, first, second),
    }


def hexagon(p: ArrayLike, q: ArrayLike) -> Rates:
    """
    Return the rates over two paths of three hops: first hops deliver `p`, the others `q` (2.2).

    The paper gives no formulas for it; these follow from the same argument. The paths are 1-2-3-4
    and 1-5-6-4, as in figure 1(a). The source and the last relays, 3 and 6, exclude one another: 2
    and 5 hear the source and one of the last relays, 4 hears both. A first relay sends in the slots
    of the other path's last relay and needs none of its own. So two paths have the rates of
    `diamond` with two relays, while on one path three nodes take turns:

    - `coded`: p_b q / (p_b + q), with p_b = 1 - (1 - p)^2, at alpha = q / (p_b + q);
    - `naive`: p_b q / (2 p + q), at alpha = q / (2 p + q);
    - `single`: p q / (2 p + q), at alpha = q / (2 p + q).

    Arguments and errors are those of `diamond`.
    """
    first, second = np.broadcast_arrays(_delivery("p", p), _delivery("q", q))
    some = _heard_by_some(first, 2)
    return {
        "coded": _rate(some, some, second),
        "naive": _rate(some, 2 * first, second),
        "single": _rate(first, 2 * first, second),
    }


def _rate(heard: Array, owed: Array, q: Array) -> float | Array:
    """Return the rate if a packet is `heard` and leaves `owed` packets for links of `q`."""
    rate: Array = np.divide(heard * q, owed + q, out=np.zeros(q.shape), where=heard * q > 0)
    return rate if rate.ndim else rate.item()


def _heard_by_some(p: Array, n: Array | int) -> Array:
    """Return 1 - (1 - p)^n, exact for small p too."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(n * np.log1p(-p)))


def _delivery(name: str, given: ArrayLike) -> Array:
    values = np.asarray(given, dtype=np.float64)
    _refuse(name, values, ~((values >= 0) & (values <= 1)), "0 to 1")
    return values


def _relays(given: ArrayLike) -> Array:
    values = np.asarray(given, dtype=np.float64)
    whole = np.isfinite(values) & (values >= 1) & (np.floor(values) == values)
    _refuse("n", values, ~whole, "a whole number from 1")
    return values


def _refuse(name: str, values: Array, wrong: NDArray[np.bool_], allowed: str) -> None:
    if wrong.any():
        raise ValueError(f"{name} = {values[wrong].flat[0]:g}: allowed is {allowed}")
