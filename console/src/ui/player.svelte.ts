/** Plays one run, or two in step. Views read `version` to be drawn again. */
import type { Run } from "../model/run";

/** Speeds to choose from, times real time. */
export const SPEEDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10];

/** Rest at the end before it begins anew, so that the end is seen, ms. */
const REST_MS = 2000;

/** Time and runs that the page shows. */
export class Player {
  runs = $state.raw<Run[]>([]);
  /** Runs that were opened: those shown are some of them. */
  opened = $state.raw<Run[]>([]);
  /** Time shown, s. */
  time = $state(0);
  isPlaying = $state(false);
  /** Whether the newest state is shown as it comes. */
  isFollowing = $state(false);
  speed = $state(1);
  /** Grows whenever another sample is shown, or runs have grown. */
  version = $state(0);
  /** Grows when runs have grown, at most once a second: series are then drawn anew. */
  growth = $state(0);
  /** Whether it begins anew at the end, after a rest. */
  isLooping = false;

  private frame = 0;
  private last = 0;
  private grown = 0;
  /** Time of the browser until which it rests at the end, ms; 0 while it does not. */
  private restsUntil = 0;

  /** Time of the first sample of all runs, s. */
  get start(): number {
    void this.version;
    const starts = this.runs.map((run) => run.timeline.start);
    return starts.length > 0 ? Math.min(...starts) : 0;
  }

  /** Time of the last sample of all runs, s. */
  get end(): number {
    void this.version;
    return Math.max(...this.runs.map((run) => run.timeline.end), 0);
  }

  /** Time from which there is something to see, s: nodes first measure their links. */
  get beginning(): number {
    void this.version;
    const times = this.runs.flatMap(({ track }) => track.traffic ?? []);
    return times.length > 0 ? Math.min(...times) : this.start;
  }

  /** Shows other runs, from where their traffic begins. */
  load(runs: Run[]): void {
    this.opened = runs;
    this.runs = runs;
    this.seek(this.beginning);
    this.version += 1;
    this.growth += 1;
  }

  /** Shows some of the runs that were opened, at the same time. */
  choose(runs: Run[]): void {
    this.runs = runs;
    this.seek(this.time);
    this.version += 1;
    this.growth += 1;
  }

  /** Shows what a run has got, if it is followed. */
  grow(): void {
    if (this.isFollowing) this.seek(this.end);
    else this.version += 1;
    const now = performance.now();
    if (now - this.grown < 1000) return;
    this.grown = now;
    this.growth += 1;
  }

  /** Shows another time, s. */
  seek(time: number): void {
    this.time = Math.min(Math.max(time, this.start), this.end);
    let isOther = false;
    for (const run of this.runs) isOther = run.moveTo(this.time) || isOther;
    if (isOther) this.version += 1;
  }

  /** Goes some samples forward or back, and stops there. */
  step(samples: number): void {
    const timeline = this.runs[0]?.timeline;
    if (!timeline) return;
    this.pause();
    const last = timeline.length - 1;
    const number = Math.min(Math.max(timeline.at(this.time) + samples, 0), last);
    this.seek(timeline.times[number] ?? 0);
  }

  /** Goes some seconds forward or back, and stops there. */
  skip(seconds: number): void {
    this.pause();
    this.seek(this.time + seconds);
  }

  toggle(): void {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  play(): void {
    if (this.isPlaying) return;
    if (this.time >= this.end) this.seek(this.start);
    this.isFollowing = false;
    this.isPlaying = true;
    this.last = performance.now();
    const advance = (now: number) => {
      // A tab in the background gets no frames; it must not jump when it comes back.
      const seconds = Math.min((now - this.last) / 1000, 0.25);
      this.last = now;
      this.seek(this.time + seconds * this.speed);
      if (this.time >= this.end) {
        if (!this.isLooping) return this.pause();
        this.restsUntil ||= now + REST_MS;
        if (now >= this.restsUntil) {
          this.restsUntil = 0;
          this.seek(this.beginning);
        }
      } else this.restsUntil = 0;
      this.frame = requestAnimationFrame(advance);
    };
    this.frame = requestAnimationFrame(advance);
  }

  pause(): void {
    cancelAnimationFrame(this.frame);
    this.isPlaying = false;
    this.isFollowing = false;
  }

  /** Shows the newest state from now on. */
  follow(): void {
    this.pause();
    this.isFollowing = true;
    this.seek(this.end);
  }

  faster(steps: number): void {
    const at = SPEEDS.indexOf(this.speed);
    this.speed = SPEEDS[Math.min(Math.max(at + steps, 0), SPEEDS.length - 1)] ?? 1;
  }
}
