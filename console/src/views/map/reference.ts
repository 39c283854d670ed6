/** The state of links that the user saved, to compare later states with. */
import type { Meta } from "../../schema/messages";
import { known, type MeshState } from "../../model/state";

/** Measured delivery by link, named by its nodes. */
type Kept = Record<string, number>;

const storageKey = (meta: Meta) => `ncmesh-reference-${meta.scenario ?? meta.source}`;
const linkKey = (from: number, to: number) => `${from}>${to}`;

/** Keeps the delivery of all links. Returns whether the browser allows it. */
export function keepReference(state: MeshState): boolean {
  const kept: Kept = {};
  state.meta.links.forEach(({ from, to }, i) => {
    const delivery = known(state.links.delivery[i]);
    if (delivery !== null) kept[linkKey(from, to)] = Math.round(delivery * 1000) / 1000;
  });
  try {
    localStorage.setItem(storageKey(state.meta), JSON.stringify(kept));
    return true;
  } catch {
    return false;
  }
}

/** Returns the delivery that was kept, by link; null if there is none for this mesh. */
export function findReference(meta: Meta): (number | null)[] | null {
  try {
    const text = localStorage.getItem(storageKey(meta));
    if (!text) return null;
    const kept = JSON.parse(text) as Kept;
    return meta.links.map(({ from, to }) => kept[linkKey(from, to)] ?? null);
  } catch {
    return null;
  }
}
