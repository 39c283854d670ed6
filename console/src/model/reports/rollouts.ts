/** Roll-outs of router images, as tables, and how the map shows their nodes. */
import type { RolloutNodeNow } from "../../schema/messages";
import type { Run } from "../run";

/** Phases of a node in a roll-out, in their order, with the colour of each. */
export const PHASES = [
  { id: "silent", title: "not heard, or has no fleet", colour: "edge" },
  { id: "staging", title: "staging", colour: "flow-2" },
  { id: "staged", title: "staged", colour: "flow-5" },
  { id: "updating", title: "being updated", colour: "flow-4" },
  { id: "updated", title: "updated", colour: "flow-3" },
  { id: "back", title: "ended with the old version", colour: "flow-1" },
  { id: "failed", title: "refused or failed", colour: "flow-6" },
] as const;

export type Phase = (typeof PHASES)[number]["id"];

/** Phase of each word for how far a node is. */
const PHASE_OF: Record<string, Phase> = {
  staging: "staging",
  staged: "staged",
  applying: "updating",
  trial: "updating",
  kept: "updated",
  rolling_back: "back",
  rolled_back: "back",
  aborted: "back",
  refused: "failed",
  failed: "failed",
};

/** Colours of versions, in the order of `versions`. Further ones have that of unknown ones. */
const VERSION_COLOURS = ["flow-3", "flow-1", "flow-2", "flow-4", "flow-5", "flow-6"];
const UNKNOWN_COLOUR = "edge";

/** A node in a roll-out, at the time shown. */
export interface RolloutNodeRow {
  node: number;
  name: string;
  model: string;
  running: string;
  /** How far it is, in words. */
  state: string;
  /** Name of the colour of its phase. */
  colour: string;
  /** Its batch, such as `2`; a dash without one. */
  batch: string;
  /** Time since it was heard, s; null if it was not. */
  heard: number | null;
  why: string;
}

/** A number of nodes that have something in common. */
export interface Group {
  title: string;
  colour: string;
  nodes: number;
}

/** A roll-out at the time shown. */
export interface RolloutRow {
  place: number;
  /** Name and version of the release. */
  title: string;
  from: string;
  stage: string;
  /** The batch that is updated, of how many; empty while none is. */
  batch: string;
  waitsFor: string;
  nodes: RolloutNodeRow[];
  /** Nodes by phase; phases without nodes are left out. */
  phases: Group[];
}

/** Looks that nodes of a map can have. */
export type Look = "airtime" | "phase" | "version";

/** Colours of nodes on a map. */
export interface Tinting {
  /** Name of the colour of each node of the roll-out. */
  colours: Map<number, string>;
  legend: Group[];
}

const words = (state: string) => state.replaceAll("_", " ");

/** Returns the phase of a node. Words that are new to this page are as if nothing was heard. */
export function phaseOf({ standing }: RolloutNodeNow): Phase {
  return PHASE_OF[standing ?? ""] ?? "silent";
}

function phaseColour(node: RolloutNodeNow): string {
  return PHASES.find(({ id }) => id === phaseOf(node))?.colour ?? UNKNOWN_COLOUR;
}

/** Returns the roll-outs of a run at the time shown, the latest first. */
export function rolloutRows(run: Run): RolloutRow[] {
  const { now, meta } = run;
  if (!now || !meta) return [];
  const rows = now.rollouts.flatMap((rollout, place) => {
    const about = meta.rollouts?.[place];
    if (!about) return [];
    const { stage, batch, batches, waits_for: waitsFor } = rollout;
    const nodes = rollout.nodes.map((node): RolloutNodeRow => ({
      node: node.node,
      name: run.nodeName(node.node),
      model: node.model ?? "–",
      running: node.running ?? "–",
      state: node.standing === null ? "never heard" : words(node.standing),
      colour: phaseColour(node),
      batch: node.batch === null ? "–" : String(node.batch),
      heard: node.heard_s === null ? null : Math.max(0, now.time - node.heard_s),
      why: node.why,
    }));
    const row = {
      place,
      title: `${about.name} ${about.version}`,
      from: run.nodeName(about.from),
      stage: words(stage),
      batch: batch === null ? "" : `batch ${batch} of ${batches}`,
      waitsFor,
      nodes: nodes.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true })),
      phases: phasesOf(rollout.nodes),
    };
    return [row];
  });
  return rows.reverse();
}

function phasesOf(nodes: RolloutNodeNow[]): Group[] {
  const groups = PHASES.map(({ id, title, colour }) => {
    return { title, colour, nodes: nodes.filter((node) => phaseOf(node) === id).length };
  });
  return groups.filter(({ nodes }) => nodes > 0);
}

/**
 * Returns how the nodes of the latest roll-out look on the map; null if there is none, or if the
 * map shows their airtime.
 */
export function tinting(run: Run, look: Look): Tinting | null {
  const { now, meta } = run;
  const rollout = now?.rollouts.at(-1);
  if (!rollout || look === "airtime") return null;
  const { nodes } = rollout;
  if (look === "phase") {
    const colours = new Map(nodes.map((node) => [node.node, phaseColour(node)]));
    return { colours, legend: phasesOf(nodes) };
  }

  // The new version has the same colour in every roll-out, even before a node runs it.
  const latest = meta?.rollouts?.at(-1)?.version;
  const running = new Set(nodes.flatMap((node) => node.running ?? []));
  const others = [...running].filter((version) => version !== latest);
  const newest = (a: string, b: string) => b.localeCompare(a, undefined, { numeric: true });
  const versions: (string | null)[] = [latest ?? null, ...others.sort(newest)];
  const colour = (version: string | null) =>
    (version === null ? undefined : VERSION_COLOURS[versions.indexOf(version)]) ?? UNKNOWN_COLOUR;
  const legend = [...versions, null].map((version) => ({
    title: version ?? "not known",
    colour: colour(version),
    nodes: nodes.filter((node) => node.running === version).length,
  }));
  const colours = new Map(nodes.map((node) => [node.node, colour(node.running)]));
  return { colours, legend: legend.filter((group) => group.nodes > 0) };
}
