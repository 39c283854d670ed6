// Generated; do not edit: cargo run -p ncmesh-console --example types

/**
 * A message to a console.
 */
export type Message = { "type": "meta" } & Meta
  | { "type": "key" } & Key
  | { "type": "tick" } & Tick
  | { "type": "event" } & Event;

/**
 * Contents of a mesh. A later one replaces it; its lists are the same and go on.
 */
export type Meta = {
/**
 * Version of the schema.
 */
schema: number,
/**
 * Kind of mesh that the messages are from.
 */
source: Source,
/**
 * Version of ncmesh that made them.
 */
version: string,
/**
 * Name of the scenario; null if there is none.
 */
scenario: string | null,
/**
 * Seed of all random draws; null if there is none.
 */
seed: Count | null,
/**
 * Names of the schemes that carry traffic.
 */
schemes: Array<string>,
/**
 * Bit rate of the radios, bit/s; null if it is not known.
 */
bit_rate_bps: number | null,
/**
 * Time between two ticks, s.
 */
tick_s: number,
/**
 * Longest time between two keys, s.
 */
key_s: number,
/**
 * Node that tells, if the messages are what one node knows; null if they are the truth about
 * all.
 */
observer: number | null,
/**
 * All nodes.
 */
nodes: Array<Node>,
/**
 * All directed links.
 */
links: Array<Link>,
/**
 * All files being sent.
 */
transfers: Array<Transfer>,
/**
 * All flows of packets through tunnels.
 */
flows: Array<Flow>,
/**
 * All live streams.
 */
streams: Array<Stream>,
/**
 * All roll-outs that the node that tells has led; absent if there are none.
 */
rollouts?: Array<Rollout>, };

/**
 * Kind of mesh that messages are from.
 */
export type Source = "simulation" | "lab" | "daemon";

/**
 * A node.
 */
export type Node = {
/**
 * Its id, not 0.
 */
id: number,
/**
 * Its name. Any text: it must never be taken for HTML.
 */
name: string,
/**
 * Where it is; null if that is not known.
 */
position: Position | null, };

/**
 * Position of a node.
 */
export type Position = { "kind": "plan",
/**
 * East of an arbitrary origin, m.
 */
x: number,
/**
 * North of it, m.
 */
y: number,
/**
 * Above it, m.
 */
z: number, }
  | { "kind": "earth",
/**
 * Degrees north of the equator, -90 to 90.
 */
latitude: number,
/**
 * Degrees east of Greenwich, -180 to 180.
 */
longitude: number, };

/**
 * A directed link.
 */
export type Link = {
/**
 * Id of the node that sends.
 */
from: number,
/**
 * Id of the node that hears it.
 */
to: number,
/**
 * True share of the long frames that the channel loses, without collisions, 0 to 1; null if
 * nobody knows.
 */
loss: number | null,
/**
 * Names of the ports by which it is heard, or of the channels that it is on; absent if there
 * is one only, or if they are not known.
 */
ports?: Array<string>, };

/**
 * A file being sent.
 */
export type Transfer = {
/**
 * Its id, as commands know it, such as `3-09ab12ff`.
 */
id: string,
/**
 * Name of the file. Any text.
 */
name: string,
/**
 * Name of the scheme.
 */
scheme: string,
/**
 * Id of the source.
 */
from: number,
/**
 * Ids of the receivers.
 */
to: Array<number>,
/**
 * Size of the file, bytes.
 */
bytes: Count,
/**
 * Number of generations that the file is cut into; null if that is not known.
 */
generations: number | null, };

/**
 * A flow of packets through a tunnel.
 */
export type Flow = {
/**
 * Id of the node where it begins.
 */
from: number,
/**
 * Id of the node where it ends.
 */
to: number,
/**
 * Protocol of its packets, `udp` or `tcp`; null if that is not known.
 */
protocol: string | null,
/**
 * Rate that is offered, bit/s; null if it is as much as the tunnel takes, or not known.
 */
rate_bps: number | null,
/**
 * Length of its packets, bytes; null if that is not known.
 */
packet_bytes: number | null, };

/**
 * A live stream.
 */
export type Stream = {
/**
 * Group that it is sent to. Any text.
 */
group: string,
/**
 * Name of the scheme.
 */
scheme: string,
/**
 * Id of the source.
 */
from: number,
/**
 * Its layers, the base first.
 */
layers: Array<Layer>,
/**
 * Ids of the receivers that are known beforehand.
 */
to: Array<number>, };

/**
 * A layer of a stream.
 */
export type Layer = {
/**
 * Its name. Any text.
 */
name: string,
/**
 * Rate that its source offers, bit/s; null if that is not known.
 */
rate_bps: number | null, };

/**
 * A roll-out of router images.
 */
export type Rollout = {
/**
 * Its number.
 */
number: Count,
/**
 * Firmware that the release is of. Any text.
 */
name: string,
/**
 * Version of the release.
 */
version: string,
/**
 * Id of the node that leads it.
 */
from: number, };

/**
 * Whole state at an instant. Rows and lists are those of [`Meta`](super::Meta), in its order.
 */
export type Key = {
/**
 * Time of the run, s.
 */
time_s: number,
/**
 * One row for each node.
 */
nodes: NodeTable,
/**
 * One row for each link.
 */
links: LinkTable,
/**
 * All transfers.
 */
transfers: Array<TransferState>,
/**
 * All flows.
 */
flows: Array<FlowState>,
/**
 * All streams.
 */
streams: Array<StreamState>,
/**
 * All roll-outs; absent if there are none.
 */
rollouts?: Array<RolloutState>,
/**
 * Where the nodes are now; absent if they stay where the meta has them.
 */
places?: Places, };

/**
 * State of all nodes, a row for each node. Null stands for what is not known: a daemon knows its
 * own counters only.
 */
export type NodeTable = {
/**
 * Frames sent that carry no payload: hellos, link state, announcements, acknowledgments.
 */
control: (Count | null)[],
/**
 * Frames sent with payload as its source gave it.
 */
data: (Count | null)[],
/**
 * Frames sent with payload that is a combination of packets.
 */
coded: (Count | null)[],
/**
 * Time on the air of the control frames, us.
 */
control_us: (Count | null)[],
/**
 * Time on the air of the data frames, us.
 */
data_us: (Count | null)[],
/**
 * Time on the air of the coded frames, us.
 */
coded_us: (Count | null)[],
/**
 * Packets that wait to be sent.
 */
queue: (number | null)[],
/**
 * Whether it runs, and is heard of.
 */
up: boolean[],
};

/**
 * State of all links, a row for each link. Frames are those on the air, repetitions by the MAC
 * included. Null stands for what is not known: real channels do not tell losses, and a daemon knows
 * frames to itself only.
 */
export type LinkTable = {
/**
 * Frames that arrived.
 */
heard: (Count | null)[],
/**
 * Frames that the channel lost.
 */
channel: (Count | null)[],
/**
 * Frames lost to a collision: another frame, noise, or the receiver itself sending.
 */
collision: (Count | null)[],
/**
 * Frames that arrived with payload new to the receiver.
 */
innovative: (Count | null)[],
/**
 * Frames that arrived with payload the receiver could do without.
 */
redundant: (Count | null)[],
/**
 * Share of the long frames that arrives, as the receiver has measured it, 0 to 1. Null while the
 * nodes are no neighbours.
 */
delivery: (number | null)[],
};

/**
 * State of a transfer at its source.
 */
export type TransferState = {
/**
 * Data packets that the source has sent. Unknown to a receiver.
 */
packets?: Count | null,
/**
 * Its stage at the source. A receiver does not know it.
 */
stage?: Stage | null,
/**
 * Ids of the nodes that forward. A receiver does not know them.
 */
forwarders?: number[] | null,
/**
 * Its receivers.
 */
receivers: ReceiverState[],
};

/**
 * State of a transfer at a receiver.
 */
export type ReceiverState = {
/**
 * Id of the node.
 */
node: number,
/**
 * Bytes of the file that the receiver has, as far as is known here; for a transfer at its source,
 * that the slowest receiver has.
 */
bytes: Count,
/**
 * Innovative packets that the receiver has heard. The source does not know it.
 */
innovative?: Count | null,
/**
 * Packets that the receiver has heard and that were not innovative. The source does not know it.
 */
redundant?: Count | null,
/**
 * Time from the beginning of the transfer, or its resumption, until the receiver had the whole
 * file, by the clock of the daemon that tells, s. Unknown before. A simulation leaves it to the
 * times of its ticks.
 */
finished_s?: number | null,
/**
 * Stage of the transfer there.
 */
stage: Stage,
/**
 * Numbers of the generations that it has decoded, ascending.
 */
complete: number[],
/**
 * Generation that is being received, and how much of it is there.
 */
rank?: Rank | null,
};

/**
 * How much of a generation is there.
 */
export type Rank = {
/**
 * Number of the generation, from 0.
 */
generation: number,
/**
 * Innovative packets of it that are there.
 */
rank: number,
/**
 * Packets that it takes to decode it.
 */
size: number, };

/**
 * State of a flow. A daemon tells what it knows itself; a simulation knows both ends.
 */
export type FlowState = {
/**
 * Packets that wait: those that this node still has to send, in `mc2` its credits. A simulation
 * tells those at the source.
 */
queue?: number | null,
/**
 * Data frames of the flow that were heard here and addressed to this node or to several.
 */
heard?: Count | null,
/**
 * Data frames of the flow that were heard here and were innovative.
 */
innovative?: Count | null,
/**
 * Packets that have arrived at the flow's destination. Unknown at other nodes.
 */
delivered?: Count | null,
/**
 * Packets lost at this node.
 */
lost?: Count | null,
/**
 * Round trip from the source to the destination's hosts and back, smoothed, as their packets of TCP
 * and ping tell. Unknown if none did in the last 10 s, and away from the source.
 */
rtt_s?: number | null,
/**
 * Shortest round trip of the last 10 s. Unknown where the smoothed one is.
 */
min_rtt_s?: number | null,
/**
 * Packets that the source's host has offered. Unknown to daemons.
 */
offered?: Count | null,
/**
 * Bits of the packets that have arrived.
 */
bits?: Count | null,
/**
 * Mean time on the way of the packets that arrived last. Unknown before the first, and to daemons,
 * which have one clock each.
 */
delay_s?: number | null,
/**
 * Name of the scheme that carries it.
 */
scheme: string,
/**
 * Why packets of it are not coded now, in words; empty if they are, or if the scheme does not say.
 */
why: string,
/**
 * Share of combinations among the frames with payload of the scheme: of all nodes in the last
 * second in a simulation, of this node since its start in a daemon. Unknown for schemes that
 * combine nothing, and while none is sent.
 */
coded_share?: number | null,
};

/**
 * State of a live stream at its source.
 */
export type StreamState = {
/**
 * Packets that the source has taken from the application, by layer.
 */
taken: Count[],
/**
 * Packets dropped for lack of room in a queue, by layer: here, and in a simulation at any node.
 */
no_room: Count[],
/**
 * Packets given up because their time was over before a next hop had them, by layer: here, and in a
 * simulation at any node.
 */
late: Count[],
/**
 * Its receivers.
 */
receivers: StreamReceiverState[],
/**
 * Its tree: each node in it with its previous hop.
 */
tree: Hop[],
};

/**
 * State of a stream at a receiver.
 */
export type StreamReceiverState = {
/**
 * Id of the node.
 */
node: number,
/**
 * Packets received, by layer.
 */
packets: Count[],
/**
 * Packets that the source sent from the first announcement heard to the latest, by layer.
 */
offered: Count[],
/**
 * Packets of these that have not come, by layer. Those on their way are among them.
 */
missing: number[],
/**
 * Packets that came after a later one, by layer. Empty, as are the delays, for schemes whose
 * packets do not tell their age.
 */
out_of_order: Count[],
/**
 * Median time from the source's taking a packet to its arrival, by layer, s; 0 if none came.
 */
delay_p50_s: number[],
/**
 * The same of the slowest of 100 packets.
 */
delay_p99_s: number[],
/**
 * Whole seconds of the stream of which every packet of the base came.
 */
whole_base_s?: number | null,
/**
 * All seconds of the stream that were judged so, a few after their end.
 */
base_s?: number | null,
/**
 * Bits received, by layer.
 */
bits: Count[],
/**
 * Why it gets too little, in words; empty if it does not.
 */
problem: string,
};

/**
 * State of a roll-out.
 */
export type RolloutState = {
/**
 * Its stage: `pushing`, `pushed`, `scheduled`, `applying`, `done`, `stopped`, `rolling_back` or
 * `rolled_back`.
 */
stage: string,
/**
 * The thing that it waits for, or how it ended, in words.
 */
waits_for: string,
/**
 * Batch that is updated now, from 1. Unknown while none is.
 */
batch?: number | null,
/**
 * Number of batches, once the release is applied.
 */
batches: number,
/**
 * Its nodes, by their ids.
 */
nodes: RolloutNodeState[],
};

/**
 * State of a node in a roll-out.
 */
export type RolloutNodeState = {
/**
 * Id of the node.
 */
node: number,
/**
 * Its model. Unknown before its first answer.
 */
model?: string | null,
/**
 * Version that it runs. Unknown before its first answer.
 */
running?: string | null,
/**
 * How far it is: `staging`, `staged`, `applying`, `trial`, `kept`, `rolling_back`, `rolled_back`,
 * `refused`, `failed`, `aborted` or `has_no_fleet`. Unknown before its first answer.
 */
standing?: string | null,
/**
 * Why, in words; empty if there is no more to say.
 */
why: string,
/**
 * Batch in which it is updated, from 1. Unknown before there are batches.
 */
batch?: number | null,
/**
 * Time of the run when it was heard last, s. Unknown if it was not heard since the daemon started.
 */
heard_s?: number | null,
};

/**
 * A hop of a tree.
 */
export type Hop = {
/**
 * Id of the node.
 */
node: number,
/**
 * Id of its previous hop, towards the source.
 */
parent: number, };

/**
 * Where the nodes of a plan are, a row for each node.
 */
export type Places = {
/**
 * East of the origin, dm.
 */
x_dm: Array<number>,
/**
 * North of it, dm.
 */
y_dm: Array<number>,
/**
 * Above it, dm.
 */
z_dm: Array<number>, };

/**
 * Changes since the key or tick before. What is absent did not change.
 */
export type Tick = {
/**
 * Time of the run, s.
 */
time_s: number,
/**
 * Nodes that changed.
 */
nodes?: NodeTicks,
/**
 * Links that changed.
 */
links?: LinkTicks,
/**
 * Transfers that changed.
 */
transfers?: Array<TransferTick>,
/**
 * Flows that changed.
 */
flows?: Array<FlowTick>,
/**
 * Streams that changed.
 */
streams?: Array<StreamTick>,
/**
 * Roll-outs that changed.
 */
rollouts?: Array<RolloutTick>,
/**
 * Nodes that moved.
 */
moves?: Moves, };

/**
 * Nodes that changed, a row for each. A column of growth that is absent has zeros only.
 */
export type NodeTicks = {
/**
 * Places of the rows in the list, ascending.
 */
row: number[],
/**
 * Frames sent that carry no payload: hellos, link state, announcements, acknowledgments.
 */
control?: number[],
/**
 * Frames sent with payload as its source gave it.
 */
data?: number[],
/**
 * Frames sent with payload that is a combination of packets.
 */
coded?: number[],
/**
 * Time on the air of the control frames, us.
 */
control_us?: number[],
/**
 * Time on the air of the data frames, us.
 */
data_us?: number[],
/**
 * Time on the air of the coded frames, us.
 */
coded_us?: number[],
/**
 * Packets that wait to be sent now: the value, not its change. It is 0 where it is not known. An
 * absent column has zeros only.
 */
queue?: number[],
/**
 * Whether the nodes run now, if that changed for any of them.
 */
up?: boolean[],
};

/**
 * Links that changed, a row for each. A column of growth that is absent has zeros only.
 */
export type LinkTicks = {
/**
 * Places of the rows in the list, ascending.
 */
row: number[],
/**
 * Frames that arrived.
 */
heard?: number[],
/**
 * Frames that the channel lost.
 */
channel?: number[],
/**
 * Frames lost to a collision: another frame, noise, or the receiver itself sending.
 */
collision?: number[],
/**
 * Frames that arrived with payload new to the receiver.
 */
innovative?: number[],
/**
 * Frames that arrived with payload the receiver could do without.
 */
redundant?: number[],
/**
 * Places in the list of links whose measured delivery changed, ascending.
 */
delivery_row?: number[],
/**
 * New measured delivery of those links, 0 to 1; null if it is not known any more.
 */
delivery?: (number | null)[],
};

/**
 * Changes of a `TransferState` in a tick.
 */
export type TransferTick = {
/**
 * Which one: its place in the list, or the id of its node.
 */
transfer: number,
/**
 * Data packets that the source has sent. Unknown to a receiver.
 */
packets?: number,
/**
 * Its stage at the source. A receiver does not know it.
 */
stage?: Stage | null,
/**
 * Ids of the nodes that forward. A receiver does not know them.
 */
forwarders?: number[] | null,
/**
 * Its receivers.
 */
receivers?: ReceiverTick[],
};

/**
 * Changes of a `ReceiverState` in a tick.
 */
export type ReceiverTick = {
/**
 * Which one: its place in the list, or the id of its node.
 */
node: number,
/**
 * Bytes of the file that the receiver has, as far as is known here; for a transfer at its source,
 * that the slowest receiver has.
 */
bytes?: number,
/**
 * Innovative packets that the receiver has heard. The source does not know it.
 */
innovative?: number,
/**
 * Packets that the receiver has heard and that were not innovative. The source does not know it.
 */
redundant?: number,
/**
 * Time from the beginning of the transfer, or its resumption, until the receiver had the whole
 * file, by the clock of the daemon that tells, s. Unknown before. A simulation leaves it to the
 * times of its ticks.
 */
finished_s?: number | null,
/**
 * Stage of the transfer there.
 */
stage?: Stage,
/**
 * Numbers of the generations that it has decoded, ascending.
 */
complete?: number[],
/**
 * Generation that is being received, and how much of it is there.
 */
rank?: Rank | null,
};

/**
 * Changes of a `FlowState` in a tick.
 */
export type FlowTick = {
/**
 * Which one: its place in the list, or the id of its node.
 */
flow: number,
/**
 * Packets that wait: those that this node still has to send, in `mc2` its credits. A simulation
 * tells those at the source.
 */
queue?: number | null,
/**
 * Data frames of the flow that were heard here and addressed to this node or to several.
 */
heard?: number,
/**
 * Data frames of the flow that were heard here and were innovative.
 */
innovative?: number,
/**
 * Packets that have arrived at the flow's destination. Unknown at other nodes.
 */
delivered?: number,
/**
 * Packets lost at this node.
 */
lost?: number,
/**
 * Round trip from the source to the destination's hosts and back, smoothed, as their packets of TCP
 * and ping tell. Unknown if none did in the last 10 s, and away from the source.
 */
rtt_s?: number | null,
/**
 * Shortest round trip of the last 10 s. Unknown where the smoothed one is.
 */
min_rtt_s?: number | null,
/**
 * Packets that the source's host has offered. Unknown to daemons.
 */
offered?: number,
/**
 * Bits of the packets that have arrived.
 */
bits?: number,
/**
 * Mean time on the way of the packets that arrived last. Unknown before the first, and to daemons,
 * which have one clock each.
 */
delay_s?: number | null,
/**
 * Name of the scheme that carries it.
 */
scheme?: string,
/**
 * Why packets of it are not coded now, in words; empty if they are, or if the scheme does not say.
 */
why?: string,
/**
 * Share of combinations among the frames with payload of the scheme: of all nodes in the last
 * second in a simulation, of this node since its start in a daemon. Unknown for schemes that
 * combine nothing, and while none is sent.
 */
coded_share?: number | null,
};

/**
 * Changes of a `StreamState` in a tick.
 */
export type StreamTick = {
/**
 * Which one: its place in the list, or the id of its node.
 */
stream: number,
/**
 * Packets that the source has taken from the application, by layer.
 */
taken?: number[],
/**
 * Packets dropped for lack of room in a queue, by layer: here, and in a simulation at any node.
 */
no_room?: number[],
/**
 * Packets given up because their time was over before a next hop had them, by layer: here, and in a
 * simulation at any node.
 */
late?: number[],
/**
 * Its receivers.
 */
receivers?: StreamReceiverTick[],
/**
 * Its tree: each node in it with its previous hop.
 */
tree?: Hop[],
};

/**
 * Changes of a `StreamReceiverState` in a tick.
 */
export type StreamReceiverTick = {
/**
 * Which one: its place in the list, or the id of its node.
 */
node: number,
/**
 * Packets received, by layer.
 */
packets?: number[],
/**
 * Packets that the source sent from the first announcement heard to the latest, by layer.
 */
offered?: number[],
/**
 * Packets of these that have not come, by layer. Those on their way are among them.
 */
missing?: number[],
/**
 * Packets that came after a later one, by layer. Empty, as are the delays, for schemes whose
 * packets do not tell their age.
 */
out_of_order?: number[],
/**
 * Median time from the source's taking a packet to its arrival, by layer, s; 0 if none came.
 */
delay_p50_s?: number[],
/**
 * The same of the slowest of 100 packets.
 */
delay_p99_s?: number[],
/**
 * Whole seconds of the stream of which every packet of the base came.
 */
whole_base_s?: number | null,
/**
 * All seconds of the stream that were judged so, a few after their end.
 */
base_s?: number | null,
/**
 * Bits received, by layer.
 */
bits?: number[],
/**
 * Why it gets too little, in words; empty if it does not.
 */
problem?: string,
};

/**
 * Changes of a `RolloutState` in a tick.
 */
export type RolloutTick = {
/**
 * Which one: its place in the list, or the id of its node.
 */
rollout: number,
/**
 * Its stage: `pushing`, `pushed`, `scheduled`, `applying`, `done`, `stopped`, `rolling_back` or
 * `rolled_back`.
 */
stage?: string,
/**
 * The thing that it waits for, or how it ended, in words.
 */
waits_for?: string,
/**
 * Batch that is updated now, from 1. Unknown while none is.
 */
batch?: number | null,
/**
 * Number of batches, once the release is applied.
 */
batches?: number,
/**
 * Its nodes, by their ids.
 */
nodes?: RolloutNodeTick[],
};

/**
 * Changes of a `RolloutNodeState` in a tick.
 */
export type RolloutNodeTick = {
/**
 * Which one: its place in the list, or the id of its node.
 */
node: number,
/**
 * Its model. Unknown before its first answer.
 */
model?: string | null,
/**
 * Version that it runs. Unknown before its first answer.
 */
running?: string | null,
/**
 * How far it is: `staging`, `staged`, `applying`, `trial`, `kept`, `rolling_back`, `rolled_back`,
 * `refused`, `failed`, `aborted` or `has_no_fleet`. Unknown before its first answer.
 */
standing?: string | null,
/**
 * Why, in words; empty if there is no more to say.
 */
why?: string,
/**
 * Batch in which it is updated, from 1. Unknown before there are batches.
 */
batch?: number | null,
/**
 * Time of the run when it was heard last, s. Unknown if it was not heard since the daemon started.
 */
heard_s?: number | null,
};

/**
 * Nodes that moved, a row for each, and how far. A column that is absent has zeros only.
 */
export type Moves = {
/**
 * Places in the list of nodes, ascending.
 */
row: Array<number>,
/**
 * To the east, dm.
 */
x_dm?: Array<number>,
/**
 * To the north, dm.
 */
y_dm?: Array<number>,
/**
 * Upwards, dm.
 */
z_dm?: Array<number>, };

/**
 * Something that happened at an instant.
 */
export type Event = {
/**
 * Time of the run, s: not after that of the tick or key that has its effects. This is the
 * next one; after a new meta, the key before.
 */
time_s: number,
/**
 * Id of the node at which it happened; null if it concerns the whole mesh.
 */
node: number | null,
/**
 * Kind of the event.
 */
what: EventKind, };

/**
 * Kind of the event.
 */
export type EventKind = { "kind": "node_up" }
  | { "kind": "node_down" }
  | { "kind": "neighbor_up",
/**
 * Id of the node that it hears.
 */
neighbor: number, }
  | { "kind": "neighbor_down",
/**
 * Id of the node that it heard.
 */
neighbor: number, }
  | { "kind": "transfer",
/**
 * Place of the transfer in the list of transfers.
 */
transfer: number,
/**
 * The stage.
 */
stage: Stage, }
  | { "kind": "receiver_done",
/**
 * Place of the transfer in the list of transfers.
 */
transfer: number,
/**
 * Id of the receiver.
 */
receiver: number, }
  | { "kind": "hint",
/**
 * One sentence. Any text.
 */
text: string, }
  | { "kind": "drops",
/**
 * Name of the reason, as in the documents.
 */
reason: string,
/**
 * Frames dropped.
 */
frames: number,
/**
 * Time in which they were dropped, s.
 */
seconds: number, }
  | { "kind": "end" };

/**
 * Stage of a transfer.
 */
export type Stage = "waiting"
  | "open"
  | "verifying"
  | "complete"
  | "withdrawn"
  | "refused"
  | "failed";

/**
 * A number of 64 bits, written as a string of decimal digits.
 */
export type Count = string;

/**
 * A value of a state: its name in messages, its title for people, and its unit.
 */
export type Field = {
name: string,
title: string,
unit: "packets" | "frames" | "bytes" | "bits" | "seconds" | "ratio" | "",
/**
 * How keys and ticks write it: a counter is a string in keys and its growth in ticks, numbers are a
 * set that grows, members are states of their own, anything else is told as a value.
 */
rule: "counter" | "counters" | "value" | "numbers" | "members",
/**
 * Values of members.
 */
of: readonly Field[] | null,
};

/**
 * A `FlowState` as the console keeps it: counters are numbers.
 */
export type FlowNow = {
queue: number | null,
heard: number | null,
innovative: number | null,
delivered: number | null,
lost: number | null,
rtt_s: number | null,
min_rtt_s: number | null,
offered: number | null,
bits: number | null,
delay_s: number | null,
scheme: string,
why: string,
coded_share: number | null,
};

/**
 * Values of a `FlowState`.
 */
export const FLOW_FIELDS: readonly Field[] = [
  { name: "queue", title: "Queue", unit: "packets", rule: "value", of: null },
  { name: "heard", title: "Heard", unit: "frames", rule: "counter", of: null },
  { name: "innovative", title: "Innovative", unit: "frames", rule: "counter", of: null },
  { name: "delivered", title: "Delivered", unit: "packets", rule: "counter", of: null },
  { name: "lost", title: "Lost", unit: "packets", rule: "counter", of: null },
  { name: "rtt_s", title: "RTT", unit: "seconds", rule: "value", of: null },
  { name: "min_rtt_s", title: "Shortest RTT", unit: "seconds", rule: "value", of: null },
  { name: "offered", title: "Offered", unit: "packets", rule: "counter", of: null },
  { name: "bits", title: "Bits delivered", unit: "bits", rule: "counter", of: null },
  { name: "delay_s", title: "Delay", unit: "seconds", rule: "value", of: null },
  { name: "scheme", title: "Scheme", unit: "", rule: "value", of: null },
  { name: "why", title: "Why not coded", unit: "", rule: "value", of: null },
  { name: "coded_share", title: "Coded", unit: "ratio", rule: "value", of: null },
];

/**
 * A `ReceiverState` as the console keeps it: counters are numbers.
 */
export type ReceiverNow = {
/**
 * Id of the node.
 */
node: number,
bytes: number,
innovative: number | null,
redundant: number | null,
finished_s: number | null,
stage: Stage,
complete: Set<number>,
rank: Rank | null,
};

/**
 * Values of a `ReceiverState`.
 */
export const RECEIVER_FIELDS: readonly Field[] = [
  { name: "bytes", title: "Received", unit: "bytes", rule: "counter", of: null },
  { name: "innovative", title: "Innovative", unit: "packets", rule: "counter", of: null },
  { name: "redundant", title: "Redundant", unit: "packets", rule: "counter", of: null },
  { name: "finished_s", title: "Finished after", unit: "seconds", rule: "value", of: null },
  { name: "stage", title: "Stage", unit: "", rule: "value", of: null },
  { name: "complete", title: "Generations", unit: "", rule: "numbers", of: null },
  { name: "rank", title: "Rank", unit: "", rule: "value", of: null },
];

/**
 * A `TransferState` as the console keeps it: counters are numbers.
 */
export type TransferNow = {
packets: number | null,
stage: Stage | null,
forwarders: number[] | null,
receivers: ReceiverNow[],
};

/**
 * Values of a `TransferState`.
 */
export const TRANSFER_FIELDS: readonly Field[] = [
  { name: "packets", title: "Packets sent", unit: "packets", rule: "counter", of: null },
  { name: "stage", title: "Stage", unit: "", rule: "value", of: null },
  { name: "forwarders", title: "Forwarders", unit: "", rule: "value", of: null },
  { name: "receivers", title: "Receivers", unit: "", rule: "members", of: RECEIVER_FIELDS },
];

/**
 * A `StreamReceiverState` as the console keeps it: counters are numbers.
 */
export type StreamReceiverNow = {
/**
 * Id of the node.
 */
node: number,
packets: number[],
offered: number[],
missing: number[],
out_of_order: number[],
delay_p50_s: number[],
delay_p99_s: number[],
whole_base_s: number | null,
base_s: number | null,
bits: number[],
problem: string,
};

/**
 * Values of a `StreamReceiverState`.
 */
export const STREAMRECEIVER_FIELDS: readonly Field[] = [
  { name: "packets", title: "Packets", unit: "packets", rule: "counters", of: null },
  { name: "offered", title: "Offered packets", unit: "packets", rule: "counters", of: null },
  { name: "missing", title: "Missing", unit: "packets", rule: "value", of: null },
  { name: "out_of_order", title: "Out of order", unit: "packets", rule: "counters", of: null },
  { name: "delay_p50_s", title: "Delay", unit: "seconds", rule: "value", of: null },
  { name: "delay_p99_s", title: "Longest delay", unit: "seconds", rule: "value", of: null },
  { name: "whole_base_s", title: "Whole base", unit: "seconds", rule: "value", of: null },
  { name: "base_s", title: "Base", unit: "seconds", rule: "value", of: null },
  { name: "bits", title: "Received", unit: "bits", rule: "counters", of: null },
  { name: "problem", title: "Problem", unit: "", rule: "value", of: null },
];

/**
 * A `StreamState` as the console keeps it: counters are numbers.
 */
export type StreamNow = {
taken: number[],
no_room: number[],
late: number[],
receivers: StreamReceiverNow[],
tree: Hop[],
};

/**
 * Values of a `StreamState`.
 */
export const STREAM_FIELDS: readonly Field[] = [
  { name: "taken", title: "Taken", unit: "packets", rule: "counters", of: null },
  { name: "no_room", title: "No room", unit: "packets", rule: "counters", of: null },
  { name: "late", title: "Late", unit: "packets", rule: "counters", of: null },
  { name: "receivers", title: "Receivers", unit: "", rule: "members", of: STREAMRECEIVER_FIELDS },
  { name: "tree", title: "Tree", unit: "", rule: "value", of: null },
];

/**
 * A `RolloutNodeState` as the console keeps it: counters are numbers.
 */
export type RolloutNodeNow = {
/**
 * Id of the node.
 */
node: number,
model: string | null,
running: string | null,
standing: string | null,
why: string,
batch: number | null,
heard_s: number | null,
};

/**
 * Values of a `RolloutNodeState`.
 */
export const ROLLOUTNODE_FIELDS: readonly Field[] = [
  { name: "model", title: "Model", unit: "", rule: "value", of: null },
  { name: "running", title: "Running", unit: "", rule: "value", of: null },
  { name: "standing", title: "State", unit: "", rule: "value", of: null },
  { name: "why", title: "Why", unit: "", rule: "value", of: null },
  { name: "batch", title: "Batch", unit: "", rule: "value", of: null },
  { name: "heard_s", title: "Heard", unit: "seconds", rule: "value", of: null },
];

/**
 * A `RolloutState` as the console keeps it: counters are numbers.
 */
export type RolloutNow = {
stage: string,
waits_for: string,
batch: number | null,
batches: number,
nodes: RolloutNodeNow[],
};

/**
 * Values of a `RolloutState`.
 */
export const ROLLOUT_FIELDS: readonly Field[] = [
  { name: "stage", title: "Stage", unit: "", rule: "value", of: null },
  { name: "waits_for", title: "Waits for", unit: "", rule: "value", of: null },
  { name: "batch", title: "Batch", unit: "", rule: "value", of: null },
  { name: "batches", title: "Batches", unit: "", rule: "value", of: null },
  { name: "nodes", title: "Nodes", unit: "", rule: "members", of: ROLLOUTNODE_FIELDS },
];

/**
 * Names of stages for people.
 */
export const STAGES: Record<Stage, string> = {
  waiting: "waiting",
  open: "under way",
  verifying: "verifying",
  complete: "complete",
  withdrawn: "withdrawn",
  refused: "refused",
  failed: "failed",
};

/**
 * Columns of counters of a table.
 */
export const NODE_COUNTERS = [
  "control",
  "data",
  "coded",
  "control_us",
  "data_us",
  "coded_us",
] as const;

/**
 * Columns of counters of a table.
 */
export const LINK_COUNTERS = [
  "heard",
  "channel",
  "collision",
  "innovative",
  "redundant",
] as const;
