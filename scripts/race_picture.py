#!/usr/bin/env python3
r"""Draws the race of two recorded runs of one file as an animated picture, for the README.

Reads two recordings of one scenario, as `ncmesh simulate --record` writes them, and writes SVG
without scripts. Each mesh is drawn with its links as thick as the frames that brought something new
over them in each second; bars and clocks run until the last receiver has the file. Python 3.11,
standard library only.

Example:
  ncmesh simulate building --scheme tree_flood --record target/uncoded.ncrec
  ncmesh simulate building --scheme cascade --record target/coded.ncrec
  scripts/race_picture.py target/uncoded.ncrec target/coded.ncrec > docs/pictures/race.svg
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

# Seconds of the picture for a second of the run, and its rest at the end.
SPEED, REST_S = 4.0, 3.0
WIDTH, MARGIN, GAP, HEAD, MESH, ROW = 860, 20, 20, 44, 190, 26
PAPER, INK, MUTED, LINE, FIELD = "#ffffff", "#16191d", "#5c646d", "#d3d6d8", "#eff0ee"
BAR, DONE = "#0072b2", "#1b6e4b"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
# Links that lose more are drawn only where frames crossed them.
POOREST = 0.65
# Frames in a second for which a link is as thick as can be, and how thick that is.
MANY_FRAMES, THICKEST = 60.0, 4.0


@dataclass
class Run:
    """A recorded transfer, second by second from its beginning."""

    name: str
    nodes: dict[int, tuple[str, float, float]]
    links: list[dict[str, Any]]
    source: int
    receivers: list[int]
    size: int
    # Bytes at each receiver at the end of each second.
    received: list[dict[int, int]]
    # Innovative frames on each link in each second.
    frames: list[list[int]]
    # Seconds until the last receiver had the file; None if it never had.
    finish: float | None


def read(path: Path) -> Run:
    """Reads a recording of one transfer."""
    meta: dict[str, Any] = {}
    links: list[int] = []
    received: dict[int, int] = {}
    began: float | None = None
    finish: float | None = None
    last = 0.0
    seconds: list[tuple[dict[int, int], list[int]]] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for message in map(json.loads, lines):
            kind = message["type"]
            if kind == "meta":
                meta = message
            if kind not in ("key", "tick"):
                continue
            links = counters(links, message, kind)
            stages = [transfer.get("stage") for transfer in message.get("transfers", [])]
            for transfer in message.get("transfers", [])[:1]:
                for receiver in transfer.get("receivers", []):
                    node = receiver["node"]
                    told = int(receiver.get("bytes", 0))
                    received[node] = told if kind == "key" else received.get(node, 0) + told
            if began is None:
                if stages[:1] in ([None], ["waiting"], []):
                    last = message["time_s"]
                    continue
                began = last
            while message["time_s"] - began >= len(seconds) - 1e-9:
                seconds.append((dict(received), list(links)))
            size = int(meta["transfers"][0]["bytes"])
            if finish is None and all(received.get(to, 0) >= size for to in receivers_of(meta)):
                finish = message["time_s"] - began
    seconds.append((dict(received), list(links)))
    return run_of(meta, seconds, finish)


def counters(before: list[int], message: dict[str, Any], kind: str) -> list[int]:
    """Returns the innovative frames of all links after a message."""
    table = message.get("links") or {}
    if kind == "key":
        return [int(count or 0) for count in table["innovative"]]
    now = list(before)
    for row, grown in zip(table.get("row", []), table.get("innovative", []), strict=False):
        now[row] += grown
    return now


def receivers_of(meta: dict[str, Any]) -> list[int]:
    """Returns the ids of the receivers."""
    return list(meta["transfers"][0]["to"])


def flat(position: dict[str, float]) -> tuple[float, float]:
    """Returns where a position is on the picture: floors do not hide each other."""
    x, y, z = (position[axis] for axis in "xyz")
    return x + 0.6 * z, -y - 1.1 * z


def run_of(
    meta: dict[str, Any], seconds: list[tuple[dict[int, int], list[int]]], finish: float | None
) -> Run:
    """Returns what is drawn of a recording."""
    transfer = meta["transfers"][0]
    nodes = {node["id"]: (node["name"], *flat(node["position"])) for node in meta["nodes"]}
    frames = []
    for (_, before), (_, after) in itertools.pairwise(seconds):
        # Links that joined began at zero.
        known = before + [0] * (len(after) - len(before))
        frames.append([now - then for then, now in zip(known, after, strict=True)])
    return Run(
        name=", ".join(meta["schemes"]),
        nodes=nodes,
        links=meta["links"],
        source=transfer["from"],
        receivers=receivers_of(meta),
        size=int(transfer["bytes"]),
        received=[received for received, _ in seconds],
        frames=frames,
        finish=finish,
    )


@dataclass
class Film:
    """Time of the picture: how many seconds of the run it shows, and how long it takes."""

    seconds: int

    @property
    def length(self) -> float:
        """Returns how long the picture takes, s."""
        return self.seconds / SPEED + REST_S

    def animate(self, name: str, values: list[str], mode: str = "linear") -> str:
        """Returns an animation of an attribute with a value for each second of the run."""
        values = values[: self.seconds + 1]
        last = self.seconds / SPEED / self.length
        times = [last * i / max(1, len(values) - 1) for i in range(len(values))]
        # The last value stays until the end.
        pairs = [*zip(times, values, strict=True), (1.0, values[-1])]
        key_times = ";".join(f"{time:.4f}" for time, _ in pairs)
        return (
            f'<animate attributeName="{name}" dur="{self.length:.2f}s" repeatCount="indefinite" '
            f'calcMode="{mode}" keyTimes="{key_times}" values="{";".join(v for _, v in pairs)}"/>'
        )


def mesh(run: Run, film: Film, left: float, top: float, width: float) -> list[str]:
    """Returns the links and nodes of a run."""
    xs = [x for _, x, _ in run.nodes.values()]
    ys = [y for _, _, y in run.nodes.values()]
    room_x, room_y = width - 40, MESH - 50
    stretch_x = room_x / max(1e-9, max(xs) - min(xs))
    stretch_y = min(room_y / max(1e-9, max(ys) - min(ys)), 2.5 * stretch_x)
    middle = top + room_y / 2 + 14

    def place(node: int) -> tuple[float, float]:
        _, x, y = run.nodes[node]
        across = left + 20 + (x - min(xs)) * stretch_x
        return across, middle + (y - (max(ys) + min(ys)) / 2) * stretch_y

    out = []
    for row, link in enumerate(run.links):
        (x1, y1), (x2, y2) = place(link["from"]), place(link["to"])
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        if link["from"] < link["to"] and (link["loss"] or 0) < POOREST:
            out.append(f'<line {ends} stroke="{LINE}" stroke-width="0.7"/>')
        rates = [frames[row] if row < len(frames) else 0 for frames in run.frames]
        if max(rates, default=0) < 2:
            continue
        widths = [f"{round(THICKEST * min(1.0, rate / MANY_FRAMES), 1):g}" for rate in rates]
        widths += ["0"] * (film.seconds + 1 - len(widths))
        animation = film.animate("stroke-width", widths, "discrete")
        out.append(f'<line {ends} stroke="{BAR}" stroke-width="0">{animation}</line>')
    for node, (name, _, _) in run.nodes.items():
        x, y = place(node)
        is_end = node == run.source or node in run.receivers
        fill = BAR if node == run.source else PAPER
        stroke = BAR if is_end else INK
        out.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{6 if is_end else 4}" fill="{fill}" '
            f'stroke="{stroke}" stroke-width="2"/>'
        )
        if is_end:
            out.append(
                f'<text x="{x:.1f}" y="{y + 20:.1f}" text-anchor="middle" font-weight="600" '
                f'stroke="{PAPER}" stroke-width="3" paint-order="stroke">{escape(name)}</text>'
            )
    return out


def race(run: Run, film: Film, name: str, top: float) -> list[str]:
    """Returns the bar of a run and its clock."""
    left, width = MARGIN + 90, WIDTH - 2 * MARGIN - 90 - 90
    whole = run.size * len(run.receivers)
    shares = [sum(received.values()) / whole for received in run.received]
    shares += [shares[-1]] * (film.seconds + 1 - len(shares))
    bars = film.animate("width", [f"{share * width:.1f}" for share in shares])
    out = [
        f'<text x="{MARGIN}" y="{top + 12}">{escape(name)}</text>',
        f'<rect x="{left}" y="{top}" width="{width}" height="14" rx="7" fill="{FIELD}"/>',
        f'<rect x="{left}" y="{top}" width="0" height="14" rx="7" fill="{BAR}">{bars}</rect>',
    ]
    end = run.finish if run.finish is not None else float(film.seconds)
    clocks = [(f"{second} s", second, second + 1) for second in range(int(end) + 1)]
    last = f"{end:.1f} s ✓" if run.finish is not None else "unfinished"
    for text, begin, finish in [*clocks, (last, int(end) + 1, film.seconds + 1)]:
        is_last = text == last
        seen = ["1" if begin <= second < finish else "0" for second in range(film.seconds + 1)]
        if is_last:
            seen[-1] = "1"
        elif seen[-1] == "1" and run.finish is not None:
            seen[-1] = "0"
        colour = DONE if is_last and run.finish is not None else INK
        out.append(
            f'<text x="{WIDTH - MARGIN}" y="{top + 12}" text-anchor="end" font-weight="600" '
            f'fill="{colour}" opacity="0">{text}{film.animate("opacity", seen, "discrete")}</text>'
        )
    return out


def picture(runs: list[Run], names: list[str]) -> str:
    """Returns the animated picture of two runs."""
    film = Film(max(len(run.received) for run in runs) - 1)
    side = (WIDTH - 2 * MARGIN - GAP) / 2
    meshes = HEAD + 2 * ROW + 8
    height = meshes + 30 + MESH + MARGIN
    first = runs[0]
    source = first.nodes[first.source][0]
    to = ", ".join(first.nodes[node][0] for node in first.receivers)
    title = f"{source} sends {first.size / 1e6:.2f} MB to {to}"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" '
        f'font-family="{FONT}" font-size="13" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="{PAPER}"/>',
        f'<text x="{MARGIN}" y="28" font-size="16" font-weight="600">{escape(title)}</text>',
        f'<text x="{WIDTH - MARGIN}" y="28" text-anchor="end" fill="{MUTED}">'
        f"simulated, {SPEED:.0f} times as fast as it is</text>",
    ]
    for place, (run, name) in enumerate(zip(runs, names, strict=True)):
        left = MARGIN + place * (side + GAP)
        out += race(run, film, name, HEAD + place * ROW)
        out.append(
            f'<text x="{left}" y="{meshes + 18}" font-weight="600">{escape(name)} '
            f'<tspan fill="{MUTED}" font-weight="400">{escape(run.name)}</tspan></text>'
        )
        out += mesh(run, film, left, meshes + 30, side)
    return "\n".join([*out, "</svg>", ""])


def main() -> None:
    """Reads two recordings and writes the picture to standard output."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("uncoded", type=Path, help="recording of the run without coding")
    parser.add_argument("coded", type=Path, help="recording of the run with coding")
    arguments = parser.parse_args()
    runs = [read(arguments.uncoded), read(arguments.coded)]
    sys.stdout.write(picture(runs, ["Uncoded", "Coded"]))


if __name__ == "__main__":
    main()
