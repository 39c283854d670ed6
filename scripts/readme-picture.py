#!/usr/bin/env python3
r"""Renders the text of a real run as a picture of a terminal, for the README.

Reads what `ncmesh lab` or `ncmesh simulate` printed and writes SVG. Progress between the first and
the last line of a receiver is left out; everything else is shown as it is, wrapped at --columns.
Python 3.11, standard library only.

Examples:
  target/release/ncmesh lab scenarios/building.toml --from n01 --to n05,n09,n14,n20 \
    --send target/demo/ncmesh-source.tar.gz > docs/pictures/demo.txt 2>&1
  scripts/readme-picture.py docs/pictures/demo.txt --command "make demo" > docs/pictures/demo.svg
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from html import escape
from pathlib import Path

PROGRESS = re.compile(r"^\S+: (waiting for an answer|under way) \d+ %$")
FONT_PX, LINE_PX, CHARACTER_PX, MARGIN_PX, BAR_PX = 14, 20, 8.43, 16, 30
BACKGROUND, BAR, PLAIN = "#1b1e26", "#2b2f3a", "#d5d9e2"
COLOURS = (
    (re.compile(r"^\$ "), "#8ad38a"),
    (re.compile(r"^RECEIVER "), "#8fb8f0"),
    (re.compile(r": complete 100 %$"), "#8ad38a"),
)


def shown(text: str, command: str, columns: int) -> list[str]:
    """Returns the lines of the picture: the command, then the run without progress."""
    lines = [f"$ {command}"]
    for line in text.splitlines():
        if not PROGRESS.match(line):
            lines += textwrap.wrap(line, columns, subsequent_indent="  ") or [""]
    return [line.rstrip() for line in lines]


def picture(lines: list[str], title: str) -> str:
    """Returns `lines` as an SVG of a terminal window."""
    width = round(2 * MARGIN_PX + CHARACTER_PX * max(map(len, lines)))
    height = BAR_PX + 2 * MARGIN_PX + LINE_PX * len(lines)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
        f'<path d="M0 {BAR_PX}V8a8 8 0 0 1 8-8h{width - 16}a8 8 0 0 1 8 8v{BAR_PX - 8}z" '
        f'fill="{BAR}"/>',
    ]
    for place, colour in enumerate(("#ee6a5f", "#f5bd4f", "#61c454")):
        out.append(f'<circle cx="{18 + 18 * place}" cy="{BAR_PX // 2}" r="5.5" fill="{colour}"/>')
    out.append(
        f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" '
        f'font-size="{FONT_PX}" fill="{PLAIN}">'
    )
    for row, line in enumerate(lines):
        y = BAR_PX + MARGIN_PX + LINE_PX * row + FONT_PX
        colour = next((c for pattern, c in COLOURS if pattern.search(line)), PLAIN)
        length = round(CHARACTER_PX * len(line), 1)
        if line:
            # Browsers differ in how they are told to keep several spaces.
            text = escape(line).replace(" ", "\u00a0")
            out.append(
                f'<text x="{MARGIN_PX}" y="{y}" fill="{colour}" textLength="{length}" '
                f'lengthAdjust="spacingAndGlyphs">{text}</text>'
            )
    return "\n".join([*out, "</g>", "</svg>", ""])


def main() -> None:
    """Reads the run and writes the picture to standard output."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="file with what the run printed")
    parser.add_argument("--command", default="make demo", help="command shown at the prompt")
    parser.add_argument("--columns", type=int, default=88, help="columns of the terminal")
    arguments = parser.parse_args()
    lines = shown(arguments.run.read_text(encoding="utf-8"), arguments.command, arguments.columns)
    sys.stdout.write(picture(lines, f"Output of {arguments.command}"))


if __name__ == "__main__":
    main()
