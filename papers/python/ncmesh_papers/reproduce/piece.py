"""Pieces of an experiment that are computed without a mesh. Their results are not kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from typing import Any

from tqdm import tqdm

from ncmesh.campaign import Workers
from ncmesh.campaign.schedule import told_in_a_line

# Name of an experiment, and name of a piece in it.
Name = tuple[str, Hashable]


@dataclass(frozen=True)
class Piece:
    """A function with its arguments. Workers find the function by module and name."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def perform(self) -> Computed:
        """Call the function."""
        began = time.process_time()
        return Computed(self.function(**self.arguments), time.process_time() - began)


@dataclass(frozen=True)
class Computed:
    """Result of a piece."""

    value: Any
    took_s: float
    """Processor time in seconds."""


def compute(pieces: Mapping[Name, Piece], workers: Workers) -> dict[Name, Computed]:
    """Compute all pieces, with a progress bar on a terminal. The result has their order."""
    if not pieces:
        return {}
    with told_in_a_line(), workers.executor() as executor:
        futures = {name: executor.submit(piece.perform) for name, piece in pieces.items()}
        with tqdm(desc="computed", total=len(futures), unit="piece", disable=None) as bar:
            for future in as_completed(futures.values()):
                future.result()
                bar.update()
        return {name: future.result() for name, future in futures.items()}
