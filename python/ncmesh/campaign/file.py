"""Campaign files, in TOML."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ncmesh import _ncmesh
from ncmesh.campaign.runs import Run
from ncmesh.campaign.scenario import Scenario, read_toml
from ncmesh.failure import FailureError, Kind

KEYS = ("name", "scenario", "schemes", "seeds", "limit_s", "parameters")

# More is a mistake, and would not fit into memory.
MOST_RUNS = 1_000_000


@dataclass(frozen=True)
class Campaign:
    """Runs of the campaign."""

    name: str
    runs: dict[str, Run]
    """By key."""


def load(path: Path) -> Campaign:
    """Read a campaign file; file names in it are relative to it."""
    table = read_toml(path)
    for key in table:
        if key not in KEYS:
            raise _wrong(path, f"unknown key `{key}`: there are {', '.join(KEYS)}")
    name = table.get("name", path.stem)
    schemes = table.get("schemes", ["auto"])
    if not isinstance(name, str) or not _is_list_of(schemes, str):
        raise _wrong(path, "`name` is text, `schemes` a list of names")
    scenario, seeds, limit = _scenario(path, table), _seeds(path, table), _limit(path, table)
    grid = dict(_grid(path, table.get("parameters", {})))
    count = len(schemes) * len(seeds) * math.prod(map(len, grid.values()))
    if count > MOST_RUNS:
        raise _wrong(path, f"{count} runs: allowed are {MOST_RUNS}")
    for key in grid:
        if not any(_concerns(key, scheme, scenario) for scheme in schemes):
            among = ", ".join(_named(scheme, scenario) for scheme in schemes)
            raise _wrong(path, f"parameters.{key} concerns none of the schemes: {among}")

    # Combinations that differ in settings of other schemes only are one run.
    runs: list[Run] = []
    for scheme in schemes:
        of = {key: choices for key, choices in grid.items() if _concerns(key, scheme, scenario)}
        for values in itertools.product(*of.values()):
            parameters = dict(zip(of, values, strict=True))
            varied = scenario.varied(parameters).in_directory(path.parent)
            runs += [Run(varied, scheme, seed, limit, parameters) for seed in seeds]
    return Campaign(name, {run.key: run for run in runs})


def _concerns(key: str, scheme: str, scenario: Scenario) -> bool:
    """Return whether a setting can change what a scheme does: other engines' settings cannot."""
    engines = {name for name, _ in _ncmesh.schemes()}
    first, _, rest = key.partition(".")
    owner = rest.partition(".")[0]
    named = _named(scheme, scenario)
    return first != "protocol" or owner not in engines or named not in engines or owner == named


def _named(scheme: str, scenario: Scenario) -> str:
    """Return the scheme itself where a campaign says `auto`."""
    if scheme != "auto":
        return scheme
    services = {"traffic": "file", "flow": "tunnel", "stream": "stream"}
    service = next((of for key, of in services.items() if key in scenario.table), "file")
    return next(name for name, served in _ncmesh.schemes() if served == service)


def _scenario(path: Path, table: Mapping[str, Any]) -> Scenario:
    name = table.get("scenario")
    if not isinstance(name, str):
        raise _wrong(
            path, '`scenario` is missing: name a scenario file, as in scenario = "mesh.toml"'
        )
    return Scenario.read(path.parent / name)


def _seeds(path: Path, table: Mapping[str, Any]) -> list[int]:
    """From text such as `1-10,20`."""
    text = table.get("seeds", "1")
    seeds: list[int] = []
    for part in text.split(",") if isinstance(text, str) else [""]:
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not _)):
            raise _wrong(path, f'seeds = {text!r}: allowed is text such as "1-10" or "1-10,20"')
        low, high = int(first), int(last or first)
        if not low <= high < 2**63 or high - low >= MOST_RUNS:
            raise _wrong(path, f"seeds {part}: from less to more, below 2^63, at most {MOST_RUNS}")
        seeds += range(low, high + 1)
    if len(set(seeds)) < len(seeds):
        raise _wrong(path, f"seeds = {text!r}: a seed is named twice")
    return seeds


def _limit(path: Path, table: Mapping[str, Any]) -> float | None:
    limit = table.get("limit_s")
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
        raise _wrong(path, f"limit_s = {limit}: allowed are seconds above 0")
    return float(limit)


def _grid(path: Path, table: object, prefix: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Each varied setting, its key joined by dots, with its values."""
    if not isinstance(table, Mapping):
        raise _wrong(path, "`parameters` is a table of lists")
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _grid(path, value, f"{prefix}{key}.")
        elif prefix + key == "seed":
            raise _wrong(path, "parameters.seed: `seeds` says which seeds there are")
        elif isinstance(value, list) and value:
            yield f"{prefix}{key}", value
        else:
            raise _wrong(path, f"parameters.{prefix}{key}: give a list of the values it takes")


def _is_list_of(value: object, kind: type) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(isinstance(v, kind) for v in value)


def _wrong(path: Path, message: str) -> FailureError:
    return FailureError(Kind.CONFIG, f"{path}: {message}")
