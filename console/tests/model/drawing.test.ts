import { describe, expect, it } from "vitest";
import { Flights } from "../../src/model/flights";
import {
  axisTime,
  bitRate,
  bytes,
  clock,
  count,
  delay,
  percent,
  progress,
  ratio,
} from "../../src/model/format";
import { fit, layoutOf } from "../../src/model/layout";
import { Run } from "../../src/model/run";
import type { Message, Meta } from "../../src/schema/messages";
import { campus, cross, unplaced } from "../support/meshes";

const metaOf = (messages: Message[]) => messages[0] as { type: "meta" } & Meta;

describe("flights", () => {
  const flightsOf = (messages: Message[]) => {
    const run = new Run("test");
    messages.forEach((message) => run.push(message));
    return { run, flights: new Flights(run.timeline) };
  };

  it("are as many as the frames that were heard and lost", () => {
    const { run, flights } = flightsOf(cross("core_nc"));
    const found = flights.within(3.0999, 0.0999, 1000);
    run.moveTo(3.1);
    const after = run.now!.links.heard.slice();
    const lost = run.now!.links.channel.slice();
    run.moveTo(3);
    // r to d1 carries payload only; its frames may fall just outside the interval.
    const link = 4;
    const heard = found.filter((flight) => flight.link === link && !flight.isLost);
    expect(heard.length).toBe(after[link]! - run.now!.links.heard[link]!);
    const gone = found.filter((flight) => flight.link === link && flight.isLost);
    expect(gone.length).toBe(lost[link]! - run.now!.links.channel[link]!);
  });

  it("have two colours where a relay combines two flows, else that of their flow", () => {
    const { flights } = flightsOf(cross("core_nc"));
    const found = flights.within(5, 1, 1000).filter((flight) => !flight.isLost);
    const on = (link: number) => found.filter((flight) => flight.link === link);
    expect(on(4).every((flight) => flight.isCoded && flight.colours.length === 2)).toBe(true);
    expect(on(0).every((flight) => !flight.isCoded && flight.colours[0] === 0)).toBe(true);
    expect(on(2).every((flight) => flight.colours[0] === 1)).toBe(true);
  });

  it("are the same after scrubbing there and back, and bounded", () => {
    const { flights } = flightsOf(cross("forward"));
    const before = JSON.stringify(flights.within(2, 0.5, 3));
    flights.within(8, 0.5, 3);
    flights.within(0, 0.5, 3);
    expect(JSON.stringify(flights.within(2, 0.5, 3))).toBe(before);
    const on = flights.within(2, 0.1, 3).filter(({ link, isLost }) => link === 0 && !isLost);
    expect(on.length).toBeLessThanOrEqual(3);
  });
});

describe("layout", () => {
  it("puts sources left, ends right, so that links are short", () => {
    const layout = layoutOf(metaOf(cross("forward")))!;
    expect(layout.get(1)!.x).toBeLessThan(layout.get(3)!.x);
    expect(layout.get(3)!.x).toBeLessThan(layout.get(4)!.x);
    // s1 and d2 overhear each other.
    expect(layout.get(1)!.y).toBe(layout.get(5)!.y);
  });

  it("leaves larger meshes without positions to forces", () => {
    expect(layoutOf(metaOf(unplaced()))).toBeNull();
  });

  it("has north above south, and a place for every node", () => {
    const meta = metaOf(campus());
    meta.nodes[3]!.position = null;
    const layout = layoutOf(meta)!;
    expect(layout.size).toBe(22);
    expect(layout.get(19)!.y).toBeLessThan(layout.get(1)!.y);
    const earth = structuredClone(meta);
    earth.nodes.forEach((node, i) => {
      node.position = { kind: "earth", latitude: 47 + i / 1000, longitude: 9 };
    });
    expect(layoutOf(earth)!.get(2)!.y).toBeLessThan(layoutOf(earth)!.get(1)!.y);
  });

  it("fits into the margins, also a mesh of one node", () => {
    const margins = { side: 10, top: 20, bottom: 30 };
    const view = fit([...layoutOf(metaOf(campus()))!.values()], 400, 300, margins);
    for (const { x, y } of layoutOf(metaOf(campus()))!.values()) {
      expect(x * view.scale + view.x).toBeGreaterThanOrEqual(9.9);
      expect(x * view.scale + view.x).toBeLessThanOrEqual(390.1);
      expect(y * view.scale + view.y).toBeGreaterThanOrEqual(19.9);
      expect(y * view.scale + view.y).toBeLessThanOrEqual(270.1);
    }
    const one = fit([{ x: 5, y: 5 }], 400, 300, margins);
    expect([5 * one.scale + one.x, 5 * one.scale + one.y]).toEqual([200, 145]);
  });
});

describe("numbers", () => {
  it.each([
    [bitRate(2_917_000), "2.92 Mbit/s"],
    [bitRate(999_900), "1.00 Mbit/s"],
    [bitRate(0), "0 bit/s"],
    [bytes(2_300_000), "2.30 MB"],
    [count(9999), "9999"],
    [count(12_345), "12.3 k"],
    [percent(0.1234), "12.3 %"],
    [delay(0.0123), "12.3 ms"],
    [delay(2), "2.00 s"],
    [clock(62.54), "1:02.5"],
    [clock(59.96), "1:00.0"],
    [clock(93_662.5), "26:01:02.5"],
    [axisTime(12), "12 s"],
    [axisTime(7200), "2:00:00"],
    [progress(0.9999), "99.9 %"],
    [progress(1), "100.0 %"],
    [ratio(2.383), "2.38"],
    [ratio(12.34), "12.3"],
  ])("%s", (shown, expected) => {
    expect(shown).toBe(expected);
  });
});
