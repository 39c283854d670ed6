/** Curves over time: sums over the mesh, and the counters of flows and receivers. */
import { PLACES } from "./check";
import { known, type MeshState, type PlaceColumns } from "./state";

/** Names of the sums over all nodes and links. */
export const SUMS = [
  "control_us",
  "data_us",
  "coded_us",
  "innovative",
  "redundant",
  "heard",
  "channel",
  "collision",
] as const;
export type Sum = (typeof SUMS)[number];

/** Time for which a delay holds after the packets that had it, s. */
const RECENT_S = 1;

/** A flow over time, one entry per sample. */
export interface FlowTrack {
  bits: (number | null)[];
  /** Innovative frames heard at the node that tells. */
  heard: (number | null)[];
  /** Packets delivered at the last sample, and when the last ones were, s. */
  delivered: number | null;
  arrived: number;
  /** One way in a simulation; the round trip where a daemon tells, which has one clock only. */
  delay: (number | null)[];
  queue: (number | null)[];
  coded: (number | null)[];
}

/** A corner of the area in which nodes move. */
type Corner = Record<(typeof PLACES)[number], number>;

/** The area in which nodes have moved so far. */
export interface Area {
  low: Corner;
  high: Corner;
}

/** Times of values. */
export interface Axis {
  /** Times, s, ascending. */
  times: number[];
  /** Places of the times before which nothing is known for a while. */
  gaps: ReadonlySet<number>;
}

/** A sequence of counters by sample. What is not known at a sample is null. */
export class Track implements Axis {
  times: number[] = [];
  gaps: Set<number> = new Set();
  sums: Record<Sum, (number | null)[]> = {
    control_us: [],
    data_us: [],
    coded_us: [],
    innovative: [],
    redundant: [],
    heard: [],
    channel: [],
    collision: [],
  };
  flows: FlowTrack[] = [];
  /** Bytes by transfer and receiver. */
  bytes: Map<string, (number | null)[]> = new Map();
  /** Time until which each transfer had not begun, s. */
  began: number[] = [];
  /** Time until which no payload had arrived anywhere, s; null if none has yet. */
  traffic: number | null = null;
  /** Bits by stream and receiver. */
  streamBits: Map<string, (number | null)[]> = new Map();
  /** Area in which nodes move; null if none does. */
  area: Area | null = null;

  /** Its times as they are now. */
  get axis(): Axis {
    return { times: this.times.slice(), gaps: new Set(this.gaps) };
  }

  /** Adds the state at the next sample, before which nothing is known if it is after a gap. */
  record(state: MeshState, isAfterGap: boolean): void {
    const before = this.times.length;
    if (isAfterGap) this.gaps.add(before);
    const last = this.times.at(-1) ?? state.time;
    this.times.push(state.time);
    const { nodes, links } = state;
    for (const name of ["control_us", "data_us", "coded_us"] as const) {
      this.sums[name].push(total(nodes[name]));
    }
    for (const name of ["innovative", "redundant", "heard", "channel", "collision"] as const) {
      this.sums[name].push(total(links[name]));
    }

    state.flows.forEach((flow, place) => {
      const track = (this.flows[place] ??= emptyFlow(before));
      // The mean delay is that of the packets that arrived last: those of the last second.
      if (track.delivered !== flow.delivered) track.arrived = state.time;
      track.delivered = flow.delivered;
      const hasArrived = state.time - track.arrived <= RECENT_S;
      track.bits.push(flow.bits);
      track.heard.push(flow.innovative);
      track.delay.push(flow.rtt_s ?? (hasArrived ? flow.delay_s : null));
      track.queue.push(flow.queue);
      track.coded.push(flow.coded_share);
    });
    state.transfers.forEach((transfer, place) => {
      if (transfer.stage !== "waiting") this.began[place] ??= last;
      for (const { node, bytes } of transfer.receivers) {
        listOf(this.bytes, trackKey(place, node), before).push(bytes);
      }
    });
    state.streams.forEach((stream, place) => {
      for (const { node, bits } of stream.receivers) {
        listOf(this.streamBits, trackKey(place, node), before).push(total(bits));
      }
    });
    // A receiver that a state does not name is not known there.
    for (const list of [...this.bytes.values(), ...this.streamBits.values()]) {
      if (list.length === before) list.push(null);
    }
    if (state.places) this.widen(state.places);
    const hasTraffic =
      state.flows.some(({ bits }) => (bits ?? 0) > 0) ||
      state.transfers.some(({ receivers }) => receivers.some(({ bytes }) => bytes > 0)) ||
      state.streams.some(({ receivers }) => receivers.some(({ bits }) => (total(bits) ?? 0) > 0));
    if (hasTraffic) this.traffic ??= last;
  }

  private widen(places: PlaceColumns): void {
    const everywhere = (value: number): Corner => ({ x_dm: value, y_dm: value, z_dm: value });
    const { low, high } = (this.area ??= {
      low: everywhere(Infinity),
      high: everywhere(-Infinity),
    });
    for (const name of PLACES) {
      for (const place of places[name]) {
        low[name] = Math.min(low[name], place);
        high[name] = Math.max(high[name], place);
      }
    }
  }

  /** Drops the first `count` samples. */
  forget(count: number): void {
    const lists: unknown[][] = [this.times, ...Object.values(this.sums)];
    for (const { bits, heard, delay, queue, coded } of this.flows) {
      lists.push(bits, heard, delay, queue, coded);
    }
    lists.push(...this.bytes.values(), ...this.streamBits.values());
    for (const list of lists) list.splice(0, count);
    const later = [...this.gaps].map((place) => place - count);
    this.gaps = new Set(later.filter((place) => place > 0));
  }
}

/** Returns the name of a receiver in the maps of a track. */
export function trackKey(place: number, node: number): string {
  return `${place}/${node}`;
}

/** Returns the sum of what is known in a column; null if nothing is. */
export function total(column: ArrayLike<number>): number | null {
  let sum: number | null = null;
  for (let i = 0; i < column.length; i++) {
    const value = known(column[i]);
    if (value !== null) sum = (sum ?? 0) + value;
  }
  return sum;
}

function emptyFlow(length: number): FlowTrack {
  const nothing = (): null[] => Array.from({ length }, () => null);
  return {
    bits: nothing(),
    heard: nothing(),
    delivered: null,
    arrived: -Infinity,
    delay: nothing(),
    queue: nothing(),
    coded: nothing(),
  };
}

function listOf(
  map: Map<string, (number | null)[]>,
  key: string,
  length: number,
): (number | null)[] {
  let list = map.get(key);
  if (!list) {
    list = Array.from({ length }, () => null);
    map.set(key, list);
  }
  return list;
}

/**
 * Returns how fast a counter grew at each time: its growth over the last `window` seconds, per
 * second. It is null at the first time and after gaps, where nothing is known before it, where the
 * counter is not known, and where it fell because its node was started again.
 */
export function rates(
  { times, gaps }: Axis,
  counter: (number | null)[],
  window: number,
): (number | null)[] {
  let from = 0;
  return times.map((time, i) => {
    if (gaps.has(i)) from = i;
    while (from + 1 < i && (times[from + 1] as number) <= time - window + 1e-9) from++;
    const seconds = time - (times[from] as number);
    const now = counter[i] ?? null;
    const before = counter[from] ?? null;
    if (seconds <= 0 || now === null || before === null || now < before) return null;
    return (now - before) / seconds;
  });
}
