/** Meshes for tests. Their numbers are made up, but of a likely size; a seed repeats them. */
import type { Event, Link, Message, Meta, Node } from "../../src/schema/messages";
import { record, type Draft } from "./recorder";

/** Returns the same mesh on the Earth, around a place. */
export function onEarth(messages: Message[], latitude: number, longitude: number): Message[] {
  const degrees = (metres: number) => metres / 111_320;
  const placed = ({ position, ...node }: Node): Node => {
    if (position?.kind !== "plan") return { ...node, position };
    return {
      ...node,
      position: {
        kind: "earth",
        latitude: latitude + degrees(position.y),
        longitude: longitude + degrees(position.x) / Math.cos((latitude * Math.PI) / 180),
      },
    };
  };
  return messages.map((message) =>
    message.type === "meta" ? { ...message, nodes: message.nodes.map(placed) } : message,
  );
}

/** Returns a generator of numbers from 0 to 1 (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function metaOf(scenario: string, nodes: Node[], links: Link[], more: Partial<Meta>): Meta {
  return {
    schema: 1,
    source: "simulation",
    version: "0.0.0",
    scenario,
    seed: "1",
    schemes: ["forward"],
    bit_rate_bps: 11e6,
    tick_s: 0.1,
    key_s: 5,
    observer: null,
    nodes,
    links,
    transfers: [],
    flows: [],
    streams: [],
    ...more,
  };
}

/** Sends frames over a link and returns how many arrived; the draft counts all of them. */
function send(
  draft: Draft,
  link: number,
  frames: number,
  loss: number,
  next: () => number,
): number {
  const row = draft.links[link];
  if (!row) return 0;
  let heard = 0;
  for (let i = 0; i < frames; i++) heard += Number(next() >= loss);
  row.heard += heard;
  row.channel += frames - heard;
  return heard;
}

/** Two flows that cross at a relay, forwarded or coded. Packets have 1,100 bytes. */
export function cross(scheme: "forward" | "core_nc", loss = 0.2, seed = 1): Message[] {
  const nodes = ["s1", "s2", "r", "d1", "d2"].map((name, i) => ({
    id: i + 1,
    name,
    position: null,
  }));
  const pairs: [number, number][] = [
    [1, 3],
    [2, 3],
    [3, 4],
    [3, 5],
    [1, 5],
    [2, 4],
  ];
  const links = pairs.flatMap(([from, to]) => [
    { from, to, loss },
    { from: to, to: from, loss },
  ]);
  const flow = { protocol: "udp", rate_bps: null, packet_bytes: 1100 };
  const meta = metaOf("cross", nodes, links, {
    schemes: [scheme],
    flows: [
      { from: 1, to: 4, ...flow },
      { from: 2, to: 5, ...flow },
    ],
  });
  const isCoded = scheme === "core_nc";
  const next = random(seed);
  return record(meta, 10, (draft, time) => {
    const frames = isCoded ? 20 : 8 + Math.floor(next() * 3);
    const [s1, s2, r] = draft.nodes;
    if (!s1 || !s2 || !r) return;
    s1.data += frames;
    s2.data += frames;
    s1.control += Number(next() < 0.3);
    r.control += Number(next() < 0.3);
    s1.queue = s2.queue = 40;
    r.queue = isCoded ? 2 : 30;
    const up = [send(draft, 0, frames, loss, next), send(draft, 2, frames, loss, next)];
    const over = [send(draft, 8, frames, loss, next), send(draft, 10, frames, loss, next)];
    const mine = Math.max(...up);
    if (isCoded) r.coded += mine;
    else r.data += up[0]! + up[1]!;
    const down = [
      send(draft, 4, isCoded ? mine : up[0]!, loss, next),
      send(draft, 6, isCoded ? mine : up[1]!, loss, next),
    ];
    [0, 2].forEach((link, i) => (draft.links[link]!.innovative += up[i]!));
    [4, 6].forEach((link, i) => (draft.links[link]!.innovative += down[i]!));
    if (isCoded) [8, 10].forEach((link, i) => (draft.links[link]!.innovative += over[i]!));
    draft.flows.forEach((state, i) => {
      state.offered += 40;
      state.delivered += down[i]!;
      state.bits += down[i]! * 8800;
      state.queue = 40;
      state.delay_s = 0.05 + next() * 0.02;
      state.coded_share = isCoded ? 0.49 : null;
      state.scheme = scheme;
      state.why = isCoded && time > 4 && time < 6 ? "r has nothing of s2 to code with" : "";
    });
  });
}

/** A grid of routers with positions; a file goes from the first to four others. */
export function campus(seed = 3, extra: Partial<Meta> = {}): Message[] {
  const next = random(seed);
  const nodes: Node[] = Array.from({ length: 22 }, (_, i) => ({
    id: i + 1,
    name: `n${String(i + 1).padStart(2, "0")}`,
    position: {
      kind: "plan",
      x: (i % 6) * 14 + next() * 8,
      y: Math.floor(i / 6) * 14 + next() * 8,
      z: 0,
    },
  }));
  const links = near(nodes, 23);
  const generations = 64;
  const size = 2_300_000;
  const to = [5, 9, 14, 20];
  const meta = metaOf("campus", nodes, links, {
    schemes: ["cascade"],
    transfers: [
      {
        id: "1-09ab12ff",
        name: "map.tar.gz",
        scheme: "cascade",
        from: 1,
        to,
        bytes: `${size}`,
        generations,
      },
    ],
    ...extra,
  });
  return record(meta, 24, (draft, time) => {
    const events: Event[] = [];
    const transfer = draft.transfers[0]!;
    transfer.packets += 30;
    transfer.forwarders = [2, 3, 8];
    transfer.receivers.forEach((receiver, i) => {
      if (receiver.stage === "complete") return;
      const got = Math.floor((9 - i * 1.3) * next() * 1500 * 1.6);
      receiver.bytes = Math.min(size, receiver.bytes + got);
      receiver.innovative += Math.round(got / 1400);
      receiver.redundant += Number(next() < 0.4);
      const share = receiver.bytes / size;
      const done = Math.floor(share * generations);
      for (let g = receiver.complete.length; g < done; g++) receiver.complete.push(g);
      if (done < generations) {
        const rank = Math.floor((share * generations - done) * 32);
        receiver.rank = { generation: done, rank, size: 32 };
      } else {
        receiver.stage = "complete";
        const what = { kind: "receiver_done", transfer: 0, receiver: receiver.node } as const;
        events.push({ time_s: time, node: 1, what });
      }
    });
    meta.links.forEach((link, i) => {
      const busy = link.from < 10 ? 2 : 0;
      const frames = Math.floor(next() * (busy + 1.2));
      const heard = send(draft, i, frames, link.loss ?? 0, next);
      const useful = Math.floor(heard * next() * 1.3);
      draft.links[i]!.innovative += Math.min(heard, useful);
      draft.links[i]!.redundant += Math.max(0, heard - useful);
      draft.links[i]!.delivery = Math.max(0, 1 - (link.loss ?? 0) + (next() - 0.5) * 0.06);
    });
    draft.nodes.forEach((node, i) => {
      if (!node.up) return;
      node.control += Number(next() < 0.2);
      if (i === 0) node.data += 6;
      if (i < 9 && i > 0) node.coded += Math.floor(next() * 3);
      node.queue = Math.floor(next() * 6);
    });
    if (time === 8) {
      draft.nodes[16]!.up = false;
      events.push({ time_s: time, node: 17, what: { kind: "node_down" } });
      events.push({ time_s: time, node: 11, what: { kind: "neighbor_down", neighbor: 17 } });
    }
    if (time === 3 || time === 9) {
      const text = "n12 hears n18 only 11 % of the time: move one of the antennas, or add a node.";
      events.push({ time_s: time, node: 12, what: { kind: "hint", text } });
      const what = { kind: "drops", reason: "unauthentic", frames: 41, seconds: 10 } as const;
      events.push({ time_s: time, node: 4, what });
      const stale = { kind: "drops", reason: "stale", frames: 260, seconds: 10 } as const;
      events.push({ time_s: time, node: 9, what: stale });
    }
    return events;
  });
}

/** Returns both directions of all links shorter than `reach`, m; the longer, the more is lost. */
function near(nodes: Node[], reach: number): Link[] {
  return nodes.flatMap((a) =>
    nodes.flatMap((b) => {
      if (a === b || a.position?.kind !== "plan" || b.position?.kind !== "plan") return [];
      const length = Math.hypot(a.position.x - b.position.x, a.position.y - b.position.y);
      return length < reach ? [{ from: a.id, to: b.id, loss: (length / reach) ** 2 * 0.8 }] : [];
    }),
  );
}

/** A roll-out over the campus, as its operator's node sees it: batches, a failure, a full disk. */
export function rollout(): Message[] {
  const messages = campus(3, { observer: 1, source: "daemon" });
  const [first] = messages;
  if (first?.type !== "meta") throw new Error("a recording begins with a meta");
  const { type: _, ...meta } = first;
  const about = { number: "7", name: "town", version: "2026.12", from: 1 };
  return record({ ...meta, schema: 4, transfers: [], rollouts: [about] }, 24, (draft, time) => {
    const now = draft.rollouts[0]!;
    now.stage = time < 9 ? "pushing" : time < 20 ? "applying" : "stopped";
    now.waits_for =
      time < 9
        ? "staging at nodes 12, 20"
        : time < 20
          ? `updating batch ${time < 14 ? 1 : 2} of 3`
          : "stopped: node 7: failed, the old version runs after the update";
    if (time >= 9) now.batches = 3;
    if (time >= 9 && time < 20) now.batch = time < 14 ? 1 : 2;
    else now.batch = null;
    for (const node of now.nodes) {
      const { node: id } = node;
      // One node is off for all the time.
      if (id === 20 || time < id / 3) continue;
      if (Math.round(time * 10) % 20 === id % 20) node.heard_s = time;
      node.heard_s ??= time;
      node.model = id === 14 ? "cpe210" : "wdr4300";
      node.running ??= "2026.11";
      node.standing ??= "staging";
      if (id === 12) node.why = "too little space";
      else if (id === 5) node.standing = "has_no_fleet";
      else if (time > 1 + id / 3 && time < 9) node.standing = "staged";
      const batch = 1 + (id % 3);
      if (time >= 9 && node.standing !== "has_no_fleet" && id !== 12) node.batch = batch;
      if (!node.batch || time < 5 + 4 * batch) continue;
      if (batch === 3) continue;
      node.standing = time < 7 + 4 * batch ? "applying" : "kept";
      if (node.standing === "kept") node.running = "2026.12";
      if (id === 7 && time > 16) {
        node.standing = "failed";
        node.running = "2026.11";
        node.why = "the old version runs after the update";
      }
    }
  });
}

/** A live stream of two layers to three receivers over a line of nodes. */
export function broadcast(seed = 5): Message[] {
  const next = random(seed);
  const nodes: Node[] = Array.from({ length: 7 }, (_, i) => ({
    id: i + 1,
    name: i === 0 ? "stage" : `seat-${i}`,
    position: { kind: "plan", x: Math.ceil(i / 2) * 20, y: i === 0 ? 0 : i % 2 ? 9 : -9, z: 0 },
  }));
  const links = near(nodes, 29);
  const meta = metaOf("broadcast", nodes, links, {
    schemes: ["multirate"],
    streams: [
      {
        group: "concert",
        scheme: "multirate",
        from: 1,
        layers: [
          { name: "base", rate_bps: 400_000 },
          { name: "detail", rate_bps: 900_000 },
        ],
        to: [2, 5, 7],
      },
    ],
  });
  return record(meta, 12, (draft, time) => {
    const stream = draft.streams[0]!;
    stream.taken = stream.taken.map((taken, layer) => taken + (layer ? 11 : 5));
    stream.tree = [
      { node: 2, parent: 1 },
      { node: 4, parent: 2 },
      { node: 5, parent: 2 },
      { node: 7, parent: 4 },
    ];
    stream.receivers.forEach((receiver, i) => {
      [5, i === 2 ? 4 : 11].forEach((sent, layer) => {
        const got = Math.round(sent * (1 - next() * 0.1));
        receiver.packets[layer] = (receiver.packets[layer] ?? 0) + got;
        receiver.bits[layer] = (receiver.bits[layer] ?? 0) + got * 8000;
      });
      receiver.problem =
        i === 2 && time > 2 ? "the detail layer needs 300 kbit/s more than the path has" : "";
    });
    draft.nodes.forEach((node, i) => {
      node.control += Number(next() < 0.2);
      if (i < 4) node.coded += Math.floor(next() * 14);
    });
    meta.links.forEach((link, i) => {
      const heard = send(draft, i, link.from < 5 ? 6 : 0, link.loss ?? 0, next);
      draft.links[i]!.innovative += Math.floor(heard * 0.8);
      draft.links[i]!.redundant += heard - Math.floor(heard * 0.8);
    });
  });
}

/** `size` nodes with some 10 links each, for measuring speed. */
export function crowd(size = 1000, seconds = 6): Message[] {
  const next = random(7);
  const side = Math.sqrt(size) * 10;
  const nodes: Node[] = Array.from({ length: size }, (_, i) => ({
    id: i + 1,
    name: `n${i + 1}`,
    position: { kind: "plan", x: next() * side, y: next() * side, z: 0 },
  }));
  const meta = metaOf("crowd", nodes, near(nodes, 18), {});
  return record(meta, seconds, (draft) => {
    draft.nodes.forEach((node) => {
      node.control += Number(next() < 0.1);
      node.coded += Number(next() < 0.1);
    });
    draft.links.forEach((_, i) => {
      if (next() < 0.08) draft.links[i]!.innovative += send(draft, i, 1, 0.2, next);
    });
  });
}

/** A ring of nodes of which nothing says where they are. */
export function unplaced(size = 12): Message[] {
  const nodes: Node[] = Array.from({ length: size }, (_, i) => ({
    id: i + 1,
    name: `n${i + 1}`,
    position: null,
  }));
  const links = nodes.flatMap(({ id }) => {
    const next = (id % size) + 1;
    return [
      { from: id, to: next, loss: 0.1 },
      { from: next, to: id, loss: 0.1 },
    ];
  });
  return record(metaOf("unplaced", nodes, links, {}), 2, (draft) => {
    draft.nodes[0]!.control += 1;
  });
}

/** A mesh of one node. */
export function alone(): Message[] {
  const meta = metaOf("alone", [{ id: 1, name: "only", position: null }], [], {});
  return record(meta, 2, (draft) => {
    draft.nodes[0]!.control += 1;
  });
}

/** Names that would do harm if a page took them for HTML. */
export const HOSTILE = '<img src=x onerror="window.harmed=1">';

/** A mesh in which every text is hostile. */
export function hostile(): Message[] {
  const nodes: Node[] = [1, 2].map((id) => ({ id, name: `${HOSTILE}${id}`, position: null }));
  const links = [
    { from: 1, to: 2, loss: 0.1 },
    { from: 2, to: 1, loss: 0.1 },
  ];
  const transfer = { id: HOSTILE, name: HOSTILE, scheme: HOSTILE, from: 1, to: [2] };
  const meta = metaOf(HOSTILE, nodes, links, {
    schemes: [HOSTILE],
    transfers: [{ ...transfer, bytes: "1000", generations: 1 }],
    flows: [{ from: 1, to: 2, protocol: HOSTILE, rate_bps: null, packet_bytes: null }],
    streams: [
      {
        group: HOSTILE,
        scheme: HOSTILE,
        from: 1,
        layers: [{ name: HOSTILE, rate_bps: 1 }],
        to: [2],
      },
    ],
    rollouts: [{ number: "1", name: HOSTILE, version: HOSTILE, from: 1 }],
  });
  return record(meta, 3, (draft, time) => {
    draft.nodes[0]!.data += 1;
    draft.flows[0]!.why = HOSTILE;
    draft.streams[0]!.receivers[0]!.problem = HOSTILE;
    draft.rollouts[0]!.nodes[0]!.why = HOSTILE;
    if (time !== 1) return;
    const drops = { kind: "drops", reason: HOSTILE, frames: 3, seconds: 1 } as const;
    return [
      { time_s: time, node: 1, what: { kind: "hint", text: HOSTILE } },
      { time_s: time, node: 2, what: drops },
    ];
  });
}
