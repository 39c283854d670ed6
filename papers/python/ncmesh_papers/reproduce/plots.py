"""Plots in the style of the papers' figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure


def panels(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side."""
    figure = Figure(figsize=(5.2 * count, 3.6), layout="constrained")
    return figure, [figure.add_subplot(1, count, place + 1) for place in range(count)]


def bars(
    axes: Axes,
    topologies: Sequence[int],
    series: Mapping[str, Sequence[float]],
    label: str,
    ranges: Mapping[str, tuple[Sequence[float], Sequence[float]]] | None = None,
) -> None:
    """Draw bars side by side for each topology, with `ranges` (lows, highs) as error bars."""
    width = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        left = [at + (place - (len(series) - 1) / 2) * width for at in range(len(topologies))]
        axes.bar(left, values, width, label=name)
        if ranges and name in ranges:
            lows, highs = ranges[name]
            down = [value - low for value, low in zip(values, lows, strict=True)]
            up = [high - value for value, high in zip(values, highs, strict=True)]
            axes.errorbar(left, values, [down, up], fmt="none", ecolor="black", capsize=2)
    axes.set_xticks(range(len(topologies)), [str(k) for k in topologies])
    axes.set_xlabel("topology")
    axes.set_ylabel(label)
    axes.legend(fontsize="small")


def distributions(axes: Axes, series: Mapping[str, Sequence[float]], label: str) -> None:
    """Draw cumulative distributions; series without values are left out."""
    for name, values in series.items():
        if values:
            axes.ecdf(list(values), label=name)
    axes.set_xlabel(label)
    axes.set_ylabel("share of receivers")
    axes.legend(fontsize="small", loc="lower right")


def kbit(values: Sequence[float]) -> list[float]:
    """Convert bit/s to kbit/s."""
    return [value / 1e3 for value in values]
