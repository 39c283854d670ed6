"""Result of a run at each receiver, flow or stream, as a table and as a picture."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ncmesh import extras

if TYPE_CHECKING:
    from ncmesh.outcome import Outcome, Receiver


def rates(result: Outcome) -> list[tuple[str, float]]:
    """Return name and rate, bit/s, of each receiver of a file or stream, and of each flow."""
    files = [(name, r.throughput_bps or 0.0) for name, r in _receivers(result)]
    flows = [(f"{f.from_} to {f.to}", f.throughput_bps) for f in result.flows]
    streams = [
        (f"{r.node}, {stream.group}", r.rate_bps)
        for stream in result.streams
        for r in stream.receivers
    ]
    return files + flows + streams


def _receivers(result: Outcome) -> list[tuple[str, Receiver]]:
    """Return the receivers of files with their names, of several files with the file's number."""
    several = any(r.file > 0 for r in result.receivers)
    return [(f"{r.node}, file {r.file + 1}" if several else r.node, r) for r in result.receivers]


def as_html(result: Outcome) -> str:
    """Return the result as a table in HTML. Names in it are escaped."""
    seed = "" if result.seed is None else f", seed {result.seed}"
    title = f"{result.scenario} by {result.scheme}{seed}"
    counts = f"{result.seconds:.3g} s, {result.transmissions} data transmissions"
    return (
        f"<table><caption>{html.escape(title)}: {counts}</caption>"
        f"<thead>{_row('th', _columns(result))}</thead>"
        f"<tbody>{''.join(_row('td', row) for row in _rows(result))}</tbody></table>"
    )


def _columns(result: Outcome) -> Sequence[str]:
    if result.flows:
        return ("from", "to", "kbit/s", "packets", "delay, ms")
    if result.streams:
        return ("group", "receiver", "kbit/s", "delay, ms")
    return ("receiver", "bytes", "s", "kbit/s", "verified")


def _rows(result: Outcome) -> list[tuple[object, ...]]:
    files = [
        (name, r.bytes, _number(r.seconds), _number(r.throughput_bps, 1e-3), r.verified)
        for name, r in _receivers(result)
    ]
    flows = [
        (
            f.from_,
            f.to,
            _number(f.throughput_bps, 1e-3),
            f.delivered,
            _number(f.mean_delay_s, 1e3),
        )
        for f in result.flows
    ]
    streams = [
        (stream.group, r.node, _number(r.rate_bps, 1e-3), _number(r.mean_delay_s, 1e3))
        for stream in result.streams
        for r in stream.receivers
    ]
    return [*files, *flows, *streams]


def _number(value: float | None, factor: float = 1.0) -> str:
    return "-" if value is None else f"{value * factor:,.1f}"


def _row(cell: str, values: Sequence[object]) -> str:
    cells = (f"<{cell}>{html.escape(str(value))}</{cell}>" for value in values)
    return f"<tr>{''.join(cells)}</tr>"


def plot(result: Outcome, ax: Any = None) -> Any:  # noqa: ANN401 (of matplotlib)
    """
    Draw the rate of each receiver or flow as a bar, kbit/s, and return the axes.

    `ax` are axes of matplotlib; without them a figure is made. Raises `MissingExtraError` without
    matplotlib.
    """
    if ax is None:
        _, ax = extras.load("matplotlib.pyplot").subplots(layout="constrained")
    shown = rates(result)
    # Names are text: a dollar sign in one must not begin a formula.
    names = [name.replace("$", r"\$") for name, _ in shown]
    ax.barh(range(len(shown)), [rate / 1e3 for _, rate in shown])
    ax.set_yticks(range(len(shown)), names)
    ax.invert_yaxis()
    ax.set(xlabel="kbit/s", title=f"{result.scenario} by {result.scheme}".replace("$", r"\$"))
    return ax
