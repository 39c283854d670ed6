/** Where nodes are drawn. Units are arbitrary; x grows to the right and y down. */
import type { Meta, Position } from "../schema/messages";
import type { PlaceColumns } from "./state";
import type { Area } from "./track";

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

/**
 * Returns the layout, or null if forces must find it because nothing says where nodes are. Nodes
 * that move are at `places`.
 */
export function layoutOf(meta: Meta, places: PlaceColumns | null = null): Layout | null {
  const placed = meta.nodes.filter((node) => node.position);
  if (placed.length === 0) return meta.nodes.length <= FEW ? byRoles(meta) : null;

  const project = projectionOf(meta, places !== null);
  const layout: Layout = new Map();
  meta.nodes.forEach(({ id, position }, row) => {
    const now = places ? placeOf(places, row) : position;
    if (now) layout.set(id, project(now));
  });
  meta.nodes.forEach(({ id }, i) => {
    if (!layout.has(id)) layout.set(id, besideNeighbours(meta, id, i, layout));
  });
  return layout;
}

function placeOf({ x_dm, y_dm, z_dm }: PlaceColumns, row: number): Position {
  const metres = (column: Int32Array) => (column[row] ?? 0) / 10;
  return { kind: "plan", x: metres(x_dm), y: metres(y_dm), z: metres(z_dm) };
}

/** Returns the corners of the area in which nodes move. */
export function cornersOf(meta: Meta, area: Area): Point[] {
  const project = projectionOf(meta, true);
  const { low, high } = area;
  return [low.x_dm, high.x_dm].flatMap((x) =>
    [low.y_dm, high.y_dm].flatMap((y) =>
      [low.z_dm, high.z_dm].map((z) => project({ kind: "plan", x: x / 10, y: y / 10, z: z / 10 })),
    ),
  );
}

/**
 * Returns where the places of a mesh are drawn, with the middle of its nodes at the origin: a
 * canvas has too few digits for places that are far from it.
 */
export function projectionOf(meta: Meta, isMoving: boolean): (position: Position) => Point {
  const positions = meta.nodes.flatMap(({ position }) => position ?? []);
  const mean = (values: number[]) =>
    values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  const plans = positions.flatMap((position) => (position.kind === "plan" ? position : []));
  const earths = positions.flatMap((position) => (position.kind === "earth" ? position : []));
  const middle = {
    x: mean(plans.map(({ x }) => x)),
    y: mean(plans.map(({ y }) => y)),
    latitude: mean(earths.map(({ latitude }) => latitude)),
    longitude: mean(earths.map(({ longitude }) => longitude)),
  };

  const shrinking = Math.cos((middle.latitude * Math.PI) / 180);
  const project = (position: Position, stretch: number): Point => {
    if (position.kind === "earth") {
      return {
        x: (position.longitude - middle.longitude) * METRES_PER_DEGREE * shrinking,
        y: (middle.latitude - position.latitude) * METRES_PER_DEGREE,
      };
    }
    return {
      x: position.x - middle.x + SLANT.x * position.z,
      y: (middle.y - position.y - SLANT.y * position.z) * stretch,
    };
  };
  // Where nodes move, no place of theirs says how flat the plan is.
  const isPlan = earths.length === 0 && !isMoving;
  const stretch = isPlan ? stretchOf(positions.map((position) => project(position, 1))) : 1;
  return (position) => project(position, stretch);
}

/** Returns by how much a flat plan, as of a house, is made higher: names of nodes need room. */
function stretchOf(points: Point[]): number {
  const extent = (axis: "x" | "y") => {
    const values = points.map((point) => point[axis]);
    return Math.max(...values) - Math.min(...values);
  };
  const ratio = extent("x") / Math.max(extent("y"), 1e-9) / FLAT.ratio;
  return Math.min(FLAT.most, Math.max(1, ratio));
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

/** Returns the view in which points fill `width` by `height` pixels but for the margins. */
export function fit(points: Point[], width: number, height: number, margins: Margins): View {
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
