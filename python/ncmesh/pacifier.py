"""Pacifier's multicast tree and credits (Koutsonikolas, Hu, Wang, III), by the daemon's code."""

from collections.abc import Iterable
from typing import TypedDict

from numpy.typing import ArrayLike

from ncmesh import _ncmesh


class Plan(TypedDict):
    """Share that each node forwards; nodes are indices of the matrix."""

    forwarders: list[int]
    """Inner nodes of the tree but the source, by increasing ETX from it."""
    z: dict[int, float]
    """Expected transmissions per packet, of the source and each forwarder (eq. 3, III-C.2)."""
    tx_credit: dict[int, float]
    """Transmissions per packet received from upstream, of each forwarder (eq. 4)."""
    parent: dict[int, int]
    """The node before each node of the tree but the source."""
    unreachable: list[int]
    """Receivers that no path leads to."""


def plan(loss: ArrayLike, source: int, receivers: Iterable[int], knob: float = 1.0) -> Plan:
    """
    Build the union of the shortest-ETX paths from `source` to `receivers` and assign its credits.

    `loss` is n x n: `loss[i][j]` is the probability that `j` loses what `i` broadcasts, 1 where
    there is no link. The diagonal is ignored. Every link below 1 counts. ETX is that of broadcast,
    the sum of `1 / (1 - loss)`. `knob` is 0 to 1.

    Raises `ValueError` for a matrix that is not square, a loss that is no probability, indices out
    of range, missing or repeated receivers, the source among them, and a knob out of range.
    """
    return _ncmesh.pacifier_plan(loss, source, receivers, knob)
