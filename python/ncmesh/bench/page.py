"""The page of the scoreboard, from its table."""

from __future__ import annotations

import math
import shlex
import statistics
import textwrap
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path

from ncmesh.bench import compare, pictures, summary
from ncmesh.bench.compare import Cell, Ratio, geometric_mean
from ncmesh.bench.files import replace
from ncmesh.bench.service import Row
from ncmesh.bench.table import Made
from ncmesh.bench.tunnel import FOUR, FROM_ONE, LOADS, SHORT, TO_ONE

TITLES = {
    "file": "Files",
    "tunnel": "Tunnels",
    "stream": "Streams",
    "mixed": "Services side by side",
}
HOW_COMPARED = {
    "file": (
        "Compared by the time until the last receiver has the file. A receiver that does not have "
        "it within the limit counts as if it had it then."
    ),
    "tunnel": (
        "One flow from one node to another: UDP for which a packet always waits, or one TCP "
        "connection. Compared by goodput. Other loads have a table below."
    ),
    "stream": "Two layers to four receivers, compared by the mean rate of a receiver.",
    "mixed": (
        "A file to four receivers beside other traffic, compared by the geometric mean of what "
        "each gets: the file's length over its time, goodput, rate, 1 over the round trip."
    ),
}
# Column of a table by mesh: its heading and value.
MEASURES: dict[str, tuple[str, Callable[[Row], float]]] = {
    "file": ("seconds to the last receiver", lambda row: float(row["last_s"])),
    "tunnel": ("goodput, kbit/s", lambda row: row["goodput_bps"] / 1e3),
    "stream": ("rate of a receiver, kbit/s", lambda row: row["mean_rate_bps"] / 1e3),
    "mixed": ("seconds of the file", lambda row: float(row["last_s"])),
}
# Cases of tunnels that have pictures and tables of their own; the others share a table.
TUNNEL_CASES = ("UDP", "TCP")
# A scheme is to be no worse than this share of the best other one anywhere.
FLOOR = 0.95
# Longest line of the page, without tables.
COLUMNS = 100
WORST = 10


def write(rows: Sequence[Row], made: Made, directory: Path) -> None:
    """Write the page `scoreboard.md` and its pictures below `directory`."""
    by_service = {name: compare.cells(rows, name) for name in TITLES}
    by_service = {name: of for name, of in by_service.items() if of}
    cells = [cell for of in by_service.values() for cell in of]
    sections = [_section(name, of, made, directory) for name, of in by_service.items()]
    template = resources.files("ncmesh.bench").joinpath("page.md").read_text()
    text = template.format(
        runs=len(rows),
        instances=len(cells),
        draws=_draws(cells),
        meshes=len({row["mesh"] for row in rows}),
        standings="\n".join(_standings(by_service, made)),
        command=_command(made.command),
        made=_wrapped(
            f"ncmesh {_listed(row['version'] for row in rows)}, "
            f"commit {_listed(row['commit'] for row in rows)}. "
            f"{''.join(f'{reason}. ' for reason in made.left_out)}"
            "How to run and read it: [The scoreboard](../guide/scoreboard.md)."
        ),
        sections="\n\n".join(sections),
    )
    replace(directory / "scoreboard.md", lambda draft: draft.write_text(text))


def _draws(cells: Sequence[Cell]) -> str:
    """Return with how many seeds an instance is run, in words."""
    counts = {len(rows) for cell in cells for rows in cell.rows.values()}
    least, most = min(counts), max(counts)
    seeds = f"{most} seeds" if most > 1 else "one seed"
    return seeds if least == most else f"{least} to {seeds}"


def _standings(by_service: dict[str, list[Cell]], made: Made) -> list[str]:
    """Return a row for each case: how the default scheme stands."""
    lines = [
        "| service | case | default | instances | best in | against the best other: mean, worst "
        f"| below {FLOOR:g}x, beyond chance |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for service, of in by_service.items():
        for case in compare.cases(of):
            scheme = made.defaults[service]
            part = [cell for cell in of if cell.case == case and scheme in cell.rows]
            ratios = [r for cell in part if (r := cell.against_best(scheme)) is not None]
            best = sum(ratio.mean >= 1 for ratio in ratios)
            low = sum(ratio.high < FLOOR for ratio in ratios)
            worst = min((ratio.mean for ratio in ratios), default=None)
            compared = (
                f"{best} | {_times(geometric_mean(ratios))}, {_times(worst)} | {low}"
                if ratios
                else "- | no other scheme | -"
            )
            lines.append(f"| {service} | {case} | `{scheme}` | {len(part)} | {compared} |")
    return lines


def _command(line: str) -> str:
    """Return a command line as a shell reads it, in lines that fit the page."""
    lines = [""]
    for word in map(shlex.quote, shlex.split(line)):
        if len(lines[-1]) + 1 + len(word) > COLUMNS - len(" \\"):
            lines.append(" ")
        lines[-1] += f" {word}" if lines[-1] else word
    return " \\\n".join(lines)


def _section(service: str, of: Sequence[Cell], made: Made, directory: Path) -> str:
    """Write the pictures of a service and return its part of the page."""
    scheme, title = made.defaults[service], TITLES[service]
    others = [cell for cell in of if service == "tunnel" and cell.case not in TUNNEL_CASES]
    of = [cell for cell in of if service != "tunnel" or cell.case in TUNNEL_CASES]
    if not of:
        return "\n\n".join([f"## {title}", *_other_loads(others)])
    several = len(compare.schemes(of)) > 1
    parts = [f"## {title}", _wrapped(HOW_COMPARED[service])]
    if several:
        parts.append(
            _wrapped(
                "A cell of a picture is a run. Its colour is the ratio to the best other scheme of "
                "the same instance: blue is better, red is worse, and the colour is full from five "
                "times on. A cross marks a run that ended early or left receivers without the file."
            )
        )
    for case in compare.cases(of) if several else ():
        name = f"{service}-{_slug(case)}.png"
        pictures.matrix([c for c in of if c.case == case], directory / "scoreboard" / name)
        parts += [f"### {title}: {case}", f"![Wins and losses, {case}](scoreboard/{name})"]

    if several:
        parts += [f"### {title}: scheme against scheme", "\n".join(_pairs(of))]
        if any(scheme in cell.rows for cell in of):
            pictures.means(of, scheme, directory / "scoreboard" / f"{service}-means.png")
            parts.append(f"![{scheme} against each](scoreboard/{service}-means.png)")
    if several:
        kinds = (
            "Mean of all instances, and how many are below "
            f"{FLOOR:g}x with the whole of their interval."
        )
        parts += [f"### {title} by kind of mesh", _wrapped(kinds), "\n".join(_by_family(of))]
    if service == "file":
        parts += ["### Beside the bound", "\n".join(_bounds(of))]
        for case in compare.cases(of):
            name = f"bound-{_slug(case)}.png"
            pictures.shares([c for c in of if c.case == case], directory / "scoreboard" / name)
            parts.append(f"![Shares of the bound, {case}](scoreboard/{name})")
    if service == "tunnel":
        parts += ["### Beside the bound of a flow", "\n".join(_goodput_bounds(of))]
    parts += [f"### {title} by mesh", "\n".join(_by_mesh(service, of))]
    if others:
        parts += _other_loads(others)
    worst = compare.below([*of, *others], scheme, FLOOR)
    if worst:
        parts += [f"### Where `{scheme}` loses most", "\n".join(_losses(worst, scheme))]
    return "\n\n".join(parts)


def _pairs(of: Sequence[Cell]) -> list[str]:
    """Return geometric means of each scheme against each other one, over all instances."""
    names = compare.schemes(of)
    lines = [
        f"| better than | {' | '.join(f'`{name}`' for name in names)} | best other | best in |",
        f"| --- |{' --- |' * (len(names) + 2)}",
    ]
    for name in names:
        part = [cell for cell in of if name in cell.rows]
        values = [
            ""
            if other == name
            else _times(geometric_mean(c.against(name, other) for c in part if other in c.rows))
            for other in names
        ]
        ratios = [ratio for cell in part if (ratio := cell.against_best(name)) is not None]
        best = sum(ratio.mean >= 1 for ratio in ratios)
        values += [_times(geometric_mean(ratios)), f"{best} of {len(part)}"]
        lines.append(f"| `{name}` | {' | '.join(values)} |")
    return lines


def _bounds(of: Sequence[Cell]) -> list[str]:
    """Return transmissions over the bound and control over data: medians of each scheme."""
    lines = [
        "| scheme | case | sent over the bound: median, most | mean of control over data, bytes "
        "| time over that of a shared channel: median | runs with receivers left |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in compare.schemes(of):
        for case in compare.cases(of):
            rows = [row for row in compare.rows(of, name, case) if row["bound"]]
            sent = [row["per_packet"] / row["bound"] for row in rows if row["per_packet"]]
            control = [
                row["control_bytes"] / row["data_bytes"] for row in rows if row["data_bytes"]
            ]
            times = [row["last_s"] / row["bound_s"] for row in rows]
            left = sum(1 for row in rows if row["unfinished"])
            if sent:
                lines.append(
                    f"| `{name}` | {case} | {statistics.median(sent):.2f}, {max(sent):.2f} "
                    f"| {100 * statistics.mean(control):.1f} % "
                    f"| {statistics.median(times):.2f} | {left} of {len(rows)} |"
                )
    return lines


def _goodput_bounds(of: Sequence[Cell]) -> list[str]:
    """
    Return the shares of its bounds that goodput reaches: medians of each scheme.

    The first bound is that of one channel shared by all; several hops away it can be used again.
    """
    lines = [
        "| scheme | case | share of a shared channel's bound: median, least "
        "| share of the most loaded clique's: median | no goodput |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name in compare.schemes(of):
        for case in compare.cases(of):
            rows = [row for row in compare.rows(of, name, case) if row["bound_bps"]]
            shares = [row["goodput_bps"] / row["bound_bps"] for row in rows]
            cliques = [row["goodput_bps"] / row["clique_bound_bps"] for row in rows]
            if shares:
                none = sum(1 for row in rows if not row["goodput_bps"])
                lines.append(
                    f"| `{name}` | {case} | {statistics.median(shares):.2f}, {min(shares):.2f} "
                    f"| {statistics.median(cliques):.2f} | {none} of {len(rows)} |"
                )
    return lines


def _other_loads(of: Sequence[Cell]) -> list[str]:
    """Return a table of the cases besides saturated flows: medians over all instances."""
    names = compare.schemes(of)
    lines = [
        f"| case | median, worst | {' | '.join(f'`{name}`' for name in names)} |",
        f"| --- | --- |{' --- |' * len(names)}",
    ]
    for case in compare.cases(of):
        if case in LOADS:
            heading, value, worst = "share that arrives", _share, min
        elif case == FOUR:
            heading, value, worst = "goodput of all, kbit/s", _kilobits, min
        elif case in (TO_ONE, FROM_ONE):
            heading, value, worst = "Jain's index", _fairness, min
        else:
            what = "time" if case == SHORT else "round trip"
            heading, value, worst = f"{what}, ms", _milliseconds, max
        shown = []
        for name in names:
            values = [value(row) for row in compare.rows(of, name, case)]
            shown.append(f"{statistics.median(values):.3g}, {worst(values):.3g}" if values else "-")
        lines.append(f"| {case} | {heading} | {' | '.join(shown)} |")
    return ["### Tunnels: other loads", "\n".join(lines)]


def _share(row: Row) -> float:
    return float(row["goodput_bps"] / row["rate_bps"])


def _kilobits(row: Row) -> float:
    return float(row["goodput_bps"] / 1e3)


def _fairness(row: Row) -> float:
    return float(row["fairness"] or 0.0)


def _milliseconds(row: Row) -> float:
    return 1e3 / row["score"] if row["score"] else math.inf


def _by_mesh(service: str, of: Sequence[Cell]) -> list[str]:
    """Return geometric means of what is measured, by mesh and case."""
    names = compare.schemes(of)
    heading, value = MEASURES[service]
    bound = [] if service in ("stream", "mixed") else ["bound, sent per packet"]
    lines = [
        f"| {heading} | case | {' | '.join([*bound, *(f'`{name}`' for name in names)])} |",
        f"| --- | --- |{' --- |' * (len(names) + len(bound))}",
    ]
    for mesh in compare.meshes(of):
        for case in compare.cases(of):
            part = [cell for cell in of if (cell.mesh, cell.case) == (mesh, case)]
            if not part:
                continue
            shown = []
            if bound:
                bounds = [row["bound"] for name in names for row in compare.rows(part, name)]
                known = [of for of in bounds if of is not None]
                shown.append(f"{min(known):.1f} to {max(known):.1f}" if known else "-")
            for name in names:
                values = [value(row) for row in compare.rows(part, name)]
                shown.append(f"{statistics.mean(values):.4g}" if values else "-")
            lines.append(f"| {mesh} | {case} | {' | '.join(shown)} |")
    return lines


def _by_family(of: Sequence[Cell]) -> list[str]:
    """Return how each scheme stands against the best other one, by kind of mesh."""
    families = list(dict.fromkeys(cell.family for cell in of))
    lines = [
        f"| against the best other | {' | '.join(families)} |",
        f"| --- |{' --- |' * len(families)}",
    ]
    for name in compare.schemes(of):
        shown = []
        for family in families:
            part = [cell for cell in of if cell.family == family and name in cell.rows]
            mean = geometric_mean(cell.against_best(name) for cell in part)
            low = len(compare.below(part, name, FLOOR))
            shown.append("-" if mean is None else f"{_times(mean)}, {low} of {len(part)}")
        lines.append(f"| `{name}` | {' | '.join(shown)} |")
    return lines


def _losses(worst: Sequence[tuple[Ratio, Cell]], scheme: str) -> list[str]:
    """Return the instances where a scheme is farthest behind."""
    lines = [
        "| instance | source, receivers | against the best other, interval of 95 % | best |",
        "| --- | --- | --- | --- |",
    ]
    for ratio, cell in worst[:WORST]:
        row = cell.rows[scheme][0]
        ends = summary.ends(row["source"], row["receivers"])
        shown = _times(ratio.mean)
        if ratio.low < ratio.high:
            shown += f", {ratio.low:.2f} to {ratio.high:.2f}"
        lines.append(f"| {cell.title} | {ends} | {shown} | `{cell.best_other(scheme)}` |")
    return lines


def _slug(case: str) -> str:
    """Return a case as a part of a file name."""
    return case.lower().replace(" ", "-")


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def _listed(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False)
