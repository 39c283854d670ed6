"""A run in the lab under `perf`, the kernel's profiler: what the daemons' processor time goes to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncmesh.failure import FailureError, Kind
from ncmesh.reproduce.lab import LabRun

# Processor time, the kernel's included, at a rate that no timer of the daemons is in step with. Stacks are
# found by the program's unwinding tables, which need so many bytes of them.
RECORD = ("record", "--quiet", "--event", "cpu-clock:uk", "--freq", "997", "--call-graph", "dwarf,16384")
SCRIPT = ("script", "--no-inline", "--fields", "pid,ip,sym")
KERNEL = "ffffffff"
DAEMON = "ncmesh_node::daemon::"
REST = "the rest"


@dataclass(frozen=True)
class Part:
    """What a daemon does, and functions that do it."""

    name: str
    functions: re.Pattern[str]


def can_profile() -> bool:
    """Whether `perf` is there and may look at the kernel."""
    return shutil.which("perf") is not None and os.geteuid() == 0


@dataclass(frozen=True)
class ProfiledRun(LabRun):
    """A run of `ncmesh lab` whose row has `profile`: shares of all daemons' processor time by part."""

    parts: Sequence[Part] = ()
    """The first that the innermost function belongs to counts; kernel time is of the part `system`."""
    system: str = REST

    @property
    def kind(self) -> list[Any]:
        """Another division makes another row."""
        return ["profiled", self.system, [[part.name, part.functions.pattern] for part in self.parts]]

    def outcome(self) -> dict[str, Any]:
        """Run the daemons, and look where they are, some thousand times a second."""
        with tempfile.TemporaryDirectory() as directory:
            data = str(Path(directory) / "perf.data")
            outcome = self.carried(["perf", *RECORD, "--output", data, "--"])
            done = subprocess.run(
                ["perf", *SCRIPT, "--input", data], capture_output=True, text=True, check=False
            )
        profile = shares(samples(done.stdout), self.parts, self.system)
        if not profile:
            said = done.stderr.strip().splitlines() or ["no samples"]
            raise FailureError(Kind.OTHER, f"{self}: perf: {said[-1]}")
        return {**outcome, "profile": profile}


@dataclass(frozen=True)
class Sample:
    """One look at a processor: functions from the innermost outwards."""

    process: str
    stack: Sequence[str]
    in_kernel: bool


def samples(script: str) -> Iterator[Sample]:
    """What `perf script` prints: a line with the process, a line for each function, an empty line."""
    for block in script.split("\n\n"):
        process, *lines = [line.strip() for line in block.strip().splitlines()] or [""]
        if lines:
            stack = [function for _, _, function in (line.partition(" ") for line in lines)]
            yield Sample(process, stack, lines[0].startswith(KERNEL))


def shares(found: Iterator[Sample], parts: Sequence[Part], system: str) -> Mapping[str, float]:
    """Of the samples of daemons, by part; nothing if there are none."""
    every = list(found)
    daemons = {s.process for s in every if any(DAEMON in function for function in s.stack)}
    counts = Counter(_part(s, parts, system) for s in every if s.process in daemons)
    names = dict.fromkeys([*(part.name for part in parts), system, REST])
    return {name: counts[name] / counts.total() for name in names} if counts else {}


def _part(sample: Sample, parts: Sequence[Part], system: str) -> str:
    if sample.in_kernel:
        return system
    of_functions = (part.name for f in sample.stack for part in parts if part.functions.search(f))
    return next(of_functions, REST)
