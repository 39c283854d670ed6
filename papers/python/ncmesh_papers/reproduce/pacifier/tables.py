"""Tables and plots that several figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ncmesh_papers.reproduce.experiment import Rows
from ncmesh_papers.reproduce.plots import bars, distributions, kbit, panels

COUNTS = {
    "forwarders": "forwarders",
    "transmissions": "data packets sent",
    "source_redundancy": "source redundancy",
}


def per_topology(rows: Rows, variants: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per topology and variant."""
    table = []
    for variant in variants:
        columns = {
            "average_bps": rows.average(variant),
            "worst_bps": rows.worst(variant),
            "best_bps": rows.best(variant),
            **{column: rows.of(variant, column) for column in COUNTS},
        }
        table += [
            {"topology": k, "variant": variant, **{c: v[place] for c, v in columns.items()}}
            for place, k in enumerate(rows.topologies)
        ]
    return table


def four_panels(rows: Rows, variants: Sequence[str]) -> Figure:
    """Draw throughput, forwarders, transmissions and source redundancy by topology."""
    figure, (first, *others) = panels(4)
    averages = {variant: kbit(rows.average(variant)) for variant in variants}
    bars(first, rows.topologies, averages, "average throughput, kbit/s")
    for axes, (column, label) in zip(others, COUNTS.items(), strict=True):
        bars(axes, rows.topologies, {v: rows.of(v, column) for v in variants}, label)
    return figure


def with_extremes(rows: Rows, variants: Sequence[str]) -> Figure:
    """Draw average throughput by topology, with error bars from worst to best receiver."""
    figure, (axes,) = panels(1)
    _extremes(axes, rows, variants)
    return figure


def with_extremes_and_distributions(rows: Rows, variants: Sequence[str]) -> Figure:
    """Draw the same, and the distribution of all receivers' throughputs."""
    figure, (left, right) = panels(2)
    _extremes(left, rows, variants)
    pooled = {v: kbit([bps for group in rows.pooled(v) for bps in group]) for v in variants}
    distributions(right, pooled, "throughput, kbit/s")
    return figure


def _extremes(axes: Axes, rows: Rows, variants: Sequence[str]) -> None:
    averages = {variant: kbit(rows.average(variant)) for variant in variants}
    ranges = {v: (kbit(rows.worst(v)), kbit(rows.best(v))) for v in variants}
    bars(axes, rows.topologies, averages, "throughput, kbit/s", ranges)
