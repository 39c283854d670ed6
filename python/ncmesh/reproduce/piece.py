"""Pieces of an experiment that are computed: no mesh is simulated for them, and nothing of them is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from ncmesh.campaign import Workers
from ncmesh.campaign.schedule import told_in_a_line

# Names of an experiment, and in it of a piece.
Name = tuple[str, Hashable]


@dataclass(frozen=True)
class Piece:
    """A function, which a worker finds by its module and name, and what to call it with."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def perform(self) -> Computed:
        """Call it."""
        began = time.process_time()
        return Computed(self.function(**self.arguments), time.process_time() - began)


@dataclass(frozen=True)
class Computed:
    """What came of a piece."""

    value: Any
    took_s: float
    """Processor seconds."""


def compute(pieces: Mapping[Name, Piece], workers: Workers) -> dict[Name, Computed]:
    """Compute all, with a progress bar on a terminal; they come in the order in which they were named."""
    if not pieces:
        return {}
    with told_in_a_line(), workers.executor() as executor:
        futures = {name: executor.submit(piece.perform) for name, piece in pieces.items()}
        with tqdm(desc="computed", total=len(futures), unit="piece", disable=None) as bar:
            for future in as_completed(futures.values()):
                future.result()
                bar.update()
        return {name: future.result() for name, future in futures.items()}
