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


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "KEPT", tmp_path / "durations")
    return tmp_path / "durations"


def test_output_and_exit_code_are_the_command_s_and_durations_are_kept(capfd):
    script = f"import sys; sys.stdout.write({OUTPUT!r}); sys.exit(3)"
    assert timing.run_tests([sys.executable, "-c", script]) == 3
    assert capfd.readouterr().out == OUTPUT
    assert timing.kept() == {
        "it one::quick": 0.01,
        "it two::slow": 12.5,
        "ncmesh_gf slow": 3.0,
        "python/tests/test_run.py::test_it[a]": 7.25,
    }


def test_steps_end_with_the_first_that_fails_and_show_the_slowest_tests(
    kept, capfd, tmp_path, monkeypatch
):
    (tmp_path / "Makefile").write_text(
        f"good:\n\t@mkdir {kept} && cp {tmp_path}/made.json {kept}\n"
        "bad:\n\t@false\n"
        "never:\n\t@echo never\n"
    )
    (tmp_path / "made.json").write_text(json.dumps({f"test {n}": float(n) for n in range(20)}))
    kept.mkdir()
    (kept / "old.json").write_text(json.dumps({"an old run's": 99.0}))
    monkeypatch.chdir(tmp_path)
    assert timing.make_steps([["good", "bad", "never"]]) != 0
    shown = capfd.readouterr().out.splitlines()
    assert [line.split()[-1] for line in shown if line.endswith(("good", "bad"))] == ["good", "bad"]
    assert [line.split()[0] for line in shown[-10:]] == [f"{n}.0" for n in range(19, 9, -1)]
    assert "never" not in shown


def test_two_rows_of_steps_are_made_at_once(capfd, tmp_path, monkeypatch):
    # Each of the two ends only while the other is being made.
    (tmp_path / "Makefile").write_text(
        "first:\n\t@mkfifo there back\n"
        "one:\n\t@echo > there && cat back\n"
        "other:\n\t@cat there && echo > back && echo other was made\n"
    )
    monkeypatch.chdir(tmp_path)
    assert timing.make_steps([["first"], ["one"], ["other"]]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert shown.index("-- other, beside others:") < shown.index("other was made")


def test_a_step_that_fails_ends_the_row_beside_it(tmp_path, monkeypatch):
    (tmp_path / "Makefile").write_text("bad:\n\t@false\nnever:\n\t@touch never\n")
    monkeypatch.chdir(tmp_path)
    steps = timing.Steps()
    steps.make(["bad"])
    steps.make_beside(["never"])
    assert steps.code != 0
    assert not (tmp_path / "never").exists()


def test_without_a_command_it_says_how_it_is_used():
    timing_py = Path(timing.__file__)
    done = subprocess.run([timing_py], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "timing.py steps" in done.stderr
