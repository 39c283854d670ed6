/** Nodes at which a file that is under way begins or ends. */
import type { Meta } from "../schema/messages";
import type { MeshState } from "./state";

/** Mark of a node. */
export interface Mark {
  /** Place of the transfer, which gives the colour. */
  place: number;
  isSource: boolean;
}

/** Returns the marks of nodes. One at which several files end has that of the latest. */
export function marksOf(meta: Meta, state: MeshState): Map<number, Mark> {
  const marks = new Map<number, Mark>();
  state.transfers.forEach(({ stage, receivers }, place) => {
    const about = meta.transfers[place];
    const open = receivers.filter((receiver) => receiver.stage === "open");
    // A receiver does not know the stage at the source.
    if (!about || !(stage === "open" || (stage === null && open.length > 0))) return;
    for (const to of about.to) marks.set(to, { place, isSource: false });
    marks.set(about.from, { place, isSource: true });
  });
  return marks;
}
