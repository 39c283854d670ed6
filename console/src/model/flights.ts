/**
 * Frames on their way, for drawing. Recordings have counters, not frames: within the 100 ms of a
 * tick, frames are spread evenly, and one that several nodes heard flies to all of them at once.
 */
import type { Meta } from "../schema/messages";
import { known, type MeshState } from "./state";
import { Cursor, type Timeline } from "./timeline";

/** A frame, or several, on a link. */
export interface Flight {
  link: number;
  /** Time when it is sent, s. */
  time: number;
  /** Places of colours: one, or two for a combination of two flows. */
  colours: number[];
  isCoded: boolean;
  isLost: boolean;
}

/** Longest time between two samples that tells when a frame was sent, s. */
const LONGEST_S = 0.65;
/** Intervals that are kept. */
const CACHED = 64;

/** Makes the flights of a run, interval by interval between its samples. */
export class Flights {
  private readonly from: Cursor;
  private readonly to: Cursor;
  private cache = new Map<number, Flight[]>();
  private epoch = 0;
  private most = 1;
  private meta: Meta | null = null;
  private colours: LinkColours[] = [];

  constructor(private readonly timeline: Timeline) {
    this.from = new Cursor(timeline);
    this.to = new Cursor(timeline);
  }

  /**
   * Returns the flights that began in the `seconds` before `time`. On each link there are at most
   * `most` between two samples: beyond, a flight stands for several frames.
   */
  within(time: number, seconds: number, most: number): Flight[] {
    if (this.epoch !== this.timeline.epoch || this.most !== most) this.cache.clear();
    this.epoch = this.timeline.epoch;
    this.most = most;
    const found: Flight[] = [];
    const last = this.timeline.at(time);
    for (let i = this.timeline.at(time - seconds); i <= last; i++) {
      for (const flight of this.interval(i)) {
        if (flight.time <= time && flight.time > time - seconds) found.push(flight);
      }
    }
    return found;
  }

  /** Returns the flights between sample `number` and the next one. */
  private interval(number: number): Flight[] {
    const cached = this.cache.get(number);
    if (cached || number + 1 >= this.timeline.length) return cached ?? [];
    this.from.move(number);
    this.to.move(number + 1);
    const [a, b] = [this.from.state, this.to.state];
    const isShort = a !== null && b !== null && b.time - a.time <= LONGEST_S;
    const flights = isShort && a.meta === b.meta ? this.between(a, b) : [];
    if (this.cache.size >= CACHED) this.cache.delete(this.cache.keys().next().value as number);
    this.cache.set(number, flights);
    return flights;
  }

  private between(a: MeshState, b: MeshState): Flight[] {
    if (this.meta !== b.meta) {
      this.meta = b.meta;
      this.colours = linkColours(b.meta);
    }
    const flights: Flight[] = [];
    b.meta.links.forEach((_, link) => {
      const look = this.colours[link];
      if (!look) return;
      const grown = (name: "innovative" | "redundant" | "channel" | "collision") =>
        (known(b.links[name][link]) ?? 0) - (known(a.links[name][link]) ?? 0);
      const sent = (name: "data" | "coded") =>
        (known(b.nodes[name][look.sender]) ?? 0) - (known(a.nodes[name][look.sender]) ?? 0);
      const heard = Math.max(0, grown("innovative") + grown("redundant"));
      const lost = Math.max(0, grown("channel") + grown("collision"));
      const coded = sent("coded");
      const all = Math.max(sent("data") + coded, heard, lost);
      const seconds = b.time - a.time;
      const spread = (frames: number, isLost: boolean) => {
        const dots = Math.min(frames, this.most);
        for (let i = 0; i < dots; i++) {
          const frame = Math.floor(((i + (isLost ? 0.9 : 0.5)) * all) / dots);
          // Combinations are spread evenly among the frames of their sender.
          const codedBy = (n: number) => Math.floor((n * coded) / all);
          const isCoded = !isLost && codedBy(frame + 1) > codedBy(frame);
          flights.push({
            link,
            // Senders take turns on the air, so their frames are not drawn in step.
            time: a.time + (seconds * (frame + ((look.sender * 0.37) % 1))) / all,
            colours: isCoded ? look.coded : [look.native[frame % look.native.length] ?? 0],
            isCoded,
            isLost,
          });
        }
      };
      spread(heard, false);
      spread(lost, true);
    });
    return flights;
  }
}

interface LinkColours {
  /** Row of the sender. */
  sender: number;
  /** Colours that frames of one packet can have: the first, second, ... in turns. */
  native: number[];
  coded: number[];
}

/**
 * Returns the colours of frames on each link. A frame has the colour of a flow that begins at its
 * sender; else of one that ends at its receiver; else of any.
 */
function linkColours(meta: Meta): LinkColours[] {
  const rows = new Map(meta.nodes.map(({ id }, row) => [id, row]));
  const all = meta.flows.map((_, place) => place);
  const coded = all.length > 1 ? all.slice(0, 2) : [0];
  return meta.links.map(({ from, to }) => {
    const begin = all.filter((place) => meta.flows[place]?.from === from);
    const end = all.filter((place) => meta.flows[place]?.to === to);
    const native = [begin, end, all, [0]].find((list) => list.length > 0) ?? [0];
    return { sender: rows.get(from) ?? 0, native, coded };
  });
}
