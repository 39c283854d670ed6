"""A service as the scoreboard sees it: its instances, runs and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ncmesh.bench import schemes
from ncmesh.bench.instances import Instance, group
from ncmesh.bench.meshes import Mesh
from ncmesh.campaign.program import Simulator
from ncmesh.campaign.runs import Run

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Load:
    """Load of a case: a share of the best goodput of another case."""

    of: str
    """The other case."""
    share: float


@dataclass(frozen=True)
class Service:
    """A service of the scoreboard."""

    name: str
    receivers: Mapping[str, int | None]
    """Number of receivers of each case, by name; none for all other nodes."""
    traffic: Callable[[Instance], dict[str, Any]]
    """The part of a scenario that says what is sent."""
    read: Callable[[Instance, Row], dict[str, Any]]
    """
    What the table keeps of a run's row, from the names of columns.

    `score` is what schemes are compared by; larger is better.
    """
    line: Callable[[Row], str]
    """A row of the table in a line for people."""
    limit_s: Callable[[Instance], float | None] = lambda _: None
    """Time after which a run is given up, s."""
    of_gateway: Sequence[str] = ()
    """Cases whose source is the gateway of the mesh, if it has one."""
    loads: Mapping[str, Load] = field(default_factory=dict)
    """Cases whose rate depends on the runs of another case."""
    text: Callable[[Instance, str], str] = lambda _, scheme: scheme
    """Name of a scheme as a run takes it."""

    def instances(self, mesh: Mesh, cases: Sequence[str], numbers: Sequence[int]) -> list[Instance]:
        """Return the instances of a mesh."""
        made = []
        for case in cases:
            for number in numbers:
                source, receivers = group(
                    mesh,
                    self.name,
                    number,
                    self.receivers[case],
                    is_gateway=case in self.of_gateway,
                )
                made.append(Instance(mesh, self.name, case, number, source, tuple(receivers)))
        return made

    def run(self, instance: Instance, scheme: str, program: Simulator | None = None) -> Run:
        """Return the run of a scheme, which may be one of a program of one's own."""
        scenario = instance.mesh.scenario.varied(self.traffic(instance))
        text = self.text(instance, scheme)
        limit_s = self.limit_s(instance)
        run = Run(scenario, text, instance.seed, limit_s, instance.parameters)
        is_own = program is not None and scheme not in schemes.of(self.name)
        return replace(run, simulator=program) if is_own else run


def number(value: float | None) -> str:
    """Return a number in a column of seven; a dash for none."""
    return f"{'-':>7}" if value is None else f"{value:7.1f}"
