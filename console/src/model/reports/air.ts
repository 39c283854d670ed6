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
  const micros = seconds * 1e6;
  const share = (name: "control_us" | "data_us" | "coded_us", i: number) =>
    micros > 0
      ? Math.max(0, (now.nodes[name][i] ?? 0) - (known(before?.nodes[name][i]) ?? 0)) / micros
      : 0;
  return Array.from(now.nodes.up, (_, i) =>
    known(now.nodes.control_us[i]) === null
      ? null
      : {
          control: share("control_us", i),
          data: share("data_us", i),
          coded: share("coded_us", i),
        },
  );
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
