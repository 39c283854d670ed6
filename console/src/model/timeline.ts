/**
 * All messages of a run in order, and cursors that make the state at any of its samples.
 *
 * A sample is a key or a tick. A cursor that moves forward adds ticks; one that moves back, or far,
 * begins at the last key before its target. Keys come every 5 s, so a jump costs at most 50 ticks.
 */
import type { Event, Key, Message, Meta, Tick } from "../schema/messages";
import { BadMessage } from "./check";
import { MeshState } from "./state";

interface KeySample {
  kind: "key";
  key: Key;
  meta: Meta;
}

interface TickSample {
  kind: "tick";
  tick: Tick;
}

type Sample = KeySample | TickSample;

/** Returns the longest time between two samples of a row, s, if ticks come every `step` s. */
function longest(step: number): number {
  // A busy daemon tells late, and a page in the background listens late.
  return 1.5 * step + 0.5;
}

/** Messages of a run. It grows at its end while a mesh is watched. */
export class Timeline {
  /** The last meta. */
  meta: Meta | null = null;
  /** Times of the samples, s, ascending. */
  times: number[] = [];
  events: Event[] = [];
  /** Whether the event `end` came: nothing follows. */
  isOver = false;
  /** Grows whenever samples at the start were dropped, which changes their numbers. */
  epoch = 0;

  private samples: Sample[] = [];
  /** Numbers of the samples before which nothing was told for a while, ascending. */
  private gaps: number[] = [];
  /** Time between the ticks of the last sample's meta, s. */
  private step = 0;
  /** Numbers of the samples that are keys, ascending. */
  private keys: number[] = [];
  private mustBeKey = true;

  /** Adds the next message. Throws `BadMessage` if it cannot come here. */
  push(message: Message): void {
    if (this.isOver) throw new BadMessage("nothing may follow the event `end`");
    switch (message.type) {
      case "meta":
        this.meta = message;
        this.mustBeKey = true;
        return;
      case "event":
        if (this.mustBeKey) throw new BadMessage("after a meta comes a key");
        if (message.what.kind === "end") this.isOver = true;
        else this.events.push(message);
        return;
      case "key":
        if (!this.meta) throw new BadMessage("the first message is no meta");
        this.keys.push(this.samples.length);
        this.samples.push({ kind: "key", key: message, meta: this.meta });
        this.mustBeKey = false;
        break;
      case "tick":
        if (this.mustBeKey) throw new BadMessage("after a meta comes a key");
        this.samples.push({ kind: "tick", tick: message });
    }
    const step = this.meta?.tick_s ?? 0;
    if (this.times.length > 0 && message.time_s - this.end > longest(Math.max(step, this.step))) {
      this.gaps.push(this.times.length);
    }
    this.step = step;
    this.times.push(message.time_s);
  }

  /** Takes back the last sample, which turned out to be damaged. */
  dropLast(): void {
    this.samples.pop();
    this.times.pop();
    if (this.keys.at(-1) === this.samples.length) this.keys.pop();
    if (this.gaps.at(-1) === this.samples.length) this.gaps.pop();
  }

  get length(): number {
    return this.samples.length;
  }

  /** Time of the first sample, s; 0 if there is none. */
  get start(): number {
    return this.times[0] ?? 0;
  }

  /** Time of the last sample, s; 0 if there is none. */
  get end(): number {
    return this.times.at(-1) ?? 0;
  }

  sample(number: number): Sample | undefined {
    return this.samples[number];
  }

  /** Returns the number of the last sample that is not after `time`; 0 if all are. */
  at(time: number): number {
    return Math.max(0, lastNotAfter(this.times, time + 1e-9));
  }

  /** Returns the number of the first sample from which on all were told in a row up to `number`. */
  rowOf(number: number): number {
    return this.gaps[lastNotAfter(this.gaps, number)] ?? 0;
  }

  /** Returns whether nothing was told of a time, though something was before it and after it. */
  isUntold(time: number): boolean {
    const last = this.at(time);
    const isLastOfRow = this.gaps.includes(last + 1);
    return isLastOfRow && time - (this.times[last] ?? time) > longest(0);
  }

  /** Returns the number of the last key that is not after sample `number`. */
  keyBefore(number: number): number {
    return this.keys[lastNotAfter(this.keys, number)] ?? 0;
  }

  /** Drops the oldest samples up to a key, so that about `keep` are left. Returns how many. */
  forget(keep: number): number {
    const from = this.keyBefore(Math.max(0, this.samples.length - keep));
    if (from === 0) return 0;
    this.samples.splice(0, from);
    this.times.splice(0, from);
    this.keys = this.keys.filter((key) => key >= from).map((key) => key - from);
    this.gaps = this.gaps.filter((gap) => gap > from).map((gap) => gap - from);
    this.events = this.events.filter((event) => event.time_s >= this.start);
    this.epoch += 1;
    return from;
  }
}

/** Returns the place of the last of `values`, ascending, that is not above `limit`; else -1. */
export function lastNotAfter(values: number[], limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((values[middle] as number) <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** A place in a timeline, with the state there. */
export class Cursor {
  state: MeshState | null = null;
  /** Number of the sample whose state this is; -1 if there is none yet. */
  sample = -1;
  private epoch = 0;

  constructor(private readonly timeline: Timeline) {}

  /** Moves to a sample. Does nothing if the timeline is empty. */
  move(sample: number): void {
    const { timeline } = this;
    const target = Math.min(sample, timeline.length - 1);
    if (target < 0) return;
    if (this.epoch !== timeline.epoch) this.sample = -1;
    this.epoch = timeline.epoch;

    const key = timeline.keyBefore(target);
    let next = this.sample + 1;
    if (this.sample > target || this.sample < key) next = key;
    // If a sample is damaged, the state is of no use, and the next move begins at a key.
    this.sample = -1;
    for (; next <= target; next++) this.add(timeline.sample(next) as Sample);
    this.sample = target;
  }

  private add(sample: Sample): void {
    if (sample.kind === "tick") {
      this.state?.addTick(sample.tick);
      return;
    }
    if (this.state?.meta !== sample.meta) this.state = new MeshState(sample.meta);
    this.state.setKey(sample.key);
  }
}
