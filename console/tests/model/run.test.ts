import { describe, expect, it } from "vitest";
import { BadMessage, parseMessage } from "../../src/model/check";
import { Run } from "../../src/model/run";
import { Flights } from "../../src/model/flights";
import { airRows, allAir, used } from "../../src/model/reports/air";
import { gainRows, throughputGain } from "../../src/model/reports/coding";
import { flowColumns, flowRows, throughput } from "../../src/model/reports/flows";
import { cards, refusedRows } from "../../src/model/reports/health";
import { streamRows } from "../../src/model/reports/streams";
import { CELLS, transferRows } from "../../src/model/reports/transfers";
import { rates } from "../../src/model/track";
import {
  NODE_COUNTERS,
  type Key,
  type Message,
  type Meta,
  type Tick,
} from "../../src/schema/messages";
import { broadcast, campus, cross } from "../support/meshes";
import { record } from "../support/recorder";

function runOf(messages: Message[]): Run {
  const run = new Run("test");
  messages.forEach((message) => run.push(message));
  return run;
}

/** Returns the whole state as text, so that two can be compared. */
function snapshot(run: Run): string {
  const sets = (_: string, value: unknown) => (value instanceof Set ? [...value].sort() : value);
  return JSON.stringify({ ...run.now, meta: null }, sets);
}

describe("seeking", () => {
  it("ends in the same state from every direction", () => {
    const run = runOf(campus());
    const forward: string[] = [];
    for (let time = 0; time <= 24; time += 1.7) {
      run.moveTo(time);
      forward.push(snapshot(run));
    }
    for (let i = forward.length - 1; i >= 0; i--) {
      run.moveTo(i * 1.7);
      expect(snapshot(run)).toBe(forward[i]);
    }
  });

  it("gives at a key what the ticks before it add up to", () => {
    const messages = campus();
    const all = runOf(messages);
    const isFirstKey = (message: Message, i: number) => i < 3 || message.type !== "key";
    const ticksOnly = runOf(messages.filter(isFirstKey));
    all.moveTo(4.9);
    ticksOnly.moveTo(4.9);
    expect(snapshot(ticksOnly)).toBe(snapshot(all));
  });

  it("tells whether another sample is shown", () => {
    const run = runOf(cross("forward"));
    run.moveTo(3);
    expect(run.moveTo(3.05)).toBe(false);
    expect(run.moveTo(3.11)).toBe(true);
  });

  it("shows events only once they have happened", () => {
    const run = runOf(campus());
    run.moveTo(7.9);
    expect(run.events.some((event) => event.what.kind === "node_down")).toBe(false);
    run.moveTo(8);
    expect(run.events.some((event) => event.what.kind === "node_down")).toBe(true);
  });

  it("goes on with a meta that has grown", () => {
    const [meta, key, ...rest] = cross("forward");
    const run = runOf([meta!, key!, ...rest.slice(0, 10)]);
    const grown = structuredClone(meta) as { type: "meta" } & Meta;
    grown.nodes.push({ id: 9, name: "new", position: null });
    const whole = structuredClone(key) as Extract<Message, { type: "key" }>;
    whole.time_s = 1.1;
    for (const column of Object.values(whole.nodes) as unknown[][]) column.push(column[0]);
    run.push(grown);
    run.push(whole);
    run.moveTo(1.1);
    expect(run.meta?.nodes).toHaveLength(6);
    run.moveTo(0.5);
    expect(run.meta?.nodes).toHaveLength(5);
  });

  it("forgets the oldest samples of a long watch and stays at the same time", () => {
    const run = runOf(cross("forward"));
    run.moveTo(9);
    const before = snapshot(run);
    run.track.forget(run.timeline.forget(30));
    expect(run.timeline.start).toBe(5);
    expect(run.track.times).toHaveLength(run.timeline.length);
    run.moveTo(9);
    expect(snapshot(run)).toBe(before);
  });
});

describe("bad input", () => {
  const [meta, key, tick] = cross("forward");

  it.each([
    ["", "no JSON"],
    ["[]", "no object"],
    ['{"type":"song"}', "unknown type"],
    [JSON.stringify({ ...meta, schema: 5 }), "schema 5 is not 1 to 4"],
    [JSON.stringify({ ...meta, nodes: 3 }), "`nodes` is no list"],
    [JSON.stringify({ ...meta, links: [{ from: 1, to: 77, loss: null }] }), "does not exist"],
    [JSON.stringify({ ...meta, links: [{ from: 1, to: 2, loss: null, ports: [3] }] }), "no names"],
    [JSON.stringify({ ...key, nodes: { up: [true] } }), "is no list"],
    [JSON.stringify({ ...tick, links: { row: [1], heard: [1, 2] } }), "differ in length"],
  ])("says what is wrong with line %#", (line, problem) => {
    expect(() => parseMessage(line)).toThrow(BadMessage);
    expect(() => parseMessage(line)).toThrow(problem);
  });

  it("refuses rows and places that do not exist", () => {
    const run = runOf([meta!, key!]);
    const wrong = { type: "tick", time_s: 0.1, links: { row: [99], heard: [1] } } as const;
    expect(() => run.push(parseMessage(JSON.stringify(wrong)))).toThrow("row 99");
    expect(run.timeline.length).toBe(1);
    const flow = { type: "tick", time_s: 0.1, flows: [{ flow: 7, bits: 1 }] } as const;
    expect(() => run.push(parseMessage(JSON.stringify(flow)))).toThrow("place 7");
  });

  it("wants a key after a meta, and nothing after the end", () => {
    expect(() => runOf([meta!, tick!])).toThrow("a key");
    expect(() => runOf([key!])).toThrow("no meta");
    expect(() => runOf([...cross("forward"), tick!])).toThrow("nothing may follow");
  });
});

/** Returns messages as a daemon sends them that was not listened to from 3 s to 63 s. */
function withGap(messages: Message[]): Message[] {
  return messages.flatMap((message) => {
    if (message.type === "meta" || message.time_s < 3) return message;
    if (message.time_s < 5) return [];
    return { ...message, time_s: message.time_s + 58 };
  });
}

describe("what was not told", () => {
  it("is a gap, over which nothing has a rate and nothing flies", () => {
    const run = runOf(withGap(cross("forward")));
    const first = run.timeline.times.findIndex((time) => time > 3);
    expect([...run.track.gaps]).toEqual([first]);
    expect(run.timeline.times[first]).toBe(63);

    run.moveTo(63);
    expect(run.seconds).toBe(0);
    expect(flowRows(run)[0]?.rate).toBeNull();
    expect(airRows(run).every(({ own, idle }) => own === null && idle === null)).toBe(true);
    run.moveTo(63.5);
    expect(run.seconds).toBeCloseTo(0.5);
    expect(flowRows(run)[0]?.rate).toBeGreaterThan(0);

    expect([2.8, 30, 62.9, 63.1].map((time) => run.timeline.isUntold(time))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    const flights = new Flights(run.timeline);
    expect(flights.within(62.9, 50, 1000)).toEqual([]);
    expect(flights.within(2.5, 1, 1000).length).toBeGreaterThan(0);
    run.track.forget(run.timeline.forget(20));
    expect([...run.track.gaps]).toEqual([]);
  });

  it("is no gap between the coarse samples of a daemon's past", () => {
    const messages = cross("forward");
    const [meta, ...rest] = messages as [{ type: "meta" } & Meta, ...Message[]];
    const isCoarse = ({ time_s }: { time_s: number }) => time_s % 5 < 0.05;
    const past = rest.filter((message) => message.type === "key" && isCoarse(message));
    const run = runOf([{ ...meta, tick_s: 5 }, ...past, meta, ...past.slice(-1)]);
    expect(run.track.gaps.size).toBe(0);
    run.moveTo(5);
    expect(run.seconds).toBe(5);
    expect(flowRows(run)[0]?.rate).toBeGreaterThan(0);
  });

  it("is not zero: sums, receivers that join later, and delays while nothing arrives", () => {
    const [meta] = cross("forward") as [{ type: "meta" } & Meta];
    const run = runOf(
      record(meta, 6, (draft, time) => {
        const flow = draft.flows[0]!;
        flow.delay_s = 0.05;
        if (time < 2) flow.delivered += 1;
      }),
    );
    const { times, flows, sums } = run.track;
    const at = (time: number) => times.findIndex((t) => t >= time - 1e-6);
    expect(flows[0]!.delay[at(1.5)]).toBe(0.05);
    expect(flows[0]!.delay[at(4)]).toBeNull();
    expect(sums.data_us[at(4)]).toBe(0);

    const [, first] = cross("forward") as [Message, { type: "key" } & Key];
    const nothing = first.nodes.up.map(() => null);
    const unknown = { data: nothing, data_us: nothing, control_us: nothing, coded_us: nothing };
    const silent = runOf([meta, { ...first, nodes: { ...first.nodes, ...unknown } }]);
    expect(silent.track.sums.data_us).toEqual([null]);
    silent.moveTo(0);
    expect(allAir(airRows(silent))).toBeNull();
  });

  it("takes the time of a transfer from the daemon, whenever the page was opened", () => {
    const told = campus(3, { source: "daemon", observer: 1 });
    const late = told.findIndex((message) => message.type === "key" && message.time_s >= 20);
    const key = structuredClone(told[late]) as { type: "key" } & Key;
    const receiver = key.transfers[0]!.receivers[0]!;
    Object.assign(receiver, { stage: "complete", bytes: "2300000" });
    const open = (finished_s?: number) => {
      receiver.finished_s = finished_s ?? null;
      const run = runOf([told[0]!, key]);
      run.moveTo(20);
      return transferRows(run)[0]!.receivers[0]!.finished;
    };
    expect(open(11.25)).toBe(11.25);
    expect(open()).toBeNull();
  });

  it("says how fast a relay hears a flow of which it knows no bits", () => {
    const [meta, first] = cross("forward") as [{ type: "meta" } & Meta, { type: "key" } & Key];
    const flows = [{ scheme: "braid", why: "", innovative: "7" }, first.flows[1]!];
    const tick = (time_s: number): Message => ({
      type: "tick",
      time_s,
      flows: [{ flow: 0, innovative: 5 }],
    });
    const ticks = Array.from({ length: 20 }, (_, i) => tick((i + 1) / 10));
    const run = runOf([meta, { ...first, flows }, ...ticks]);
    run.moveTo(2);
    expect(flowRows(run)[0]).toMatchObject({ rate: null, mean: null });
    expect(flowRows(run)[0]!.heard).toBeCloseTo(50);

    // The source hears nothing of it, and does not know how fast it is.
    const atSource = runOf([{ ...meta, observer: 1 }, { ...first, flows }, ...ticks]);
    atSource.moveTo(2);
    expect(flowRows(atSource)[0]).toMatchObject({ rate: null, heard: null });
  });

  it("has no time on the card of a node whose stop was not told", () => {
    const [meta, first] = cross("forward") as [{ type: "meta" } & Meta, { type: "key" } & Key];
    const up = first.nodes.up.map((_, i) => i > 0);
    const run = runOf([meta, { ...first, nodes: { ...first.nodes, up } }]);
    run.moveTo(0);
    expect(cards(run)[0]).toMatchObject({ where: "s1", time: null });
  });
});

describe("reports", () => {
  it("measures throughput after a second of settling, and the gain of a second run", () => {
    const meta = cross("forward")[0] as { type: "meta" } & Meta;
    const steady = (bits: number) =>
      runOf(
        record(meta, 6, (draft, time) => {
          // A burst at the start must not count.
          for (const flow of draft.flows) flow.bits += time < 0.5 ? 9_000_000 : bits;
        }),
      );
    const [slow, fast] = [steady(100_000), steady(250_000)];
    expect(throughput(slow, 0)).toBeCloseTo(1e6);
    expect(throughput(slow, null)).toBeCloseTo(2e6);
    expect(throughputGain(slow, fast)).toBeCloseTo(2.5);
    expect(gainRows(slow, fast)[1]).toMatchObject({ name: "s2 → d2", unit: "bit/s" });
    fast.moveTo(3);
    expect(flowRows(fast)[0]?.rate).toBeCloseTo(2.5e6);
  });

  it("shows the round trip that a daemon measured, and nothing once it has none", () => {
    const meta = cross("forward")[0] as { type: "meta" } & Meta;
    const daemon: typeof meta = { ...meta, source: "daemon", observer: meta.nodes[0]!.id };
    const run = runOf(
      record(daemon, 8, (draft, time) => {
        const flow = draft.flows[0]!;
        if (time < 3) Object.assign(flow, { rtt_s: 0.02 + time / 1000, min_rtt_s: 0.015 });
        else {
          delete flow.rtt_s;
          delete flow.min_rtt_s;
        }
      }),
    );
    run.moveTo(2);
    expect(flowRows(run)[0]?.now.rtt_s).toBeCloseTo(0.022);
    expect(flowRows(run)[0]?.now.min_rtt_s).toBe(0.015);
    expect(flowRows(run)[1]?.now).toMatchObject({ rtt_s: null, min_rtt_s: null });
    expect(run.track.flows[0]!.delay[20]).toBeCloseTo(0.022);
    run.moveTo(3.2);
    expect(flowRows(run)[0]?.now).toMatchObject({ rtt_s: null, min_rtt_s: null });
    expect(run.track.flows[0]!.delay[32]).not.toBeCloseTo(0.022);
  });

  it("has no gain over a run that delivered nothing", () => {
    const meta = cross("forward")[0] as { type: "meta" } & Meta;
    const idle = runOf(record(meta, 3, () => {}));
    expect(throughputGain(idle, runOf(cross("core_nc")))).toBeNull();
  });

  it("draws generations as cells, at most some", () => {
    const run = runOf(campus());
    run.moveTo(12);
    const receiver = transferRows(run)[0]!.receivers[0]!;
    expect(transferRows(run)[0]!.known[0]).toMatch(/^packets sent \d/);
    expect(receiver.generations).toHaveLength(64);
    const complete = receiver.generations.filter((cell) => cell === "complete").length;
    expect(complete).toBe(run.now!.transfers[0]!.receivers[0]!.complete.size);
    expect(receiver.share).toBeCloseTo(receiver.bytes / 2_300_000);

    const messages = campus();
    (messages[0] as { type: "meta" } & Meta).transfers[0]!.generations = 1000;
    const large = runOf(messages);
    large.moveTo(12);
    expect(transferRows(large)[0]!.receivers[0]!.generations.length).toBeLessThanOrEqual(CELLS);
  });

  it("takes the airtime of a second, and counts neighbours as busy air", () => {
    const run = runOf(cross("forward"));
    run.moveTo(5);
    const rows = airRows(run);
    const relay = rows.find((row) => row.name === "r")!;
    const sent = run.now!.nodes.data_us[2]! - run.before!.nodes.data_us[2]!;
    expect(relay.own!.data).toBeCloseTo(sent / 1e6);
    const source = rows.find((row) => row.name === "s1")!;
    const other = rows.find((row) => row.name === "s2")!;
    const busy = [relay, source, other].reduce((sum, r) => sum + used(r.own!), 0);
    expect(relay.idle).toBeCloseTo(Math.max(0, 1 - busy));
  });

  it("tells nothing of nodes, links and flows of which nothing was told", () => {
    const [meta, first, second] = cross("forward") as [Message, Message, Message];
    const key = first as { type: "key" } & Key;
    const tick = second as { type: "tick" } & Tick;
    const mine = <T>(column: T[]) => column.map((value, row) => (row === 2 ? value : null));
    const nodes = { ...key.nodes, queue: mine(key.nodes.queue) };
    for (const name of NODE_COUNTERS) nodes[name] = mine(key.nodes[name]);
    const links = { ...key.links, delivery: key.links.delivery.map(() => null) };
    const flows = [{ scheme: "forward", why: "", heard: "3" }, key.flows[1]!];
    const ticks = { ...tick, flows: [{ flow: 0, heard: 4, rtt_s: 0.25 }], streams: [] };
    const run = runOf([meta, { ...key, nodes, links, flows }, ticks]);
    run.moveTo(Infinity);

    const rows = airRows(run);
    expect(rows.map(({ name, own }) => [name, own !== null])).toEqual([
      ["r", true],
      ...["s1", "s2", "d1", "d2"].map((name) => [name, false]),
    ]);
    // It hears nodes that may send.
    expect(rows.map(({ idle }) => idle)).toEqual([null, null, null, null, null]);
    expect(run.now!.nodes.control.slice(0, 2)).toEqual(new Float64Array([NaN, NaN]));
    const flow = flowRows(run)[0]!;
    expect(flow).toMatchObject({ rate: null, mean: null, arrived: null });
    expect(flow.now).toMatchObject({ heard: 7, rtt_s: 0.25, offered: null, queue: null });
    const names = flowColumns([flow]).map(({ name }) => name);
    expect(names).toEqual(["heard", "rtt_s"]);
  });

  it("shows layers by what arrived of what was sent", () => {
    const run = runOf(broadcast());
    run.moveTo(6);
    const [stream] = streamRows(run);
    expect(stream?.receivers[0]?.layers[0]?.share).toBeGreaterThan(0.8);
    expect(stream?.receivers[2]?.layers[1]?.share).toBeLessThan(0.5);
    expect(stream?.receivers[2]?.problem).toContain("300 kbit/s");
    expect(stream?.receivers[2]?.known).toEqual([]);
    expect(stream?.givenUp).toEqual([]);
  });

  it("shows losses by reason, order, delays and whole seconds of a stream", () => {
    const run = runOf(broadcast());
    run.moveTo(6);
    const state = run.now!.streams[0]!;
    state.no_room = [2, 5];
    state.late = [0, 1200];
    Object.assign(state.receivers[0]!, {
      offered: [400, 800],
      missing: [3, 0],
      out_of_order: [1, 0],
      delay_p50_s: [0.012, 0],
      delay_p99_s: [0.2, 0],
      whole_base_s: 17,
      base_s: 20,
    });
    const [stream] = streamRows(run);
    expect(stream?.receivers[0]?.known).toEqual([
      "missing 3 of 400, 0 of 800",
      "median delay 12.0 ms, –",
      "99 of 100 within 200 ms, –",
      "out of order 1, 0",
      "17 of 20 seconds of the base whole",
    ]);
    expect(stream?.givenUp).toEqual([
      "too late for a next hop 0, 1200",
      "without room in a queue 2, 5",
    ]);
  });

  it("collects hints, refusals and nodes that are down", () => {
    const run = runOf(campus());
    run.moveTo(10);
    expect(refusedRows(run).map((row) => [row.reason, row.frames])).toEqual([
      ["stale", 520],
      ["unauthentic", 82],
    ]);
    const found = cards(run);
    expect(found.map((card) => card.level)).toEqual(["problem", "problem", "hint"]);
    expect(found.find((card) => card.title === "Hint")?.times).toBe(2);
    run.moveTo(1);
    expect(cards(run)).toEqual([]);
  });
});

describe("rates", () => {
  const axis = (times: number[], ...gaps: number[]) => ({ times, gaps: new Set(gaps) });

  it("are growth over the window, per second", () => {
    expect(rates(axis([0, 1, 2, 3]), [0, 10, 10, 40], 1)).toEqual([null, 10, 0, 30]);
    expect(rates(axis([0, 1, 2, 3]), [0, 10, 10, 40], 2)).toEqual([null, 10, 5, 15]);
  });

  it("are not known after a gap, before the counter is, and where it fell", () => {
    expect(rates(axis([0, 1, 61, 62], 2), [0, 10, 10, 40], 1)).toEqual([null, 10, null, 30]);
    expect(rates(axis([0, 1, 2, 3]), [null, 900, 910, 3], 1)).toEqual([null, null, 10, null]);
  });
});
