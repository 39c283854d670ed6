"""
The throughput of TCP over relays that code: Huang, Ghaderi, Towsley, Gong (SECON 2008), III.

A TCP flow crosses n hops, and m stations compete for the channel around each of them. The flow
loses packets by contention with itself. Its throughput is where TCP's square-root law and the
losses that it causes balance. Time is in slots of one packet's airtime. A station sends in a slot
with probability lambda: the throughput X in packets per slot, or X / 2 where each transmission
carries two packets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Loss = Literal["slot", "packet"]
Method = Literal["approximate", "exact"]

# Halvings of the interval that contains the throughput, down to the last bit of a float.
HALVINGS = 60


def collision(
    rate: ArrayLike, stations: ArrayLike = 3, *, loss: Loss = "slot", exact: bool = True
) -> Array:
    """
    Return p_c, the loss by contention where each station sends in a slot with probability `rate`.

    - `loss="slot"`, as in the paper: two or more stations send in a slot,
      1 - (1 - r)^m - m r (1 - r)^(m-1), which is eq. (5) for m = 3; approximately
      m (m - 1) / 2 r^2, eq. (6) and (8).
    - `loss="packet"`, not in the paper: a packet meets another, 1 - (1 - r)^(m-1); approximately
      (m - 1) r. Eq. (5) is the share of slots with a collision, not of packets that collide.

    Arrays broadcast. Raises `ValueError` for a `rate` outside 0 to 1 and for fewer than two
    stations.
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


def end_to_end_loss(
    n_hops: ArrayLike, p_c: ArrayLike, p_e: ArrayLike = 0.0, *, exact: bool = True
) -> Array:
    """
    Return p, the loss of a data packet or its acknowledgment over `n_hops`.

    Each hop loses p_l = 1 - (1 - p_e)(1 - p_c), eq. (3), so p = 1 - (1 - p_l)^(2n), eq. (1). The
    approximation is 2 n (p_c + p_e), eq. (2) and (4) with p_e.
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
    Return TCP's throughput in bit/s, where X = L / (R sqrt(p / 2)), eq. (11), balances its losses.

    A slot lasts `packet_bits` / `capacity_bps`; L is 1 packet and R is `rtt_s`. `p_e` is the loss
    of a hop by other causes than collisions. `method="approximate"` uses the paper's
    approximations: without `p_e` and for 3 stations eq. (14) and (15), X = (k L / (sqrt(3 n)
    R))^(1/2) with k = 2 where `coded` and 1 otherwise. `"exact"` uses eq. (1), (3) and (5), and
    lambda of at most 1. `loss` is that of `collision`.

    Arrays broadcast; the result has their shape. Raises `ValueError` for arguments out of range.
    """
    given = (n_hops, rtt_s, packet_bits, p_e, stations, capacity_bps)
    n, rtt, bits, error, m, capacity = np.broadcast_arrays(
        *(np.asarray(v, np.float64) for v in given)
    )
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
        """Say whether TCP would send more than `x` packets per slot under the losses of `x`."""
        p_c = _collision(x / packets, m, loss, exact)
        p = end_to_end_loss(n, p_c, error, exact=exact)
        return np.asarray(x * x * p / 2.0 < share**2)

    # A station sends at most once in a slot; the approximations have no such bound.
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
    Return the ratio of TCP's throughputs with coding and without.

    The paper's model gives sqrt(2) without `p_e`, `loss="packet"` gives 2^(1/3). See `throughput`.
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
    Return the gain of traffic that ignores losses and sends `rate` packets per slot without coding.

    With coding it may send faster until it loses as much: lambda = X / 2 stays the same, so the
    gain is 2 (III-C). The function finds the gain by bisection of `collision`, to check that
    argument.
    """
    r = np.asarray(rate, np.float64)
    allowed = collision(r, stations, loss=loss)

    def fits(x: Array) -> Array:
        return np.asarray(collision(x / 2.0, stations, loss=loss) < allowed)

    ratio: Array = _bisect(fits, np.full(allowed.shape, 2.0)) / r
    return ratio


def _bisect(below: Callable[[Array], Array], most: Array) -> Array:
    """Find where `below` turns from true to false between 0 and `most`, for each element."""
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
