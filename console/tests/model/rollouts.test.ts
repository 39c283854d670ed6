/** Roll-outs: what the table says, and how the map colours nodes. */
import { expect, it } from "vitest";
import { parseMessage } from "../../src/model/check";
import { numbersOf } from "../../src/model/hover";
import { rolloutRows, tinting } from "../../src/model/reports/rollouts";
import { Run } from "../../src/model/run";
import type { Message } from "../../src/schema/messages";
import { campus, rollout } from "../support/meshes";

function runOf(messages: Message[]): Run {
  const run = new Run("test");
  messages.forEach((message) => run.push(message));
  return run;
}

it("tells how far each node is, and why it is no further", () => {
  const run = runOf(rollout());
  run.moveTo(24);
  const [row] = rolloutRows(run);
  expect(row!.title).toBe("town 2026.12");
  expect(row!.stage).toBe("stopped");
  const states = Object.fromEntries(row!.nodes.map((node) => [node.name, node]));
  expect(states["n03"]).toMatchObject({ state: "kept", running: "2026.12", batch: "1" });
  expect(states["n07"]).toMatchObject({
    state: "failed",
    why: "the old version runs after the update",
  });
  expect(states["n05"]!.state).toBe("has no fleet");
  expect(states["n20"]).toMatchObject({ state: "never heard", model: "–", heard: null });
  // Heard every two seconds, so it is never much longer ago.
  expect(states["n03"]!.heard).toBeLessThan(2.1);
  const phases = Object.fromEntries(row!.phases.map(({ title, nodes }) => [title, nodes]));
  expect(phases["refused or failed"]).toBe(1);
  expect(Object.values(phases).reduce((sum, nodes) => sum + nodes, 0)).toBe(22);
});

it("is the same however the time is reached", () => {
  const run = runOf(rollout());
  run.moveTo(7.3);
  const before = JSON.stringify(rolloutRows(run));
  run.moveTo(23);
  run.moveTo(7.3);
  expect(JSON.stringify(rolloutRows(run))).toBe(before);
});

it("colours nodes by phase or by version, and none without a roll-out", () => {
  const run = runOf(rollout());
  run.moveTo(24);
  const phases = tinting(run, "phase")!;
  expect(phases.colours.get(7)).toBe("flow-6");
  expect(phases.colours.get(3)).toBe("flow-3");
  const versions = tinting(run, "version")!;
  expect(versions.legend.map(({ title }) => title)).toEqual(["2026.12", "2026.11", "not known"]);
  expect(versions.colours.get(3)).toBe("flow-3");
  expect(versions.colours.get(7)).toBe("flow-1");
  expect(tinting(run, "airtime")).toBeNull();
  expect(numbersOf(run, { kind: "node", place: 6 })).toContain("failed, runs 2026.11");

  const other = runOf(campus());
  other.moveTo(10);
  expect(rolloutRows(other)).toEqual([]);
  expect(tinting(other, "phase")).toBeNull();
});

it("refuses roll-outs that are none", () => {
  const [meta, key] = rollout();
  const parse = (message: object) => () => parseMessage(JSON.stringify(message));
  expect(parse({ ...meta, rollouts: 7 })).toThrow("no list");
  const led = { number: "1", name: "town", version: "1.1", from: 99 };
  expect(parse({ ...meta, rollouts: [led] })).toThrow("a roll-out is led by a node");
  expect(parse({ ...key, rollouts: [{ nodes: "all" }] })).toThrow("no list");
  const tick = { type: "tick", time_s: 1 };
  expect(parse({ ...tick, rollouts: [{ rollout: 0, nodes: [7] }] })).toThrow("no list");
  expect(() =>
    runOf([meta!, key!, { type: "tick", time_s: 1, rollouts: [{ rollout: 9 }] }]),
  ).toThrow("place 9 does not exist");
});
