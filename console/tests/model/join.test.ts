import { expect, it } from "vitest";
import { Joiner } from "../../src/sources/join";
import { cross } from "../support/meshes";

/** Name of the run of a server until it is started again. */
const RUN = "run";

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
  for (const message of [meta!, ...rest.slice(0, 63)]) joiner.take(message, RUN);
  const { run } = joiner;
  expect(run!.timeline.end).toBeCloseTo(6.2);
  joiner.connected();
  for (const message of connection(6.2)) joiner.take(message, RUN);
  expect(joiner.run).toBe(run);
  const whole = new Joiner("live");
  for (const message of [meta!, ...rest]) whole.take(message, RUN);
  expect(run!.timeline.times).toEqual(whole.run!.timeline.times);
  run!.moveTo(9.5);
  whole.run!.moveTo(9.5);
  expect(run!.now!.flows).toEqual(whole.run!.now!.flows);
});

it("goes on at a key if it missed some time", () => {
  const joiner = new Joiner("live");
  for (const message of [meta!, ...rest.slice(0, 20)]) joiner.take(message, RUN);
  joiner.connected();
  for (const message of connection(5.5)) joiner.take(message, RUN);
  const { times } = joiner.run!.timeline;
  expect(times.slice(19, 22)).toEqual([1.9, 5, 5.1]);
});

it("begins another run after a restart, whatever its time is", () => {
  const joiner = new Joiner("live");
  for (const message of [meta!, ...rest.slice(0, 20)]) joiner.take(message, RUN);
  const first = joiner.run;
  joiner.connected();
  const again = connection(5.5);
  expect(joiner.take(again[0]!, "another")).toBe("nothing");
  expect(joiner.take(again[1]!, "another")).toBe("begun");
  expect(joiner.run).not.toBe(first);
  expect(joiner.run!.timeline.times).toEqual([5]);
});

it("fills the time without a connection with the past that the server kept", () => {
  const joiner = new Joiner("live");
  for (const message of [meta!, ...rest.slice(0, 20)]) joiner.take(message, RUN);
  joiner.connected();
  const { time_s, ...state } = timed[0]!;
  const key = (time: number) => ({ ...state, time_s: time_s + time }) as (typeof rest)[number];
  const past = { ...meta, tick_s: 10 } as typeof meta;
  for (const message of [past!, key(15), key(25), meta!, key(32)]) joiner.take(message, RUN);
  const { timeline, track } = joiner.run!;
  expect(timeline.times.slice(-4)).toEqual([1.9, 15, 25, 32]);
  expect(track.gaps.size).toBe(0);
});
