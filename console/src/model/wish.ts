/** A demonstration as an address names it: `#cross?loss=0.4&seed=7`. */

/** A demonstration with its loss and seed. */
export interface Wish {
  id: string;
  /** Loss of every link, 0 to 1; null if the address names none. */
  loss: number | null;
  seed: number | null;
}

/** Largest seed that the server takes. */
const LARGEST_SEED = 2 ** 32 - 1;

/** Returns the part of an address behind the `#`, with the mark. */
export function hashOf({ id, loss, seed }: Wish): string {
  const parts = [loss === null ? "" : `loss=${loss}`, seed === null ? "" : `seed=${seed}`];
  const query = parts.filter(Boolean).join("&");
  return query ? `#${id}?${query}` : `#${id}`;
}

/** Returns what an address wishes. A value that is not possible is left out. */
export function wishIn(hash: string, highestLoss: number): Wish {
  const [id = "", query = ""] = hash.replace(/^#/, "").split("?");
  const values = new URLSearchParams(query);
  const number = (name: string) => (values.has(name) ? Number(values.get(name) || NaN) : NaN);
  const loss = number("loss");
  const seed = number("seed");
  return {
    id,
    loss: loss >= 0 && loss <= highestLoss ? loss : null,
    seed: Number.isInteger(seed) && seed >= 0 && seed <= LARGEST_SEED ? seed : null,
  };
}
