/**
 * The state of a mesh at an instant: a key, to which ticks are added.
 *
 * Counters are numbers here. They are exact up to 2^53, which is 9 PB for bytes; what is larger is
 * shown in three digits anyway. What is not known is null, and NaN in the columns of tables.
 *
 * Flows, transfers, streams and roll-outs are read by the lists of their values, which the schema
 * has: a value that is new there is here, too.
 */
import {
  FLOW_FIELDS,
  LINK_COUNTERS,
  NODE_COUNTERS,
  ROLLOUT_FIELDS,
  STREAM_FIELDS,
  TRANSFER_FIELDS,
  type Field,
  type FlowNow,
  type Key,
  type LinkTicks,
  type Meta,
  type Moves,
  type NodeTicks,
  type RolloutNow,
  type StreamNow,
  type Tick,
  type TransferNow,
} from "../schema/messages";
import { BadMessage, PLACES } from "./check";

type Columns<Name extends string> = Record<Name, Float64Array>;

/** Counters of nodes, one entry per node. Times are microseconds. */
export type NodeColumns = Columns<(typeof NODE_COUNTERS)[number] | "queue"> & { up: Uint8Array };

/** Counters of links, one entry per directed link. */
export type LinkColumns = Columns<(typeof LINK_COUNTERS)[number] | "delivery">;

/** Where the nodes of a plan are, one entry per node. */
export interface PlaceColumns {
  x_dm: Int32Array;
  y_dm: Int32Array;
  z_dm: Int32Array;
}

/** Returns a table of which nothing is known. */
function unknown<Name extends string>(names: readonly Name[], length: number): Columns<Name> {
  const column = (name: Name) => [name, new Float64Array(length).fill(NaN)];
  return Object.fromEntries(names.map(column)) as Columns<Name>;
}

/** Returns an entry of a column; null if it is not known. */
export function known(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

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
  rollouts: RolloutNow[] = [];

  constructor(meta: Meta) {
    this.meta = meta;
    const nodes = meta.nodes.length;
    const links = meta.links.length;
    this.nodes = {
      ...unknown([...NODE_COUNTERS, "queue"], nodes),
      up: new Uint8Array(nodes),
    };
    this.links = unknown([...LINK_COUNTERS, "delivery"], links);
  }

  /** Replaces the whole state by that of a key of this meta. */
  setKey(key: Key): void {
    const { meta, nodes, links } = this;
    if (key.nodes.up.length !== meta.nodes.length) throw new BadMessage("a key lacks nodes");
    if (key.links.heard.length !== meta.links.length) throw new BadMessage("a key lacks links");
    this.time = key.time_s;
    for (const name of NODE_COUNTERS) nodes[name].set(key.nodes[name].map(numberOf));
    nodes.queue.set(key.nodes.queue.map(numberOf));
    nodes.up.set(key.nodes.up.map(Number));
    for (const name of LINK_COUNTERS) links[name].set(key.links[name].map(numberOf));
    links.delivery.set(key.links.delivery.map(numberOf));
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

    this.transfers = key.transfers.map((state) => begin<TransferNow>(TRANSFER_FIELDS, state));
    this.flows = key.flows.map((state) => begin<FlowNow>(FLOW_FIELDS, state));
    this.streams = key.streams.map((state) => begin<StreamNow>(STREAM_FIELDS, state));
    const rollouts = key.rollouts ?? [];
    this.rollouts = rollouts.map((state) => begin<RolloutNow>(ROLLOUT_FIELDS, state));
  }

  /** Adds the changes of a tick. */
  addTick(tick: Tick): void {
    this.time = tick.time_s;
    if (tick.nodes) this.addNodes(tick.nodes);
    if (tick.links) this.addLinks(tick.links);
    const add = (fields: readonly Field[], entry: object, changes: object) =>
      change(fields, entry as Values, changes as Values);
    tick.transfers?.forEach((it) => add(TRANSFER_FIELDS, at(this.transfers, it.transfer), it));
    tick.flows?.forEach((it) => add(FLOW_FIELDS, at(this.flows, it.flow), it));
    tick.streams?.forEach((it) => add(STREAM_FIELDS, at(this.streams, it.stream), it));
    tick.rollouts?.forEach((it) => add(ROLLOUT_FIELDS, at(this.rollouts, it.rollout), it));
    if (tick.moves) this.addMoves(tick.moves);
  }

  private addNodes(ticks: NodeTicks): void {
    const { nodes } = this;
    checkRows(ticks.row, nodes.up.length);
    for (const name of NODE_COUNTERS) addColumn(nodes[name], ticks.row, ticks[name]);
    // The queue is a level: a column that is absent says that the queues of these rows are empty.
    ticks.row.forEach((row, i) => {
      if (known(nodes.queue[row]) !== null) nodes.queue[row] = ticks.queue?.[i] ?? 0;
    });
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
    rows.forEach((row, i) => (links.delivery[row] = numberOf(ticks.delivery?.[i] ?? null)));
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

/** Returns an entry of a key's column as a number; NaN if it is not known. */
function numberOf(value: string | number | null): number {
  return value === null ? NaN : Number(value);
}

type Values = Record<string, unknown>;

/** Adds lists entry by entry; the shorter one is as if filled with zeros. */
function addLists(into: number[], growth: number[]): void {
  growth.forEach((value, i) => (into[i] = (into[i] ?? 0) + value));
}

/** Returns a state as a key has it. The rest of it, such as the id of its node, stays as it is. */
function begin<Now>(fields: readonly Field[], state: object): Now {
  const now = { ...state } as Values;
  for (const { name, rule, of } of fields) {
    const value = now[name] ?? null;
    switch (rule) {
      case "counter":
        now[name] = value === null ? null : Number(value);
        break;
      case "counters":
        now[name] = ((value ?? []) as string[]).map(Number);
        break;
      case "numbers":
        now[name] = new Set((value ?? []) as number[]);
        break;
      case "members":
        now[name] = ((value ?? []) as object[]).map((member) => begin(of ?? [], member));
        break;
      case "value":
        now[name] = value;
    }
  }
  return now as Now;
}

/** Adds the changes of a tick to a state. What a tick leaves out is as it was. */
function change(fields: readonly Field[], now: Values, changes: Values): void {
  for (const { name, rule, of } of fields) {
    if (!(name in changes)) continue;
    const told = changes[name];
    switch (rule) {
      case "counter":
        now[name] = ((now[name] as number | null) ?? 0) + (told as number);
        break;
      case "counters":
        addLists(now[name] as number[], told as number[]);
        break;
      case "numbers":
        (told as number[]).forEach((number) => (now[name] as Set<number>).add(number));
        break;
      case "members":
        for (const member of told as Values[]) {
          changeMember(of ?? [], now[name] as Values[], member);
        }
        break;
      case "value":
        now[name] = told;
    }
  }
}

/** Adds the changes of a member. One that is not there joins: recordings of schema 1 tell that. */
function changeMember(fields: readonly Field[], members: Values[], changes: Values): void {
  const node = changes["node"];
  let member = members.find((member) => member["node"] === node);
  if (!member) {
    const zero = fields.filter(({ rule }) => rule === "counter").map(({ name }) => [name, "0"]);
    const words = { stage: "waiting", problem: "" };
    member = begin<Values>(fields, { node, ...words, ...Object.fromEntries(zero) });
    members.push(member);
  }
  change(fields, member, changes);
}
