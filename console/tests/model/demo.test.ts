import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { backdropOf } from "../../src/model/backdrop";
import { goalOf, racerOf } from "../../src/model/race";
import { Run } from "../../src/model/run";
import { hashOf, wishIn } from "../../src/model/wish";
import { completion } from "../../src/model/reports/transfers";
import { readRecording } from "../../src/sources/lines";
import { campus, cross } from "../support/meshes";
import type { Message } from "../../src/schema/messages";

function runOf(messages: Message[]): Run {
  const run = new Run("test");
  messages.forEach((message) => run.push(message));
  return run;
}

describe("a race", () => {
  it("of flows ends when as much has arrived as the slower side delivers in all", () => {
    const runs: [Run, Run] = [runOf(cross("forward")), runOf(cross("core_nc"))];
    const goal = goalOf(runs)!;
    const last = runs[0].track.flows.reduce((sum, { bits }) => sum + bits.at(-1)!, 0);
    expect(goal).toEqual({ amount: last, kind: "bits" });
    const [slow, fast] = runs.map((run) => racerOf(run, goal, run.timeline.end));
    expect(slow).toMatchObject({ share: 1, isFinished: true });
    expect(fast!.isFinished).toBe(true);
    expect(fast!.seconds).toBeLessThan(slow!.seconds * 0.7);
    const half = racerOf(runs[1], goal, 2);
    expect(half.isFinished).toBe(false);
    expect(half.share).toBeGreaterThan(0.3);
    expect(half.share).toBeLessThan(1);
  });

  it("of a file ends when the last receiver has it", () => {
    const runs: [Run, Run] = [runOf(campus(1)), runOf(campus(6))];
    const goal = goalOf(runs)!;
    expect(goal).toEqual({ amount: 4 * 2_300_000, kind: "bytes" });
    const finish = completion(runs[0], 0);
    if (finish === null) expect(racerOf(runs[0], goal, 24)).toMatchObject({ isFinished: false });
    else expect(racerOf(runs[0], goal, 24).seconds).toBe(finish);
    expect(racerOf(runs[0], goal, 3)).toMatchObject({ isFinished: false });
  });

  it("has no goal if nothing arrives", () => {
    const [meta, key] = cross("forward") as [Message, Message];
    expect(goalOf([runOf([meta, key]), runOf(cross("forward"))])).toBeNull();
  });
});

describe("a backdrop", () => {
  it("has the only link between the halves of a building, poor as it is", async () => {
    const bytes = readFileSync(join(import.meta.dirname, "../fixtures/building.ncrec"));
    const file = new Blob([bytes]).stream() as ReadableStream<Uint8Array>;
    const { meta } = (await readRecording("building", file)).timeline;
    const { links } = meta!;
    const strands = backdropOf(links, (link) => 1 - (links[link]!.loss ?? 1));
    const above = new Map(meta!.nodes.map(({ id }) => [id, id]));
    const partOf = (node: number): number =>
      above.get(node) === node ? node : partOf(above.get(node)!);
    for (const { link } of strands) {
      const { from, to } = links[link]!;
      above.set(partOf(from), partOf(to));
    }
    expect(new Set(meta!.nodes.map(({ id }) => partOf(id))).size).toBe(1);
    const poor = strands.filter(({ isPoor }) => isPoor);
    expect(poor.length).toBeGreaterThan(0);
    expect(poor.every(({ link }) => links[link]!.loss! > 0.65)).toBe(true);
    expect(strands.length).toBeLessThan(links.length);
  });

  it("has neither links of which nothing is known nor poor ones beside good ones", () => {
    const links = [
      { from: 1, to: 2 },
      { from: 2, to: 1 },
      { from: 1, to: 3 },
    ];
    const deliveries = [0.9, 0.1, null];
    const strands = backdropOf(links, (link) => deliveries[link] ?? null);
    expect(strands).toEqual([{ link: 0, isPoor: false }]);
  });
});

describe("an address", () => {
  it.each([
    ["#cross?loss=0.4&seed=7", { id: "cross", loss: 0.4, seed: 7 }],
    ["#building?seed=4294967295", { id: "building", loss: null, seed: 4294967295 }],
    ["#hub", { id: "hub", loss: null, seed: null }],
    ["#cross?loss=0.9&seed=-1", { id: "cross", loss: null, seed: null }],
    ["#cross?loss=&seed=1.5", { id: "cross", loss: null, seed: null }],
    ["", { id: "", loss: null, seed: null }],
  ])("%s", (hash, wish) => {
    expect(wishIn(hash, 0.5)).toEqual(wish);
  });

  it("says what it was made of", () => {
    for (const wish of [
      { id: "cross", loss: 0.25, seed: 3 },
      { id: "building", loss: null, seed: 1 },
    ]) {
      expect(wishIn(hashOf(wish), 0.5)).toEqual(wish);
    }
  });
});
