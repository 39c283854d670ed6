/** Colours of the canvas, from the stylesheet, so that both themes are in one place. */

export interface Palette {
  paper: string;
  ink: string;
  muted: string;
  line: string;
  /** Areas of a background. */
  ground: string;
  /** Nodes whose airtime is not known. */
  unknown: string;
  accent: string;
  down: string;
  /** Flows, in their order. */
  flows: string[];
  /** Delivery from 0 to 1, in equal steps. */
  delivery: string[];
  /** Worse and better than the reference. */
  worse: string;
  better: string;
  control: string;
  data: string;
  coded: string;
  font: string;
}

/** Steps of the scale of delivery. */
export const STEPS = 5;

/** Returns the colour that has this name in the stylesheet. */
function colourNamed(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Returns the colours that have these names now. */
export function coloursNamed(names: Map<number, string>): Map<number, string> {
  const colours = new Map([...new Set(names.values())].map((name) => [name, colourNamed(name)]));
  return new Map([...names].map(([id, name]) => [id, colours.get(name) ?? ""]));
}

/** Reads the colours that apply now. */
export function readPalette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const colour = colourNamed;
  const list = (name: string, length: number) =>
    Array.from({ length }, (_, i) => colour(`${name}-${i + 1}`));
  return {
    paper: colour("surface"),
    ink: colour("ink"),
    muted: colour("muted"),
    line: colour("edge"),
    ground: colour("field"),
    unknown: colour("edge"),
    accent: colour("accent"),
    down: colour("bad"),
    flows: list("flow", 6),
    delivery: list("delivery", STEPS),
    worse: colour("flow-2"),
    better: colour("flow-1"),
    control: colour("control"),
    data: colour("data"),
    coded: colour("coded"),
    font: style.getPropertyValue("--sans"),
  };
}
