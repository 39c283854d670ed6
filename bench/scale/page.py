"""The page and the picture of `bench/scale/run`."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TEMPLATE = Path(__file__).with_name("page.md")
DENSITY = 50.0
# A mesh is at rest in the last seconds of a run, and starts in the first.
REST_S = 20.0
COLOURS = {"B.A.T.M.A.N. IV": "tab:red", "OLSRv2": "tab:blue", "Babel": "tab:green"}

# Targets: shares of airtime, seconds, ratios, virtual seconds for one of the clock.
MOST_STEADY, MOST_START, START_S, MOST_GROWTH = 0.02, 0.25, 30.0, 2.0
MOST_DELAY_S, MOST_ETX, MOST_ETX_P99 = 3.0, 1.05, 1.3
MOST_MIB, MOST_CPU = 8.0, 0.01
SPEEDS = {100: 30.0, 400: 5.0, 1_000: 1.0}
SIZES = (50, 100, 200, 400)

Run = dict[str, Any]


def write(found: dict[str, Any], directory: Path) -> None:
    """Writes the page and its picture below `directory`."""
    runs = found["runs"]
    (directory / "scale").mkdir(exist_ok=True)
    draw(found, directory / "scale" / "control.png")
    text = TEMPLATE.read_text().format(
        version=found["version"],
        commit=found["commit"],
        minutes=found["seconds"] / 60,
        command="bench/scale/run --quick" if found["quick"] else "make scale",
        targets="\n".join(targets(runs)),
        sizes="\n".join(sizes(runs)),
        kinds="\n".join(kinds(runs)),
        loads="\n".join(loads(runs)),
        events="\n".join(events(runs)),
        others="\n".join(others(runs, found["models"])),
        measured=measured(found),
    )
    (directory / "scale.md").write_text(text)


# ---- reading results


def chosen(runs: list[Run], **wanted: Any) -> list[Run]:
    """Results of the cells with these values, idle and without events unless these are wanted."""
    wanted = {"load": None, "events": 0, **wanted}
    matches = [r for r in runs if all(r["cell"][key] == value for key, value in wanted.items())]
    return [run["result"] for run in matches if run["result"]]


def windows(result: Run, *, steady: bool) -> list[dict[str, Any]]:
    """Windows of the last `REST_S`, or of the first `START_S`."""
    rest = result["windows"][-1]["to_s"] - REST_S
    if steady:
        return [w for w in result["windows"] if w["from_s"] >= rest - 0.1]
    return [w for w in result["windows"] if w["to_s"] <= START_S + 0.1]


def settled(result: Run) -> float | None:
    """Time from which no node has more control around it than its target at rest, s."""
    busy = [w["to_s"] for w in result["windows"] if w["control_airtime"]["max"] > MOST_STEADY]
    last = max(busy, default=0.0)
    return None if last >= result["windows"][-1]["to_s"] else last


def steady(result: Run, key: str) -> float:
    return statistics.mean(w[key] for w in windows(result, steady=True))


def airtime(result: Run, how: str, *, at_rest: bool = True) -> float:
    """Airtime of control around a node: over nodes `how`, over windows the mean."""
    found = windows(result, steady=at_rest)
    return statistics.mean(w["control_airtime"][how] for w in found)


def worst(results: list[Run], value: Callable[[Run], float | None]) -> float | None:
    """The greatest value of the seeds; none if one has no value, or there are no results."""
    values = [value(result) for result in results]
    known = [v for v in values if v is not None]
    return max(known) if known and len(known) == len(values) else None


def number(value: float | None, form: str = ".3g", unit: str = "") -> str:
    return "-" if value is None else f"{value:{form}}{unit}"


def share(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def listed(values: Iterable[str]) -> str:
    return ", ".join(values)


def verdict(oks: Iterable[bool | None]) -> str:
    """Hit only if everything was measured; missed if anything was."""
    known = list(oks)
    if False in known:
        return "**missed**"
    return "not measured" if None in known else "hit"


def at_most(value: float | None, most: float) -> bool | None:
    return None if value is None else value <= most


# ---- tables


def targets(runs: list[Run]) -> list[str]:
    """One row for each target of the mesh."""
    lines = ["| | target | measured | |", "| --- | --- | --- | --- |"]

    def row(what: str, target: str, values: str, oks: Iterable[bool | None]) -> None:
        lines.append(f"| {what} | {target} | {values} | {verdict(oks)} |")

    by_size = {n: chosen(runs, nodes=n, density=DENSITY) for n in SIZES}
    sizes_text = listed(str(n) for n in SIZES)
    for name, load in (("idle", None), ("with a file", "file"), ("with flows", "flows")):
        results = [chosen(runs, nodes=n, density=DENSITY, load=load) for n in SIZES]
        shares = [worst(r, lambda result: airtime(result, "max")) for r in results]
        what = f"control around any node at rest, {name}; {sizes_text} nodes"
        row(what, "2 %", listed(map(share, shares)), (at_most(s, MOST_STEADY) for s in shares))

    complete = [worst(r, lambda result: result["complete_s"]) for r in by_size.values()]
    text = listed(number(s, unit=" s") for s in complete)
    # A run that ended before all nodes knew all others missed the target.
    oks = [at_most(s, START_S) for s in complete]
    ended = [ok is None and bool(r) for ok, r in zip(oks, by_size.values(), strict=True)]
    oks = [False if late else ok for ok, late in zip(oks, ended, strict=True)]
    row("all nodes know paths to all", f"{START_S:.0f} s", text, oks)
    starts = [
        worst(r, lambda result: airtime(result, "max", at_rest=False)) for r in by_size.values()
    ]
    oks = [at_most(s, MOST_START) for s in starts]
    row("control around any node, first 30 s", "25 %", listed(map(share, starts)), oks)

    growth = growth_of(runs)
    what = "control of a node, 400 nodes to 50"
    row(what, f"{MOST_GROWTH:g}x", number(growth, unit="x"), [at_most(growth, MOST_GROWTH)])

    results = [r["result"] for r in runs if r["result"] and r["cell"]["events"]]
    for kind in ("dies", "fades", "appears"):
        delay = worst([result["events"][kind] for result in results], lambda of: of["p95_s"])
        what = f"a node {kind}: 95 % know within 6 hops"
        row(what, "3 s", number(delay, unit=" s"), [at_most(delay, MOST_DELAY_S)])

    for key, most in (("mean", MOST_ETX), ("p99", MOST_ETX_P99)):
        paths = [[result["paths"][key] for result in r] for r in by_size.values()]
        etx = [max(values, default=None) for values in paths]
        text = listed(number(e, ".3f") for e in etx)
        row(f"ETX beside the best, {key}", f"{most:g}", text, (at_most(e, most) for e in etx))
    for nodes, least in SPEEDS.items():
        slowest = worst(chosen(runs, nodes=nodes, density=DENSITY), lambda r: r["wall_s_per_s"])
        speed = None if slowest is None else 1 / slowest
        ok = None if speed is None else speed >= least
        row(f"simulator, {nodes} nodes", f"{least:g}x real time", number(speed, unit="x"), [ok])

    # The simulator holds and runs all nodes and the medium, so a node takes less than its part.
    large = chosen(runs, nodes=SIZES[-1], density=DENSITY)
    memory = worst(large, lambda result: result["peak_mib"] / SIZES[-1])
    text = number(memory, ".2g", " MiB")
    row("memory of a node, 400 nodes", "8 MiB", text, [at_most(memory, MOST_MIB)])
    processor = worst(large, lambda result: steady(result, "wall_s_per_s") / SIZES[-1])
    row("processor of a node, 400 nodes", "1 %", share(processor), [at_most(processor, MOST_CPU)])
    return lines


def growth_of(runs: list[Run]) -> float | None:
    """Bytes of control of a node at 400 nodes over those at 50, at rest."""

    def mean(nodes: int) -> float | None:
        results = chosen(runs, nodes=nodes, density=DENSITY)
        values = [steady(result, "control_bytes_per_node_s") for result in results]
        return statistics.mean(values) if values else None

    small, large = mean(SIZES[0]), mean(SIZES[-1])
    return large / small if small and large else None


def title(cell: dict[str, Any]) -> str:
    return f"{cell['nodes']} | {cell['density']:g} | {cell['seed']}"


def sizes(runs: list[Run]) -> list[str]:
    """Rows of the meshes without load."""
    lines = [
        "| nodes | per km2 | seed | control B/s of a node: first 10 s, at rest "
        "| airtime around a node at rest: mean, most | under 2 % from | all know all "
        "| ETX: mean, 99 % | no path, loops | real time | MiB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in runs:
        cell, result = run["cell"], run["result"]
        if cell["load"] or cell["events"]:
            continue
        if result is None:
            lines.append(f"| {title(cell)} | no result in {run['limit_s']:.0f} s | | | | | | | |")
            continue
        paths, first = result["paths"], result["windows"][0]
        lines.append(
            f"| {title(cell)} | {first['control_bytes_per_node_s']:,.0f}, "
            f"{steady(result, 'control_bytes_per_node_s'):,.0f} "
            f"| {share(airtime(result, 'mean'))}, {share(airtime(result, 'max'))} "
            f"| {number(settled(result), unit=' s')} "
            f"| {number(result['complete_s'], unit=' s')} "
            f"| {number(paths['mean'], '.3f')}, {number(paths['p99'], '.3f')} "
            f"| {paths['unreachable'] + paths['broken']}, {paths['loops']} of {paths['pairs']} "
            f"| {1 / result['wall_s_per_s']:.3g}x | {result['peak_mib']} |"
        )
    return lines


def kinds(runs: list[Run]) -> list[str]:
    """Rows of what control consists of, at rest."""
    rows: dict[str, dict[int, float]] = {}
    columns = []
    for nodes in SIZES:
        results = chosen(runs, nodes=nodes, density=DENSITY)
        if not results:
            continue
        columns.append(nodes)
        last = windows(results[0], steady=True)
        for kind in {kind for window in last for kind in window["kinds"]}:
            values = [w["kinds"].get(kind, {}).get("bytes_per_node_s", 0.0) for w in last]
            rows.setdefault(kind, {})[nodes] = statistics.mean(values)
    lines = [
        f"| B/s of a node | {' | '.join(f'{nodes} nodes' for nodes in columns)} |",
        f"| --- |{' --- |' * len(columns)}",
    ]
    for kind, values in sorted(rows.items()):
        cells = " | ".join(f"{values.get(nodes, 0.0):,.0f}" for nodes in columns)
        lines.append(f"| `{kind}` | {cells} |")
    return lines


def loads(runs: list[Run]) -> list[str]:
    """Rows of the meshes with traffic."""
    lines = [
        "| nodes | load | control B/s of a node | airtime of control: mean, most "
        "| airtime of all: mean | arrived | ETX: mean, 99 % |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in runs:
        cell, result = run["cell"], run["result"]
        if not cell["load"] or result is None:
            continue
        load, paths = result["load"], result["paths"]
        if load["kind"] == "file":
            arrived = f"{load['bytes_received'] / 1e6:.2f} MB over {load['hops']} hops"
        else:
            arrived = f"{100 * load['packets_delivered'] / load['packets_offered']:.1f} %"
        everything = [w["all_airtime"]["mean"] for w in windows(result, steady=True)]
        lines.append(
            f"| {cell['nodes']} | {cell['load']} "
            f"| {steady(result, 'control_bytes_per_node_s'):,.0f} "
            f"| {share(airtime(result, 'mean'))}, {share(airtime(result, 'max'))} "
            f"| {share(statistics.mean(everything))} | {arrived} "
            f"| {number(paths['mean'], '.3f')}, {number(paths['p99'], '.3f')} |"
        )
    return lines


def events(runs: list[Run]) -> list[str]:
    """Rows of changes."""
    lines = [
        "| nodes | seed | change | events | nodes concerned | median, 95 %, most | never knew "
        "| newcomer knows all: median, most |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in runs:
        cell, result = run["cell"], run["result"]
        if not cell["events"] or result is None:
            continue
        for kind, found in result["events"].items():
            times = (number(found[f"{key}_s"]) for key in ("median", "p95", "max"))
            newcomer = (number(found.get(f"newcomer_{key}_s")) for key in ("median", "max"))
            lines.append(
                f"| {cell['nodes']} | {cell['seed']} | {kind} | {found['events']} "
                f"| {found['nodes']} | {listed(times)} s | {found['unresolved']} "
                f"| {listed(newcomer) + ' s' if kind == 'appears' else ''} |"
            )
    return lines


def others(runs: list[Run], models: list[dict[str, Any]]) -> list[str]:
    """Rows of the other protocols beside this one, on the same meshes."""
    lines = [
        f"| nodes | per km2 | seed | ncmesh | {' | '.join(COLOURS)} |",
        f"| --- | --- | --- | --- |{' --- |' * len(COLOURS)}",
    ]
    for run in runs:
        cell, result = run["cell"], run["result"]
        rows = {row["protocol"]: row for row in models if row["cell"] == cell}
        if not rows:
            continue
        own = "no result"
        if result:
            own = (
                f"{steady(result, 'control_bytes_per_node_s'):,.0f} B/s, "
                f"{share(airtime(result, 'mean'))}, {share(airtime(result, 'max'))}"
            )
        theirs = (
            f"{rows[name]['bytes_per_node_s']:,.0f} B/s, "
            f"{share(statistics.mean(rows[name]['airtime']))}, {share(max(rows[name]['airtime']))}"
            for name in COLOURS
        )
        lines.append(f"| {title(cell)} | {own} | {' | '.join(theirs)} |")
    return lines


def measured(found: dict[str, Any]) -> str:
    """Measurements of other programs, or why there are none."""
    if "babel" in found:
        got = found["babel"]
        ratio = got["bytes_per_node_s"] / got["model_bytes_per_node_s"]
        text = (
            "| program | nodes | B/s of a node | formula | ratio | frames/s of a node | routes |\n"
            "| --- | --- | --- | --- | --- | --- | --- |\n"
            f"| babeld | {got['nodes']} | {got['bytes_per_node_s']:.0f} "
            f"| {got['model_bytes_per_node_s']:.0f} | {ratio:.2f} "
            f"| {got['frames_per_node_s']:.2f} | {share(got['routes'])} |\n\n"
            f"{got['version']} with defaults on `wireless` interfaces, {got['seconds']:.0f} s at\n"
            "rest: a network namespace for each node, joined by a bridge that passes frames with\n"
            "the delivery of each link. Losses change its metrics, so that it sends triggered\n"
            "updates and more IHUs than the formula has."
        )
    else:
        text = f"babeld was not measured: {found['babel_obstacle']}."
    if found["batman_obstacle"]:
        text += f"\n\nbatman-adv was not measured: {found['batman_obstacle']}."
    return text


# ---- picture


def draw(found: dict[str, Any], file: Path) -> None:
    """Airtime of control against the number of nodes."""
    runs, models = found["runs"], found["models"]
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
    columns: list[tuple[str, Callable[[list[float]], float]]] = [
        ("mean", statistics.mean),
        ("max", max),
    ]
    for axis, (how, over), name in zip(
        axes, columns, ("mean over nodes", "node with most"), strict=True
    ):
        own: dict[int, list[float]] = {}
        for run in runs:
            cell, result = run["cell"], run["result"]
            idle = cell["density"] == DENSITY and not cell["load"] and not cell["events"]
            # The largest mesh does not come to rest in its short run.
            if result and idle and cell["nodes"] in SIZES:
                own.setdefault(cell["nodes"], []).append(airtime(result, how))
        plot(axis, own, "ko-", "ncmesh")
        for protocol, colour in COLOURS.items():
            theirs: dict[int, list[float]] = {}
            for row in models:
                if row["protocol"] == protocol and row["cell"]["density"] == DENSITY:
                    theirs.setdefault(row["cell"]["nodes"], []).append(over(row["airtime"]))
            plot(axis, theirs, "s--", protocol, color=colour, mfc="none")
        if "babel" in found:
            point = {found["babel"]["nodes"]: [over(found["babel"]["airtime"])]}
            plot(axis, point, "*", "babeld, measured", color=COLOURS["Babel"], ms=10)
        axis.axhline(100 * MOST_STEADY, color="0.7", zorder=0)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(name)
        axis.set_xlabel("nodes, 50 to the km2")
    ticks = sorted({row["cell"]["nodes"] for row in models})
    for axis in axes:
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axes[0].set_ylabel("airtime of control around a node, %")
    lines, labels = axes[0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def plot(axis: Any, points: dict[int, list[float]], style: str, label: str, **more: Any) -> None:
    nodes = sorted(points)
    shares = [100 * statistics.mean(points[n]) for n in nodes]
    axis.plot(nodes, shares, style, label=label, **more)
