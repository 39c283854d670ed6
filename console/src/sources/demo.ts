/** The demonstrations: the server simulates two runs and offers their recordings. */
import { BadMessage } from "../model/check";
import type { Run } from "../model/run";
import { fetchFile, openBytes, type Offer } from "./recording";

/** Simulated scenario. */
export interface DemoRequest {
  demonstration: "cross" | "building" | "hub";
  /** Loss of every link, 0 to 1; null leaves the links as the scenario has them. */
  loss: number | null;
  seed: number;
}

/** A demonstration that has run: without coding and with it, and the recordings of both. */
export interface Shown {
  runs: [Run, Run];
  files: [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>];
}

/** Answer of the server. */
interface Answer {
  runs: Offer[];
}

/**
 * Runs a demonstration, and returns both runs.
 *
 * Throws `BadMessage` if the server cannot.
 */
export async function demonstrate(request: DemoRequest, signal: AbortSignal): Promise<Shown> {
  const answer = await fetch("demo/run", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
    signal,
  });
  if (!answer.ok) {
    const why = (await answer.text()).slice(0, 300);
    throw new BadMessage(`The simulator cannot run this: ${why || answer.statusText}`);
  }
  const offered = (await answer.json()) as Answer;
  const [baseline, coded] = offered.runs;
  if (!baseline || !coded) throw new BadMessage("The server offered fewer than two runs.");
  const files = await Promise.all([fetchFile(baseline), fetchFile(coded)]);
  const runs = await Promise.all([
    openBytes(files[0], baseline.name),
    openBytes(files[1], coded.name),
  ] as const);
  return { runs, files };
}
