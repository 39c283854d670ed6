"""Scenarios as tables, with settings changed and hashes."""

from __future__ import annotations

import functools
import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncmesh.failure import FailureError, Kind

# Settings that name files.
FILES = (
    "topology.matrix",
    "topology.links",
    "topology.netjson",
    "topology.positions",
    "topology.bonnmotion",
    "topology.fcd",
    "topology.ns2",
    "traffic.file",
)

Table = Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """A scenario, complete but for its seed."""

    table: Table
    """Table in the shape of a scenario file. Files that it names are named absolutely."""

    @classmethod
    def read(cls, path: Path) -> Scenario:
        """Read a scenario file."""
        return cls(read_toml(path)).in_directory(path.parent)

    def in_directory(self, directory: Path) -> Scenario:
        """The same with the files it names relative to `directory` named absolutely."""
        table = dict(self.table)
        for key in FILES:
            table = _with_files(table, key, lambda name: str((directory / name).resolve()))
        return Scenario(table)

    def varied(self, settings: Table) -> Scenario:
        """The same with other settings, keys joined by dots."""
        table = dict(self.table)
        for key, value in settings.items():
            table = _with_setting(table, key, value)
        return Scenario(table)

    @functools.cached_property
    def hash(self) -> str:
        """Hash of the table, with the contents of files instead of their names."""
        table = self.table
        for key in FILES:
            table = _with_files(table, key, file_hash)
        return hash_of(table)


def read_toml(path: Path) -> dict[str, Any]:
    """The table of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FailureError(Kind.FILE, f"{path}: {error.strerror}") from error
    except ValueError as error:  # No UTF-8, or no TOML.
        raise FailureError(Kind.CONFIG, f"{path}: {error}") from error


def hash_of(value: object) -> str:
    """SHA-256 of a table or list, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _with_files(table: Table, key: str, change: Callable[[str], str]) -> dict[str, Any]:
    """Change a setting that names a file, in each table of a list if there are several."""
    first, _, rest = key.partition(".")
    inner = table.get(first)
    if not rest and isinstance(inner, str):
        return {**table, first: change(inner)}
    if rest and isinstance(inner, Mapping):
        return {**table, first: _with_files(inner, rest, change)}
    if rest and isinstance(inner, list):
        tables = [_with_files(t, rest, change) if isinstance(t, Mapping) else t for t in inner]
        return {**table, first: tables}
    return dict(table)


def _with_setting(table: Table, key: str, value: object) -> dict[str, Any]:
    first, _, rest = key.partition(".")
    if rest:
        inner = table.get(first)
        value = _with_setting(inner if isinstance(inner, Mapping) else {}, rest, value)
    return {**table, first: value}


def file_hash(name: str) -> str:
    """SHA-256 of a file, in hexadecimal."""
    try:
        with Path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FailureError(Kind.FILE, f"{name}: {error.strerror}") from error
