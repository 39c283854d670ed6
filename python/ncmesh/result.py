"""One simulated transfer and what came of it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ncmesh import _ncmesh

if TYPE_CHECKING:
    import pyarrow as pa

Scenario = Mapping[str, Any] | str | os.PathLike[str]


@dataclass(frozen=True)
class Receiver:
    """What came of a transfer at one receiver."""

    node: str
    throughput_bps: float
    """File bits over the seconds until it had all, bit/s; 0 if it never had."""
    completion_s: float | None
    """Seconds from the start of the transfer until it had all; `None` if it never had."""
    verified: bool
    """Whether it has the whole file, byte for byte."""
    bytes: int
    """Bytes it has."""


@dataclass(frozen=True)
class Result:
    """What came of a run."""

    scenario: str
    seed: int
    scheme: str
    version: str
    """Of ncmesh."""
    bytes: int
    """The file's size."""
    receivers: tuple[Receiver, ...]
    transmissions: int
    """Data packets that all nodes sent."""
    node_transmissions: dict[str, int]
    """The same for each node."""
    source_redundancy: float
    """Payload bytes of the source's packets over the file's bytes."""
    forwarders: tuple[str, ...]
    """Nodes that the source ever listed as forwarders."""
    seconds: float
    """Of the mesh's clock, from the start of the transfer to its end."""
    events: int
    """How many events the trace hash is over."""
    trace_hash: str
    """Of every frame sent, heard and reported, in hexadecimal."""

    @classmethod
    def of(cls, outcome: Mapping[str, Any]) -> Result:
        """Make a result of what `ncmesh.simulate` returned."""
        receivers = tuple(
            Receiver(
                node=r["node"],
                throughput_bps=r["throughput_bps"] or 0.0,
                completion_s=r["seconds"],
                verified=r["verified"],
                bytes=r["bytes"],
            )
            for r in outcome["receivers"]
        )
        own: dict[str, Any] = {
            "version": _ncmesh.__version__,
            "receivers": receivers,
            "forwarders": tuple(outcome["forwarders"]),
        }
        rest = {f.name: outcome[f.name] for f in dataclasses.fields(cls) if f.name not in own}
        return cls(**own, **rest)

    def to_dict(self) -> dict[str, Any]:
        """Give the result as dicts, lists, text and numbers."""
        return dataclasses.asdict(self)

    def to_arrow(self) -> pa.Table:
        """Give a table of one row per receiver; what is said of the run stands in each of them."""
        import pyarrow as pa

        run = {name: getattr(self, name) for name, _ in RUN_COLUMNS}
        rows = [{**run, **dataclasses.asdict(receiver)} for receiver in self.receivers]
        columns = [(name, getattr(pa, kind)()) for name, kind in RUN_COLUMNS + RECEIVER_COLUMNS]
        return pa.Table.from_pylist(rows, schema=pa.schema(columns))


# Columns of tables, with their Arrow types.
RUN_COLUMNS = (
    ("scenario", "string"),
    ("seed", "int64"),
    ("scheme", "string"),
    ("version", "string"),
    ("trace_hash", "string"),
    ("events", "int64"),
    ("transmissions", "int64"),
    ("source_redundancy", "float64"),
    ("seconds", "float64"),
)
RECEIVER_COLUMNS = (
    ("node", "string"),
    ("throughput_bps", "float64"),
    ("completion_s", "float64"),
    ("verified", "bool_"),
    ("bytes", "int64"),
)


def run(
    scenario: Scenario,
    seed: int,
    *,
    scheme: str = "pacifier",
    mac: str | None = None,
    set: Mapping[str, Any] | None = None,
    limit_s: float | None = None,
) -> Result:
    """
    Simulate the transfer of `scenario`, all random draws named by `seed`.

    `scenario` is a scenario file, or a dict of its shape, whose file names are relative to the current
    directory. `scheme` carries the file; `mac` stands for the setting `medium.mac`; `set` changes other
    settings, keys joined by dots, as in `{"protocol.pacifier.knob": 0.5}`. The run ends with the transfer,
    or after `limit_s` seconds of the mesh's clock.

    Raises `ScenarioError` for a scenario, seed, scheme or setting that cannot be, `UnreachableError` if no
    path leads to a receiver, `OSError` if the file to send cannot be read. Other threads run meanwhile.
    """
    outcome = _ncmesh.simulate(scenario, seed, scheme=scheme, mac=mac, set=set, limit_s=limit_s)
    return Result.of(outcome)
