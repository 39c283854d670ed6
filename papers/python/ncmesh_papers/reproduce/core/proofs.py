"""
Proofs that claims of CORE contradict its own equations.

Each is computed from the paper's equations, not from trials or engines: eq. 35 as an exact sum, the
transmissions per packet of sections 5.1 to 5.5, and the exact distribution of the ranks that eq. 26
averages.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ncmesh_papers.core_nc import efficiency
from ncmesh_papers.core_nc.recoding import least_rounds, printed_rounds
from ncmesh_papers.reproduce.claims import Proof

# Analysis within this share of another is a tie.
TIE = 1e-9
# Elements of the field that the trials code over.
FIELD = 256


def received(generation: int, success: Fraction, sent: int) -> Fraction:
    """Return the probability that at least `generation` of `sent` packets arrive, exactly."""
    return sum(
        (
            math.comb(sent, n) * success**n * (1 - success) ** (sent - n)
            for n in range(generation, sent + 1)
        ),
        Fraction(0),
    )


def of_eq_35(generation: int, success: Fraction, printed: float, digits: float) -> Proof:
    """Show that eq. 35 gives the printed probability for no whole number of packets."""
    sent = generation
    while float(received(generation, success, sent + 1)) < printed:
        sent += 1
    below, above = (float(received(generation, success, n)) for n in (sent, sent + 1))
    return Proof(
        f"the exact sum of eq. 35 gives {below:.3f} for {sent} packets and {above:.3f} for "
        f"{sent + 1}; no whole number of packets gives {printed:.2f}.",
        below < printed - digits and above > printed + digits,
    )


def of_order(scheme: str, other: str, places: Sequence[tuple[float, float]]) -> Proof:
    """
    Show that the paper's equations put a scheme above another, or level, at a place of `places`.

    Level is enough against COPE-like, whose packets are never linearly dependent: `dependent` more
    random combinations than packets are needed in the mean.
    """
    if not places:
        return Proof("", False)
    points = np.array(places).T
    mine, theirs = efficiency(scheme, *points), efficiency(other, *points)
    worst = int(np.argmax(mine / theirs))
    more = float(mine[worst] / theirs[worst])
    e_x, e_oh = places[worst]
    at = f"e_X = {e_x:g} and e_OH = {e_oh:g}"
    if more > 1 + TIE:
        return Proof(
            f"the equations give {mine[worst]:.2f} transmissions against {theirs[worst]:.2f} at "
            f"{at}.",
            True,
        )
    tie = f"the equations give both {mine[worst]:.2f} transmissions at {at}, "
    more_packets = f"{dependent(FIELD):.4f} packets more in the mean"
    extra = f"and random combinations over GF({FIELD}) need {more_packets}"
    return Proof(f"{tie}{extra}.", other == "cope" and more > 1 - TIE)


def dependent(field: int) -> float:
    """Return how many random combinations more than packets decode them, in the mean."""
    # The last of n packets, the one before and so on: each combination is of no use with q^-i.
    return math.fsum(1 / (field**i - 1) for i in range(1, 65))


def of_means(e_x: float, e_oh: float, generation: int, tolerance: float) -> Proof:
    """Show that destinations need more rounds than eq. 27 counts from the means of eq. 26."""
    printed, least = printed_rounds(e_x, e_oh, generation), least_rounds(e_x, generation)
    return Proof(
        f"at e_X = {e_x:g} and e_OH = {e_oh:g} eq. 27 gives {printed:.0f} rounds from the means of "
        f"eq. 26; the exact mean until both destinations are done is {least:.0f} even if each "
        "knew the other flow from the start, because the last of several ranks decides.",
        least / printed > 1 + tolerance,
    )
