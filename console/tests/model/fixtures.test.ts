/** Recordings of the simulator give the figures that its command printed. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { parseMessage } from "../../src/model/check";
import { Run } from "../../src/model/run";
import { completionGain, throughputGain } from "../../src/model/reports/coding";
import { flowRows, throughput } from "../../src/model/reports/flows";
import { completion, transferRows } from "../../src/model/reports/transfers";
import { readRecording } from "../../src/sources/lines";

function read(name: string): Promise<Run> {
  const bytes = readFileSync(join(import.meta.dirname, "../fixtures", `${name}.ncrec`));
  return readRecording(name, new Blob([bytes]).stream() as ReadableStream<Uint8Array>);
}

it("has the throughput of both flows and the gain of coding", async () => {
  const [forward, braid] = [await read("cross-forward"), await read("cross-braid")];
  // The command measures from second 1 to 11, this from a second after the first arrival.
  const near = (value: number | null, kbps: number) =>
    expect(value! / kbps / 1000).toBeCloseTo(1, 1);
  near(throughput(forward, 0), 869);
  near(throughput(forward, 1), 773);
  near(throughput(braid, 0), 1507);
  near(throughput(braid, 1), 1502);
  expect(throughputGain(forward, braid)! / (3009 / 1642)).toBeCloseTo(1, 1);
  braid.moveTo(Infinity);
  expect(flowRows(braid)[0]!.now.delivered).toBeGreaterThanOrEqual(1712);
});

it("has the time until the last receiver has a file", async () => {
  const run = await read("building-cascade");
  expect(completion(run, 0)).toBeCloseTo(34.7, 0);
  expect(completionGain(run, run, 0)).toEqual({ gain: 1, isBound: false });
  run.moveTo(Infinity);
  const [transfer] = transferRows(run);
  expect(transfer!.receivers.map(({ name, share }) => [name, share])).toEqual(
    ["n05", "n09", "n14", "n20"].map((name) => [name, 1]),
  );
});

it("says what the gain is at least if the baseline does not complete a file", async () => {
  const run = await read("building-cascade");
  const cut = new Run("cut");
  const bytes = readFileSync(join(import.meta.dirname, "../fixtures/building-cascade.ncrec"));
  for (const line of gunzipSync(bytes).toString().split("\n").slice(0, 500)) {
    cut.push(parseMessage(line));
  }
  const { gain, isBound } = completionGain(cut, run, 0);
  expect(isBound).toBe(true);
  expect(gain).toBeCloseTo((cut.timeline.end - 10.5) / 34.7, 1);
  expect(completionGain(run, cut, 0).gain).toBeNull();
});
