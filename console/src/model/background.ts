/**
 * A background of the map: lines and areas of a GeoJSON file (RFC 7946), such as streets, houses,
 * or the walls of a floor. Its coordinates are those that nodes have: longitude and latitude where
 * they say where on the Earth they are, else metres east and north.
 */
import type { Meta, Position } from "../schema/messages";
import { BadMessage } from "./check";

/** Longest file, bytes, and most points: what a canvas draws in an instant. */
export const LONGEST_FILE = 32 << 20;
const MOST_POINTS = 400_000;
/** Collections in collections that are followed. */
const DEEPEST = 8;

/** A line, or the border of an area. */
export type Line = Position[];

/** Picture under the mesh. */
export interface Background {
  lines: Line[];
  /** Areas, each with its border and those of its holes. */
  areas: Line[][];
}

/** Returns the background in a file. Throws `BadMessage` with what is wrong if there is none. */
export function readBackground(text: string, meta: Meta): Background {
  const nodes = meta.nodes.flatMap(({ position }) => position ?? []);
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    throw new BadMessage("This file is no GeoJSON.");
  }
  const reader = new Reader(nodes[0]?.kind ?? "plan");
  reader.read(root, 0);
  const { background } = reader;
  if (background.lines.length + background.areas.length === 0) {
    throw new BadMessage("This file has no lines or areas: it may be no GeoJSON.");
  }
  if (
    !isNear(boundsOf([...background.lines, ...background.areas.flat()].flat()), boundsOf(nodes))
  ) {
    throw new BadMessage("This file shows another place than that of the mesh.");
  }
  return background;
}

interface Bounds {
  low: [number, number];
  high: [number, number];
}

function boundsOf(positions: Position[]): Bounds {
  const bounds: Bounds = { low: [Infinity, Infinity], high: [-Infinity, -Infinity] };
  for (const position of positions) {
    const isPlan = position.kind === "plan";
    const place = isPlan ? [position.x, position.y] : [position.longitude, position.latitude];
    place.forEach((value, axis) => {
      bounds.low[axis] = Math.min(bounds.low[axis] ?? value, value);
      bounds.high[axis] = Math.max(bounds.high[axis] ?? value, value);
    });
  }
  return bounds;
}

/** Returns whether something is not farther from a mesh than the mesh is long. */
function isNear(ground: Bounds, mesh: Bounds): boolean {
  const length = Math.max(...mesh.high.map((high, axis) => high - (mesh.low[axis] ?? high)));
  return [0, 1].every((axis) => {
    const isAfter = (ground.low[axis] ?? 0) > (mesh.high[axis] ?? 0) + length;
    const isBefore = (ground.high[axis] ?? 0) < (mesh.low[axis] ?? 0) - length;
    return !isAfter && !isBefore;
  });
}

class Reader {
  readonly background: Background = { lines: [], areas: [] };
  private points = 0;

  constructor(private readonly kind: Position["kind"]) {}

  /** Reads a geometry, a feature, or a collection of them. Others, such as points, are left out. */
  read(value: unknown, depth: number): void {
    if (typeof value !== "object" || value === null || depth > DEEPEST) return;
    const { type, features, geometry, geometries, coordinates } = value as Record<string, unknown>;
    const each = (list: unknown) => (Array.isArray(list) ? (list as unknown[]) : []);
    const { lines, areas } = this.background;
    switch (type) {
      case "FeatureCollection":
        return each(features).forEach((feature) => this.read(feature, depth + 1));
      case "Feature":
        return this.read(geometry, depth + 1);
      case "GeometryCollection":
        return each(geometries).forEach((geometry) => this.read(geometry, depth + 1));
      case "LineString":
        return void lines.push(this.line(coordinates));
      case "MultiLineString":
        return each(coordinates).forEach((line) => lines.push(this.line(line)));
      case "Polygon":
        return void areas.push(each(coordinates).map((ring) => this.line(ring)));
      case "MultiPolygon":
        return each(coordinates).forEach((area) => {
          areas.push(each(area).map((ring) => this.line(ring)));
        });
    }
  }

  private line(coordinates: unknown): Line {
    if (!Array.isArray(coordinates)) throw new BadMessage("A line of this file has no points.");
    this.points += coordinates.length;
    if (this.points > MOST_POINTS) {
      throw new BadMessage(`This file has more than ${MOST_POINTS} points: simplify or cut it.`);
    }
    return coordinates.map((point) => this.position(point));
  }

  private position(point: unknown): Position {
    const [x, y] = Array.isArray(point) ? (point as unknown[]) : [];
    if (typeof x !== "number" || typeof y !== "number") {
      throw new BadMessage("A point of this file is not two numbers.");
    }
    if (this.kind === "plan") return { kind: "plan", x, y, z: 0 };
    if (Math.abs(x) > 180 || Math.abs(y) > 90) {
      throw new BadMessage(
        `The point ${x}, ${y} of this file is no longitude and latitude, ` +
          "as nodes here have them: convert it to WGS 84.",
      );
    }
    return { kind: "earth", longitude: x, latitude: y };
  }
}
