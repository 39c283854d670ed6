"""
Schemes of one's own: of a program, or of a function.

A program is the command `ncmesh` with more schemes (`examples/own-scheme`). A function makes the
plan of a file scheme, as `ncmesh.run` takes one.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from ncmesh import _ncmesh
from ncmesh.campaign.scenario import Table, file_hash
from ncmesh.failure import FailureError, Kind

if TYPE_CHECKING:
    from ncmesh.result import Planner

# Exit code of a run in which no path leads to a receiver, and of one that was cut off.
UNREACHABLE = 6
CUT_OFF = 7
# FILE.py:FUNCTION
FUNCTION = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)")


class Simulator(Protocol):
    """Stands in for the compiled module, because the scheme is its own."""

    @property
    def build(self) -> str:
        """A name for this build, so that results of builds differ."""

    def schemes(self) -> list[tuple[str, str]]:
        """Return its schemes, each with its service."""

    def simulate(
        self, scenario: Table, seed: int, scheme: str, limit_s: float | None
    ) -> dict[str, Any]:
        """Simulate, as the compiled module does."""


def simulator_of(text: str) -> Simulator:
    """Return the simulator that an option names: a program, or FILE.py:FUNCTION."""
    if found := FUNCTION.fullmatch(text):
        return Function(Path(found["file"]), found["name"])
    return Program(Path(text))


@dataclass(frozen=True)
class Program:
    """The program, by its path."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @functools.cached_property
    def build(self) -> str:
        """A name for this build, so that results of builds differ."""
        return file_hash(str(self.path))[:16]

    def schemes(self) -> list[tuple[str, str]]:
        """Return its schemes, each with its service."""
        return self._schemes

    @functools.cached_property
    def _schemes(self) -> list[tuple[str, str]]:
        made = self._run(["schemes", "--json"])
        if made.returncode != 0:
            raise FailureError(Kind.USAGE, f"{self.path} is no program of ncmesh's: {_said(made)}")
        return [(scheme["name"], scheme["service"]) for scheme in json.loads(made.stdout)]

    def simulate(
        self, scenario: Table, seed: int, scheme: str, limit_s: float | None
    ) -> dict[str, Any]:
        """Simulate, as the compiled module does."""
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory) / "scenario.toml"
            file.write_text(as_toml(scenario), encoding="utf-8")
            words = ["simulate", str(file), "--seed", str(seed), "--scheme", scheme, "--json"]
            made = self._run([*words, *([] if limit_s is None else ["--timeout", str(limit_s)])])
        if made.returncode == UNREACHABLE:
            raise _ncmesh.UnreachableError(_said(made))
        if made.returncode not in (0, CUT_OFF):
            raise FailureError(Kind.OTHER, f"{self.path}: {_said(made)}")
        outcome: dict[str, Any] = json.loads(made.stdout)
        return outcome

    def _run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [str(self.path.resolve()), *words]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise FailureError(Kind.FILE, f"{self.path}: {error.strerror}") from error


@dataclass(frozen=True)
class Function:
    """A function that plans, by its file and name. Its scheme has the name of the function."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"

    @property
    def build(self) -> str:
        """A name for this version of the file, so that results of versions differ."""
        return file_hash(str(self.path))[:16]

    def schemes(self) -> list[tuple[str, str]]:
        """Return the compiled module's schemes and this one."""
        known = _ncmesh.schemes()
        if self.name in dict(known):
            message = f"{self}: a scheme of ncmesh's is called {self.name}; rename the function"
            raise FailureError(Kind.USAGE, message)
        _function(self.path, self.name)
        return [*known, (self.name, "file")]

    def simulate(
        self, scenario: Table, seed: int, scheme: str, limit_s: float | None
    ) -> dict[str, Any]:
        """Simulate, as the compiled module does."""
        plan = _function(self.path, self.name)
        try:
            outcome = _ncmesh.simulate(scenario, seed, limit_s=limit_s, plan=plan)
        except _ncmesh.UnreachableError:
            raise
        except Exception as error:
            message = f"{self}: {type(error).__name__}: {error}"
            raise FailureError(Kind.OTHER, message) from error
        return {**outcome, "scheme": scheme}


@functools.cache
def _function(path: Path, name: str) -> Planner:
    """Return a function of a file, which is run once by each process."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except OSError as error:
        raise FailureError(Kind.FILE, f"{path}: {error.strerror}") from error
    except Exception as error:
        message = f"{path}: {type(error).__name__}: {error}"
        raise FailureError(Kind.USAGE, message) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise FailureError(Kind.USAGE, f"{path}: it has no function {name}")
    return cast("Planner", function)


def as_toml(table: Table) -> str:
    """Return a table as a TOML file."""
    return "".join(f"{_value(key)} = {_value(value)}\n" for key, value in table.items())


def _value(value: object) -> str:
    """Return a value as TOML has it within a line. Its strings are a part of JSON's."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_value(key)} = {_value(of)}" for key, of in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_value(of) for of in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


def _said(made: subprocess.CompletedProcess[str]) -> str:
    lines = made.stderr.strip().splitlines()
    return lines[-1].removeprefix("error: ") if lines else f"it ended with {made.returncode}"
