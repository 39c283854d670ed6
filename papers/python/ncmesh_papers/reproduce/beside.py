"""
Pictures of the paper's values beside ours.

One is drawn for each experiment from its recorded claims, so it needs no run. A claim with a number
has a row: in grey the range that agrees, in black what the paper states, and ours in the colour of
the verdict. Rows have different units; each is drawn so that its grey range is as wide as the
others. What lies far outside is an arrow at the edge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from ncmesh_papers.reproduce.results import Record

ALT = "The paper's values (black), the ranges that agree (grey) and ours"
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
# Edge of the picture, in halves of the grey range.
EDGE = 3.0
# Least half of a range, as a share of its middle: some agree only exactly.
EXACT = 1e-3
MARKS = {"agrees": ("o", "C0"), "differs": ("D", "C3"), "paper": ("s", "C1")}


@dataclass(frozen=True)
class Row:
    """A claim with numbers."""

    claim: Mapping[str, str]
    paper: Sequence[float]
    """One number, or the ends of a range."""
    ours: float
    agrees: Sequence[float]
    """Ends of the range that agrees."""

    def place(self, value: float) -> float:
        """Return where a value is drawn; the range that agrees is -1 to 1."""
        low, high = self.agrees
        middle = (low + high) / 2
        half = max((high - low) / 2, EXACT * abs(middle))
        return (value - middle) / half if half > 0 else 0.0


def rows(claims: Sequence[Mapping[str, str]]) -> list[Row]:
    """Return the claims with numbers."""
    found = []
    for claim in claims:
        paper, ours, agrees = (_numbers(claim[key]) for key in ("paper", "ours", "tolerance"))
        if paper and ours and len(agrees) == 2:
            found.append(Row(claim, paper, ours[0], agrees))
    return found


def _numbers(written: str) -> list[float]:
    """Read the numbers of a value as a claim writes it, without its remark in parentheses."""
    return [float(number) for number in NUMBER.findall(written.partition(" (")[0])]


def name(experiment: str) -> str:
    """Return the name of the picture of an experiment."""
    return f"{experiment}-claims.png"


def write(records: Mapping[str, Record], out: Path) -> None:
    """Write the pictures of the experiments that have numbers to compare."""
    for experiment, record in records.items():
        if found := rows(record.claims):
            draw(found).savefig(out / name(experiment), dpi=80)


def draw(found: Sequence[Row]) -> Figure:
    """Draw a row for each claim, the first on top."""
    figure = Figure(figsize=(13, 0.7 + 0.24 * len(found)), layout="constrained")
    axes = figure.add_subplot()
    for height, row in enumerate(found):
        axes.barh(height, 2, 0.7, -1, color="0.88")
        stated = [max(-EDGE, min(EDGE, row.place(value))) for value in row.paper]
        axes.barh(height, max(stated) - min(stated), 0.16, min(stated), color="black")
        axes.plot(stated, [height] * len(stated), "|", color="black", markersize=11)

        place = row.place(row.ours)
        mark, colour = MARKS[row.claim["verdict"]]
        if abs(place) > EDGE:
            mark, place = (">", EDGE) if place > 0 else ("<", -EDGE)
        axes.plot([place], [height], mark, color=colour, markersize=6)
        said = f"paper {row.claim['paper']}, ours {row.claim['ours'].partition(' (')[0]}"
        axes.text(EDGE + 0.2, height, said, va="center", fontsize="small")
    axes.set_yticks(range(len(found)), [row.claim["claim"] for row in found], fontsize="small")
    axes.set_xlim(-EDGE - 0.1, EDGE + 0.1)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xticks([])
    return figure
