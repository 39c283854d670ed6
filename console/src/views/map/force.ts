/** Layout by forces, for meshes that say nothing of where nodes are. Loaded only for them. */
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import type { Layout } from "../../model/layout";
import type { Meta } from "../../schema/messages";

/** Returns a layout in which nodes that hear each other are near. It is the same every time. */
export function layoutByForces(meta: Meta): Layout {
  const nodes = meta.nodes.map(({ id }) => ({ id, x: NaN, y: NaN }));
  const links = meta.links.map(({ from, to, loss }) => ({ source: from, target: to, loss }));
  const near = forceLink<(typeof nodes)[number], (typeof links)[number]>(links)
    .id(({ id }) => id)
    .distance(({ loss }) => 30 + 50 * (loss ?? 0));
  forceSimulation(nodes)
    .force("link", near)
    .force("charge", forceManyBody().strength(-140))
    .force("collide", forceCollide(16))
    .force("x", forceX().strength(0.03))
    .force("y", forceY().strength(0.05))
    .stop()
    .tick(Math.max(80, Math.min(300, Math.round(60_000 / nodes.length))));
  return new Map(nodes.map(({ id, x, y }) => [id, { x, y }]));
}
