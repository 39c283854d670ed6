"""A network as the compiled module reads it, with its queues in the module's order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ncmesh_papers import _models


def plain(value: object) -> Any:  # noqa: ANN401 (users' dicts hold anything)
    """Convert NumPy numbers to Python's, and tuples and arrays to lists, at every depth."""
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
    """Index of the previous hop; `None` at the source."""
    receivers: int
    """Receivers that are reached through it (m)."""


class Network:
    """A checked network."""

    def __init__(self, network: Mapping[str, Any]) -> None:
        if not isinstance(network, Mapping):
            raise ValueError(f"network: needed is a dict, not {type(network).__name__}")
        self.table: dict[str, Any] = plain(network)
        self.hops: list[Hop] = []
        self.last: list[int] = []
        """The hop into each receiver, session by session."""
        for session, tree in enumerate(_models.multirate_trees(self.table)):
            first = len(self.hops)
            for link, parent, receivers in zip(
                tree["links"], tree["parents"], tree["receivers"], strict=True
            ):
                before = None if parent is None else first + parent
                self.hops.append(Hop(session, link, before, receivers))
            self.last += [first + place for place in tree["last"]]

    @property
    def links(self) -> list[dict[str, Any]]:
        """The links as given."""
        return list(self.table["links"])

    @property
    def seats(self) -> list[tuple[int, Hashable]]:
        """All receivers, each with its session."""
        sessions = enumerate(self.table["sessions"])
        return [
            (index, receiver) for index, session in sessions for receiver in session["receivers"]
        ]

    def rate(self, session: int) -> float:
        """Return the packets per slot of all layers of a session."""
        described = self.table["sessions"][session]
        layers = described.get("layers")
        return float(described["rate"] if layers is None else sum(layers))

    def by_session(self, values: list[Any]) -> list[dict[Any, Any]]:
        """Return values of all receivers as one dict for each session."""
        split: list[dict[Any, Any]] = [{} for _ in self.table["sessions"]]
        for (session, receiver), value in zip(self.seats, values, strict=True):
            split[session][receiver] = value
        return split
