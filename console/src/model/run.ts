/** A run: its timeline, the state now and a second ago, and its track. */
import type { Event, Message, Meta } from "../schema/messages";
import type { MeshState } from "./state";
import { Cursor, Timeline } from "./timeline";
import { Track } from "./track";

/** Time over which rates are taken, s. */
export const WINDOW_S = 1;
/** Samples that are kept of a mesh that is watched: an hour of ticks. */
const KEPT = 36_000;

/** One run of a mesh, recorded or watched. */
export class Run {
  readonly timeline = new Timeline();
  readonly track = new Track();
  /** Its problem, and what to do; empty if there is none. */
  problem = "";

  private readonly head = new Cursor(this.timeline);
  private readonly here = new Cursor(this.timeline);
  private readonly earlier = new Cursor(this.timeline);
  private shown = { now: 0, before: 0 };

  /** Returns an empty run; `name` tells it from the one beside it. */
  constructor(public name: string) {}

  /** Adds the next message. Throws `BadMessage` if it is not one that may come. */
  push(message: Message): void {
    const before = this.timeline.length;
    this.timeline.push(message);
    if (this.timeline.length === before) return;
    try {
      this.head.move(before);
    } catch (error) {
      this.timeline.dropLast();
      throw error;
    }
    if (this.head.state) {
      this.track.record(this.head.state, before > 0 && this.timeline.rowOf(before) === before);
    }
    if (this.timeline.length > KEPT * 1.1) this.track.forget(this.timeline.forget(KEPT));
  }

  /** Moves to a time, s. Returns whether another sample is shown now. */
  moveTo(time: number): boolean {
    const now = this.timeline.at(time);
    const earlier = this.timeline.at((this.timeline.times[now] ?? 0) - WINDOW_S);
    // Growth over a gap is no rate of this moment.
    const before = Math.max(earlier, this.timeline.rowOf(now));
    const isSame = this.here.sample === now && this.shown.before === before;
    this.here.move(now);
    this.earlier.move(before);
    this.shown = { now, before };
    return !isSame;
  }

  get meta(): Meta | null {
    return this.here.state?.meta ?? this.timeline.meta;
  }

  /** State at the time shown; null before the first sample. */
  get now(): MeshState | null {
    return this.here.state;
  }

  /** State at the last sample; null before the first. */
  get latest(): MeshState | null {
    return this.head.state;
  }

  /** State a second earlier, or where what was told in a row begins. */
  get before(): MeshState | null {
    return this.earlier.state;
  }

  /** Number of the sample shown. */
  get sample(): number {
    return this.here.sample;
  }

  /** Seconds between the two states, or 0. */
  get seconds(): number {
    return Math.max(0, (this.now?.time ?? 0) - (this.before?.time ?? 0));
  }

  /** Events up to the time shown, oldest first. */
  get events(): Event[] {
    const time = (this.now?.time ?? 0) + 1e-9;
    return this.timeline.events.filter((event) => event.time_s <= time);
  }

  /** Name of a node, or its id where it has none. */
  nodeName(id: number): string {
    return this.meta?.nodes.find((node) => node.id === id)?.name || `node ${id}`;
  }
}
