"""Rates of the paper's two examples (section 2), where all delivery probabilities of a hop are the same."""

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class Rates(TypedDict):
    """Packets per slot at the destination: floats, or arrays of the shape that the arguments broadcast to."""

    coded: float | Array
    """Over all paths with network coding."""
    naive: float | Array
    """Over all paths, each relay passing on whatever it hears."""
    single: float | Array
    """Over one path."""


def diamond(p: ArrayLike, q: ArrayLike, n: ArrayLike = 2) -> Rates:
    """
    Compute the rates from a source over `n` relays to a destination, of which one sends at a time (2.1).

    `p` is the delivery from the source to each relay, `q` from each relay to the destination, `n` a whole
    number from 1; scalars or arrays, which broadcast. The source sends in a share alpha of the slots, the
    relays in the others. With p_b = 1 - (1 - p)^n, the chance that any relay hears a packet:

    - `coded`, eq. (3) and (4): p_b q / (p_b + q), at alpha = q / (p_b + q);
    - `naive`, eq. (5) and (6): p_b q / (n p + q), at alpha = q / (n p + q);
    - `single`, "fixed routing": p q / (p + q), at alpha = q / (p + q); the paper prints p / (p + q).

    With one relay all three are the same; where p or q is 0 they are 0.

    Raises `ValueError` for a `p` or `q` outside 0 to 1, an `n` that is no whole number from 1, and shapes
    that do not broadcast.
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
    Compute the rates over two paths of three hops: the first with delivery `p`, the others with `q` (2.2).

    The paper gives no formulas for it; these follow from the same argument. Nodes 1-2-3-4 and 1-5-6-4, as
    in figure 1(a). The source and the last relays, 3 and 6, exclude one another: 2 and 5 hear the source and
    one of those, 4 hears both of those. The first relays send while the other path's last relay does, and
    cost no slots of their own. So two paths are those of `diamond` with two relays, while on one path its
    three nodes take turns:

    - `coded`: p_b q / (p_b + q), with p_b = 1 - (1 - p)^2, at alpha = q / (p_b + q);
    - `naive`: p_b q / (2 p + q), at alpha = q / (2 p + q);
    - `single`: p q / (2 p + q), at alpha = q / (2 p + q).

    Arguments and errors are as with `diamond`.
    """
    first, second = np.broadcast_arrays(_delivery("p", p), _delivery("q", q))
    some = _heard_by_some(first, 2)
    return {
        "coded": _rate(some, some, second),
        "naive": _rate(some, 2 * first, second),
        "single": _rate(first, 2 * first, second),
    }


def _rate(heard: Array, owed: Array, q: Array) -> float | Array:
    """What is `heard` of the source, where each of its packets leaves `owed` to bring over links of `q`."""
    rate: Array = np.divide(heard * q, owed + q, out=np.zeros(q.shape), where=heard * q > 0)
    return rate if rate.ndim else rate.item()


def _heard_by_some(p: Array, n: Array | int) -> Array:
    """1 - (1 - p)^n, exact for small p too."""
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
