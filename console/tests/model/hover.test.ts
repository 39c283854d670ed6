import { expect, it } from "vitest";
import { numbersOf, spotAt } from "../../src/model/hover";
import { marksOf } from "../../src/model/marks";
import { Run } from "../../src/model/run";
import type { Message } from "../../src/schema/messages";
import { campus } from "../support/meshes";

function runOf(messages: Message[]): Run {
  const run = new Run("test");
  messages.forEach((message) => run.push(message));
  return run;
}

it("finds the node under the pointer, else the link", () => {
  const nodes = [
    { x: 0, y: 0 },
    { x: 100, y: 0 },
  ];
  const links = [{ from: nodes[0]!, to: nodes[1]! }];
  const at = (x: number, y: number) => spotAt({ x, y }, nodes, links);
  expect(at(4, 3)).toEqual({ kind: "node", place: 0 });
  expect(at(50, 4)).toEqual({ kind: "link", place: 0 });
  expect(at(50, 20)).toBeNull();
  expect(at(120, 0)).toBeNull();
});

it("tells the numbers of a node and of both directions of a link, and what is not measured", () => {
  const run = runOf(campus());
  run.moveTo(5);
  const [name, air] = numbersOf(run, { kind: "node", place: 0 });
  expect(name).toBe("n01");
  expect(air).toMatch(/^on the air \d+\.\d %$/);
  const there = numbersOf(run, { kind: "link", place: 0 });
  expect(there).toHaveLength(2);
  expect(there[0]).toMatch(/^n01 → n\d\d: \d+\.\d %, truly \d+\.\d %$/);
  run.now!.links.delivery[0] = NaN;
  expect(numbersOf(run, { kind: "link", place: 0 })[0]).toContain("not measured");
  expect(numbersOf(run, { kind: "link", place: 9999 })).toEqual([]);
  // Two nodes that a radio and a cable join are one link.
  run.now!.meta.links[0]!.ports = ["wlan0", "roof"];
  const [told, back] = numbersOf(run, { kind: "link", place: 0 });
  expect(told).toMatch(/, by wlan0 and roof$/);
  expect(back).not.toContain("by");
});

it("marks source and receivers of a file while it is under way", () => {
  const run = runOf(campus());
  run.moveTo(5);
  const { meta, now } = run;
  now!.transfers[0]!.stage = "open";
  const marks = marksOf(meta!, now!);
  expect(marks.get(1)).toEqual({ place: 0, isSource: true });
  expect([...marks.keys()].sort((a, b) => a - b)).toEqual([1, 5, 9, 14, 20]);
  now!.transfers[0]!.stage = "complete";
  expect(marksOf(meta!, now!).size).toBe(0);
});
