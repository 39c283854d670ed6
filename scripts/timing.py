#!/usr/bin/env python3
"""Says where the time of a test run goes.

`timing.py tests COMMAND...` runs a test command, passes its output on, and keeps the duration of
each test that it reads there: of libtest with `--report-time`, of pytest with `--durations`.

`timing.py steps NAME... [-- NAME... -- NAME...]` makes each of the targets one after the other, up
to the first that fails. After that come two rows at once: the targets after the first `--` are
tests that mostly wait, for daemons and browsers, and those after the second one get the processor
time that the first leave. In the end it prints how long each took, and the ten slowest tests of
them all.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

# A file for each command.
KEPT = Path(__file__).resolve().parent.parent / "target" / "durations"
SLOWEST = 10

# `     Running tests/it/main.rs (target/debug/deps/it-0123456789abcdef)`
BINARY = re.compile(r"\s*Running .*\(.*/([^/]+)-[0-9a-f]{16}\)$")
# `test tunnels::packets_arrive ... ok <1.234s>`
LIBTEST = re.compile(r"test (\S+)(?: - [^.]*)? \.\.\. \w+ <([0-9.]+)s>")
# `12.34s call     python/tests/test_run.py::test_it`
PYTEST = re.compile(r"([0-9.]+)s call\s+(\S+)")


def kept() -> dict[str, float]:
    """Returns the duration of each test so far, s."""
    durations: dict[str, float] = {}
    for file in KEPT.glob("*.json"):
        durations |= json.loads(file.read_text())
    return durations


def run_tests(command: list[str]) -> int:
    """Runs `command`, keeps the durations that it prints, and returns its exit code."""
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True).stdout
    target = re.search(r"host: (\S+)", host)
    env = dict(os.environ)
    if target is not None:
        # libtest of a stable Rust tells durations only with this variable. Tests have it and the
        # compiler has not, so nothing is built another way.
        name = target.group(1).upper().replace("-", "_")
        env[f"CARGO_TARGET_{name}_RUNNER"] = "env RUSTC_BOOTSTRAP=1"
    durations: dict[str, float] = {}
    binary = ""
    with subprocess.Popen(
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            if found := BINARY.match(line):
                binary = found.group(1)
            elif found := LIBTEST.match(line):
                durations[f"{binary} {found.group(1)}"] = float(found.group(2))
            elif found := PYTEST.match(line):
                durations[found.group(2)] = float(found.group(1))
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{os.getpid()}.json").write_text(json.dumps(durations))
    return process.returncode


class Steps:
    """Makes targets, up to the first that fails."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self.code = 0

    def make(self, names: Iterable[str]) -> None:
        """Makes each target as it is."""
        self._make(names, [], whole=False)

    def make_beside(self, names: Iterable[str]) -> None:
        """Makes each target in processor time that nothing else needs.

        Its output is shown in one piece, when it has ended.
        """
        idle = ["chrt", "--idle", "0"] if shutil.which("chrt") else []
        self._make(names, idle, whole=True)

    def _make(self, names: Iterable[str], way: list[str], *, whole: bool) -> None:
        for name in names:
            if self.code:
                return
            begin = time.monotonic()
            done = subprocess.run(
                [*way, os.environ.get("MAKE", "make"), name],
                stdout=subprocess.PIPE if whole else None,
                stderr=subprocess.STDOUT if whole else None,
            )
            self.taken[name] = time.monotonic() - begin
            self.code = self.code or done.returncode
            if whole:
                sys.stdout.buffer.write(f"-- {name}, beside others:\n".encode() + done.stdout)
                sys.stdout.flush()


def make_steps(rows: list[list[str]]) -> int:
    """Makes the targets of one row or three, prints the tables, and returns an exit code."""
    shutil.rmtree(KEPT, ignore_errors=True)
    begin = time.monotonic()
    steps = Steps()
    steps.make(rows[0])
    if rows[1:]:
        waiting, beside = rows[1:]
        thread = threading.Thread(target=steps.make_beside, args=[beside])
        thread.start()
        steps.make(waiting)
        thread.join()
    print(f"\n{time.monotonic() - begin:7.0f} s in all")
    for name, seconds in steps.taken.items():
        print(f"{seconds:7.0f} s {name}")
    print("the slowest tests:")
    for name, seconds in sorted(kept().items(), key=lambda test: -test[1])[:SLOWEST]:
        print(f"{seconds:7.1f} s {name}")
    return steps.code


def main() -> int:
    """Runs what the first argument names."""
    match sys.argv[1:]:
        case ["tests", *command] if command:
            return run_tests(command)
        case ["steps", *names]:
            rows = [list(row) for is_rule, row in groupby(names, "--".__eq__) if not is_rule]
            if len(rows) in (1, 3):
                return make_steps(rows)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
