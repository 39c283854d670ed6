import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { readRecording } from "../../src/sources/lines";
import { campus, cross } from "../support/meshes";
import { fileOf } from "../support/recorder";

/** Returns a stream that gives a file in pieces, as a network does. */
function pieces(file: Uint8Array, size = 1000): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= file.length) return controller.close();
      controller.enqueue(file.subarray(at, at + size));
      at += size;
    },
  });
}

const text = (lines: string[]) => gzipSync(lines.map((line) => `${line}\n`).join(""));
const lines = () => cross("forward").map((message) => JSON.stringify(message));

describe("reading a recording", () => {
  it("gives the whole run", async () => {
    const run = await readRecording("a", pieces(fileOf(campus())));
    expect(run.problem).toBe("");
    expect(run.timeline.end).toBe(24);
    expect(run.timeline.isOver).toBe(true);
  });

  it("shows what is there of a file that was cut off anywhere", async () => {
    const file = fileOf(campus());
    for (const part of [0.3, 0.5, 0.9]) {
      const run = await readRecording("a", pieces(file.subarray(0, file.length * part)));
      expect(run.problem).toContain("cut off after");
      expect(run.timeline.length).toBeGreaterThan(10);
      run.moveTo(Infinity);
      expect(run.now?.time).toBe(run.timeline.end);
    }
    const run = await readRecording("a", pieces(text(lines().slice(0, -1))));
    expect(run.problem).toContain("cut off after");
  });

  it("shows a recording up to its damage, and says in which line it is", async () => {
    const damaged = lines();
    damaged[20] = '{"type":"tick","time_s":2,"links":{"row":[99],"heard":[1]}}';
    const run = await readRecording("a", pieces(text(damaged)));
    expect(run.problem).toBe("Line 21 is damaged: row 99 does not exist.");
    run.moveTo(Infinity);
    expect(run.now?.time).toBe(run.timeline.end);
  });

  it.each([
    ["no gzip", Buffer.from("PK not a recording")],
    ["an empty file", Buffer.alloc(0)],
    ["other JSON", text(['{"hello":1}'])],
    ["only a meta", text(lines().slice(0, 1))],
  ])("refuses %s", async (_, file) => {
    await expect(readRecording("a", pieces(file))).rejects.toThrow(/recording/);
  });

  it("tells another version of the schema", async () => {
    const other = JSON.stringify({ ...cross("forward")[0], schema: 9 });
    await expect(readRecording("a", pieces(text([other])))).rejects.toThrow("schema 9 is not 1");
  });
});
