"""A network as the compiled module reads it, and its queues in the order in which that has them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncmesh import _ncmesh


def plain(value: object) -> Any:  # noqa: ANN401 (what is in a dict that users made)
    """Numbers of NumPy's as Python's, tuples and arrays as lists, all the way down."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value


@dataclass(frozen=True)
class Hop:
    """A link of a session's tree."""

    session: int
    link: int
    parent: int | None
    """The index of the hop before it; none at the source."""
    receivers: int
    """Receivers that are reached over it (m)."""


class Network:
    """A network, checked."""

    def __init__(self, network: Mapping[str, Any]) -> None:
        if not isinstance(network, Mapping):
            raise ValueError(f"network: needed is a dict, not {type(network).__name__}")
        self.table: dict[str, Any] = plain(network)
        self.hops: list[Hop] = []
        self.last: list[int] = []
        """The hop into each receiver, session by session."""
        for session, tree in enumerate(_ncmesh.multirate_trees(self.table)):
            first = len(self.hops)
            for link, parent, receivers in zip(
                tree["links"], tree["parents"], tree["receivers"], strict=True
            ):
                before = None if parent is None else first + parent
                self.hops.append(Hop(session, link, before, receivers))
            self.last += [first + place for place in tree["last"]]

    @property
    def links(self) -> list[dict[str, Any]]:
        """Links as they were given."""
        return list(self.table["links"])

    @property
    def seats(self) -> list[tuple[int, Hashable]]:
        """All receivers, each with its session."""
        sessions = enumerate(self.table["sessions"])
        return [(index, receiver) for index, session in sessions for receiver in session["receivers"]]

    def rate(self, session: int) -> float:
        """Packets per slot of all layers of a session."""
        described = self.table["sessions"][session]
        layers = described.get("layers")
        return float(described["rate"] if layers is None else sum(layers))

    def by_session(self, values: list[Any]) -> list[dict[Any, Any]]:
        """Values of all receivers as a dict for each session."""
        split: list[dict[Any, Any]] = [{} for _ in self.table["sessions"]]
        for (session, receiver), value in zip(self.seats, values, strict=True):
            split[session][receiver] = value
        return split
