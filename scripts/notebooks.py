#!/usr/bin/env python3
"""Runs the notebooks of the documents and stores their output; `--check` compares it instead.

    target/venv/bin/python scripts/notebooks.py [--check]

Every run is simulated with a fixed seed, so the text of a notebook's output is the same each time.
Pictures are compared by their presence: their bytes depend on the version of matplotlib.
"""

from __future__ import annotations

import difflib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.font_manager  # noqa: F401 (its cache is built here, not in a notebook)
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "docs/notebooks"
# Time for one cell, s. The longest takes a few.
TIMEOUT_S = 120
PICTURES = ("image/png", "image/svg+xml")


def run(path: Path) -> Any:  # noqa: ANN401 (a notebook)
    """Returns the notebook with the output of a fresh run, in a directory that is then removed."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as directory:
        resources = {"metadata": {"path": directory}}
        # How a command's output is cut into pieces depends on the machine's load.
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT_S,
            resources=resources,
            record_timing=False,
            coalesce_streams=True,
        )
        client.execute()
    # Values that depend on the machine and not on the run.
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    return notebook


def text(notebook: Any) -> list[tuple[str, list[Any]]]:  # noqa: ANN401 (a notebook)
    """Returns source and output of each cell, pictures without their bytes."""

    def shown(output: Any) -> Any:  # noqa: ANN401
        data = output.get("data", {})
        if any(kind in data for kind in PICTURES):
            return "a picture"
        return data or output.get("text") or output.get("ename")

    return [(cell.source, [*map(shown, cell.get("outputs", []))]) for cell in notebook.cells]


def main() -> int:
    """Runs all notebooks; 1 if `--check` finds one whose stored output is not that of its run."""
    check = sys.argv[1:] == ["--check"]
    stale = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        fresh = run(path)
        if not check:
            nbformat.write(fresh, path)
            continue
        stored, now = (
            json.dumps(text(notebook), indent=1, sort_keys=True).splitlines()
            for notebook in (nbformat.read(path, as_version=4), fresh)
        )
        if stored != now:
            print(f"{path}: its output is not what a run gives; run scripts/notebooks.py")
            print("\n".join(difflib.unified_diff(stored, now, "stored", "run", lineterm="")))
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
