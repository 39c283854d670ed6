/** Makes recordings for tests: states go in, messages come out as the Rust sampler makes them. */
import { gzipSync } from "node:zlib";
import type { Event, Key, Message, Meta, RolloutState, Tick } from "../../src/schema/messages";

/** State of a mesh that a test changes as it likes, with counters as numbers. */
export interface Draft {
  nodes: { up: boolean; control: number; data: number; coded: number; queue: number }[];
  links: {
    heard: number;
    channel: number;
    collision: number;
    innovative: number;
    redundant: number;
    delivery: number;
  }[];
  transfers: {
    stage: "waiting" | "open" | "complete";
    packets: number;
    forwarders: number[];
    receivers: {
      node: number;
      stage: "waiting" | "open" | "complete";
      bytes: number;
      innovative: number;
      redundant: number;
      complete: number[];
      rank: { generation: number; rank: number; size: number } | null;
    }[];
  }[];
  flows: {
    offered: number;
    delivered: number;
    bits: number;
    delay_s: number | null;
    queue: number;
    scheme: string;
    why: string;
    coded_share: number | null;
    rtt_s?: number;
    min_rtt_s?: number;
  }[];
  streams: {
    taken: number[];
    receivers: { node: number; packets: number[]; bits: number[]; problem: string }[];
    tree: { node: number; parent: number }[];
  }[];
  rollouts: RolloutState[];
}

/** Airtime of a frame, us, by kind. */
const AIRTIME = { control: 300, data: 1200, coded: 1250 };
const COUNTERS = ["control", "data", "coded"] as const;
const LINK_COUNTERS = ["heard", "channel", "collision", "innovative", "redundant"] as const;

/** Returns a state in which nothing has happened yet. */
export function draftOf(meta: Meta): Draft {
  return {
    nodes: meta.nodes.map(() => ({ up: true, control: 0, data: 0, coded: 0, queue: 0 })),
    links: meta.links.map(({ loss }) => ({
      heard: 0,
      channel: 0,
      collision: 0,
      innovative: 0,
      redundant: 0,
      delivery: 1 - (loss ?? 0),
    })),
    transfers: meta.transfers.map(({ to }) => ({
      stage: "open",
      packets: 0,
      forwarders: [],
      receivers: to.map((node) => ({
        node,
        stage: "open",
        bytes: 0,
        innovative: 0,
        redundant: 0,
        complete: [],
        rank: null,
      })),
    })),
    flows: meta.flows.map(() => ({
      offered: 0,
      delivered: 0,
      bits: 0,
      delay_s: null,
      queue: 0,
      scheme: meta.schemes[0] ?? "forward",
      why: "",
      coded_share: null,
    })),
    streams: meta.streams.map(({ to, layers }) => ({
      taken: layers.map(() => 0),
      receivers: to.map((node) => ({
        node,
        packets: layers.map(() => 0),
        bits: layers.map(() => 0),
        problem: "",
      })),
      tree: [],
    })),
    rollouts: (meta.rollouts ?? []).map(() => ({
      stage: "pushing",
      waits_for: "",
      batches: 0,
      nodes: meta.nodes.map(({ id }) => ({ node: id, why: "" })),
    })),
  };
}

function keyOf(draft: Draft, time: number): Key {
  const column = (name: (typeof COUNTERS)[number]) => draft.nodes.map((n) => String(n[name]));
  const micros = (name: (typeof COUNTERS)[number]) =>
    draft.nodes.map((n) => String(n[name] * AIRTIME[name]));
  const link = (name: (typeof LINK_COUNTERS)[number]) => draft.links.map((l) => String(l[name]));
  return structuredClone({
    time_s: time,
    nodes: {
      up: draft.nodes.map((n) => n.up),
      control: column("control"),
      data: column("data"),
      coded: column("coded"),
      control_us: micros("control"),
      data_us: micros("data"),
      coded_us: micros("coded"),
      queue: draft.nodes.map((n) => n.queue),
    },
    links: {
      heard: link("heard"),
      channel: link("channel"),
      collision: link("collision"),
      innovative: link("innovative"),
      redundant: link("redundant"),
      delivery: draft.links.map((l) => l.delivery),
    },
    transfers: draft.transfers.map((t) => ({
      ...t,
      packets: String(t.packets),
      receivers: t.receivers.map((r) => ({
        ...r,
        bytes: String(r.bytes),
        innovative: String(r.innovative),
        redundant: String(r.redundant),
      })),
    })),
    flows: draft.flows.map((f) => ({
      ...f,
      offered: String(f.offered),
      delivered: String(f.delivered),
      bits: String(f.bits),
    })),
    streams: draft.streams.map((s) => ({
      taken: s.taken.map(String),
      receivers: s.receivers.map((r) => ({
        ...r,
        packets: r.packets.map(String),
        bits: r.bits.map(String),
        offered: [],
        missing: [],
        out_of_order: [],
        delay_p50_s: [],
        delay_p99_s: [],
      })),
      no_room: [],
      late: [],
      tree: s.tree,
    })),
    ...(draft.rollouts.length > 0 ? { rollouts: draft.rollouts } : {}),
  });
}

function tickOf(now: Draft, was: Draft, time: number): Tick {
  const tick: Tick = { time_s: time };

  const rows = now.nodes.flatMap((node, i) =>
    JSON.stringify(node) === JSON.stringify(was.nodes[i]) ? [] : [i],
  );
  if (rows.length > 0) {
    const grown = (name: (typeof COUNTERS)[number], each: number) =>
      rows.map((i) => ((now.nodes[i]?.[name] ?? 0) - (was.nodes[i]?.[name] ?? 0)) * each);
    tick.nodes = {
      row: rows,
      control: grown("control", 1),
      data: grown("data", 1),
      coded: grown("coded", 1),
      control_us: grown("control", AIRTIME.control),
      data_us: grown("data", AIRTIME.data),
      coded_us: grown("coded", AIRTIME.coded),
      queue: rows.map((i) => now.nodes[i]?.queue ?? 0),
      up: rows.map((i) => now.nodes[i]?.up ?? false),
    };
  }

  const links = now.links.flatMap((link, i) =>
    JSON.stringify(link) === JSON.stringify(was.links[i]) ? [] : [i],
  );
  if (links.length > 0) {
    tick.links = {
      row: links,
      delivery_row: links,
      delivery: links.map((i) => now.links[i]?.delivery ?? 0),
    };
    for (const name of LINK_COUNTERS) {
      tick.links[name] = links.map(
        (i) => (now.links[i]?.[name] ?? 0) - (was.links[i]?.[name] ?? 0),
      );
    }
  }

  tick.transfers = now.transfers.map((transfer, place) => {
    const before = was.transfers[place];
    return {
      transfer: place,
      stage: transfer.stage,
      packets: transfer.packets - (before?.packets ?? 0),
      forwarders: transfer.forwarders.slice(),
      receivers: transfer.receivers.map((receiver, i) => {
        const old = before?.receivers[i];
        return {
          node: receiver.node,
          stage: receiver.stage,
          bytes: receiver.bytes - (old?.bytes ?? 0),
          innovative: receiver.innovative - (old?.innovative ?? 0),
          redundant: receiver.redundant - (old?.redundant ?? 0),
          complete: receiver.complete.filter((number) => !old?.complete.includes(number)),
          ...(receiver.rank ? { rank: { ...receiver.rank } } : {}),
        };
      }),
    };
  });
  tick.flows = now.flows.map((flow, place) => {
    const before = was.flows[place];
    return {
      flow: place,
      offered: flow.offered - (before?.offered ?? 0),
      delivered: flow.delivered - (before?.delivered ?? 0),
      bits: flow.bits - (before?.bits ?? 0),
      queue: flow.queue,
      scheme: flow.scheme,
      why: flow.why,
      ...(flow.delay_s === null ? {} : { delay_s: flow.delay_s }),
      ...(flow.coded_share === null ? {} : { coded_share: flow.coded_share }),
      rtt_s: flow.rtt_s ?? null,
      min_rtt_s: flow.min_rtt_s ?? null,
    };
  });
  tick.streams = now.streams.map((stream, place) => {
    const before = was.streams[place];
    const grown = (list: number[], old: number[] | undefined) =>
      list.map((value, i) => value - (old?.[i] ?? 0));
    return {
      stream: place,
      taken: grown(stream.taken, before?.taken),
      receivers: stream.receivers.map((receiver, i) => ({
        node: receiver.node,
        packets: grown(receiver.packets, before?.receivers[i]?.packets),
        bits: grown(receiver.bits, before?.receivers[i]?.bits),
        problem: receiver.problem,
      })),
      tree: stream.tree.slice(),
    };
  });
  now.rollouts.forEach(({ nodes, ...rollout }, place) => {
    const before = was.rollouts[place];
    const isSame = (node: object, i: number) =>
      JSON.stringify(node) === JSON.stringify(before?.nodes[i]);
    const changed = nodes.filter((node, i) => !isSame(node, i));
    (tick.rollouts ??= []).push({ rollout: place, ...rollout, nodes: structuredClone(changed) });
  });
  return tick;
}

/**
 * Returns a recording of `seconds`: `step` changes the state once every 100 ms and returns the
 * events of that time. A key comes every 5 s.
 */
export function record(
  meta: Meta,
  seconds: number,
  step: (draft: Draft, time: number) => Event[] | void,
): Message[] {
  const draft = draftOf(meta);
  const messages: Message[] = [
    { ...meta, type: "meta" },
    { ...keyOf(draft, 0), type: "key" },
  ];
  const ticks = Math.round(seconds / meta.tick_s);
  for (let i = 1; i <= ticks; i++) {
    const time = Math.round(i * meta.tick_s * 1000) / 1000;
    const before = structuredClone(draft);
    const events = step(draft, time) ?? [];
    for (const event of events) messages.push({ ...event, type: "event" });
    if (i % Math.round(meta.key_s / meta.tick_s) === 0) {
      messages.push({ ...keyOf(draft, time), type: "key" });
    } else {
      messages.push({ ...tickOf(draft, before, time), type: "tick" });
    }
  }
  messages.push({ type: "event", time_s: seconds, node: null, what: { kind: "end" } });
  return messages;
}

/** Returns the file of a recording. */
export function fileOf(messages: Message[]): Buffer {
  return gzipSync(messages.map((message) => `${JSON.stringify(message)}\n`).join(""));
}
