"""The pictures of the scoreboard: wins and losses, means against others, shares of the bound."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ncmesh import extras
from ncmesh.bench.compare import Cell, cases, geometric_mean, meshes, schemes
from ncmesh.bench.files import replace

# The colours of a cell end here: five times better or worse than the best other.
MOST_COLOURED = 5.0
# Instances beside each other in a row of the matrix; meshes are kept whole.
MOST_COLUMNS = 108
CELL_INCHES = 0.105
DPI = 120


def matrix(of: Sequence[Cell], file: Path) -> None:
    """Draw schemes in rows, instances in columns, one cell each, by ratio to the best other."""
    figure_class, normal, maps = _matplotlib()
    names = schemes(of)
    parts = _parts(of)
    widest = max(map(len, parts))
    labels = max(len(cell.mesh) for cell in of)
    height = len(parts) * (0.26 * len(names) + 0.075 * labels + 0.3) + 0.3
    figure = figure_class(
        figsize=(max(6.0, CELL_INCHES * widest + 2.4), height), layout="constrained"
    )
    axes = figure.subplots(len(parts), 1, squeeze=False)[:, 0]
    norm = normal(-np.log2(MOST_COLOURED), np.log2(MOST_COLOURED))
    mesh = None
    for axis, part in zip(axes, parts, strict=True):
        values = np.full((len(names), widest), np.nan)
        for column, cell in enumerate(part):
            for row, name in enumerate(names):
                ratio = cell.against_best(name) if name in cell.rows else None
                if ratio is not None:
                    values[row, column] = np.log2(ratio.mean)
                if name in cell.rows and _has_failed(cell, name):
                    axis.plot(
                        column + 0.5, row + 0.5, "X", color="white", mec="black", ms=5, mew=0.6
                    )
        mesh = axis.pcolormesh(
            values, cmap=maps["RdBu"], norm=norm, edgecolors="0.85", linewidth=0.3
        )
        # A run that is not there is grey.
        axis.set_facecolor("0.8")
        axis.set_xlim(0, widest)
        axis.axvspan(len(part), widest, color="white")
        axis.invert_yaxis()
        axis.set_yticks(np.arange(len(names)) + 0.5, names, fontsize=8)
        _mark_meshes(axis, part)
        for side in axis.spines.values():
            side.set_visible(False)
    shrink = 0.7 if len(parts) == 1 else 0.4
    bar = figure.colorbar(mesh, ax=list(axes), location="right", shrink=shrink, pad=0.01)
    ticks = [0.25, 0.5, 1, 2, 4]
    bar.set_ticks(np.log2(ticks), labels=[f"{tick:g}x" for tick in ticks])
    bar.ax.tick_params(labelsize=8)
    _save(figure, file)


def means(of: Sequence[Cell], scheme: str, file: Path) -> None:
    """Draw the geometric mean of one scheme against each other one, by case."""
    figure_class, _, _ = _matplotlib()
    names = [name for name in schemes(of) if name != scheme]
    figure = figure_class(figsize=(max(5.0, 1.5 * (len(names) + 1) + 1), 3.2), layout="constrained")
    axis = figure.subplots()
    names_of_cases = cases(of)
    width = 0.8 / len(names_of_cases)
    for place, case in enumerate(names_of_cases):
        part = [cell for cell in of if cell.case == case and scheme in cell.rows]
        values = [
            geometric_mean(cell.against(scheme, name) for cell in part if name in cell.rows)
            for name in names
        ]
        values.append(geometric_mean(cell.against_best(scheme) for cell in part))
        left = np.arange(len(values)) + (place - (len(names_of_cases) - 1) / 2) * width
        heights = [np.nan if value is None else value for value in values]
        bars = axis.bar(left, [h - 1 for h in heights], width, bottom=1, label=case)
        axis.bar_label(bars, [f"{height:.2f}" for height in heights], fontsize=7, padding=1)
    axis.axhline(1, color="0.4", lw=0.8)
    axis.set_xticks(np.arange(len(names) + 1), [*names, "best other"], fontsize=8)
    axis.set_ylabel(f"{scheme} against it", fontsize=8)
    axis.set_yscale("log")
    axis.margins(y=0.15)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axis.yaxis.set_minor_formatter(lambda value, _: f"{value:g}x")
    axis.tick_params(axis="y", which="both", labelsize=7)
    axis.legend(fontsize=8)
    _save(figure, file)


def shares(of: Sequence[Cell], file: Path) -> None:
    """Draw how near files come to their bounds, a point for each run, by mesh."""
    figure_class, _, _ = _matplotlib()
    names = schemes(of)
    titles = meshes(of)
    figure = figure_class(figsize=(max(6.0, 0.3 * len(titles) + 1.5), 6.6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for place, name in enumerate(names):
        sent: list[tuple[float, float]] = []
        timed: list[tuple[float, float]] = []
        for cell in of:
            at = titles.index(cell.mesh) + 0.7 * ((place + 0.5) / len(names) - 0.5)
            for row in cell.rows.get(name, ()):
                if row["bound"] and row["per_packet"]:
                    sent.append((at, 100 * row["bound"] / row["per_packet"]))
                if row["bound"]:
                    timed.append((at, 100 * row["clique_bound_s"] / row["last_s"]))
        for axis, points in ((upper, sent), (lower, timed)):
            x, y = zip(*points, strict=True) if points else ((), ())
            axis.plot(x, y, "o", ms=2.6, alpha=0.7, color=f"C{place}", label=name)
    for axis in (upper, lower):
        for at in range(1, len(titles)):
            axis.axvline(at - 0.5, color="0.9", lw=0.7, zorder=0)
        axis.set_ylim(bottom=0)
        axis.set_xlim(-0.5, len(titles) - 0.5)
        axis.tick_params(axis="y", labelsize=8)
    upper.set_ylabel("bound / sent per packet, %", fontsize=8)
    lower.set_ylabel("clique bound / time to the last, %", fontsize=8)
    lower.set_xticks(range(len(titles)), titles, rotation=90, fontsize=8)
    points, labels = upper.get_legend_handles_labels()
    figure.legend(points, labels, loc="outside upper center", ncols=len(names), fontsize=8)
    _save(figure, file)


def _matplotlib() -> tuple[Any, Any, Any]:
    """Return the class of figures, that of scales of colours, and the maps of colours."""
    figure = extras.load("matplotlib.figure").Figure
    normal = extras.load("matplotlib.colors").Normalize
    return figure, normal, extras.load("matplotlib").colormaps


def _parts(of: Sequence[Cell]) -> list[list[Cell]]:
    """Split instances into rows of at most `MOST_COLUMNS`, between meshes only."""
    parts: list[list[Cell]] = [[]]
    for _, group in itertools.groupby(of, key=lambda cell: cell.mesh):
        columns = list(group)
        if parts[-1] and len(parts[-1]) + len(columns) > MOST_COLUMNS:
            parts.append([])
        parts[-1] += columns
    return parts


def _mark_meshes(axis: Any, part: Sequence[Cell]) -> None:  # noqa: ANN401 (matplotlib's axes)
    """Write the names of the meshes below their columns, with lines between them."""
    begin, middles, names = 0, [], []
    for name, group in itertools.groupby(part, key=lambda cell: cell.mesh):
        end = begin + len(list(group))
        middles.append((begin + end) / 2)
        names.append(name)
        axis.axvline(end, color="black", lw=0.8)
        begin = end
    axis.set_xticks(middles, names, rotation=90, fontsize=7)
    axis.tick_params(length=0)


def _has_failed(cell: Cell, scheme: str) -> bool:
    """Whether a run ended early or left receivers without the file."""
    return any(row["error"] is not None or row["unfinished"] for row in cell.rows[scheme])


def _save(figure: Any, file: Path) -> None:  # noqa: ANN401 (matplotlib's figure)
    # Without the version of matplotlib, so that the same table gives the same file.
    metadata = {"Software": None}
    replace(file, lambda draft: figure.savefig(draft, format="png", dpi=DPI, metadata=metadata))
