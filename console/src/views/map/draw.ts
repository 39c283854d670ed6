/** Draws a mesh on a canvas. Everything it needs is in the scene; it keeps nothing. */
import type { Meta, Position } from "../../schema/messages";
import { backdropOf } from "../../model/backdrop";
import type { Background, Line } from "../../model/background";
import type { Flight } from "../../model/flights";
import type { Layout, Point, View } from "../../model/layout";
import type { Airtime } from "../../model/reports/air";
import { marksOf, type Mark } from "../../model/marks";
import { known, type MeshState } from "../../model/state";
import { STEPS, type Palette } from "./palette";

/** Contents of a picture. */
export interface Scene {
  width: number;
  height: number;
  view: View;
  layout: Layout;
  meta: Meta;
  state: MeshState;
  palette: Palette;
  /** Time shown, s: it moves on between samples. */
  time: number;
  flights: Flight[];
  /** Seconds of the run that a frame takes to its receiver on the screen. */
  flightSeconds: number;
  airtimes: (Airtime | null)[];
  /** Colours of nodes by their ids, in place of their airtime; null shows the airtime. */
  tints: Map<number, string> | null;
  selected: number | null;
  /** Delivery to compare with, by link; null shows the delivery itself. */
  reference: (number | null)[] | null;
  /** Background; null if there is none. */
  ground: Ground | null;
  showsTruth: boolean;
  /** Whether links are only a backdrop for the frames. */
  isPlain: boolean;
  /** Radius of a node, px. */
  radius: number;
}

/** A background as paths, in the units of the layout. */
export interface Ground {
  lines: Path2D;
  areas: Path2D;
}

/** Links up to which both directions and the truth are drawn side by side. */
const DETAILED = 400;
/** Nodes up to which lost frames are drawn, and nodes without traffic have names in the demo. */
const FEW = 8;
/** Nodes up to which all names are drawn. */
const NAMED = 60;
/** Change of delivery that counts as worse or better. */
const TOLERANCE = 0.1;
/** Part of a flight after its arrival, in which a combination is taken apart. */
export const SPLIT = 0.35;

/** Draws the scene. The context is scaled so that one unit is one CSS pixel. */
export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  context.clearRect(0, 0, scene.width, scene.height);
  const points = scene.meta.nodes.map(({ id }) => place(scene, id));
  const rows = new Map(scene.meta.nodes.map(({ id }, row) => [id, row]));
  const ends = scene.meta.links.map(({ from, to }): [Point, Point] => [
    points[rows.get(from) ?? 0] as Point,
    points[rows.get(to) ?? 0] as Point,
  ]);
  if (scene.ground) drawGround(context, scene, scene.ground);
  if (scene.isPlain) drawBackdrop(context, scene, ends);
  else drawLinks(context, scene, ends);
  drawFlights(context, scene, ends);
  drawNodes(context, scene, points);
}

/** Returns where a node is on the canvas. */
export function place({ layout, view }: Pick<Scene, "layout" | "view">, id: number): Point {
  const point = layout.get(id) ?? { x: 0, y: 0 };
  return { x: point.x * view.scale + view.x, y: point.y * view.scale + view.y };
}

/** Returns the paths of a background. */
export function pathsOf(
  { lines, areas }: Background,
  project: (position: Position) => Point,
): Ground {
  const ground = { lines: new Path2D(), areas: new Path2D() };
  const add = (path: Path2D, line: Line) => {
    line.forEach((position, i) => {
      const { x, y } = project(position);
      if (i === 0) path.moveTo(x, y);
      else path.lineTo(x, y);
    });
  };
  for (const line of lines) add(ground.lines, line);
  for (const rings of areas) {
    rings.forEach((ring, i) => {
      // Holes go the other way round, whatever the file says: then areas may overlap.
      add(ground.areas, isClockwise(ring.map(project)) === (i === 0) ? ring : ring.toReversed());
      ground.areas.closePath();
    });
  }
  return ground;
}

function isClockwise(ring: Point[]): boolean {
  const sum = ring.reduce((sum, { x, y }, i) => {
    const next = ring[(i + 1) % ring.length] as Point;
    return sum + x * next.y - next.x * y;
  }, 0);
  return sum > 0;
}

function drawGround(context: CanvasRenderingContext2D, scene: Scene, ground: Ground) {
  const { view, palette } = scene;
  context.save();
  context.translate(view.x, view.y);
  context.scale(view.scale, view.scale);
  context.lineWidth = 1 / view.scale;
  context.fillStyle = palette.ground;
  context.strokeStyle = palette.line;
  context.fill(ground.areas);
  context.stroke(ground.areas);
  context.stroke(ground.lines);
  context.restore();
}

function drawBackdrop(context: CanvasRenderingContext2D, scene: Scene, ends: [Point, Point][]) {
  const { meta, state, palette } = scene;
  const width = meta.nodes.length <= FEW ? 2 : 1;
  const strokes = new Strokes();
  const strands = backdropOf(meta.links, (i) => {
    const loss = meta.links[i]?.loss ?? null;
    return loss === null ? known(state.links.delivery[i]) : 1 - loss;
  });
  for (const { link, isPoor } of strands) {
    strokes.add(palette.line, width, isPoor ? [6, 4] : [], ...(ends[link] as [Point, Point]));
  }
  strokes.draw(context);
}

/** Lines that look alike are drawn as one path: that is what makes 10,000 links fast. */
class Strokes {
  private paths = new Map<string, { style: string; width: number; dash: number[]; path: Path2D }>();

  add(style: string, width: number, dash: number[], a: Point, b: Point): void {
    const key = `${style} ${width} ${dash.length}`;
    let stroke = this.paths.get(key);
    if (!stroke) {
      stroke = { style, width, dash, path: new Path2D() };
      this.paths.set(key, stroke);
    }
    stroke.path.moveTo(a.x, a.y);
    stroke.path.lineTo(b.x, b.y);
  }

  draw(context: CanvasRenderingContext2D): void {
    for (const { style, width, dash, path } of this.paths.values()) {
      context.strokeStyle = style;
      context.lineWidth = width;
      context.setLineDash(dash);
      context.stroke(path);
    }
    context.setLineDash([]);
  }
}

function drawLinks(context: CanvasRenderingContext2D, scene: Scene, ends: [Point, Point][]) {
  const { meta, state, palette, reference, selected } = scene;
  const rows = new Map(meta.nodes.map(({ id }, row) => [id, row]));
  const isDetailed = meta.links.length <= DETAILED;
  const levels = Array.from({ length: STEPS + 1 }, () => new Strokes());
  const truths = new Strokes();
  meta.links.forEach(({ from, to, loss }, i) => {
    const [a, b] = ends[i] as [Point, Point];
    if (isOutside(scene, a, b)) return;
    // A link that is not known any more is as good as gone.
    const delivery = known(state.links.delivery[i]) ?? 0;
    const isUp =
      state.nodes.up[rows.get(from) ?? 0] === 1 && state.nodes.up[rows.get(to) ?? 0] === 1;
    const isFaded = !isUp || (selected !== null && selected !== from && selected !== to);
    const shift = isDetailed ? 2.2 : 0;
    if (scene.showsTruth && loss !== null && isDetailed && loss < 0.98 && !isFaded) {
      const colour = palette.delivery[step(1 - loss)] as string;
      truths.add(colour, 1.4, [3, 4], ...beside(a, b, shift + 3));
    }
    if (delivery < 0.02 && (reference?.[i] ?? 0) < 0.02) return;
    const look = reference ? compared(delivery, reference[i] ?? null, palette) : null;
    const level = step(delivery);
    const colour = isFaded ? palette.line : (look?.colour ?? (palette.delivery[level] as string));
    const width = isFaded ? 0.6 : (look?.width ?? (isDetailed ? 1 + level * 0.45 : 0.8));
    // Good links are drawn last: where lines cross, they are the ones that matter.
    levels[isFaded ? 0 : level + 1]?.add(colour, width, [], ...beside(a, b, shift));
  });
  truths.draw(context);
  levels.forEach((level) => level.draw(context));
}

function step(delivery: number): number {
  return Math.min(STEPS - 1, Math.max(0, Math.floor(delivery * STEPS)));
}

/** Returns how a link looks that is compared with the reference. */
function compared(delivery: number, reference: number | null, palette: Palette) {
  const change = delivery - (reference ?? 0);
  if (reference === null || change > TOLERANCE) return { colour: palette.better, width: 3 };
  if (change < -TOLERANCE) return { colour: palette.worse, width: 3 };
  return { colour: palette.line, width: 1.2 };
}

function isOutside({ width, height }: Scene, a: Point, b: Point): boolean {
  return (
    Math.max(a.x, b.x) < 0 ||
    Math.min(a.x, b.x) > width ||
    Math.max(a.y, b.y) < 0 ||
    Math.min(a.y, b.y) > height
  );
}

/** Returns the line from `a` to `b`, moved to its right by `shift`, so that directions differ. */
function beside(a: Point, b: Point, shift: number): [Point, Point] {
  const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const x = (-(b.y - a.y) / length) * shift;
  const y = ((b.x - a.x) / length) * shift;
  return [
    { x: a.x + x, y: a.y + y },
    { x: b.x + x, y: b.y + y },
  ];
}

function drawFlights(context: CanvasRenderingContext2D, scene: Scene, ends: [Point, Point][]) {
  const { palette, time, flightSeconds, flights, radius } = scene;
  const size = Math.max(2.6, radius * 0.36);
  for (const flight of flights) {
    const way = (time - flight.time) / flightSeconds;
    const [a, b] = ends[flight.link] as [Point, Point];
    const along = Math.min(way, 1);
    const x = a.x + (b.x - a.x) * along;
    const y = a.y + (b.y - a.y) * along;
    const [first = 0, second = first] = flight.colours;
    const one = palette.flows[first % palette.flows.length] as string;
    const other = palette.flows[second % palette.flows.length] as string;

    if (flight.isLost) {
      if (scene.meta.nodes.length > FEW) continue;
      // Lost on the way: it fades out before the middle.
      if (way > 0.55) continue;
      context.globalAlpha = Math.min(0.9, (0.55 - way) * 3);
      context.strokeStyle = palette.muted;
      context.lineWidth = 1.2;
      context.beginPath();
      context.arc(x, y, size * 0.7, 0, 2 * Math.PI);
      context.stroke();
      context.globalAlpha = 1;
    } else if (way <= 1) {
      disc(context, x, y, size, one, other, palette.paper, flight.isCoded);
    } else if (flight.isCoded) {
      // Taken apart: the halves part and fade.
      const apart = (way - 1) / SPLIT;
      context.globalAlpha = 1 - apart;
      const away = apart * radius * 1.6;
      half(context, b.x - away, b.y, size, one, true);
      half(context, b.x + away, b.y, size, other, false);
      context.globalAlpha = 1;
    }
  }
}

function disc(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  size: number,
  one: string,
  other: string,
  paper: string,
  isCoded: boolean,
) {
  const edge = isCoded ? size * 1.45 : size;
  context.fillStyle = paper;
  context.beginPath();
  context.arc(x, y, edge + 1.2, 0, 2 * Math.PI);
  context.fill();
  if (!isCoded || one === other) {
    context.fillStyle = one;
    context.beginPath();
    context.arc(x, y, edge, 0, 2 * Math.PI);
    context.fill();
    if (!isCoded) return;
    // A combination within one flow has one colour; a light core tells it from a packet.
    context.fillStyle = paper;
    context.beginPath();
    context.arc(x, y, edge * 0.4, 0, 2 * Math.PI);
    context.fill();
    return;
  }
  half(context, x, y, edge, one, true);
  half(context, x, y, edge, other, false);
}

function half(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  size: number,
  colour: string,
  isLeft: boolean,
) {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, size, Math.PI / 2, -Math.PI / 2, !isLeft);
  context.fill();
}

/** Returns the colours of nodes where traffic begins and where it ends. */
function roles({ meta, palette }: Scene): Map<number, { colour: string; isSource: boolean }> {
  const found = new Map<number, { colour: string; isSource: boolean }>();
  const traffic = [
    ...meta.flows.map(({ from, to }) => ({ from, to: [to] })),
    ...meta.transfers,
    ...meta.streams,
  ];
  traffic.forEach(({ from, to }, i) => {
    const colour = palette.flows[i % palette.flows.length] as string;
    for (const id of to) if (!found.has(id)) found.set(id, { colour, isSource: false });
    found.set(from, { colour, isSource: true });
  });
  return found;
}

function drawNodes(context: CanvasRenderingContext2D, scene: Scene, points: Point[]) {
  const { meta, state, palette, airtimes, selected, radius } = scene;
  const size = points.length > 300 ? Math.min(radius, 3) : radius;
  const ends = scene.isPlain ? roles(scene) : null;
  const marks = scene.isPlain ? new Map<number, Mark>() : marksOf(meta, state);
  const hasNames = points.length <= NAMED || scene.view.scale > 12;
  context.textAlign = "center";
  context.textBaseline = "top";
  meta.nodes.forEach(({ id }, row) => {
    const { x, y } = points[row] as Point;
    if (x < -50 || y < -50 || x > scene.width + 50 || y > scene.height + 50) return;
    const isUp = state.nodes.up[row] === 1;
    context.beginPath();
    context.arc(x, y, size, 0, 2 * Math.PI);
    const role = ends?.get(id);
    // An empty circle says that nothing is sent, which is not known of every node.
    const isTold = ends !== null || airtimes[row] != null;
    const bare = isTold ? palette.paper : palette.unknown;
    const tint = scene.tints && (scene.tints.get(id) ?? palette.unknown);
    context.fillStyle = tint ?? (role?.isSource ? role.colour : bare);
    context.fill();
    context.lineWidth = role ? size / 4 : size > 4 ? 2 : 1;
    context.strokeStyle = isUp ? (role?.colour ?? palette.ink) : palette.muted;
    if (!isUp) context.setLineDash([2, 3]);
    context.stroke();
    context.setLineDash([]);
    if (isUp && size > 4 && !ends && !tint) drawAirtime(context, scene, airtimes[row], x, y, size);
    if (isUp && size <= 4 && !tint) {
      context.fillStyle = palette.ink;
      context.fill();
    }
    const mark = marks.get(id);
    if (mark && size > 4) drawMark(context, scene, mark, x + size, y - size);
    if (id === selected) {
      context.lineWidth = 2;
      context.strokeStyle = palette.accent;
      context.beginPath();
      context.arc(x, y, size + 6, 0, 2 * Math.PI);
      context.stroke();
    }
  });

  // Names come last, so that no node hides one.
  meta.nodes.forEach(({ id, name }, row) => {
    const { x, y } = points[row] as Point;
    const role = ends?.get(id);
    const isUp = state.nodes.up[row] === 1;
    const isNamed = ends ? points.length <= FEW || role : hasNames || id === selected;
    if (!isNamed) return;
    const text = (isUp ? "" : "✕ ") + (name.length > 24 ? `${name.slice(0, 23)}…` : name);
    context.font = `${scene.isPlain ? 600 : 500} ${scene.isPlain ? 14 : 12}px ${palette.font}`;
    context.lineWidth = 3;
    context.strokeStyle = palette.paper;
    context.strokeText(text, x, y + size + 6);
    context.fillStyle = isUp ? palette.ink : palette.muted;
    context.fillText(text, x, y + size + 6);
  });
}

/** Draws the mark of a source, filled, or of a receiver. */
function drawMark(
  context: CanvasRenderingContext2D,
  { palette }: Scene,
  { place, isSource }: Mark,
  x: number,
  y: number,
) {
  const colour = palette.flows[place % palette.flows.length] as string;
  context.beginPath();
  context.arc(x, y, 4, 0, 2 * Math.PI);
  context.fillStyle = isSource ? colour : palette.paper;
  context.fill();
  context.lineWidth = 2;
  context.strokeStyle = colour;
  context.stroke();
}

/** Draws the share of the last second that a node was sending, as a pie by kind of frame. */
function drawAirtime(
  context: CanvasRenderingContext2D,
  { palette }: Scene,
  airtime: Airtime | null | undefined,
  x: number,
  y: number,
  size: number,
) {
  if (!airtime) return;
  let angle = -Math.PI / 2;
  for (const kind of ["control", "data", "coded"] as const) {
    const next = angle + Math.min(airtime[kind], 1) * 2 * Math.PI;
    context.fillStyle = palette[kind];
    context.beginPath();
    context.moveTo(x, y);
    context.arc(x, y, size - 2.5, angle, next);
    context.fill();
    angle = next;
  }
}
