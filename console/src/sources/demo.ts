/** The demonstrations: the server simulates two runs and offers their recordings. */
import { BadMessage } from "../model/check";
import type { Run } from "../model/run";
import { fetchRecording, type Offer } from "./recording";

/** Simulated scenario. */
export interface DemoRequest {
  demonstration: "cross" | "building" | "hub";
  /** Loss of every link, 0 to 1; null leaves the links as the scenario has them. */
  loss: number | null;
  seed: number;
}

/** Answer of the server. */
interface Answer {
  runs: Offer[];
}

/**
 * Runs a demonstration, and returns the run without coding and the one with it.
 *
 * Throws `BadMessage` if the server cannot.
 */
export async function demonstrate(request: DemoRequest, signal: AbortSignal): Promise<[Run, Run]> {
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
  const { runs } = (await answer.json()) as Answer;
  const [baseline, coded] = runs;
  if (!baseline || !coded) throw new BadMessage("The server offered fewer than two runs.");
  return Promise.all([fetchRecording(baseline), fetchRecording(coded)]);
}
