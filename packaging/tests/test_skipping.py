"""A skipped test or check is a failure where CI is set."""

import os
import subprocess
from pathlib import Path

import pytest
from skipping import skip

ROOT = Path(__file__).parents[2]


def test_a_test_that_cannot_run_fails_where_ci_is_set(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no radio"):
        skip("no radio")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no radio"):
        skip("no radio")


@pytest.mark.parametrize(("ci", "code"), [({}, 0), ({"CI": "true"}, 1)])
def test_a_script_that_cannot_run_fails_where_ci_is_set(ci, code):
    script = '. scripts/skip.sh; skip "no radio"; echo "went on"'
    env = {"PATH": os.environ["PATH"], **ci}
    done = subprocess.run(
        ["bash", "-euc", script], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "skipped: no radio\n")
