"""Picture of a campaign: the rate that its runs reached, over a parameter, by scheme."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ncmesh import extras
from ncmesh.failure import FailureError, Kind

ENDINGS = (".pdf", ".png", ".svg")

Row = Mapping[str, Any]


def draw(rows: Sequence[Row], title: str, file: Path, over: str | None = None) -> None:
    """
    Draw the mean rate of the runs in `rows`, with its standard error over seeds, into `file`.

    `over` is the parameter on the horizontal axis; without it the first that has numbers counts,
    else the first. Schemes that it does not concern are dashed lines. A campaign without parameters
    becomes one bar per scheme. Runs that ended early are left out.
    """
    if file.suffix not in ENDINGS:
        raise FailureError(Kind.USAGE, f"{file}: the name must end in {', '.join(ENDINGS)}")
    good = [row for row in rows if row["error"] is None and _rate(row) is not None]
    if not good:
        raise FailureError(Kind.OTHER, f"{title}: there is no run to draw; make some first")
    axis = _axis(good, over)
    figure = extras.load("matplotlib.figure").Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set(title=_text(title), ylabel=_label(good[0]))

    if axis is None:
        groups = _grouped(good, lambda row: row["scheme"])
        points = [_point(runs) for runs in groups.values()]
        axes.bar([*map(_text, groups)], [p[0] for p in points], yerr=[p[1] for p in points])
    else:
        _draw_lines(axes, good, axis)
    axes.set_ylim(bottom=0)
    try:
        figure.savefig(file, dpi=150)
    except OSError as error:
        raise FailureError(Kind.FILE, f"cannot write {file}: {error.strerror}") from error


def _draw_lines(axes: Any, rows: Sequence[Row], axis: str) -> None:  # noqa: ANN401 (matplotlib)
    """Draw a line for each scheme and each combination of the other parameters."""
    values = sorted({_key(p[axis]) for row in rows if axis in (p := _parameters(row))})
    numeric = all(isinstance(value, int | float) for _, value in values)
    place = {key: key[1] if numeric else at for at, key in enumerate(values)}
    for name, runs in _grouped(rows, lambda row: _line(row, axis)).items():
        concerned = [run for run in runs if axis in _parameters(run)]
        by_x = _grouped(concerned, lambda row: place[_key(_parameters(row)[axis])])
        if by_x:
            xs = sorted(by_x)
            points = [_point(by_x[x]) for x in xs]
            axes.errorbar(
                xs,
                [mean for mean, _ in points],
                yerr=[error for _, error in points],
                marker="o",
                capsize=3,
                label=_text(name),
            )
        else:
            axes.axhline(_point(runs)[0], linestyle="--", color="0.4", label=_text(name))
    if not numeric:
        axes.set_xticks(range(len(values)), [_text(str(value)) for _, value in values])
    axes.set_xlabel(_text(axis))
    axes.legend()


def _parameters(row: Row) -> dict[str, Any]:
    parameters: dict[str, Any] = json.loads(row["parameters"])
    return parameters


def _axis(rows: Sequence[Row], over: str | None) -> str | None:
    """Return the parameter of the horizontal axis, if there is a parameter."""
    values: dict[str, set[tuple[str, Any]]] = defaultdict(set)
    for row in rows:
        for key, value in _parameters(row).items():
            values[key].add(_key(value))
    if over is not None:
        if over not in values:
            known = ", ".join(values) or "none"
            raise FailureError(Kind.USAGE, f"--x {over}: the campaign's parameters are {known}")
        return over
    # Lines need numbers in order; with text they are only points beside each other.
    numeric = [k for k, of in values.items() if all(isinstance(v, int | float) for _, v in of)]
    return next(iter([*numeric, *values]), None)


def _key(value: object) -> tuple[str, Any]:
    """Return what values are sorted and told apart by: kind, and the value or its JSON."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ("", value)
    return ("text", value if isinstance(value, str) else json.dumps(value))


def _line(row: Row, axis: str) -> str:
    """Return the name of the line that a run belongs to."""
    others = {key: value for key, value in _parameters(row).items() if key != axis}
    return ", ".join([row["scheme"], *(f"{key} = {value}" for key, value in others.items())])


def _grouped(rows: Iterable[Row], by: Any) -> dict[Any, list[Row]]:  # noqa: ANN401 (a key function)
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[by(row)].append(row)
    return groups


def _rate(row: Row) -> float | None:
    """
    Return the rate of a run, bit/s; `None` if it has none.

    It is the mean of a file's receivers, of which one without the file counts as 0, and the sum of
    flows and of streams' receivers.
    """
    if row["receivers"]:
        return statistics.fmean(r["throughput_bps"] or 0.0 for r in row["receivers"])
    if row["flows"]:
        return math.fsum(flow["throughput_bps"] for flow in row["flows"])
    if row["streams"]:
        return math.fsum(r["rate_bps"] for s in row["streams"] for r in s["receivers"])
    return None


def _label(row: Row) -> str:
    if row["receivers"]:
        return "mean throughput of a receiver, kbit/s"
    return "throughput of all flows, kbit/s" if row["flows"] else "rate of all receivers, kbit/s"


def _point(runs: Sequence[Row]) -> tuple[float, float]:
    """Return the mean and its standard error, kbit/s."""
    rates = [rate / 1e3 for run in runs if (rate := _rate(run)) is not None]
    error = statistics.stdev(rates) / math.sqrt(len(rates)) if len(rates) > 1 else 0.0
    return statistics.fmean(rates), error


def _text(text: str) -> str:
    """Return text in which a dollar sign begins no formula."""
    return text.replace("$", r"\$")
