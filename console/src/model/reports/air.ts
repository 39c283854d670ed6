/** Airtime by its users and uses. */
import type { Run } from "../run";
import { known } from "../state";

/** Shares of a second on the air, by what the frames carry. */
export interface Airtime {
  control: number;
  data: number;
  coded: number;
}

/** A node's use of the air. */
export interface AirRow {
  id: number;
  name: string;
  queue: number | null;
  /** Shares of the last second that the node was sending; null if that is not known. */
  own: Airtime | null;
  /**
   * Share of the time in which no node that it hears, nor itself, was sending, 0 to 1; null if the
   * airtime of one of them is not known.
   */
  idle: number | null;
}

/** Returns the share of the last second that each node was sending; null where it is not known. */
export function airtimes(run: Run): (Airtime | null)[] {
  const { now, before, seconds } = run;
  if (!now) return [];
  const share = (name: "control_us" | "data_us" | "coded_us", i: number) => {
    const grown = (now.nodes[name][i] ?? NaN) - (before?.nodes[name][i] ?? NaN);
    // It falls where a node was started again.
    return seconds > 0 && grown >= 0 ? grown / (seconds * 1e6) : null;
  };
  return Array.from(now.nodes.up, (_, i) => {
    const control = share("control_us", i);
    const data = share("data_us", i);
    const coded = share("coded_us", i);
    return control === null || data === null || coded === null ? null : { control, data, coded };
  });
}

/** Returns the shares of all nodes that tell theirs, summed up; null if none does. */
export function allAir(rows: AirRow[]): Airtime | null {
  const told = rows.flatMap(({ own }) => own ?? []);
  if (told.length === 0) return null;
  const sum = (kind: keyof Airtime) => told.reduce((all, own) => all + own[kind], 0);
  return { control: sum("control"), data: sum("data"), coded: sum("coded") };
}

/** Returns the nodes with their airtime: the busiest first, those where it is not known last. */
export function airRows(run: Run): AirRow[] {
  const { now, meta } = run;
  if (!now || !meta) return [];
  const own = airtimes(run);
  // Unknown values stay NaN in these sums.
  const busy = own.map((airtime) => (airtime ? used(airtime) : NaN));
  const around = busy.slice();
  const places = new Map(meta.nodes.map((node, i) => [node.id, i]));
  meta.links.forEach(({ from, to }, i) => {
    const source = places.get(from);
    const target = places.get(to);
    if (source === undefined || target === undefined || now.links.heard[i] === 0) return;
    around[target] = (around[target] ?? NaN) + (busy[source] ?? NaN);
  });
  return meta.nodes
    .map((node, i) => {
      const others = known(around[i]);
      return {
        id: node.id,
        name: run.nodeName(node.id),
        queue: known(now.nodes.queue[i]),
        own: own[i] ?? null,
        idle: others === null ? null : Math.max(0, 1 - others),
      };
    })
    .sort((a, b) => (b.own ? used(b.own) : -1) - (a.own ? used(a.own) : -1) || a.id - b.id);
}

/** Returns the share of the time that a node was sending. */
export function used({ control, data, coded }: Airtime): number {
  return control + data + coded;
}
