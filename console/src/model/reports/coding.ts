/** Gain of coding over a baseline. */
import type { Run } from "../run";
import { throughput } from "./flows";
import { completion } from "./transfers";

/** A flow or a transfer in two runs. */
export interface GainRow {
  name: string;
  /** Quantity that is compared: bit/s, where more is better, or seconds, where less is. */
  unit: "bit/s" | "s";
  baseline: number | null;
  coded: number | null;
  /** How many times better the second run is; null if one of the figures is missing. */
  gain: number | null;
}

/** Returns the gain of all flows together; null if one run has delivered nothing. */
export function throughputGain(baseline: Run, coded: Run): number | null {
  return quotient(throughput(coded, null), throughput(baseline, null));
}

/**
 * Returns how many times sooner the last receiver has a file. If the baseline never completes it,
 * this is what the gain is at least. Null if the second run does not complete it.
 */
export function completionGain(
  baseline: Run,
  coded: Run,
  place: number,
): { gain: number | null; isBound: boolean } {
  const time = completion(baseline, place);
  const spent = baseline.timeline.end - (baseline.track.began[place] ?? baseline.timeline.end);
  const gain = quotient(time ?? spent, completion(coded, place));
  return { gain, isBound: time === null };
}

/** Returns the flows and transfers that two runs have in common, over their whole time. */
export function gainRows(baseline: Run, coded: Run): GainRow[] {
  const flows = (baseline.timeline.meta?.flows ?? []).map((flow, place): GainRow => {
    const [first, second] = [throughput(baseline, place), throughput(coded, place)];
    return {
      name: `${baseline.nodeName(flow.from)} → ${baseline.nodeName(flow.to)}`,
      unit: "bit/s",
      baseline: first,
      coded: second,
      gain: quotient(second, first),
    };
  });
  const transfers = (baseline.timeline.meta?.transfers ?? []).map((transfer, place): GainRow => {
    const [first, second] = [completion(baseline, place), completion(coded, place)];
    const gain = quotient(first, second);
    return { name: transfer.name, unit: "s", baseline: first, coded: second, gain };
  });
  return [...flows, ...transfers];
}

function quotient(above: number | null, below: number | null): number | null {
  return above === null || below === null || below === 0 ? null : above / below;
}
