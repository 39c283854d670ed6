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
  /**
   * Innovative frames that were heard in the last second at the node that tells, per second; null
   * at the flow's source, which sends them.
   */
  heard: number | null;
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
    const isSource = about.from === meta.observer;
    const earlier = before?.flows[place];
    const grown = (value: number | null, old: number | null | undefined) =>
      seconds > 0 && value !== null && old != null && value >= old ? (value - old) / seconds : null;
    return {
      place,
      name: `${run.nodeName(about.from)} → ${run.nodeName(about.to)}`,
      protocol: about.protocol ?? "",
      scheme: flow.scheme,
      why: flow.why,
      rate: grown(bits, earlier?.bits),
      heard: isSource ? null : grown(flow.innovative, earlier?.innovative),
      mean: throughput(run, place, now.time),
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

/**
 * Returns the bits per second of one flow, or of all, in the measured part of a run; null if
 * nothing was measured.
 */
export function throughput(run: Run, place: number | null, until = Infinity): number | null {
  const range = measured(run, until);
  if (!range) return null;
  const [from, to] = range;
  const { flows, times } = run.track;
  const chosen = place === null ? flows : flows.slice(place, place + 1);
  // A flow that was not known at the beginning counts from when it was.
  const grown = chosen.flatMap(({ bits }) => {
    const last = bits[to] ?? null;
    const first = bits.slice(from, to).find((value) => value !== null) ?? null;
    return last === null || first === null || last < first ? [] : last - first;
  });
  const seconds = (times[to] ?? 0) - (times[from] ?? 0);
  return grown.length > 0 ? grown.reduce((all, bits) => all + bits, 0) / seconds : null;
}
