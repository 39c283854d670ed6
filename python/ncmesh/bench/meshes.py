"""
The meshes of the scoreboard: measured ones and generated ones, at several bit rates.

A mesh is a scenario without traffic. Where losses are given, it exists once for each `link_power`,
which decides what becomes of overlapping frames. Links are measured as daemons do: the scenario's
`[measure]` is left out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ncmesh import _ncmesh
from ncmesh.bench import generated
from ncmesh.bench.air import Air
from ncmesh.campaign.scenario import Scenario
from ncmesh.failure import FailureError, Kind

Matrix = NDArray[np.float64]

LINK_POWERS = ("rayleigh", "equal")
# Parts of a scenario that say what is sent, or how its links are known beforehand.
TRAFFIC = ("traffic", "flow", "stream", "measure")
# Files that say how nodes move.
MOVEMENTS = ("bonnmotion", "fcd", "ns2")
# The slowest and the fastest channel that a mesh is run with besides its own.
RATES = {
    "2M": {"phy": "802.11b", "bit_rate": "2M"},
    "54M": {"phy": "802.11a", "bit_rate": "54M"},
}


@dataclass(frozen=True)
class Mesh:
    """A scenario without traffic."""

    name: str
    family: str
    """Several meshes that differ in one number have one family, such as `line`."""
    scenario: Scenario
    link_power: str | None
    """The setting `medium.link_power`; none where positions decide who hears whom."""
    gateway: str | None = None
    """The node that clients have their flows with, where the mesh has one."""

    @property
    def title(self) -> str:
        """Name for people."""
        return title_of(self.name, self.link_power)

    @property
    def air(self) -> Air:
        """Timing of its channel."""
        return Air.of(self.scenario.table["medium"])

    @property
    def moves(self) -> bool:
        """Whether its nodes move, so that links are known at the start alone."""
        return any(key in self.scenario.table.get("topology", {}) for key in MOVEMENTS)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the nodes, in the order of `delivery`."""
        nodes, _ = _ncmesh.mesh(self.scenario.table, 1)
        return tuple(name for name, _ in nodes)

    @functools.cached_property
    def delivery(self) -> Matrix:
        """Probability that `j` receives a full frame of `i` without interference; 0 is no link."""
        try:
            loss = _ncmesh.loss_matrix(self.scenario.table, 1)
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
    link_powers: Sequence[str] = LINK_POWERS
    """The link powers that it exists with where losses are given."""
    gateway: str | None = None
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
            made.append(Mesh(source.name, source.family, scenario, None, source.gateway))
            continue
        for power in source.link_powers:
            if power in link_powers:
                varied = scenario.varied({"medium.link_power": power})
                made.append(Mesh(source.name, source.family, varied, power, source.gateway))
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


def _shipped(name: str) -> Callable[[Path], Scenario]:
    return lambda scenarios: Scenario.read(scenarios / name)


def _at(rate: str, make: Callable[[Path], Scenario]) -> Callable[[Path], Scenario]:
    return lambda scenarios: make(scenarios).varied({"medium": RATES[rate]})


def _random_mesh(seed: int) -> Source:
    """Return the radios of `scenarios/mesh.toml`, placed by this seed."""
    make = _shipped("mesh.toml")
    placed = {"topology.uniform.seed": seed}
    return Source(f"mesh-{seed}", "mesh", lambda scenarios: make(scenarios).varied(placed))


def _line(hops: int, percent: int) -> Source:
    name = f"line-{hops}-{percent}"
    return Source(name, "line", lambda _: generated.line(hops, percent / 100))


def _alone(
    name: str,
    family: str,
    make: Callable[[], Scenario],
    rate: str = "",
    gateway: str | None = None,
) -> Source:
    """Return a generated mesh, whose frames fade where they overlap."""
    at = (lambda _: make()) if not rate else _at(rate, lambda _: make())
    name += f"-{rate}" if rate else ""
    return Source(name, family, at, link_powers=("rayleigh",), gateway=gateway)


def _hidden(rate: str) -> list[Source]:
    """Return lines, a star and a tree of nodes that hear their neighbours alone."""
    return [
        *(
            _alone(
                f"hidden-{hops}-{percent}",
                "hidden",
                functools.partial(generated.hidden_line, hops, percent / 100),
                rate,
            )
            for hops in (2, 3)
            for percent in (0, 20)
        ),
        _alone("star-5", "star", lambda: generated.star(5, 0.05), rate, generated.FIRST),
        _alone("tree-2", "tree", lambda: generated.tree(2, 0.05), rate, generated.FIRST),
    ]


def _dense(nodes: int, seed: int) -> Source:
    return _alone(f"dense-{nodes}-{seed}", "dense", lambda: generated.dense(nodes, seed))


BUILDING = _shipped("building.toml")
SOURCES = (
    Source("building", "building", BUILDING),
    *(Source(f"building-{rate}", "building-rates", _at(rate, BUILDING)) for rate in RATES),
    Source("freifunk", "freifunk", _shipped("freifunk.toml")),
    Source("stuttgart", "stuttgart", _shipped("meshes/stuttgart.toml")),
    Source("aachen", "aachen", _shipped("meshes/aachen.toml")),
    Source("stuttgart-2", "stuttgart-2", _shipped("meshes/stuttgart-2.toml")),
    Source("bremen", "bremen", _shipped("meshes/bremen.toml")),
    Source("ninux", "ninux", _shipped("meshes/ninux.toml"), needs="meshes/ninux.csv"),
    Source("orbit", "orbit", _shipped("meshes/orbit.toml"), needs="meshes/orbit.csv"),
    Source("grid", "grid", _shipped("meshes/grid.toml")),
    Source("cars", "cars", _shipped("cars.toml")),
    *(_random_mesh(seed) for seed in range(1, 6)),
    *(_line(hops, percent) for hops in (2, 3, 4, 6) for percent in (0, 20, 40)),
    *(source for rate in ("", *RATES) for source in _hidden(rate)),
    *(_dense(nodes, seed) for nodes in (30, 60, 100) for seed in (1, 2, 3)),
    _alone("clustered", "clustered", lambda: generated.clustered(4, 12, 1)),
)
"""Every mesh of the scoreboard, in the order of its page."""
