/** Where nodes are drawn. Units are arbitrary; x grows to the right and y down. */
import type { Meta, Node } from "../schema/messages";

export interface Point {
  x: number;
  y: number;
}

export type Layout = Map<number, Point>;

/** Most nodes that are laid out by their roles rather than by forces. */
const FEW = 8;
/** Metres by which a metre of height moves a node, so that floors do not hide each other. */
const SLANT = { x: 0.6, y: 1.1 };
/** Plans that are flatter than this are stretched, at most by the second factor. */
const FLAT = { ratio: 2.2, most: 2.5 };
const METRES_PER_DEGREE = 111_320;

/** Returns the layout, or null if forces must find it because nothing says where nodes are. */
export function layoutOf(meta: Meta): Layout | null {
  const placed = meta.nodes.filter((node) => node.position);
  if (placed.length === 0) return meta.nodes.length <= FEW ? byRoles(meta) : null;

  const latitude = placed.reduce(
    (sum, { position }) => sum + (position?.kind === "earth" ? position.latitude : 0),
    0,
  );
  const stretch = Math.cos(((latitude / placed.length) * Math.PI) / 180);
  const layout: Layout = new Map();
  for (const node of placed) layout.set(node.id, project(node, stretch));
  if (placed.every(({ position }) => position?.kind === "plan")) stretchFlat(layout);
  meta.nodes.forEach((node, i) => {
    if (!node.position) layout.set(node.id, besideNeighbours(meta, node.id, i, layout));
  });
  return layout;
}

function project({ position }: Node, stretch: number): Point {
  if (position?.kind === "plan") {
    return { x: position.x + SLANT.x * position.z, y: -position.y - SLANT.y * position.z };
  }
  if (position?.kind === "earth") {
    return {
      x: position.longitude * METRES_PER_DEGREE * stretch,
      y: -position.latitude * METRES_PER_DEGREE,
    };
  }
  return { x: 0, y: 0 };
}

/** Makes a flat plan, such as that of a house, higher: nodes and their names need room. */
function stretchFlat(layout: Layout): void {
  const points = [...layout.values()];
  const extent = (axis: "x" | "y") => {
    const values = points.map((point) => point[axis]);
    return Math.max(...values) - Math.min(...values);
  };
  const ratio = extent("x") / Math.max(extent("y"), 1e-9) / FLAT.ratio;
  const factor = Math.min(FLAT.most, Math.max(1, ratio));
  for (const point of points) point.y *= factor;
}

/** Returns a place near the middle of the neighbours that have one; `i` keeps nodes apart. */
function besideNeighbours(meta: Meta, id: number, i: number, layout: Layout): Point {
  const near = meta.links.flatMap(({ from, to }) => {
    const other = from === id ? layout.get(to) : to === id ? layout.get(from) : undefined;
    return other ? [other] : [];
  });
  const around = near.length > 0 ? near : [...layout.values()];
  const middle = (axis: "x" | "y") =>
    around.reduce((sum, point) => sum + point[axis], 0) / Math.max(1, around.length);
  const xs = [...layout.values()].map(({ x }) => x);
  const step = Math.max(1, Math.max(...xs) - Math.min(...xs)) / 12;
  return { x: middle("x") + step * Math.cos(i * 2.4), y: middle("y") + step * Math.sin(i * 2.4) };
}

/**
 * Lays out a few nodes in three columns: where traffic begins, what is between, where it ends. The
 * right column is in the order that makes links shortest.
 */
function byRoles(meta: Meta): Layout {
  const begins = new Set<number>();
  const ends = new Set<number>();
  const traffic = [
    ...meta.flows.map(({ from, to }) => ({ from, to: [to] })),
    ...meta.transfers,
    ...meta.streams,
  ];
  for (const { from, to } of traffic) {
    if (!ends.has(from)) begins.add(from);
    for (const id of to) if (!begins.has(id)) ends.add(id);
  }
  const ids = meta.nodes.map(({ id }) => id);
  const left = ids.filter((id) => begins.has(id));
  const middle = ids.filter((id) => !begins.has(id) && !ends.has(id));
  const right = ids.filter((id) => ends.has(id));

  const candidates = [right, right.toReversed()].map((order) => {
    const layout: Layout = new Map();
    [left, middle, order].forEach((column, i) => {
      column.forEach((id, j) => {
        layout.set(id, { x: i * 100, y: (j - (column.length - 1) / 2) * 125 });
      });
    });
    return layout;
  });
  const [first, second] = candidates as [Layout, Layout];
  return lengthOf(meta, first) <= lengthOf(meta, second) ? first : second;
}

function lengthOf(meta: Meta, layout: Layout): number {
  return meta.links.reduce((sum, { from, to }) => {
    const [a, b] = [layout.get(from), layout.get(to)];
    return a && b ? sum + Math.hypot(a.x - b.x, a.y - b.y) : sum;
  }, 0);
}

/** Scale and shift that bring a layout onto a canvas. */
export interface View {
  scale: number;
  x: number;
  y: number;
}

/** Room left around a mesh, px. */
export interface Margins {
  side: number;
  top: number;
  bottom: number;
}

/** Returns the view in which a layout fills `width` by `height` pixels but for the margins. */
export function fit(layout: Layout, width: number, height: number, margins: Margins): View {
  const points = [...layout.values()];
  const bounds = (axis: "x" | "y"): [number, number] =>
    points.reduce<[number, number]>(
      ([low, high], point) => [Math.min(low, point[axis]), Math.max(high, point[axis])],
      [Infinity, -Infinity],
    );
  const [left, right] = bounds("x");
  const [top, bottom] = bounds("y");
  if (!Number.isFinite(left)) return { scale: 1, x: width / 2, y: height / 2 };
  const room = {
    x: Math.max(1, width - 2 * margins.side),
    y: Math.max(1, height - margins.top - margins.bottom),
  };
  const scale = Math.min(
    room.x / Math.max(1e-9, right - left),
    room.y / Math.max(1e-9, bottom - top),
    // One node, or several in one place.
    1e6,
  );
  const isPoint = right === left && bottom === top;
  const used = isPoint ? 1 : scale;
  return {
    scale: used,
    x: width / 2 - (used * (left + right)) / 2,
    y: margins.top + room.y / 2 - (used * (top + bottom)) / 2,
  };
}
