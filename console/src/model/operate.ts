/** Commands to a daemon, and their words. */
import type { Reloaded } from "../schema/api";
import type { Node, Stage } from "../schema/messages";
import type { Run } from "./run";

/** A node that a file can be sent to. */
export interface Receiver {
  id: number;
  /** Name that is shown. */
  name: string;
  /** Name that the daemon takes for this node and for no other. */
  address: string;
}

/** Returns the nodes that the daemon may send files to, by name. */
export function receiversOf(run: Run): Receiver[] {
  // Names of nodes that are there now, whatever time is shown.
  const meta = run.timeline.meta;
  const nodes = (meta?.nodes ?? []).filter(({ id }) => id !== meta?.observer);
  return nodes
    .map(({ id, name }) => ({ id, name: name || `node ${id}`, address: addressOf(id, nodes) }))
    .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
}

/** A name comes before an id, since a node may be called "7"; but two nodes may have one name. */
function addressOf(id: number, nodes: Node[]): string {
  const name = nodes.find((node) => node.id === id)?.name ?? "";
  const isOnly = nodes.filter((node) => node.name === name).length === 1;
  return name && isOnly ? name : String(id);
}

/** Returns whether a transfer at this stage can be cancelled. */
export function isOpen(stage: Stage): boolean {
  return stage === "waiting" || stage === "open" || stage === "verifying";
}

/** Says what became of a configuration that was read again. */
export function reloaded({ changed, restart }: Reloaded): string {
  const parts = [
    changed.length > 0 ? `Changed: ${changed.join(", ")}.` : "",
    restart.length > 0 ? `Only after a restart: ${restart.join(", ")}.` : "",
  ].filter(Boolean);
  return parts.join(" ") || "Nothing differs from the running configuration.";
}
