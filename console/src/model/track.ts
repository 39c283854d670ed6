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

/** A flow over time, one entry per sample. */
export interface FlowTrack {
  bits: (number | null)[];
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

/** A sequence of counters by sample. Lists that began later are filled up with zeros. */
export class Track {
  times: number[] = [];
  sums: Record<Sum, number[]> = {
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
  bytes: Map<string, number[]> = new Map();
  /** Time until which each transfer had not begun, s. */
  began: number[] = [];
  /** Time until which no payload had arrived anywhere, s; null if none has yet. */
  traffic: number | null = null;
  /** Bits by stream and receiver. */
  streamBits: Map<string, number[]> = new Map();
  /** Area in which nodes move; null if none does. */
  area: Area | null = null;

  /** Adds the state at the next sample. */
  record(state: MeshState): void {
    const before = this.times.length;
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
      track.bits.push(flow.bits);
      track.delay.push(flow.rtt_s ?? flow.delay_s);
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
    if (state.places) this.widen(state.places);
    const hasTraffic =
      state.flows.some(({ bits }) => (bits ?? 0) > 0) ||
      state.transfers.some(({ receivers }) => receivers.some(({ bytes }) => bytes > 0)) ||
      state.streams.some(({ receivers }) => receivers.some(({ bits }) => total(bits) > 0));
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
    for (const flow of this.flows) lists.push(flow.bits, flow.delay, flow.queue, flow.coded);
    lists.push(...this.bytes.values(), ...this.streamBits.values());
    for (const list of lists) list.splice(0, count);
  }
}

/** Returns the name of a receiver in the maps of a track. */
export function trackKey(place: number, node: number): string {
  return `${place}/${node}`;
}

/** Returns the sum of what is known in a column. */
export function total(column: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < column.length; i++) sum += known(column[i]) ?? 0;
  return sum;
}

function emptyFlow(length: number): FlowTrack {
  const nothing = (): null[] => Array.from({ length }, () => null);
  return { bits: nothing(), delay: nothing(), queue: nothing(), coded: nothing() };
}

function listOf(map: Map<string, number[]>, key: string, length: number): number[] {
  let list = map.get(key);
  if (!list) {
    list = Array.from({ length }, () => 0);
    map.set(key, list);
  }
  return list;
}

/**
 * Returns how fast a counter grew at each time: its growth over the last `window` seconds, per
 * second. The first entry is null, since nothing is before it; so are those that are not known.
 */
export function rates(
  times: number[],
  counter: (number | null)[],
  window: number,
): (number | null)[] {
  let from = 0;
  return times.map((time, i) => {
    while (from + 1 < i && (times[from + 1] as number) <= time - window + 1e-9) from++;
    if (i === 0) return null;
    const seconds = time - (times[from] as number);
    const now = counter[i] ?? null;
    return seconds > 0 && now !== null ? (now - (counter[from] ?? 0)) / seconds : null;
  });
}
