"""
The meshes of the scoreboard: measured ones, generated ones, lines and a grid.

A mesh is a scenario without traffic. Where losses are given, it exists once for each `link_power`,
which decides what becomes of overlapping frames. Links are measured as daemons do: the scenario's
`[measure]` is left out.
"""

from __future__ import annotations

import csv
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncmesh import _ncmesh
from ncmesh.bench.air import Air
from ncmesh.campaign.scenario import Scenario
from ncmesh.failure import FailureError, Kind

Matrix = NDArray[np.float64]

LINK_POWERS = ("rayleigh", "equal")
RADIO = {"phy": "802.11b", "bit_rate": "11M"}
# Parts of a scenario that say what is sent, or how its links are known beforehand.
TRAFFIC = ("traffic", "flow", "stream", "measure")
# Loss between nodes two hops apart, as in scenarios/line.toml.
NEXT_BUT_ONE = 0.8


@dataclass(frozen=True)
class Mesh:
    """A scenario without traffic."""

    name: str
    family: str
    """Several meshes that differ in one number have one family, such as `line`."""
    scenario: Scenario
    link_power: str | None
    """The setting `medium.link_power`; none where positions decide who hears whom."""
    seed: int | None = None
    """Seed that places the nodes; none if they do not depend on it."""

    @property
    def title(self) -> str:
        """Name for people."""
        return title_of(self.name, self.link_power)

    @property
    def air(self) -> Air:
        """Timing of its channel."""
        return Air.of(self.scenario.table["medium"])

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes, in the order of `delivery`."""
        return _names(self.scenario.table, len(self.delivery))

    @functools.cached_property
    def delivery(self) -> Matrix:
        """Probability that `j` receives a full frame of `i` without interference; 0 is no link."""
        try:
            loss = _ncmesh.loss_matrix(self.scenario.table, self.seed or 1)
        except _ncmesh.ScenarioError as error:
            raise FailureError(Kind.CONFIG, f"{self.name}: {error}") from error
        delivery: Matrix = 1.0 - loss
        np.fill_diagonal(delivery, 0.0)
        return delivery


@dataclass(frozen=True)
class Source:
    """How a mesh of the scoreboard is made."""

    name: str
    family: str
    make: Callable[[Path], Scenario]
    """From the directory of scenarios."""
    seed: int | None = None
    needs: str | None = None
    """A file below that directory which is not shipped."""

    def missing(self, scenarios: Path) -> bool:
        """Whether a file that is not shipped is not there."""
        return self.needs is not None and not (scenarios / self.needs).is_file()


def meshes(sources: Iterable[Source], scenarios: Path, link_powers: Sequence[str]) -> list[Mesh]:
    """Return the meshes of `sources`; those with given losses once for each link power."""
    made = []
    for source in sources:
        table = dict(source.make(scenarios).table)
        for key in TRAFFIC:
            table.pop(key, None)
        scenario = Scenario({**table, "name": source.name, "sealed": False})
        if "propagation" in table["medium"]:
            made.append(Mesh(source.name, source.family, scenario, None, source.seed))
            continue
        for power in link_powers:
            varied = scenario.varied({"medium.link_power": power})
            made.append(Mesh(source.name, source.family, varied, power, source.seed))
    return made


def title_of(name: str, link_power: str | None) -> str:
    """Return the name of a mesh for people, which tells link powers apart."""
    return f"{name}, equal" if link_power == "equal" else name


def chosen(names: Sequence[str] | None) -> list[Source]:
    """Return the sources with these names or families, all without names."""
    if names is None:
        return list(SOURCES)
    known = {known for source in SOURCES for known in (source.name, source.family)}
    for name in names:
        if name not in known:
            families = ", ".join(dict.fromkeys(source.family for source in SOURCES))
            message = f'no mesh is called "{name}"; there are: {families}, and members as line-4-20'
            raise FailureError(Kind.USAGE, message)
    return [source for source in SOURCES if source.name in names or source.family in names]


def line(hops: int, loss: float) -> Scenario:
    """Return nodes in a row; each hears its neighbours, and seldom the next but one."""
    names = [f"n{node}" for node in range(1, hops + 2)]
    near = [{"from": a, "to": b, "loss": loss} for a, b in itertools.pairwise(names)]
    far = [
        {"from": a, "to": b, "loss": NEXT_BUT_ONE} for a, b in zip(names, names[2:], strict=False)
    ]
    return Scenario({"nodes": names, "link": near + far, "medium": RADIO})


def _shipped(name: str) -> Callable[[Path], Scenario]:
    return lambda scenarios: Scenario.read(scenarios / name)


def _line(hops: int, percent: int) -> Source:
    name = f"line-{hops}-{percent}"
    return Source(name, "line", lambda _: line(hops, percent / 100))


SOURCES = (
    Source("building", "building", _shipped("building.toml")),
    Source("freifunk", "freifunk", _shipped("freifunk.toml")),
    Source("stuttgart", "stuttgart", _shipped("meshes/stuttgart.toml")),
    Source("aachen", "aachen", _shipped("meshes/aachen.toml")),
    Source("ninux", "ninux", _shipped("meshes/ninux.toml"), needs="meshes/ninux.csv"),
    Source("orbit", "orbit", _shipped("meshes/orbit.toml"), needs="meshes/orbit.csv"),
    Source("grid", "grid", _shipped("meshes/grid.toml")),
    *(Source(f"mesh-{seed}", "mesh", _shipped("mesh.toml"), seed) for seed in range(1, 6)),
    *(_line(hops, percent) for hops in (2, 3, 4, 6) for percent in (0, 20, 40)),
)
"""Every mesh of the scoreboard, in the order of its page."""


def _names(table: Any, count: int) -> tuple[str, ...]:  # noqa: ANN401 (a scenario's table)
    """Return the names of a scenario's nodes, in its order."""
    if "nodes" in table:
        return tuple(table["nodes"])
    if "node" in table:
        return tuple(node["name"] for node in table["node"])
    topology = table["topology"]
    if "matrix" in topology:
        return tuple(name.strip() for name in next(_rows(topology["matrix"]))[1:])
    if "links" in topology:
        rows = list(_rows(topology["links"]))[1:]
        return tuple(dict.fromkeys(name.strip() for row in rows for name in row[:2]))
    width = len(str(count))
    return tuple(f"n{node:0{width}}" for node in range(1, count + 1))


def _rows(file: str) -> Iterator[list[str]]:
    lines = Path(file).read_text().splitlines()
    return csv.reader(line for line in lines if line and not line.startswith("#"))
