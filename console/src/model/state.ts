/**
 * The state of a mesh at an instant: a key, to which ticks are added.
 *
 * Counters are numbers here. They are exact up to 2^53, which is 9 PB for bytes; what is larger is
 * shown in three digits anyway.
 */
import type {
  FlowTick,
  Hop,
  Key,
  LinkTicks,
  Meta,
  Moves,
  NodeTicks,
  Rank,
  Stage,
  StreamTick,
  Tick,
  TransferTick,
} from "../schema/messages";
import { BadMessage, PLACES } from "./check";

/** Counters of nodes, one entry per node. Times are microseconds. */
export interface NodeColumns {
  up: Uint8Array;
  control: Float64Array;
  data: Float64Array;
  coded: Float64Array;
  control_us: Float64Array;
  data_us: Float64Array;
  coded_us: Float64Array;
  queue: Float64Array;
}

/** Counters of links, one entry per directed link. */
export interface LinkColumns {
  heard: Float64Array;
  channel: Float64Array;
  collision: Float64Array;
  innovative: Float64Array;
  redundant: Float64Array;
  delivery: Float64Array;
}

/** Where the nodes of a plan are, one entry per node. */
export interface PlaceColumns {
  x_dm: Int32Array;
  y_dm: Int32Array;
  z_dm: Int32Array;
}

/** A transfer at a receiver. */
export interface Receiver {
  node: number;
  stage: Stage;
  bytes: number;
  innovative: number;
  redundant: number;
  complete: Set<number>;
  rank: Rank | null;
}

/** A transfer. */
export interface TransferNow {
  stage: Stage;
  packets: number;
  forwarders: number[];
  receivers: Receiver[];
}

/** A flow through a tunnel. */
export interface FlowNow {
  offered: number;
  delivered: number;
  bits: number;
  delay_s: number | null;
  queue: number;
  scheme: string;
  why: string;
  coded_share: number | null;
  rtt_s: number | null;
  min_rtt_s: number | null;
}

/** A live stream at a receiver. */
export interface StreamReceiver {
  node: number;
  packets: number[];
  bits: number[];
  problem: string;
}

/** A live stream. */
export interface StreamNow {
  taken: number[];
  receivers: StreamReceiver[];
  tree: Hop[];
}

/** Counters of a node that a tick adds to. */
export const NODE_COUNTERS = [
  "control",
  "data",
  "coded",
  "control_us",
  "data_us",
  "coded_us",
] as const;
/** Counters of a link that a tick adds to. */
export const LINK_COUNTERS = ["heard", "channel", "collision", "innovative", "redundant"] as const;

/** State of the mesh at `time`. It changes in place; `clone` keeps it. */
export class MeshState {
  meta: Meta;
  time = 0;
  nodes: NodeColumns;
  links: LinkColumns;
  /** Where the nodes are; null if they stay where the meta has them. */
  places: PlaceColumns | null = null;
  transfers: TransferNow[] = [];
  flows: FlowNow[] = [];
  streams: StreamNow[] = [];

  constructor(meta: Meta) {
    this.meta = meta;
    const nodes = meta.nodes.length;
    const links = meta.links.length;
    const column = (length: number) => new Float64Array(length);
    this.nodes = {
      up: new Uint8Array(nodes),
      control: column(nodes),
      data: column(nodes),
      coded: column(nodes),
      control_us: column(nodes),
      data_us: column(nodes),
      coded_us: column(nodes),
      queue: column(nodes),
    };
    this.links = {
      heard: column(links),
      channel: column(links),
      collision: column(links),
      innovative: column(links),
      redundant: column(links),
      delivery: column(links),
    };
  }

  /** Replaces the whole state by that of a key of this meta. */
  setKey(key: Key): void {
    const { meta, nodes, links } = this;
    if (key.nodes.up.length !== meta.nodes.length) throw new BadMessage("a key lacks nodes");
    if (key.links.heard.length !== meta.links.length) throw new BadMessage("a key lacks links");
    this.time = key.time_s;
    for (const name of NODE_COUNTERS) nodes[name].set(key.nodes[name].map(Number));
    nodes.queue.set(key.nodes.queue);
    nodes.up.set(key.nodes.up.map(Number));
    for (const name of LINK_COUNTERS) links[name].set(key.links[name].map(Number));
    links.delivery.set(key.links.delivery);
    this.places = null;
    if (key.places) {
      const { x_dm, y_dm, z_dm } = key.places;
      if (x_dm.length !== meta.nodes.length) throw new BadMessage("a key lacks places of nodes");
      this.places = {
        x_dm: Int32Array.from(x_dm),
        y_dm: Int32Array.from(y_dm),
        z_dm: Int32Array.from(z_dm),
      };
    }

    this.transfers = key.transfers.map((transfer) => ({
      stage: transfer.stage,
      packets: Number(transfer.packets),
      forwarders: transfer.forwarders,
      receivers: transfer.receivers.map((receiver) => ({
        ...receiver,
        bytes: Number(receiver.bytes),
        innovative: Number(receiver.innovative),
        redundant: Number(receiver.redundant),
        complete: new Set(receiver.complete),
      })),
    }));
    this.flows = key.flows.map((flow) => ({
      ...flow,
      offered: Number(flow.offered),
      delivered: Number(flow.delivered),
      bits: Number(flow.bits),
      rtt_s: flow.rtt_s ?? null,
      min_rtt_s: flow.min_rtt_s ?? null,
    }));
    this.streams = key.streams.map((stream) => ({
      taken: stream.taken.map(Number),
      receivers: stream.receivers.map((receiver) => ({
        ...receiver,
        packets: receiver.packets.map(Number),
        bits: receiver.bits.map(Number),
      })),
      tree: stream.tree,
    }));
  }

  /** Adds the changes of a tick. */
  addTick(tick: Tick): void {
    this.time = tick.time_s;
    if (tick.nodes) this.addNodes(tick.nodes);
    if (tick.links) this.addLinks(tick.links);
    tick.transfers?.forEach((change) => addTransfer(at(this.transfers, change.transfer), change));
    tick.flows?.forEach((change) => addFlow(at(this.flows, change.flow), change));
    tick.streams?.forEach((change) => addStream(at(this.streams, change.stream), change));
    if (tick.moves) this.addMoves(tick.moves);
  }

  private addNodes(ticks: NodeTicks): void {
    const { nodes } = this;
    checkRows(ticks.row, nodes.up.length);
    for (const name of NODE_COUNTERS) addColumn(nodes[name], ticks.row, ticks[name]);
    // The queue is a level: a column that is absent says that the queues of these rows are empty.
    ticks.row.forEach((row, i) => (nodes.queue[row] = ticks.queue?.[i] ?? 0));
    if (ticks.up) ticks.row.forEach((row, i) => (nodes.up[row] = Number(ticks.up?.[i])));
  }

  private addMoves(moves: Moves): void {
    const { places } = this;
    if (!places) throw new BadMessage("nodes move that have no places");
    checkRows(moves.row, places.x_dm.length);
    for (const name of PLACES) addColumn(places[name], moves.row, moves[name]);
  }

  private addLinks(ticks: LinkTicks): void {
    const { links } = this;
    checkRows(ticks.row, links.heard.length);
    for (const name of LINK_COUNTERS) addColumn(links[name], ticks.row, ticks[name]);
    const rows = ticks.delivery_row ?? [];
    checkRows(rows, links.heard.length);
    rows.forEach((row, i) => (links.delivery[row] = ticks.delivery?.[i] ?? 0));
  }
}

function at<T>(list: T[], place: number): T {
  const item = list[place];
  if (item === undefined) throw new BadMessage(`place ${place} does not exist`);
  return item;
}

function checkRows(rows: number[], length: number): void {
  for (const row of rows) {
    if (!(Number.isInteger(row) && row >= 0 && row < length)) {
      throw new BadMessage(`row ${row} does not exist`);
    }
  }
}

function addColumn(
  column: Float64Array | Int32Array,
  rows: number[],
  growth: number[] | undefined,
): void {
  if (!growth) return;
  rows.forEach((row, i) => (column[row] = (column[row] ?? 0) + (growth[i] ?? 0)));
}

/** Adds lists entry by entry; the shorter one is as if filled with zeros. */
function addLists(into: number[], growth: number[] | undefined): void {
  growth?.forEach((value, i) => (into[i] = (into[i] ?? 0) + value));
}

function addTransfer(transfer: TransferNow, change: TransferTick): void {
  transfer.stage = change.stage ?? transfer.stage;
  transfer.packets += change.packets ?? 0;
  transfer.forwarders = change.forwarders ?? transfer.forwarders;
  for (const growth of change.receivers ?? []) {
    let receiver = transfer.receivers.find(({ node }) => node === growth.node);
    if (!receiver) {
      receiver = {
        node: growth.node,
        stage: "waiting",
        bytes: 0,
        innovative: 0,
        redundant: 0,
        complete: new Set(),
        rank: null,
      };
      transfer.receivers.push(receiver);
    }
    receiver.stage = growth.stage ?? receiver.stage;
    receiver.bytes += growth.bytes ?? 0;
    receiver.innovative += growth.innovative ?? 0;
    receiver.redundant += growth.redundant ?? 0;
    for (const generation of growth.complete ?? []) receiver.complete.add(generation);
    receiver.rank = growth.rank ?? receiver.rank;
  }
}

function addFlow(flow: FlowNow, change: FlowTick): void {
  flow.offered += change.offered ?? 0;
  flow.delivered += change.delivered ?? 0;
  flow.bits += change.bits ?? 0;
  flow.delay_s = change.delay_s ?? flow.delay_s;
  flow.queue = change.queue ?? flow.queue;
  flow.scheme = change.scheme ?? flow.scheme;
  flow.why = change.why ?? flow.why;
  flow.coded_share = change.coded_share ?? flow.coded_share;
  flow.rtt_s = change.rtt_s ?? flow.rtt_s;
  flow.min_rtt_s = change.min_rtt_s ?? flow.min_rtt_s;
}

function addStream(stream: StreamNow, change: StreamTick): void {
  addLists(stream.taken, change.taken);
  for (const growth of change.receivers ?? []) {
    let receiver = stream.receivers.find(({ node }) => node === growth.node);
    if (!receiver) {
      receiver = { node: growth.node, packets: [], bits: [], problem: "" };
      stream.receivers.push(receiver);
    }
    addLists(receiver.packets, growth.packets);
    addLists(receiver.bits, growth.bits);
    receiver.problem = growth.problem ?? receiver.problem;
  }
  stream.tree = change.tree ?? stream.tree;
}
