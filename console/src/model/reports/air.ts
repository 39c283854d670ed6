/** Who uses the air, and for what. */
import type { Run } from "../run";

/** Shares of a second on the air, by what the frames carry. */
export interface Airtime {
  control: number;
  data: number;
  coded: number;
}

/** A node's use of the air. */
export interface AirRow extends Airtime {
  id: number;
  name: string;
  queue: number;
  /** Share of the time in which no node that it hears, nor itself, was sending, 0 to 1. */
  idle: number;
}

/** Returns the share of the last second that each node was sending. */
export function airtimes(run: Run): Airtime[] {
  const { now, before, seconds } = run;
  if (!now) return [];
  const micros = seconds * 1e6;
  const share = (name: "control_us" | "data_us" | "coded_us", i: number) =>
    micros > 0
      ? Math.max(0, (now.nodes[name][i] ?? 0) - (before?.nodes[name][i] ?? 0)) / micros
      : 0;
  return Array.from(now.nodes.up, (_, i) => ({
    control: share("control_us", i),
    data: share("data_us", i),
    coded: share("coded_us", i),
  }));
}

/** Returns the nodes with their airtime, the busiest first. */
export function airRows(run: Run): AirRow[] {
  const { now, meta } = run;
  if (!now || !meta) return [];
  const own = airtimes(run);
  const busy = own.map(sum);
  const around = busy.slice();
  const places = new Map(meta.nodes.map((node, i) => [node.id, i]));
  meta.links.forEach(({ from, to }, i) => {
    const source = places.get(from);
    const target = places.get(to);
    if (source === undefined || target === undefined || now.links.heard[i] === 0) return;
    around[target] = (around[target] ?? 0) + (busy[source] ?? 0);
  });
  return meta.nodes
    .map((node, i) => ({
      id: node.id,
      name: run.nodeName(node.id),
      queue: now.nodes.queue[i] ?? 0,
      idle: Math.max(0, 1 - (around[i] ?? 0)),
      ...(own[i] ?? { control: 0, data: 0, coded: 0 }),
    }))
    .sort((a, b) => sum(b) - sum(a) || a.id - b.id);
}

function sum({ control, data, coded }: Airtime): number {
  return control + data + coded;
}
