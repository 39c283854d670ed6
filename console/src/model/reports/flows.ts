/** Flows and their coding, as tables. */
import { FLOW_FIELDS, type Field, type FlowNow } from "../../schema/messages";
import type { Run } from "../run";

/** A flow at the time shown. */
export interface FlowRow {
  place: number;
  name: string;
  protocol: string;
  scheme: string;
  why: string;
  /** Bits that arrived in the last second, bit/s. */
  rate: number | null;
  /** Rate over the run so far, bit/s. */
  mean: number | null;
  /** Share of the offered packets that arrived, 0 to 1. */
  arrived: number | null;
  now: FlowNow;
}

/** Returns the values that are known of any of these flows, as columns of a table. */
export function flowColumns(rows: FlowRow[]): readonly Field[] {
  // Bits are shown as rates.
  const isColumn = ({ name, unit }: Field) => unit !== "" && name !== "bits";
  return FLOW_FIELDS.filter(
    (field) => isColumn(field) && rows.some((r) => valueOf(r, field) !== null),
  );
}

/** Returns a value of a flow; null if it is not known. */
export function valueOf({ now }: FlowRow, { name }: Field): number | null {
  return now[name as keyof FlowNow] as number | null;
}

/** Returns the flows of a run at the time shown. */
export function flowRows(run: Run): FlowRow[] {
  const { now, before, seconds, meta } = run;
  if (!now || !meta) return [];
  return now.flows.flatMap((flow, place) => {
    const about = meta.flows[place];
    if (!about) return [];
    const { bits, offered, delivered } = flow;
    const isKnown = bits !== null && seconds > 0;
    return {
      place,
      name: `${run.nodeName(about.from)} → ${run.nodeName(about.to)}`,
      protocol: about.protocol ?? "",
      scheme: flow.scheme,
      why: flow.why,
      rate: isKnown ? (bits - (before?.flows[place]?.bits ?? 0)) / seconds : null,
      mean: bits === null ? null : throughput(run, place, now.time),
      arrived: offered && delivered !== null ? Math.min(1, delivered / offered) : null,
      now: flow,
    };
  });
}

/** Time after the first arrival that is not counted: queues fill and links are measured, s. */
const SETTLING_S = 1;

/**
 * Returns the samples between which the throughput of a run is measured: from a second after the
 * first packet of any flow arrived until the last arrived, at `until` the latest.
 */
export function measured(run: Run, until = Infinity): [number, number] | null {
  const { times, flows } = run.track;
  const sum = (i: number) => flows.reduce((all, flow) => all + (flow.bits[i] ?? 0), 0);
  let last = run.timeline.at(until);
  let first = 0;
  while (first < last && sum(first) === 0) first++;
  while (last > first && sum(last - 1) === sum(last)) last--;
  const from = run.timeline.at((times[first] ?? 0) + SETTLING_S);
  return last > from ? [from, last] : null;
}

/** Returns the bits per second of one flow, or of all, in the measured part of a run. */
export function throughput(run: Run, place: number | null, until = Infinity): number {
  const range = measured(run, until);
  if (!range) return 0;
  const [from, to] = range;
  const { flows, times } = run.track;
  const chosen = place === null ? flows : flows.slice(place, place + 1);
  const bits = (i: number) => chosen.reduce((all, flow) => all + (flow.bits[i] ?? 0), 0);
  return (bits(to) - bits(from)) / ((times[to] ?? 0) - (times[from] ?? 0));
}
