"""One run of a campaign: all that decides its outcome, and its making."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ncmesh import _ncmesh
from ncmesh.campaign.program import Simulator
from ncmesh.campaign.scenario import Scenario, Table, hash_of
from ncmesh.failure import FailureError, Kind


@functools.cache
def build() -> str:
    """Returns a name for this build of the compiled module, so that results of builds differ."""
    return hashlib.sha256(Path(_ncmesh.__file__).read_bytes()).hexdigest()[:16]


@dataclass(frozen=True)
class Run:
    """A scenario with scheme, seed and limit."""

    scenario: Scenario
    scheme: str
    seed: int
    limit_s: float | None = None
    parameters: Table = field(default_factory=dict)
    """Varied settings of the scenario, for people; the scenario has them already."""
    build: str = field(default_factory=build)
    simulator: Simulator | None = None
    """In place of the compiled module, because the scheme is its own."""

    @functools.cached_property
    def key(self) -> str:
        """Two runs with the same key have the same outcome."""
        made_by = [_ncmesh.__version__, self.build]
        if self.simulator is not None:
            made_by.append(self.simulator.build)
        return hash_of([self.scenario.hash, self.scheme, self.seed, self.limit_s, *made_by])

    def check(self) -> None:
        """Raise what would be wrong with it before anything is simulated."""
        if self.simulator is not None:
            return  # Only the simulator knows its schemes. It says what is wrong when it runs.
        try:
            _ncmesh.check(self.scenario.table, self.seed, scheme=self.scheme)
        except _ncmesh.ScenarioError as error:
            raise FailureError(Kind.CONFIG, f"{self}: {error}") from error

    def perform(self) -> dict[str, Any]:
        """Make the row of a `Store`. A receiver out of reach is an outcome too."""
        if self.build != build():
            raise FailureError(Kind.OTHER, "a worker has another build of ncmesh than the campaign")
        began = time.perf_counter()
        try:
            outcome = self.outcome()
        except _ncmesh.UnreachableError as error:
            outcome = {"error": str(error)}
        # The outcome names the scheme that ran, where this run has `auto`.
        return {**self._description(), **outcome, "took_s": time.perf_counter() - began}

    def outcome(self) -> dict[str, Any]:
        """Simulate."""
        if self.simulator is not None:
            table = self.scenario.table
            return self.simulator.simulate(table, self.seed, self.scheme, self.limit_s)
        return _ncmesh.simulate(
            self.scenario.table, self.seed, scheme=self.scheme, limit_s=self.limit_s
        )

    def _description(self) -> dict[str, Any]:
        return {
            "run": self.key,
            "scenario": self.scenario.table["name"],
            "scenario_hash": self.scenario.hash,
            "parameters": json.dumps(self.parameters, sort_keys=True),
            "scheme": self.scheme,
            "seed": self.seed,
            "limit_s": self.limit_s,
            "version": _ncmesh.__version__,
            "build": self.build,
        }

    def __str__(self) -> str:
        varied = "".join(f", {key} = {value}" for key, value in self.parameters.items())
        return f"{self.scheme}, seed {self.seed}{varied}"
