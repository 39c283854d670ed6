"""Transmissions per delivered packet (CORE, 5.1 to 5.5); `recoding` has 5.4 and 5.5."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ncmesh_papers.core_nc.arguments import Equations, Numbers, check_equations, packets, shares
from ncmesh_papers.core_nc.recoding import with_recoding

SCHEMES = (
    "forwarding_unconstrained",
    "forwarding_constrained",
    "cope",
    "core_no_feedback_no_recoding",
    "core_no_feedback",
    "core",
)
# Share of packets that the relay drops if it gets the channel as often as each source (5.1).
DROPPED = 0.5


def efficiency(
    scheme: str,
    e_x: ArrayLike,
    e_oh: ArrayLike,
    generation: ArrayLike = 64,
    *,
    equations: Equations = "fixed",
    whole: bool = False,
) -> Numbers:
    """
    Return the transmissions of all nodes per delivered packet (eqs. 3, 5, 12, 15, 28, 33).

    `scheme` is one of `SCHEMES`, `e_x` the loss to and from the relay, `e_oh` the loss of
    overhearing. `generation` is the number of packets of each flow in a generation (M1 = M2);
    forwarding and COPE do not depend on it. The result is infinite where nothing is ever delivered.
    Arrays broadcast. With recoding the computation takes time proportional to 1 / (1 - e_x).

    `equations` are `fixed`, or `printed`: eq. 7 with e_oh in place of e_x, eq. 12 without the 2 and
    the half, and eqs. 16 and 17 without the values above M, with which no generation is ever
    decoded. `whole` rounds p' and tx' (eqs. 13, 27, 31) up to whole packets; otherwise they are
    interpolated.

    Raises `ValueError` for an unknown scheme, losses outside 0 to 1 and generations below 1.
    """
    check_equations(equations)
    if scheme not in SCHEMES:
        raise ValueError(f"no scheme is called {scheme!r}: there are {', '.join(SCHEMES)}")
    loss, unheard, m = np.broadcast_arrays(
        shares("e_x", e_x), shares("e_oh", e_oh), packets("generation", generation)
    )
    fixed = equations == "fixed"
    with np.errstate(divide="ignore"):
        if scheme == "forwarding_unconstrained":
            found = 2 * repeated(loss)  # (3)
        elif scheme == "forwarding_constrained":
            found = repeated(loss) / (1 - DROPPED) + repeated(loss)  # (4), (5)
        elif scheme == "cope":
            found = _cope(loss, unheard, fixed)
        elif scheme == "core_no_feedback_no_recoding":
            found = _no_recoding(loss, unheard, m, fixed, whole)
        elif fixed:
            found = with_recoding(loss, unheard, m, stops=scheme == "core", whole=whole)
        else:
            found = np.full(loss.shape, np.inf)
    numbers: Numbers = found[()]
    return numbers


def repeated(loss: Numbers) -> Numbers:
    """Return the transmissions until a packet arrives (eqs. 1 and 2)."""
    times: Numbers = np.divide(1.0, 1 - loss)
    return times


def overheard(loss: Numbers, unheard: Numbers) -> Numbers:
    """
    Return the probability that a third node receives at least one transmission of a packet (eq. 6).

    The packet is repeated over a link that loses `loss` of the transmissions; the third node loses
    `unheard`. The sum over n of (1 - unheard^n) loss^(n-1) (1 - loss) is (1 - unheard) / (1 -
    unheard loss).
    """
    share: Numbers = (1 - unheard) / np.where(unheard == 1, 1.0, 1 - unheard * loss)
    return share


def from_relay(loss: Numbers, unheard: Numbers, fixed: bool) -> Numbers:
    """
    Return the probability that a destination gets a packet of the relay (eq. 7).

    The relay addresses both destinations equally often and repeats the packet until the addressed
    one has it. The other one may receive it meanwhile over its own direct link; as printed, over a
    link that loses as much as overhearing.
    """
    return 0.5 + 0.5 * overheard(loss, loss if fixed else unheard)


def _cope(loss: Numbers, unheard: Numbers, fixed: bool) -> Numbers:
    usable = from_relay(loss, unheard, fixed) * overheard(loss, unheard)  # (8)
    sent = np.divide(1.0, usable) * repeated(loss)  # (9) to (11): by each source and by the relay.
    # (12): three senders deliver two packets. As printed: one source and the relay.
    return 1.5 * sent if fixed else 2 * sent


def _no_recoding(loss: Numbers, unheard: Numbers, m: Numbers, fixed: bool, whole: bool) -> Numbers:
    heard, combined = overheard(loss, unheard), from_relay(loss, unheard, fixed)
    # (13), reversed: the least p with min(heard p, M) + min(combined p, 2 M) >= 2 M.
    p = m * np.maximum(2 / (heard + combined), 1 / combined)
    return 3 * repeated(loss) * (_up(p) if whole else p) / (2 * m)  # (14), (15)


def _up(p: Numbers) -> Numbers:
    """Round up to whole numbers, ignoring rounding errors."""
    rounded: Numbers = np.ceil(p - 1e-9)
    return rounded
