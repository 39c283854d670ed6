#!/usr/bin/env python3
"""Counts comments in a dialect that readers find hard, and fails where there are more than before.

Two habits, each counted by crate or folder and held by `ratchet.py`:

- A comment line that begins with What, Who, Of or Those, instead of naming the thing.
- A node or an attacker that is "he", in a comment or in Markdown, instead of "it".

With `--list` it prints each place, with `--record` it writes lower counts down.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import ratchet

ROOT = Path(__file__).resolve().parent.parent
COMMENTS = {
    ".rs": r"//[/!]?",
    ".ts": r"//|/?\*+",
    ".svelte": r"//|/?\*+|<!--",
    ".py": r'#|"""',
    ".sh": r"#",
    ".toml": r"#",
    "": r"#",
}
BEGINNINGS = re.compile(r"(What|Who|Of|Those)\b")
PERSONS = re.compile(r"\b([Hh]e|[Hh]is|[Hh]im|[Hh]imself)\b")
# Changes and notes are told in the words of their time.
HISTORY = ("CHANGELOG.md", "docs/notes/")


def tracked() -> Iterator[Path]:
    """Yields the files that are checked, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in listed.split("\0"):
        file = Path(name)
        is_text = file.suffix in COMMENTS and (file.suffix or file.name == "Makefile")
        if name and (is_text or file.suffix == ".md") and (ROOT / file).is_file():
            yield file


def group(file: Path) -> str:
    """Returns the crate or folder that `file` is counted under."""
    depth = {"crates": 3 if file.parts[1:2] == ("engines",) else 2}.get(file.parts[0], 1)
    return "/".join(file.parts[: min(depth, len(file.parts) - 1)]) or "."


def places(file: Path) -> Iterator[tuple[str, int, str]]:
    """Yields habit, line number and line of each place in `file`."""
    is_prose = file.suffix == ".md"
    comment = re.compile(rf"\s*({COMMENTS.get(file.suffix, '#')})\s*(.*)")
    for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), 1):
        match = comment.match(line)
        text = line if is_prose else match and match.group(2)
        if not text:
            continue
        if not is_prose and BEGINNINGS.match(text):
            yield "comments that begin with What, Who, Of or Those", number, line
        if PERSONS.search(text) and not str(file).startswith(HISTORY):
            yield "lines with he or his", number, line


def main() -> int:
    """Prints what has risen; returns 1 if anything has."""
    counts: dict[str, Counter[str]] = {
        "comments that begin with What, Who, Of or Those": Counter(),
        "lines with he or his": Counter(),
    }
    for file in tracked():
        for habit, number, line in places(file):
            counts[habit][group(file)] += 1
            if "--list" in sys.argv:
                print(f"{file}:{number}: {line.strip()}")
    held = [ratchet.hold(habit, found) for habit, found in counts.items()]
    for habit, found in counts.items():
        print(f"{found.total()} {habit}")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
