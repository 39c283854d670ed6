"""The notebooks of the documents run, and what they show comes from such a run."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_output_of_notebooks_is_that_of_a_run():
    script = ROOT / "scripts/notebooks.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((ROOT / "docs/notebooks").glob("*.ipynb"))) == 4
