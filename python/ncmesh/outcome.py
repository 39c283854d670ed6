"""
The types of a run's result.

Generated from `crates/sim/src/outcome` by `scripts/result-types.py`; do not edit. `None`, or
nothing in a collection, is what the service of the run does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a run: receivers of a file, flows, live streams, or several of these."""

    scenario: str
    """Name of the scenario."""
    scheme: str
    """
    Name of the scheme. Of several services, that of each, such as `file=cascade,tunnel=braid`.
    """
    version: str
    """Version of ncmesh."""
    seconds: float
    """
    Time from the start of the transfer, or of the first flow or stream, to the end of the last, s
    of the mesh's clock.
    """
    transmissions: int
    """Data packets that all nodes sent."""
    nodes: dict[str, Usage]
    """Use of the channel by each node since it started, by name."""
    bytes: int | None = None
    """Size of the files, bytes."""
    receivers: tuple[Receiver, ...] = ()
    """Result of each receiver of each file, in the scenario's order."""
    source_redundancy: float | None = None
    """Payload bytes of the sources' packets, divided by the size of the files."""
    forwarders: tuple[str, ...] = ()
    """Nodes that the sources listed as forwarders."""
    flows: tuple[Flow, ...] = ()
    """Result of each flow, in the scenario's order."""
    coding: dict[str, Coding] = field(default_factory=dict)
    """
    Packets that each node coded across flows from the start of the first flow to the end of the
    last, by name. Absent for schemes that do not code across flows.
    """
    samples: Samples | None = None
    """Packets of all flows over time, if sampling was requested. Lab only."""
    streams: tuple[Stream, ...] = ()
    """Result of each stream, in the scenario's order."""
    queues: tuple[StreamQueue, ...] = ()
    """Every queue of every stream."""
    cpu: dict[str, float] = field(default_factory=dict)
    """
    Processor time of each daemon while the streams ran, as a share of one core, by node. Lab only.
    """
    sharing: Sharing | None
    """How services shared the channel. Null if one ran alone."""
    seed: int | None = None
    """Seed of all random draws. Simulator only."""
    sealed: bool | None = None
    """Whether frames were encrypted. If not, a null cipher added as many bytes. Simulator only."""
    trace_hash: str | None = None
    """Hash over every frame sent, heard and reported, hexadecimal. Simulator only."""
    events: int | None = None
    """Number of events that the hash covers. Simulator only."""
    lag_mean_ms: float | None = None
    """Mean lag of the emulated channel behind the wall clock, ms. Lab only."""
    lag_max_ms: float | None = None
    """Largest lag of the emulated channel, ms. Lab only."""
    frames: int | None = None
    """Frames on the air, of every kind. Lab only."""
    dir: str | None = None
    """Directory of the daemons, if it was kept. Lab only."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Use of the channel by one node since it started."""

    transmissions: int
    """Data packets that the node sent."""
    airtime_s: float
    """Time for which the frames of the node used the channel, control included, s."""
    service_airtime_s: dict[str, float]
    """
    Time for which the frames of each service used the channel, s, by its name: `file`, `tunnel`,
    `stream`.
    """
    control: dict[str, ControlUsage]
    """
    Frames that measure links and carry link state, by kind: `hello`, `probe`, `compare`,
    `versions`, `request`. Link states travel behind hellos.
    """


@dataclass(frozen=True, kw_only=True)
class ControlUsage:
    """Frames of control that a node has sent, of one kind."""

    frames: int
    """Number of frames."""
    bytes: int
    """Bytes, outer frame included."""
    airtime_s: float
    """Time for which they used the channel, s."""


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """Result of a file transfer at one receiver."""

    file: int
    """Index of its file in the scenario, from 0."""
    node: str
    """Name of the receiver."""
    verified: bool
    """Whether it has the whole file, byte for byte."""
    bytes: int
    """Bytes that it has."""
    seconds: float | None
    """Time from the start of the transfer until it had the whole file, s. Null if it never had."""
    throughput_bps: float | None
    """Size of the file divided by that time, bit/s. Null if it never had the whole file."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Result of one flow during its measurement."""

    from_: str
    """Name of the source."""
    to: str
    """Name of the destination."""
    protocol: str
    """`udp` or `tcp`."""
    packet_bytes: int
    """Length of the packets, bytes. Of TCP, that of full segments."""
    taken: int | None
    """Packets of the source that the scheme took from its gateway. Simulator only."""
    refused: int | None
    """
    Further packets of the source: dropped by its gateway, or still waiting there. Simulator only.
    """
    delivered: int
    """Packets that arrived intact. Of TCP in the lab, full segments for the bytes that arrived."""
    disordered: int | None
    """Number of those packets that arrived after a later one. Simulator only."""
    corrupt: int | None
    """Packets that arrived with wrong bytes, or twice; of TCP, bytes. Simulator only."""
    seconds: float
    """Length of the measurement, s."""
    throughput_bps: float
    """Bits of the packets that arrived, divided by that time, bit/s. TCP counts payload only."""
    packets_per_slot: float | None
    """Packets that arrived, for each slot of that time. Simulator with slotted access only."""
    heard: int
    """Data frames of the flow that the destination heard."""
    innovative: int
    """Number of those frames that were innovative."""
    mean_delay_s: float | None
    """Mean time from the source's sending a packet to its delivery, s. Simulator, UDP only."""
    loss: float | None
    """Share of the offered packets that did not arrive. Lab, UDP only."""
    jitter_s: float | None
    """Mean deviation of the packets' delay (RFC 3550), s. Lab, UDP only."""
    idle_rtt_s: float | None
    """Median round-trip time of pings before any flow began, s, if it was measured. Lab only."""
    tcp: Tcp | None
    """Statistics of TCP, if the flow is a TCP connection."""
    series: FlowSeries
    """Values over time. Empty in the lab."""

    @property
    def innovative_fraction(self) -> float:
        """Innovative frames over frames heard; 0 if none was heard."""
        return self.innovative / self.heard if self.heard else 0.0


@dataclass(frozen=True, kw_only=True)
class Tcp:
    """Statistics of a TCP connection during the measurement of its flow."""

    congestion: str | None
    """Congestion control. Null if the lab's kernel chose it."""
    segment_bytes: int
    """Payload of a full segment, bytes."""
    bytes: int
    """Payload that arrived in order, bytes."""
    segments: int
    """
    Segments with data that the source sent, including retransmissions. In the lab, full segments
    for the bytes sent plus retransmissions.
    """
    retransmissions: int
    """Number of those segments that repeated bytes sent before."""
    arrived: int
    """Segments with data that arrived. In the lab, those that were not retransmissions."""
    loss: float | None
    """Share of the segments with data that did not arrive. Null if none was sent."""
    rtt_s: float | None
    """
    Mean round-trip time, s. In the simulator, of segments sent once while none was retransmitted
    (Karn).
    """
    min_rtt_s: float | None
    """Shortest round-trip time, s. Simulator only."""
    finished_s: float | None
    """
    Time from the start of the flow until everything had arrived, s, if the flow has a size.
    Simulator only.
    """


@dataclass(frozen=True, kw_only=True)
class FlowSeries:
    """A flow over time."""

    seconds: tuple[float, ...]
    """Time of each sample, s since the start of the flow."""
    delivered: tuple[int, ...]
    """Packets delivered by then."""
    innovative: tuple[int, ...]
    """Innovative frames that the destination had heard by then."""
    credits: dict[str, tuple[int, ...]]
    """
    Packets that each node still had to send, by name: MC2's credits, otherwise the length of the
    queue.
    """


@dataclass(frozen=True, kw_only=True)
class Coding:
    """Packets that a node coded across flows."""

    sent: int
    """Data frames sent."""
    coded: int
    """Data frames sent that carried two packets."""
    ratio: float | None
    """
    Coded over sent: the coding ratio of Huang et al., section V-A. Unknown before the first frame.
    """
    decoded: int
    """Packets decoded here."""
    undecodable: int
    """Coded frames with a packet for this node that could not be decoded."""
    repeated: int
    """Packets retransmitted because a next hop missed them."""
    hold_s: float | None
    """
    Best hold time at the end, mean over the directions, s. Null if the scheme determines none.
    """
    stopped: tuple[str, ...]
    """Neighbours that the node did not code for at the end, each with the reason."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Delivered packets of all flows over time."""

    seconds: tuple[float, ...]
    """Time of each sample, s since the start of the first flow."""
    delivered: tuple[tuple[int, ...], ...]
    """
    For each flow, in the scenario's order: packets that its destination had delivered to its host
    by then.
    """


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Result of one stream during its measurement."""

    group: str
    """Group that the stream was sent to."""
    from_: str
    """Name of the source."""
    packet_bytes: int
    """Length of the packets, bytes."""
    taken: tuple[int, ...]
    """Packets that the source accepted, by layer."""
    refused: int
    """Packets that the source refused because its queue was full."""
    seconds: float
    """Length of the measurement, s."""
    receivers: tuple[StreamReceiver, ...]
    """Result of each receiver, in the scenario's order."""


@dataclass(frozen=True, kw_only=True)
class StreamReceiver:
    """Result of one receiver during the measurement of its stream."""

    node: str
    """Name of the receiver."""
    rate_bps: float
    """Rate of the packets that arrived, bit/s."""
    layers: tuple[StreamLayer, ...]
    """Result of each layer."""
    corrupt: int
    """Packets that arrived with wrong bytes, or twice."""
    mean_delay_s: float | None
    """Mean time from acceptance at the source to arrival, s. Null if nothing arrived."""
    whole_base_s: int | None
    """
    Whole seconds of the measurement of which every packet of the base arrived. Simulator only.
    """
    series: StreamSeries
    """Rate over time."""
    problem: str | None
    """Latest reason that its node reported for a rate below the requested one. Null without one."""


@dataclass(frozen=True, kw_only=True)
class StreamLayer:
    """Result of one layer at one receiver."""

    name: str
    """Name of the layer."""
    delivered: int
    """Packets that arrived."""
    rate_bps: float
    """Rate of these packets, bit/s."""
    share: float
    """Packets that arrived, divided by the packets that the source accepted."""
    out_of_order: int | None
    """Packets that arrived after a later one of the layer. Simulator only."""
    delay_p50_s: float | None
    """
    Median of the time from acceptance at the source to arrival, s. Simulator only; null if nothing
    arrived.
    """
    delay_p99_s: float | None
    """The same of the slowest of 100 packets."""


@dataclass(frozen=True, kw_only=True)
class StreamSeries:
    """Rate of a receiver over time, from the beginning of the stream."""

    seconds: tuple[float, ...]
    """End of each sample, s since the beginning of the stream."""
    rate_bps: tuple[float, ...]
    """Rate during the sample, bit/s."""


@dataclass(frozen=True, kw_only=True)
class StreamQueue:
    """A queue of a stream, sampled every second."""

    node: str
    """Node that has the queue."""
    group: str
    """Group of the stream."""
    to: str
    """Next hop."""
    receivers: int
    """Receivers downstream (m), in the last sample."""
    most_held: int
    """Maximum length of the queue, packets (Q)."""
    most_drop_queue: float
    """Maximum length of its drop queue, packets (D)."""
    sent: tuple[int, ...]
    """Packets sent by layer, since the queue exists."""
    dropped: tuple[int, ...]
    """Packets dropped by layer, since the queue exists."""
    no_room: tuple[int, ...]
    """Number of these for which there was no room, by layer. The time of the others was over."""
    lost: int
    """Packets that the radio gave up on, since the queue exists."""


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """How services shared the channel until the first of them ended."""

    seconds: float
    """Time from the start of all until then, s."""
    airtime: dict[str, float]
    """
    Time for which frames of each service were on the air, of all nodes, divided by that time. Nodes
    that do not hear each other send at the same time, so the sum may exceed 1.
    """
    fairness: float
    """
    Jain's index of these, each divided by the service's weight: 1 if all have airtime by their
    weights, 1/n if one of n has all. A service that has little to send lowers it.
    """
