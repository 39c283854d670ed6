// Generated; do not edit: cargo run -p ncmesh-console --example types

/**
 * A message to a console.
 */
export type Message = { "type": "meta" } & Meta
  | { "type": "key" } & Key
  | { "type": "tick" } & Tick
  | { "type": "event" } & Event;

/**
 * What there is in a mesh. A later one replaces it; its lists are the same and go on.
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
streams: Array<Stream>, };

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
loss: number | null, };

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
 * Number of generations (batches) that the file is cut into; null if that is not known.
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
 * Where the nodes are now; absent if they stay where the meta has them.
 */
places?: Places, };

/**
 * State of all nodes, a row for each node.
 */
export type NodeTable = {
/**
 * Whether it runs, and is heard of.
 */
up: Array<boolean>,
/**
 * Frames sent that carry no payload: hellos, link state, announcements, acknowledgments.
 */
control: Array<Count>,
/**
 * Frames sent with payload as its source gave it.
 */
data: Array<Count>,
/**
 * Frames sent with payload that is a combination of packets.
 */
coded: Array<Count>,
/**
 * Time on the air of the control frames, us.
 */
control_us: Array<Count>,
/**
 * Time on the air of the data frames, us.
 */
data_us: Array<Count>,
/**
 * Time on the air of the coded frames, us.
 */
coded_us: Array<Count>,
/**
 * Packets that wait to be sent.
 */
queue: Array<number>, };

/**
 * State of all links, a row for each link. Frames are those on the air, repetitions by the MAC
 * included. Where the channel tells of no losses, because it is a real one, both kinds are 0.
 */
export type LinkTable = {
/**
 * Frames that arrived.
 */
heard: Array<Count>,
/**
 * Frames that the channel lost.
 */
channel: Array<Count>,
/**
 * Frames lost to a collision: another frame, noise, or the receiver itself sending.
 */
collision: Array<Count>,
/**
 * Frames that arrived with payload new to the receiver.
 */
innovative: Array<Count>,
/**
 * Frames that arrived with payload the receiver could do without.
 */
redundant: Array<Count>,
/**
 * Share of the long frames that arrives, as the receiver has measured it, 0 to 1. It is 0
 * while the nodes are no neighbours.
 */
delivery: Array<number>, };

/**
 * State of a transfer.
 */
export type TransferState = {
/**
 * Its stage at the source.
 */
stage: Stage,
/**
 * Data packets that the source has sent.
 */
packets: Count,
/**
 * Ids of the nodes that forward.
 */
forwarders: Array<number>,
/**
 * Its receivers.
 */
receivers: Array<ReceiverState>, };

/**
 * State of a transfer at a receiver.
 */
export type ReceiverState = {
/**
 * Id of the receiver.
 */
node: number,
/**
 * Stage of the transfer there.
 */
stage: Stage,
/**
 * Bytes of the file that it has.
 */
bytes: Count,
/**
 * Innovative packets that it has heard.
 */
innovative: Count,
/**
 * Packets that it has heard and that were not innovative.
 */
redundant: Count,
/**
 * Numbers of the generations that it has decoded, ascending.
 */
complete: Array<number>,
/**
 * Generation that is being received, and how much of it is there; null if that is not known.
 */
rank: Rank | null, };

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
 * State of a flow.
 */
export type FlowState = {
/**
 * Packets that the source's host has offered.
 */
offered: Count,
/**
 * Packets that have arrived.
 */
delivered: Count,
/**
 * Bits of the packets that have arrived.
 */
bits: Count,
/**
 * Mean time on the way of the packets that arrived last, s; null before the first, and where
 * nobody can measure it.
 */
delay_s: number | null,
/**
 * Packets that wait at the source.
 */
queue: number,
/**
 * Name of the scheme that carries it.
 */
scheme: string,
/**
 * Why packets of it are not coded now, in words; empty if they are, or nobody says.
 */
why: string,
/**
 * Share of combinations among the frames with payload of the scheme that nodes have sent in
 * the last second, 0 to 1; null for schemes that combine nothing.
 */
coded_share: number | null,
/**
 * Round trip from the source to the destination's hosts and back, smoothed, s. Absent where
 * nobody measures it, and once nobody has for 10 s.
 */
rtt_s?: number,
/**
 * Shortest round trip of the last 10 s, s. Absent where `rtt_s` is.
 */
min_rtt_s?: number, };

/**
 * State of a live stream.
 */
export type StreamState = {
/**
 * Packets that its source has taken, by layer.
 */
taken: Array<Count>,
/**
 * Its receivers.
 */
receivers: Array<StreamReceiverState>,
/**
 * Its tree: each node in it with its previous hop.
 */
tree: Array<Hop>, };

/**
 * State of a stream at a receiver.
 */
export type StreamReceiverState = {
/**
 * Id of the receiver.
 */
node: number,
/**
 * Packets received, by layer.
 */
packets: Array<Count>,
/**
 * Bits received, by layer.
 */
bits: Array<Count>,
/**
 * Why it gets too little, in words; empty if it does not.
 */
problem: string, };

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
 * Nodes that moved.
 */
moves?: Moves, };

/**
 * Nodes that changed, a row for each. A column that is absent has zeros only.
 */
export type NodeTicks = {
/**
 * Places in the list of nodes, ascending.
 */
row: Array<number>,
/**
 * Control frames sent.
 */
control?: Array<number>,
/**
 * Data frames sent.
 */
data?: Array<number>,
/**
 * Coded frames sent.
 */
coded?: Array<number>,
/**
 * Time on the air of the control frames, us.
 */
control_us?: Array<number>,
/**
 * Time on the air of the data frames, us.
 */
data_us?: Array<number>,
/**
 * Time on the air of the coded frames, us.
 */
coded_us?: Array<number>,
/**
 * Packets that wait to be sent now: the value, not its change.
 */
queue?: Array<number>,
/**
 * Whether the nodes run now, if that changed for any of them.
 */
up?: Array<boolean>, };

/**
 * Links that changed, a row for each. A column that is absent has zeros only.
 */
export type LinkTicks = {
/**
 * Places in the list of links, ascending.
 */
row: Array<number>,
/**
 * Frames that arrived.
 */
heard?: Array<number>,
/**
 * Frames that the channel lost.
 */
channel?: Array<number>,
/**
 * Frames lost to a collision.
 */
collision?: Array<number>,
/**
 * Frames that arrived with payload new to the receiver.
 */
innovative?: Array<number>,
/**
 * Frames that arrived with payload the receiver could do without.
 */
redundant?: Array<number>,
/**
 * Places in the list of links whose measured delivery changed, ascending.
 */
delivery_row?: Array<number>,
/**
 * New measured delivery of those links, 0 to 1.
 */
delivery?: Array<number>, };

/**
 * Changes of a transfer.
 */
export type TransferTick = {
/**
 * Place of the transfer in the list of transfers.
 */
transfer: number,
/**
 * New stage at the source.
 */
stage?: Stage,
/**
 * Data packets that the source sent.
 */
packets?: number,
/**
 * Ids of the nodes that forward now: the whole list.
 */
forwarders?: Array<number>,
/**
 * Receivers that changed, or joined.
 */
receivers?: Array<ReceiverTick>, };

/**
 * Changes of a transfer at a receiver.
 */
export type ReceiverTick = {
/**
 * Id of the receiver.
 */
node: number,
/**
 * New stage.
 */
stage?: Stage,
/**
 * Bytes of the file that it got.
 */
bytes?: number,
/**
 * Innovative packets that it heard.
 */
innovative?: number,
/**
 * Packets that it heard and that were not innovative.
 */
redundant?: number,
/**
 * Numbers of the generations that it decoded.
 */
complete?: Array<number>,
/**
 * Generation that is being received now, and how much of it is there.
 */
rank?: Rank, };

/**
 * Changes of a flow.
 */
export type FlowTick = {
/**
 * Place of the flow in the list of flows.
 */
flow: number,
/**
 * Packets that the source's host offered.
 */
offered?: number,
/**
 * Packets that arrived.
 */
delivered?: number,
/**
 * Bits of the packets that arrived.
 */
bits?: number,
/**
 * Mean time on the way of the packets that arrived, s.
 */
delay_s?: number,
/**
 * Packets that wait at the source now.
 */
queue?: number,
/**
 * New scheme.
 */
scheme?: string,
/**
 * Why packets are not coded now; empty if they are.
 */
why?: string,
/**
 * New share of combinations, 0 to 1.
 */
coded_share?: number,
/**
 * New smoothed round trip, s.
 */
rtt_s?: number,
/**
 * New shortest round trip, s.
 */
min_rtt_s?: number, };

/**
 * Changes of a stream.
 */
export type StreamTick = {
/**
 * Place of the stream in the list of streams.
 */
stream: number,
/**
 * Packets that its source took, by layer.
 */
taken?: Array<number>,
/**
 * Receivers that changed, or joined.
 */
receivers?: Array<StreamReceiverTick>,
/**
 * Its tree now: the whole of it.
 */
tree?: Array<Hop>, };

/**
 * Changes of a stream at a receiver.
 */
export type StreamReceiverTick = {
/**
 * Id of the receiver.
 */
node: number,
/**
 * Packets received, by layer.
 */
packets?: Array<number>,
/**
 * Bits received, by layer.
 */
bits?: Array<number>,
/**
 * Why it gets too little; empty if it no longer does.
 */
problem?: string, };

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
 * What happened.
 */
what: EventKind, };

/**
 * What happened.
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
