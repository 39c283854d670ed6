"""Output of the command: a block of lines for each instance, one line for each scheme."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ncmesh.bench.instances import Instance
from ncmesh.bench.service import Row

# Least width of the column of schemes.
LEAST_WIDTH = 12
# More receivers are counted, not named.
MOST_NAMES = 6


def block(instance: Instance, rows: Sequence[Row], line: Callable[[Row], str]) -> str:
    """Return the lines of an instance; schemes in the order of `rows`."""
    head = f"{instance.title}: {ends(instance.source, instance.receivers)}"
    width = max(LEAST_WIDTH, *(len(row["scheme"]) for row in rows))
    return "\n".join([head, *(f"  {row['scheme']:{width}} {_line(row, line)}" for row in rows)])


def ends(source: str, receivers: Sequence[str]) -> str:
    """Return the source and the receivers of an instance for people."""
    count = len(receivers)
    return f"{source} to {', '.join(receivers) if count <= MOST_NAMES else f'{count} nodes'}"


def _line(row: Row, line: Callable[[Row], str]) -> str:
    return line(row) if row["error"] is None else str(row["error"])
