/** Where this page's data come from. */
import { BadMessage } from "../model/check";
import { inlineRecordings, type Offer } from "./recording";

/** Contents that the server says it shows. */
export type Source =
  | { kind: "live"; commands: boolean }
  | { kind: "recording"; runs: Offer[] }
  | { kind: "inline"; runs: string[] }
  | { kind: "demo" }
  | { kind: "nothing" };

/** Finds the source: recordings in the page, else what the server says. */
export async function findSource(): Promise<Source> {
  const inline = inlineRecordings();
  if (inline) return { kind: "inline", runs: inline };
  const answer = await fetch("console.json").catch(() => null);
  if (!answer?.ok) return { kind: "nothing" };
  const source = (await answer.json().catch(() => {
    throw new BadMessage("The server's console.json is damaged.");
  })) as Source;
  return source;
}
