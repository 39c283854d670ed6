#!/usr/bin/env python3
"""Says where the time of a test run goes.

`timing.py tests COMMAND...` runs a test command, passes its output on, and keeps the duration of
each test that it reads there: of libtest with `--report-time`, of pytest with `--durations`.

`timing.py steps NAME...` makes each of the targets one after the other, up to the first that fails,
and then prints how long each took, and the ten slowest tests of them all.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

KEPT = Path(__file__).resolve().parent.parent / "target" / "durations.json"
SLOWEST = 10

# `     Running tests/it/main.rs (target/debug/deps/it-0123456789abcdef)`
BINARY = re.compile(r"\s*Running .*\(.*/([^/]+)-[0-9a-f]{16}\)$")
# `test tunnels::packets_arrive ... ok <1.234s>`
LIBTEST = re.compile(r"test (\S+)(?: - [^.]*)? \.\.\. \w+ <([0-9.]+)s>")
# `12.34s call     python/tests/test_run.py::test_it`
PYTEST = re.compile(r"([0-9.]+)s call\s+(\S+)")


def kept() -> dict[str, float]:
    """Returns the duration of each test so far, s."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


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
    durations = kept()
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
    KEPT.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(durations))
    return process.returncode


def make_steps(names: list[str]) -> int:
    """Makes each target, prints the tables, and returns the exit code of the last one."""
    KEPT.unlink(missing_ok=True)
    code = 0
    taken: dict[str, float] = {}
    for name in names:
        begin = time.monotonic()
        code = subprocess.run([os.environ.get("MAKE", "make"), name]).returncode
        taken[name] = time.monotonic() - begin
        if code:
            break
    print(f"\n{sum(taken.values()):7.0f} s in all")
    for name, seconds in taken.items():
        print(f"{seconds:7.0f} s {name}")
    print("the slowest tests:")
    for name, seconds in sorted(kept().items(), key=lambda test: -test[1])[:SLOWEST]:
        print(f"{seconds:7.1f} s {name}")
    return code


def main() -> int:
    """Runs what the first argument names."""
    match sys.argv[1:]:
        case ["tests", *command] if command:
            return run_tests(command)
        case ["steps", *names] if names:
            return make_steps(names)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
