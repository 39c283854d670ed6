"""MORE's forwarders and credits (Chachulski et al., SIGCOMM 2007), by the daemon's own code."""

from collections.abc import Iterable
from typing import TypedDict

from numpy.typing import ArrayLike

from ncmesh import _ncmesh


class Plan(TypedDict):
    """Share that each node forwards; nodes are indices of the matrix."""

    forwarders: list[int]
    """All nodes that send but the source, by increasing ETX from it."""
    z: dict[int, float]
    """Expected transmissions per packet, of source and forwarders: the most of any belt."""
    tx_credit: dict[int, float]
    """Transmissions per packet received from upstream, of each forwarder."""
    unreachable: list[int]
    """Receivers that no path leads to."""
    disconnected: list[int]
    """Receivers that pruning cuts off; nothing is planned for them."""


def plan(loss: ArrayLike, source: int, receivers: Iterable[int], prune: float = 0.1) -> Plan:
    """
    Merge the belts from `source` to each of `receivers` and assign their credits.

    Nodes that make less than `prune` (0 to 1) of a belt's transmissions are left out, and the rest
    is computed again. `loss` and errors are those of `ncmesh.pacifier.plan`.
    """
    return _ncmesh.more_plan(loss, source, receivers, prune)


def largest_threshold(loss: ArrayLike, source: int, receivers: Iterable[int]) -> float:
    """
    Find the largest `prune` that disconnects none of the receivers that the source reaches.

    1 where no pruning disconnects any.
    """
    return _ncmesh.more_largest_threshold(loss, source, receivers)
