"""One simulated run of a file transfer, flows through a tunnel or streams, and its result."""

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
class Flow:
    """What came of one flow through a tunnel, while it was measured."""

    source: str
    destination: str
    packet_bytes: int
    taken: int
    """Packets that the scheme took."""
    refused: int
    """Packets that it refused."""
    delivered: int
    """Packets that arrived as they were sent."""
    disordered: int
    """Of those, the ones that came after a later one."""
    corrupt: int
    """Packets that arrived with other bytes, or twice."""
    seconds: float
    """How long it was measured."""
    throughput_bps: float
    """Bits of packets delivered over that time, bit/s."""
    packets_per_slot: float | None
    """Packets delivered for each slot of that time; `None` where access is not slotted."""
    heard: int
    """Data frames of the flow that the destination heard."""
    innovative: int
    """Of those, the ones that brought something new."""
    mean_delay_s: float | None
    """From the source's taking a packet to its delivery; `None` if none was."""
    series: dict[str, Any]
    """
    Values over time: `seconds` since the start, `delivered` packets and `innovative` frames so far,
    and `credits` by node: packets still to transfer (in MC2 its credits, else the packets queued).
    """

    @property
    def innovative_fraction(self) -> float:
        """The share of what the destination heard that was new; 0 if it heard nothing."""
        return self.innovative / self.heard if self.heard else 0.0

    @classmethod
    def of(cls, outcome: Mapping[str, Any]) -> Flow:
        """Make it of what `ncmesh.simulate` returned."""
        ends = {"source": outcome["from"], "destination": outcome["to"]}
        rest = {f.name: outcome[f.name] for f in dataclasses.fields(cls) if f.name not in ends}
        return cls(**ends, **rest)


@dataclass(frozen=True)
class StreamLayer:
    """A layer of a stream at a receiver."""

    name: str
    delivered: int
    """Packets that arrived."""
    rate_bps: float
    """Their bits over the time measured, bit/s."""
    share: float
    """Packets that arrived over those that the source took meanwhile."""


@dataclass(frozen=True)
class StreamReceiver:
    """What one receiver got of a stream, while it was measured."""

    node: str
    rate_bps: float
    layers: tuple[StreamLayer, ...]
    """The base first."""
    corrupt: int
    """Packets that arrived with other bytes, or twice."""
    mean_delay_s: float | None
    """From the source's taking a packet to its arrival; `None` if none came."""
    series: dict[str, Any]
    """The rate in each second since the stream's start: `seconds` and `rate_bps`."""
    problem: str | None
    """What kept it from the rate it asks for, as its node saw it at last."""

    @classmethod
    def of(cls, outcome: Mapping[str, Any]) -> StreamReceiver:
        """Make it of what `ncmesh.simulate` returned."""
        layers = tuple(StreamLayer(**layer) for layer in outcome["layers"])
        return cls(**{**outcome, "layers": layers})


@dataclass(frozen=True)
class Stream:
    """What came of one live stream, while it was measured."""

    group: str
    source: str
    packet_bytes: int
    taken: tuple[int, ...]
    """Packets its source took, by layer."""
    refused: int
    """Packets it refused."""
    seconds: float
    """How long it was measured."""
    receivers: tuple[StreamReceiver, ...]

    @classmethod
    def of(cls, outcome: Mapping[str, Any]) -> Stream:
        """Make it of what `ncmesh.simulate` returned."""
        receivers = tuple(map(StreamReceiver.of, outcome["receivers"]))
        own = {"source": outcome["from"], "taken": tuple(outcome["taken"]), "receivers": receivers}
        rest = {f.name: outcome[f.name] for f in dataclasses.fields(cls) if f.name not in own}
        return cls(**own, **rest)


@dataclass(frozen=True)
class Result:
    """Result of a run. A file transfer has receivers, a tunnel flows, live streams have streams."""

    scenario: str
    seed: int
    scheme: str
    version: str
    """Of ncmesh."""
    bytes: int
    """The file's size; 0 of flows."""
    receivers: tuple[Receiver, ...]
    flows: tuple[Flow, ...]
    streams: tuple[Stream, ...]
    queues: tuple[dict[str, Any], ...]
    """Of streams: `node`, `group` and next hop `to` of each queue; what it held, sent, dropped."""
    transmissions: int
    """Data packets that all nodes sent."""
    node_transmissions: dict[str, int]
    """The same for each node."""
    source_redundancy: float
    """Payload bytes of the source's packets over the file's bytes; 0 of flows."""
    forwarders: tuple[str, ...]
    """Nodes that the source ever listed as forwarders."""
    seconds: float
    """Of the mesh's clock, from the start of the transfer or the first flow to the end of all."""
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
            for r in outcome.get("receivers", ())
        )
        own: dict[str, Any] = {
            "version": _ncmesh.__version__,
            "receivers": receivers,
            "flows": tuple(map(Flow.of, outcome.get("flows", ()))),
            "streams": tuple(map(Stream.of, outcome.get("streams", ()))),
            "queues": tuple(outcome.get("queues", ())),
            "forwarders": tuple(outcome.get("forwarders", ())),
            "bytes": outcome.get("bytes", 0),
            "source_redundancy": outcome.get("source_redundancy", 0.0),
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
    scheme: str | None = None,
    mac: str | None = None,
    paths: int | None = None,
    set: Mapping[str, Any] | None = None,
    limit_s: float | None = None,
) -> Result:
    """
    Simulate the file transfer, flows or streams of `scenario`. `seed` names all random draws.

    `scenario` is a scenario file, or a dict of the same shape; file names in a dict are relative to
    the current directory. `scheme` carries the file, the flows if it is a tunnel, the streams if it
    is `multirate` (default: `pacifier` for a file, else `forward` for flows, else `multirate`).
    `mac` is the setting `medium.mac`, `paths` is `protocol.mc2.paths`; `set` changes other
    settings, keys joined by dots, as in `{"protocol.pacifier.knob": 0.5}`. The run ends with the
    transfer, or after `limit_s` seconds of the mesh's clock. Other threads run meanwhile.

    Raises `ScenarioError` for a wrong scenario, seed, scheme or setting, `UnreachableError` if no
    path leads to a receiver, and `OSError` if the file to send cannot be read.
    """
    changes = dict(set or {})
    if paths is not None:
        changes["protocol.mc2.paths"] = paths
    outcome = _ncmesh.simulate(scenario, seed, scheme=scheme, mac=mac, set=changes, limit_s=limit_s)
    return Result.of(outcome)
