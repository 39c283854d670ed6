"""A run in the lab of real daemons, on the wall clock."""

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

# Daemons measure their links themselves, within seconds.
QUICK_PROBES = {"probe_size": 100, "fast_probes": 40, "fast_period_s": 0.2, "probe_period_s": 1.0}

# The exit code of `ncmesh lab` when a flow came to nothing.
INCOMPLETE = 7


@dataclass(frozen=True)
class LabRun(Run):
    """A run of `ncmesh lab`. What comes of it is never twice the same, so one is kept as good."""

    program: str = "ncmesh"
    may_starve: bool = False
    """That a flow came to nothing is an outcome too: a row without flows."""
    sample_s: float | None = None
    """How often it is noted how many packets of each flow have arrived; never if none."""

    @property
    def kind(self) -> list[Any]:
        """What tells its key from that of a run of another kind."""
        return ["lab"] if self.sample_s is None else ["lab", self.sample_s]

    @functools.cached_property
    def key(self) -> str:
        """As of a simulated run, of the program in place of the compiled module."""
        decided_by = [self.scenario.hash, self.scheme, self.seed, self.limit_s]
        return hash_of([*self.kind, *decided_by, file_hash(self.program)])

    def outcome(self) -> dict[str, Any]:
        """Run the daemons, and give what came of it."""
        return self.carried()

    def carried(self, under: Sequence[str] = ()) -> dict[str, Any]:
        """The same under another program, given with its arguments."""
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
        for flow in outcome.get("flows") or ():
            flow["tcp"] = _tcp(flow)
        return outcome


def _tcp(flow: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the kernel's TCP tells of a flow, as the simulator tells it of its own."""
    if flow["protocol"] != "tcp":
        return None
    segments, again = flow["segments"], flow["retransmits"]
    return {
        "congestion": flow["congestion"],
        "segments": segments,
        "retransmissions": again,
        # A segment is sent again where it was lost, as a rule.
        "arrived": segments - again,
        "loss": again / segments if segments else 0.0,
        "rtt_s": flow["mean_rtt_s"],
    }


def to_toml(table: Mapping[str, Any]) -> str:
    """A table as TOML, everything below the top in line."""
    return "".join(f"{json.dumps(key)} = {_in_line(value)}\n" for key, value in table.items())


def _in_line(value: object) -> str:
    if isinstance(value, Mapping):
        inner = (f"{json.dumps(key)} = {_in_line(v)}" for key, v in value.items())
        return "{ " + ", ".join(inner) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_in_line, value)) + "]"
    return json.dumps(value)
