"""
A run in the lab under `perf`, the kernel's profiler: which parts of daemons take processor time.

`perf record` samples the stacks of all processes. Samples of daemons are assigned to the first part
whose functions match, from the innermost function outwards; time in the kernel is one part.
"""

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
from ncmesh_papers.reproduce.lab import LabRun

# User and kernel time, sampled at a rate that no timer of the daemons is in step with. Stacks are
# found with the program's unwinding tables, which need 16,384 bytes of each.
RECORD = (
    "record",
    "--quiet",
    "--event",
    "cpu-clock:uk",
    "--freq",
    "997",
    "--call-graph",
    "dwarf,16384",
)
SCRIPT = ("script", "--no-inline", "--fields", "pid,ip,sym")
KERNEL = "ffffffff"
DAEMON = "ncmesh_node::daemon::"
REST = "the rest"


@dataclass(frozen=True)
class Part:
    """A part of a daemon: its name, and a pattern of its functions."""

    name: str
    functions: re.Pattern[str]


def can_profile() -> bool:
    """Say whether `perf` is installed and may sample the kernel."""
    return shutil.which("perf") is not None and os.geteuid() == 0


@dataclass(frozen=True)
class ProfiledRun(LabRun):
    """A run of `ncmesh lab` with `profile`: shares of the daemons' processor time by part."""

    parts: Sequence[Part] = ()
    """
    The first that the innermost function belongs to counts; kernel time is of the part `system`.
    """
    system: str = REST

    @property
    def kind(self) -> list[Any]:
        """A run with other parts has another key."""
        return [
            "profiled",
            self.system,
            [[part.name, part.functions.pattern] for part in self.parts],
        ]

    def outcome(self) -> dict[str, Any]:
        """Run the daemons under `perf` and return the outcome with the profile."""
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
    """One sampled stack, innermost function first."""

    process: str
    stack: Sequence[str]
    in_kernel: bool


def samples(script: str) -> Iterator[Sample]:
    """Parse `perf script`: a line with the process, a line for each function, an empty line."""
    for block in script.split("\n\n"):
        process, *lines = [line.strip() for line in block.strip().splitlines()] or [""]
        if lines:
            stack = [function for _, _, function in (line.partition(" ") for line in lines)]
            yield Sample(process, stack, lines[0].startswith(KERNEL))


def shares(found: Iterator[Sample], parts: Sequence[Part], system: str) -> Mapping[str, float]:
    """Return the shares of the daemons' samples by part; an empty dict without samples."""
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
