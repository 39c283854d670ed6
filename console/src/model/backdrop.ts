/** Links that are drawn where links are only a backdrop for the frames. */

/** Delivery from which a link is drawn. Poorer ones would hide the others. */
const GOOD = 0.35;

/** Least delivery of a link that joins two parts of a mesh. Less is noise. */
const LEAST = 0.02;

/** A link of a backdrop. */
export interface Strand {
  /** Place of the link. */
  link: number;
  /** Whether it is poor, and drawn because no good link joins its two parts of the mesh. */
  isPoor: boolean;
}

/** Returns the good links, and the others between parts of the mesh that no good link joins. */
export function backdropOf(
  links: { from: number; to: number }[],
  delivery: (link: number) => number | null,
): Strand[] {
  const known = links.map((ends, link) => ({ ...ends, link, delivery: delivery(link) ?? 0 }));
  const good = known.filter((link) => link.delivery >= GOOD);
  // Every node is in a part of the mesh, which one of its nodes stands for.
  const above = new Map<number, number>();
  const partOf = (node: number): number => {
    const next = above.get(node) ?? node;
    return next === node ? node : partOf(next);
  };
  for (const { from, to } of good) above.set(partOf(from), partOf(to));
  const between = known.filter(
    ({ from, to, delivery }) => delivery >= LEAST && delivery < GOOD && partOf(from) !== partOf(to),
  );
  return [
    ...good.map(({ link }) => ({ link, isPoor: false })),
    ...between.map(({ link }) => ({ link, isPoor: true })),
  ];
}
