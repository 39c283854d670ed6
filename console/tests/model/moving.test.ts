/** Nodes that move: a recording of the simulator, sought from everywhere. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { BadMessage, parseMessage } from "../../src/model/check";
import { cornersOf, layoutOf } from "../../src/model/layout";
import { Run } from "../../src/model/run";
import type { Message } from "../../src/schema/messages";
import { campus } from "../support/meshes";

const FILE = join(import.meta.dirname, "../fixtures/walkers.ncrec");
const lines = gunzipSync(readFileSync(FILE)).toString().trim().split("\n");

function runOf(messages: Message[]): Run {
  const run = new Run("walkers");
  messages.forEach((message) => run.push(message));
  return run;
}

/** Returns where a node is, m: east and north. */
function place(run: Run, name: string): [number, number] {
  const row = run.meta!.nodes.findIndex((node) => node.name === name);
  const { x_dm, y_dm } = run.now!.places!;
  return [x_dm[row]! / 10, y_dm[row]! / 10];
}

it("has walkers where the trace file has them, and those who stand where they stand", () => {
  const run = runOf(lines.map(parseMessage));
  // Its line of `walkers.movements`: 97.15 100 at 0 s, 45.25 130.19 at 42.88 s, in steps of 0.5 s.
  for (const [time, moved] of [
    [0, 0],
    [0.5, 0],
    [10.3, 10],
    [18.95, 18.5],
    [4, 3.5],
  ] as const) {
    run.moveTo(time);
    const [x, y] = place(run, "n3");
    expect(x).toBeCloseTo(97.15 + ((45.25 - 97.15) * moved) / 42.88, 0);
    expect(y).toBeCloseTo(100 + ((130.19 - 100) * moved) / 42.88, 0);
    expect(place(run, "n1")).toEqual([20, 100]);
  }
});

it("has them at the same places from every direction", () => {
  const run = runOf(lines.map(parseMessage));
  const all = Array.from({ length: 21 }, (_, second) => second);
  const walk = (of: Run) => (time: number) => {
    of.moveTo(time);
    return JSON.stringify(of.now!.places);
  };
  const forward = all.map(walk(run));
  expect(all.toReversed().map(walk(run)).toReversed()).toEqual(forward);
});

it("draws them within the area that all of them walk through", () => {
  const run = runOf(lines.map(parseMessage));
  const corners = cornersOf(run.meta!, run.track.area!);
  const [xs, ys] = [corners.map(({ x }) => x), corners.map(({ y }) => y)];
  const seen = new Set<string>();
  for (let time = 0; time < 20; time += 0.7) {
    run.moveTo(time);
    for (const { x, y } of layoutOf(run.meta!, run.now!.places)!.values()) {
      expect(x >= Math.min(...xs) - 1e-6 && x <= Math.max(...xs) + 1e-6).toBe(true);
      expect(y >= Math.min(...ys) - 1e-6 && y <= Math.max(...ys) + 1e-6).toBe(true);
      seen.add(`${x} ${y}`);
    }
  }
  expect(seen.size).toBeGreaterThan(100);
});

it("leaves nodes of a recording without places where its meta has them", () => {
  const run = runOf(campus());
  run.moveTo(10);
  expect([run.now!.places, run.track.area]).toEqual([null, null]);
});

it("refuses places and moves of other nodes", () => {
  const key = lines.find((line) => line.includes('"places"'))!;
  expect(() => parseMessage(key.replace('"x_dm":[', '"x_dm":[1,'))).toThrow(BadMessage);
  const [meta, first, tick] = [lines[0]!, lines[1]!, '{"type":"tick","time_s":0.1,"moves":'];
  for (const moves of ['{"row":[99],"x_dm":[1]}}', '{"row":[1],"x_dm":[1,2]}}', '{"x_dm":[1]}}']) {
    const damaged = [meta, first, tick + moves];
    expect(() => runOf(damaged.map(parseMessage))).toThrow(BadMessage);
  }
  const still = JSON.stringify({ ...JSON.parse(first), places: undefined });
  const moved = [meta, still, `${tick}{"row":[1],"x_dm":[1]}}`];
  expect(() => runOf(moved.map(parseMessage))).toThrow(BadMessage);
});
