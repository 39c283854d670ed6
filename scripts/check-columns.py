#!/usr/bin/env python3
"""Checks that no line of code, comments or Markdown is longer than 100 columns.

Looks at every file that git tracks with one of the endings below, and at shell scripts and
Makefiles. Python 3.11, standard library only. Excepted are lines that cannot be broken well:

  * rows of tables, in Markdown and in doc comments;
  * lines that hold a link or a URL;
  * output in Markdown: fenced blocks without a language, or of `text`, `json` or `console`;
  * a single word longer than the limit, such as a test vector or a hash.

Examples:
  scripts/check-columns.py                  # everything; exit code 1 if a line is too long
  scripts/check-columns.py crates/wire      # some folders or files
  scripts/check-columns.py --summary        # how many lines, by crate or folder
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LIMIT = 100
ENDINGS = {".rs", ".py", ".pyi", ".ts", ".svelte", ".css", ".md", ".lua", ".toml", ".sh", ".yml"}
NAMES = {"Makefile", ".ci/run"}
# Generated, and kept as their tools write them.
SKIPPED = re.compile(r"(^|/)Cargo\.lock$|^crates/web/dist/")

FENCE = re.compile(r"^\s*(?:>\s*)?(```+|~~~+)\s*([\w+-]*)")
OUTPUT = {"", "text", "json", "console"}
TABLE = re.compile(r"^\s*(//[/!]?\s*|#\s*)?\|")
LINK = re.compile(r"\]\([^)]*\)|\]\[[^]]*\]|^\s*\[[^]]+\]:|https?://")


def tracked(paths: list[str]) -> list[Path]:
    """Returns the files git tracks under `paths` that are checked."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], check=True, capture_output=True, text=True
    ).stdout
    files = [Path(name) for name in listed.split("\0") if name and not SKIPPED.search(name)]
    return [f for f in files if f.is_file() and not f.is_symlink() and is_checked(f)]


def is_checked(file: Path) -> bool:
    """Whether `file` is source, Markdown, a Makefile or a script."""
    if file.suffix in ENDINGS or str(file) in NAMES or file.name in NAMES:
        return True
    if file.suffix:
        return False
    with file.open("rb") as content:
        return content.read(2) == b"#!"


def too_long(file: Path) -> Iterator[tuple[int, int]]:
    """Yields number and length of each line of `file` that is too long."""
    fence = None
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if file.suffix == ".md" and (match := FENCE.match(line)):
            fence = match.group(2) if fence is None else None
        if len(line) <= LIMIT or TABLE.match(line) or LINK.search(line):
            continue
        if fence is not None and fence in OUTPUT:
            continue
        if any(len(word) > LIMIT - 12 for word in line.split()):
            continue
        yield number, len(line)


def group(file: Path) -> str:
    """Returns the crate or folder that `file` is counted under."""
    parts = file.parts
    depth = {"crates": 3 if parts[1:2] == ("engines",) else 2, "python": 2}.get(parts[0], 1)
    return "/".join(parts[: min(depth, len(parts) - 1)]) or "."


def main() -> int:
    """Prints the lines that are too long and returns 1 if there are any."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", help="folders or files; all that is tracked if absent")
    parser.add_argument("--summary", action="store_true", help="counts by crate or folder only")
    arguments = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    for file in tracked(arguments.paths):
        for number, length in too_long(file):
            counts[group(file), file.suffix.lstrip(".") or file.name] += 1
            if not arguments.summary:
                print(f"{file}:{number}: {length} columns, allowed are {LIMIT}")
    if arguments.summary:
        for (where, kind), n in sorted(counts.items()):
            print(f"{n:6} {kind:4} {where}")
    if counts:
        total = counts.total()
        print(f"{total} lines are longer than {LIMIT} columns; break them", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
