/** Links that are drawn where links are only a backdrop for the frames. */

/** Delivery from which a link is drawn. Poorer ones would hide the others. */
const GOOD = 0.35;

/** A link of a backdrop. */
export interface Strand {
  /** Place of the link. */
  link: number;
  /** Whether it is poor, and drawn because nothing better joins two parts of the mesh. */
  isPoor: boolean;
}

/** Returns the good links, and the best of the others that are needed to join what can be joined. */
export function backdropOf(
  links: { from: number; to: number }[],
  delivery: (link: number) => number | null,
): Strand[] {
  // Every node is in a part of the mesh, which one of its nodes stands for.
  const above = new Map<number, number>();
  const partOf = (node: number): number => {
    const next = above.get(node) ?? node;
    return next === node ? node : partOf(next);
  };
  const order = links
    .map((_, link) => ({ link, delivery: delivery(link) ?? 0 }))
    .filter((it) => it.delivery > 0)
    .sort((a, b) => b.delivery - a.delivery);
  return order.flatMap(({ link, delivery }) => {
    const { from, to } = links[link]!;
    const joins = partOf(from) !== partOf(to);
    if (joins) above.set(partOf(from), partOf(to));
    const isPoor = delivery < GOOD;
    return isPoor && !joins ? [] : [{ link, isPoor }];
  });
}
