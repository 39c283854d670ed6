/** The views, in their order. */
export const VIEWS = [
  { id: "map", title: "Map" },
  { id: "transfers", title: "Transfers" },
  { id: "flows", title: "Flows" },
  { id: "coding", title: "Coding" },
  { id: "streams", title: "Streams" },
  { id: "air", title: "Air" },
  { id: "rollouts", title: "Roll-outs" },
  { id: "security", title: "Security" },
  { id: "health", title: "Health" },
] as const;

export type ViewId = (typeof VIEWS)[number]["id"];

/** Returns the view that an address names after its `#`; the map if it names none. */
export function viewIn(hash: string): ViewId {
  const named = hash.replace(/^#\/?/, "");
  return VIEWS.find(({ id }) => id === named)?.id ?? "map";
}
