"""
What coding at relays is worth to TCP: Huang, Ghaderi, Towsley, Gong (SECON 2008), section III.

A TCP flow over n hops, of whose stations m compete for the channel. Losses come of contention, contention of
the flow itself: its throughput is where the square-root law and the losses that it causes balance. Time is in
slots of one packet's airtime; a station sends in a slot with probability lambda, which is the throughput X in
packets per slot, or X / 2 where each transmission carries two packets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Loss = Literal["slot", "packet"]
Method = Literal["approximate", "exact"]

# Halvings of the interval in which the throughput lies: to the last bit of a float.
HALVINGS = 60


def collision(rate: ArrayLike, stations: ArrayLike = 3, *, loss: Loss = "slot", exact: bool = True) -> Array:
    """
    Give p_c, the losses by contention, where each of `stations` sends in a slot with probability `rate`.

    - `loss="slot"`, as the paper has it: two or more send in a slot, 1 - (1 - r)^m - m r (1 - r)^(m-1), which
      is eq. (5) where m is 3; approximately m (m - 1) / 2 r^2, eq. (6) and (8).
    - `loss="packet"`, not in the paper: a packet meets another, 1 - (1 - r)^(m-1); approximately (m - 1) r.
      Eq. (5) is the share of slots in which packets collide, not the share of packets that do.

    Arrays broadcast. Raises `ValueError` for a `rate` outside 0 to 1 and fewer than two stations.
    """
    r, m = np.broadcast_arrays(np.asarray(rate, np.float64), np.asarray(stations, np.float64))
    _check("rate", r, 0.0, 1.0)
    _check("stations", m, 2.0, np.inf)
    return _collision(r, m, loss, exact)


def _collision(r: Array, m: Array, loss: Loss, exact: bool) -> Array:
    if loss == "slot":
        if exact:
            return 1.0 - (1.0 - r) ** m - m * r * (1.0 - r) ** (m - 1.0)
        return m * (m - 1.0) / 2.0 * r**2
    if loss == "packet":
        return 1.0 - (1.0 - r) ** (m - 1.0) if exact else (m - 1.0) * r
    message = f"loss = {loss!r}: allowed are 'slot' and 'packet'"
    raise ValueError(message)


def end_to_end_loss(n_hops: ArrayLike, p_c: ArrayLike, p_e: ArrayLike = 0.0, *, exact: bool = True) -> Array:
    """
    Give p, the losses of a data packet or its acknowledgment over `n_hops`.

    From p_l = 1 - (1 - p_e)(1 - p_c) of each hop, eq. (3), comes p = 1 - (1 - p_l)^(2n), eq. (1);
    approximately 2 n (p_c + p_e), eq. (2) and (4) without leaving p_e out.
    """
    n, collided, error = (np.asarray(value, np.float64) for value in (n_hops, p_c, p_e))
    if exact:
        lost: Array = 1.0 - ((1.0 - error) * (1.0 - collided)) ** (2.0 * n)
    else:
        lost = 2.0 * n * (collided + error)
    return lost


def throughput(
    n_hops: ArrayLike,
    rtt_s: ArrayLike,
    packet_bits: ArrayLike,
    coded: bool,
    p_e: ArrayLike = 0.0,
    stations: ArrayLike = 3,
    *,
    capacity_bps: ArrayLike = 6e6,
    loss: Loss = "slot",
    method: Method = "approximate",
) -> Array:
    """
    Give TCP's throughput in bit/s, where X = L / (R sqrt(p / 2)), eq. (11), balances the losses it causes.

    A slot is `packet_bits` / `capacity_bps`, in which L is 1 packet and R is `rtt_s`. `p_e` are losses that
    are no collisions, of each hop. `method="approximate"` has the paper's approximations: without `p_e`, of
    3 stations, eq. (14) and (15), X = (k L / (sqrt(3 n) R))^(1/2) with k = 2 where `coded`, else 1.
    `"exact"` has eq. (1), (3) and (5) in their place, and lambda of at most 1. `loss` is as in `collision`.

    Arrays broadcast; the result has their shape. Raises `ValueError` for what cannot be.
    """
    given = (n_hops, rtt_s, packet_bits, p_e, stations, capacity_bps)
    n, rtt, bits, error, m, capacity = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in given))
    _check("n_hops", n, 1.0, np.inf)
    _check("p_e", error, 0.0, 1.0)
    _check("stations", m, 2.0, np.inf)
    for name, values in (("rtt_s", rtt), ("packet_bits", bits), ("capacity_bps", capacity)):
        _check(name, values, np.finfo(float).tiny, np.inf)
    if method not in ("approximate", "exact"):
        message = f"method = {method!r}: allowed are 'approximate' and 'exact'"
        raise ValueError(message)
    exact = method == "exact"
    packets = 2.0 if coded else 1.0
    share = bits / (capacity * rtt)

    def falls_short(x: Array) -> Array:
        """Whether TCP would send more than `x` packets per slot under the losses that `x` causes."""
        p_c = _collision(x / packets, m, loss, exact)
        p = end_to_end_loss(n, p_c, error, exact=exact)
        return np.asarray(x * x * p / 2.0 < share**2)

    # No more than each station's every slot; the approximations know no such bound.
    most = np.full(share.shape, packets) if exact else packets * (1.0 + share)
    found: Array = _bisect(falls_short, most) * capacity
    return found


def gain(
    n_hops: ArrayLike,
    rtt_s: ArrayLike,
    packet_bits: ArrayLike,
    p_e: ArrayLike = 0.0,
    stations: ArrayLike = 3,
    *,
    capacity_bps: ArrayLike = 6e6,
    loss: Loss = "slot",
    method: Method = "approximate",
) -> Array:
    """
    Give the ratio of TCP's throughputs with coding and without.

    sqrt(2) by the paper's model without `p_e`; 2^(1/3) with `loss="packet"`; see `throughput`.
    """
    with_coding, without = (
        throughput(
            n_hops,
            rtt_s,
            packet_bits,
            coded,
            p_e,
            stations,
            capacity_bps=capacity_bps,
            loss=loss,
            method=method,
        )
        for coded in (True, False)
    )
    ratio: Array = with_coding / without
    return ratio


def udp_gain(rate: ArrayLike, stations: ArrayLike = 3, *, loss: Loss = "slot") -> Array:
    """
    Give the same ratio of traffic that does not answer losses, `rate` packets per slot without coding.

    It may be sent so much faster with coding that as much of it is lost: lambda = X / 2 is what it was, so
    the ratio is 2 (III-C). Found by bisection from `collision`, as a check on that.
    """
    r = np.asarray(rate, np.float64)
    allowed = collision(r, stations, loss=loss)

    def fits(x: Array) -> Array:
        return np.asarray(collision(x / 2.0, stations, loss=loss) < allowed)

    ratio: Array = _bisect(fits, np.full(allowed.shape, 2.0)) / r
    return ratio


def _bisect(below: Callable[[Array], Array], most: Array) -> Array:
    """Find where `below` turns from true to false, between 0 and `most`, for each element."""
    low, high = np.zeros(most.shape), most
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        is_below = below(middle)
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((low + high) / 2.0)


def _check(name: str, values: Array, low: float, high: float) -> None:
    if not np.all((values >= low) & (values <= high)):
        message = f"{name}: allowed is {low:g} to {high:g}"
        raise ValueError(message)
