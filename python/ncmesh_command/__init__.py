"""
The command `ncmesh` of the Python package: its program, and the subcommands that are Python.

`ncmesh campaign` and `ncmesh bench` run here. All others are those of the program, which the wheels
of releases contain; it takes this process over, so signals and exit codes are its own. This is a
package of its own because `import ncmesh` loads NumPy, which the program does not need.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Subcommands of `python -m ncmesh`.
PYTHON = ("bench", "campaign")
PROGRAM = Path(__file__).with_name("bin") / "ncmesh"


def main() -> int:
    """Run the command; its exit code."""
    if sys.argv[1:2] and sys.argv[1] in PYTHON:
        from ncmesh.__main__ import main as python

        return python()
    if PROGRAM.exists():
        os.execv(PROGRAM, [str(PROGRAM), *sys.argv[1:]])
    problem = "this installation was built without the program `ncmesh`"
    print(f"error: {problem}: cargo install --path crates/cli", file=sys.stderr)
    return 1
