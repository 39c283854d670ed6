/** Members, refused frames, and what an operator should do. */
import { STAGES, type Event } from "../../schema/messages";
import type { Run } from "../run";

/** A card: what is wrong, where, and what to do. */
export interface Card {
  /** Names the kind of problem, so that the same one is shown once. */
  title: string;
  text: string;
  where: string;
  /** Time when it was last seen, s; null if that is not known. */
  time: number | null;
  /** How often it was told. */
  times: number;
  level: "problem" | "hint";
}

/** Frames refused for one reason. */
export interface RefusedRow {
  reason: string;
  meaning: string;
  frames: number;
  nodes: string[];
  last: number;
}

/** Reasons to drop a frame, as `docs/reference/api.md` has them, and what to do about each. */
const REASONS: Record<string, string> = {
  foreign: "No ncmesh frames. Another program uses this port or this kind of frame.",
  version: "ncmesh frames of another version. Update the nodes that send them.",
  unauthentic: "Not sealed with the key of this network. Compare the keys of the nodes.",
  replayed: "Heard before. A few are normal; many mean that somebody repeats recorded frames.",
  unproven: "The sender has not proved yet that it is there now. Normal while a node joins.",
  duplicate_id: "Another node has the id of this one. Give one of them another id.",
  unknown_service: "No service here takes such frames. Compare the versions and engines.",
  malformed: "Fields that contradict each other or end early. Compare the versions.",
  unknown_flow: "They belong to a flow that this node does not know. Normal after a restart.",
  stale: "Older than what this node has already. Normal on meshes with several paths.",
  disputed: "Another file under the id of a known transfer. A member may be lying.",
  undecodable: "Coded with a packet that this node lacks. Some are normal where links lose much.",
  blamed: "From a node that sent false packets of files. The node's hints name it.",
  full: "They would need more memory than this node allows. Raise its limits or send less.",
};

/** Reasons that outsiders or wrong settings cause; the others occur in a mesh that is well. */
const SUSPICIOUS = new Set([
  "foreign",
  "version",
  "unauthentic",
  "duplicate_id",
  "malformed",
  "disputed",
  "blamed",
]);

/** Returns the frames refused up to the time shown, the most frequent reason first. */
export function refusedRows(run: Run): RefusedRow[] {
  const rows = new Map<string, RefusedRow>();
  for (const { what, node, time_s } of run.events) {
    if (what.kind !== "drops") continue;
    let row = rows.get(what.reason);
    if (!row) {
      const meaning = REASONS[what.reason] ?? "";
      row = { reason: what.reason, meaning, frames: 0, nodes: [], last: 0 };
      rows.set(what.reason, row);
    }
    row.frames += what.frames;
    row.last = time_s;
    const name = node === null ? "the mesh" : run.nodeName(node);
    if (!row.nodes.includes(name)) row.nodes.push(name);
  }
  return [...rows.values()].sort((a, b) => b.frames - a.frames);
}

/** Returns what needs attention at the time shown, problems first, the latest first. */
export function cards(run: Run): Card[] {
  const { now, meta } = run;
  if (!now || !meta) return [];
  const found: Card[] = [];
  meta.nodes.forEach((node, i) => {
    if (now.nodes.up[i]) return;
    const stopped = run.events.findLast((e) => e.what.kind === "node_down" && e.node === node.id);
    found.push({
      title: "A node is down",
      text: `${run.nodeName(node.id)} is not heard. Check its power and its radio.`,
      where: run.nodeName(node.id),
      time: stopped?.time_s ?? null,
      times: 1,
      level: "problem",
    });
  });
  for (const stream of now.streams) {
    for (const { node, problem } of stream.receivers) {
      if (!problem) continue;
      const where = run.nodeName(node);
      const title = "A receiver gets too little of a stream";
      found.push({ title, text: problem, where, time: now.time, times: 1, level: "problem" });
    }
  }
  for (const row of refusedRows(run)) {
    if (!SUSPICIOUS.has(row.reason)) continue;
    found.push({
      title: `Frames refused: ${row.reason}`,
      text: row.meaning,
      where: row.nodes.join(", "),
      time: row.last,
      times: row.frames,
      level: "problem",
    });
  }
  found.push(...hints(run));
  const order = { problem: 0, hint: 1 };
  return found.sort((a, b) => order[a.level] - order[b.level] || (b.time ?? 0) - (a.time ?? 0));
}

/** Returns the hints that nodes told, each once for every node. */
function hints(run: Run): Card[] {
  const found = new Map<string, Card>();
  for (const { what, node, time_s } of run.events) {
    if (what.kind !== "hint") continue;
    const key = `${node ?? ""} ${what.text}`;
    const card = found.get(key);
    if (card) {
      card.time = time_s;
      card.times += 1;
      continue;
    }
    const where = node === null ? "the mesh" : run.nodeName(node);
    const title = "Hint";
    found.set(key, { title, text: what.text, where, time: time_s, times: 1, level: "hint" });
  }
  return [...found.values()];
}

/** Returns an event as a sentence without its node and time; empty for the end. */
export function describe(run: Run, event: Event): string {
  const { what } = event;
  const file = (place: number) => run.meta?.transfers[place]?.name ?? `transfer ${place}`;
  switch (what.kind) {
    case "node_up":
      return "started";
    case "node_down":
      return "stopped";
    case "neighbor_up":
      return `hears ${run.nodeName(what.neighbor)}`;
    case "neighbor_down":
      return `no longer hears ${run.nodeName(what.neighbor)}`;
    case "transfer":
      return `${file(what.transfer)}: ${STAGES[what.stage]}`;
    case "receiver_done":
      return `${file(what.transfer)}: ${run.nodeName(what.receiver)} has all of it`;
    case "hint":
      return what.text;
    case "drops":
      return `dropped ${what.frames} frames in ${what.seconds} s: ${what.reason}`;
    case "end":
      return "";
  }
}
