"""Durations are read off the output of libtest and pytest."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import timing

OUTPUT = """\
     Running tests/it/main.rs (target/debug/deps/it-0123456789abcdef)
test one::quick ... ok <0.010s>
test two::slow ... FAILED <12.500s>
test result: FAILED. 1 passed; 1 failed; finished in 12.51s
     Running unittests src/lib.rs (target/debug/deps/ncmesh_gf-0123456789abcdef)
test slow ... ok <3.000s>
7.25s call     python/tests/test_run.py::test_it[a]
0.50s setup    python/tests/test_run.py::test_it[a]
"""


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "KEPT", tmp_path / "durations.json")
    return tmp_path / "durations.json"


def test_output_and_exit_code_are_the_command_s_and_durations_are_kept(kept, capfd):
    script = f"import sys; sys.stdout.write({OUTPUT!r}); sys.exit(3)"
    assert timing.run_tests([sys.executable, "-c", script]) == 3
    assert capfd.readouterr().out == OUTPUT
    assert json.loads(kept.read_text()) == {
        "it one::quick": 0.01,
        "it two::slow": 12.5,
        "ncmesh_gf slow": 3.0,
        "python/tests/test_run.py::test_it[a]": 7.25,
    }


def test_steps_end_with_the_first_that_fails_and_show_the_slowest_tests(
    kept, capfd, tmp_path, monkeypatch
):
    (tmp_path / "Makefile").write_text(
        f"good:\n\t@cp {tmp_path}/made {kept}\nbad:\n\t@false\nnever:\n\t@echo never\n"
    )
    (tmp_path / "made").write_text(json.dumps({f"test {n}": float(n) for n in range(20)}))
    kept.write_text(json.dumps({"an old run's": 99.0}))
    monkeypatch.chdir(tmp_path)
    assert timing.make_steps(["good", "bad", "never"]) != 0
    shown = capfd.readouterr().out.splitlines()
    assert [line.split()[-1] for line in shown if line.endswith(("good", "bad"))] == ["good", "bad"]
    assert [line.split()[0] for line in shown[-10:]] == [f"{n}.0" for n in range(19, 9, -1)]
    assert "never" not in shown


def test_without_a_command_it_says_how_it_is_used():
    timing_py = Path(timing.__file__)
    done = subprocess.run([timing_py], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "timing.py steps" in done.stderr
