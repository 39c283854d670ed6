/**
 * Two runs as a race to one goal: every receiver has the file, or as many packets have arrived as
 * the slower run delivers in all its time.
 */
import { completion } from "./reports/transfers";
import type { Run } from "./run";
import { trackKey } from "./track";

/** Amount that both runs are to reach. */
export interface Goal {
  /** Bits of all flows; bytes of all receivers for a file. */
  amount: number;
  kind: "bits" | "bytes";
}

/** How far a run is. */
export interface Racer {
  /** Part of the goal that is reached, 0 to 1. */
  share: number;
  /** Time since its traffic began, s. It stops at the goal. */
  seconds: number;
  isFinished: boolean;
}

/** Returns the goal of two runs; null if nothing moves in one of them. */
export function goalOf(runs: [Run, Run]): Goal | null {
  const transfer = runs[0].timeline.meta?.transfers[0];
  if (transfer) {
    const amount = Number(transfer.bytes) * transfer.to.length;
    return amount > 0 ? { amount, kind: "bytes" } : null;
  }
  const amount = Math.min(...runs.map((run) => reached(run, "bits", run.timeline.length - 1)));
  return amount > 0 ? { amount, kind: "bits" } : null;
}

/** Returns how far a run is at a time. */
export function racerOf(run: Run, goal: Goal, time: number): Racer {
  const { times } = run.track;
  const began =
    goal.kind === "bytes" ? (run.track.began[0] ?? run.timeline.end) : (run.track.traffic ?? 0);
  const finish = finishOf(run, goal, began);
  const seconds = Math.max(0, time - began);
  const isFinished = finish !== null && seconds >= finish;
  const share = reached(run, goal.kind, run.timeline.at(time)) / goal.amount;
  const last = (times.at(-1) ?? began) - began;
  return {
    share: isFinished ? 1 : Math.min(share, 0.999),
    seconds: Math.min(seconds, finish ?? last),
    isFinished,
  };
}

/** Returns the time from the beginning to the goal, s; null if the run never reaches it. */
function finishOf(run: Run, goal: Goal, began: number): number | null {
  if (goal.kind === "bytes") return completion(run, 0);
  const { times } = run.track;
  // The sum only grows.
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (reached(run, "bits", middle) < goal.amount) low = middle + 1;
    else high = middle;
  }
  const time = times[low];
  return time === undefined ? null : time - began;
}

/** Returns what has arrived at a sample: bits of all flows, or bytes at all receivers. */
function reached(run: Run, kind: Goal["kind"], sample: number): number {
  const { track } = run;
  if (kind === "bits") return track.flows.reduce((sum, { bits }) => sum + (bits[sample] ?? 0), 0);
  const receivers = run.timeline.meta?.transfers[0]?.to ?? [];
  const bytes = (node: number) => track.bytes.get(trackKey(0, node))?.[sample] ?? 0;
  return receivers.reduce((sum, node) => sum + bytes(node), 0);
}
