import { expect, it } from "vitest";
import { Joiner } from "../../src/sources/join";
import { cross } from "../support/meshes";

/** Messages without the end, as a mesh sends them that goes on. */
const [meta, ...rest] = cross("forward").slice(0, -1);
const timed = rest as { type: string; time_s: number }[];

/** Returns what a server sends that is reached at `time`: meta, the last key, and what follows. */
function connection(time: number) {
  const key = timed.findLastIndex((message) => message.type === "key" && message.time_s <= time);
  return [meta!, ...rest.slice(key)];
}

it("continues a run after the connection was lost, without repeating anything", () => {
  const joiner = new Joiner("live");
  joiner.connected();
  for (const message of [meta!, ...rest.slice(0, 63)]) joiner.take(message);
  const { run } = joiner;
  expect(run!.timeline.end).toBeCloseTo(6.2);
  joiner.connected();
  for (const message of connection(6.2)) joiner.take(message);
  expect(joiner.run).toBe(run);
  const whole = new Joiner("live");
  for (const message of [meta!, ...rest]) whole.take(message);
  expect(run!.timeline.times).toEqual(whole.run!.timeline.times);
  run!.moveTo(9.5);
  whole.run!.moveTo(9.5);
  expect(run!.now!.flows).toEqual(whole.run!.now!.flows);
});

it("goes on at a key if it missed some time", () => {
  const joiner = new Joiner("live");
  for (const message of [meta!, ...rest.slice(0, 20)]) joiner.take(message);
  joiner.connected();
  for (const message of connection(5.5)) joiner.take(message);
  const { times } = joiner.run!.timeline;
  expect(times.slice(19, 22)).toEqual([1.9, 5, 5.1]);
});

it("begins another run if time goes back, as after a restart", () => {
  const joiner = new Joiner("live");
  for (const message of [meta!, ...rest]) joiner.take(message);
  const late = { ...timed[0]!, time_s: 50 };
  joiner.take(late as (typeof rest)[number]);
  const first = joiner.run;
  joiner.connected();
  joiner.take(meta!);
  expect(joiner.take(rest[0]!)).toBe("begun");
  expect(joiner.run).not.toBe(first);
  expect(joiner.run!.timeline.length).toBe(1);
});
