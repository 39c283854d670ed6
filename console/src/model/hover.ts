/** The node or link of a map that is under the pointer, and the numbers that are known of it. */
import { count, percent } from "./format";
import type { Point } from "./layout";
import { airtimes, used } from "./reports/air";
import { rolloutRows } from "./reports/rollouts";
import type { Run } from "./run";
import { known } from "./state";

/** Distance from which a node or a link is under the pointer, px. */
const NEAR = { node: 14, link: 6 };

/** A node by its row, or a link by its place. */
export type Spot = { kind: "node" | "link"; place: number };

/** Returns what is under the pointer: the nearest node, else the nearest link. */
export function spotAt(
  at: Point,
  nodes: Point[],
  links: { from: Point; to: Point }[],
): Spot | null {
  const node = nearest(nodes.map(({ x, y }) => Math.hypot(x - at.x, y - at.y)));
  if (node && node.distance < NEAR.node) return { kind: "node", place: node.place };
  const link = nearest(links.map(({ from, to }) => distance(at, from, to)));
  return link && link.distance < NEAR.link ? { kind: "link", place: link.place } : null;
}

function nearest(distances: number[]): { place: number; distance: number } | null {
  let found: { place: number; distance: number } | null = null;
  distances.forEach((distance, place) => {
    if (distance < (found?.distance ?? Infinity)) found = { place, distance };
  });
  return found;
}

/** Returns how far a point is from the line between two others. */
function distance(at: Point, from: Point, to: Point): number {
  const [x, y] = [to.x - from.x, to.y - from.y];
  const along = ((at.x - from.x) * x + (at.y - from.y) * y) / (x * x + y * y || 1);
  const part = Math.min(1, Math.max(0, along));
  return Math.hypot(from.x + part * x - at.x, from.y + part * y - at.y);
}

/** Returns the numbers that are known of a spot, a line each; none if it is not there any more. */
export function numbersOf(run: Run, { kind, place }: Spot): string[] {
  const { now, meta } = run;
  if (!now || !meta || now.meta !== meta) return [];
  if (kind === "node") {
    const node = meta.nodes[place];
    if (!node) return [];
    const airtime = airtimes(run)[place];
    const queue = known(now.nodes.queue[place]);
    const step = rolloutRows(run)[0]?.nodes.find((row) => row.node === node.id);
    return [
      run.nodeName(node.id) + (now.nodes.up[place] === 1 ? "" : ", down"),
      ...(airtime ? [`on the air ${percent(used(airtime))}`] : []),
      ...(queue === null ? [] : [`${count(queue)} packets wait`]),
      ...(step ? [`${step.state}, runs ${step.running}`] : []),
    ];
  }
  const link = meta.links[place];
  if (!link) return [];
  // Both directions lie on one line, and the pointer means both.
  return meta.links.flatMap(({ from, to, loss, ports = [] }, i) => {
    const isThis = from === link.from && to === link.to;
    const isBack = from === link.to && to === link.from;
    if (!isThis && !isBack) return [];
    const delivery = known(now.links.delivery[i]);
    const measured = delivery === null ? "not measured" : percent(delivery);
    const truth = loss === null ? "" : `, truly ${percent(1 - loss)}`;
    const by = ports.length === 0 ? "" : `, by ${ports.join(" and ")}`;
    return [`${run.nodeName(from)} → ${run.nodeName(to)}: ${measured}${truth}${by}`];
  });
}
