"""Runs in the lab of real daemons, on the wall clock (`ncmesh lab`)."""

from __future__ import annotations

import functools
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncmesh.campaign import Run
from ncmesh.campaign.scenario import file_hash, hash_of
from ncmesh.failure import FailureError, Kind

# Exit code of `ncmesh lab` when a flow delivered nothing.
INCOMPLETE = 7


@dataclass(frozen=True)
class LabRun(Run):
    """A run of `ncmesh lab`. No two are alike, so a finished one is kept and never repeated."""

    program: str = "ncmesh"
    may_starve: bool = False
    """Whether a flow that delivers nothing is an outcome: a row without flows."""
    sample_s: float | None = None
    """Interval at which the packets delivered by each flow are sampled; `None` for no samples."""

    @property
    def kind(self) -> list[Any]:
        """Distinguishes the key of this run from those of other kinds of run."""
        return ["lab"] if self.sample_s is None else ["lab", self.sample_s]

    @functools.cached_property
    def key(self) -> str:
        """Key as of a simulated run, with the program in place of the compiled module."""
        decided_by = [self.scenario.hash, self.scheme, self.seed, self.limit_s]
        return hash_of([*self.kind, *decided_by, file_hash(self.program)])

    def outcome(self) -> dict[str, Any]:
        """Run the daemons and return the outcome."""
        return self.carried()

    def carried(self, under: Sequence[str] = ()) -> dict[str, Any]:
        """Run the daemons under another program, given with its arguments."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "scenario.toml"
            file.write_text(to_toml({**self.scenario.table, "seed": self.seed}))
            command = [*under, self.program, "lab", str(file), "--scheme", self.scheme, "--json"]
            if self.limit_s is not None:
                command += ["--timeout", str(self.limit_s)]
            if self.sample_s is not None:
                command += ["--sample", str(self.sample_s)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if self.may_starve and done.returncode == INCOMPLETE:
            return {"flows": []}
        try:
            outcome: dict[str, Any] = json.loads(done.stdout)
        except ValueError as error:
            said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            raise FailureError(Kind.OTHER, f"{self}: {self.program} lab: {said[-1]}") from error
        return outcome


def to_toml(table: Mapping[str, Any]) -> str:
    """Write a table as TOML, with inline tables below the top level."""
    return "".join(f"{json.dumps(key)} = {_in_line(value)}\n" for key, value in table.items())


def _in_line(value: object) -> str:
    if isinstance(value, Mapping):
        inner = (f"{json.dumps(key)} = {_in_line(v)}" for key, v in value.items())
        return "{ " + ", ".join(inner) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_in_line, value)) + "]"
    return json.dumps(value)
