/** Serves the built console with recordings of tests, as the Rust server does. */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { NODE_COUNTERS, type Key, type Message, type Meta } from "../../src/schema/messages";
import {
  alone,
  broadcast,
  campus,
  cross,
  crowd,
  hostile,
  onEarth,
  rollout,
  unplaced,
} from "../support/meshes";
import { fileOf } from "../support/recorder";

export const DIST = join(import.meta.dirname, "../../../crates/web/dist");

/** The policy of the Rust server: a page that breaks it fails its test. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const TYPES: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Recordings by the name of the case, made when they are first asked for. */
const CASES: Record<string, () => Message[][]> = {
  campus: () => [campus()],
  cross: () => [cross("core_nc")],
  pair: () => [cross("forward"), cross("core_nc")],
  broadcast: () => [broadcast()],
  alone: () => [alone()],
  hostile: () => [hostile()],
  rollout: () => [rollout()],
  crowd: () => [crowd()],
  unplaced: () => [unplaced()],
  town: () => [onEarth(campus(), 52.5, 13.4)],
};

/** Recordings of the simulator. */
const FIXTURES: Record<string, string> = {
  walkers: join(import.meta.dirname, "../fixtures/walkers.ncrec"),
};

const made = new Map<string, Buffer[]>();

/** Folder with recordings for pictures; a case such as `cross-forward+cross-braid` is of them. */
const FOLDER = process.env["RECORDINGS"];

export function recordings(name: string): Buffer[] {
  if (FOLDER && !(name in CASES)) {
    return name.split("+").map((file) => readFileSync(join(FOLDER, `${file}.ncrec`)));
  }
  let files = made.get(name);
  if (!files) {
    const fixture = FIXTURES[name];
    files = fixture ? [readFileSync(fixture)] : (CASES[name]?.() ?? []).map(fileOf);
    made.set(name, files);
  }
  return files;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

/** Recordings of demonstrations, by the wish that made them. */
const demos = new Map<string, Buffer>();

/** Recordings that pictures of the demo show: the run without coding, and the one with it. */
const SHOWN: Record<string, string> = {
  cross: "cross-forward+cross-braid",
  building: "building-tree_flood+building-cascade",
  hub: "hub-forward+hub-braid",
};

/** Answers a wish of the demo with two recordings. */
function demonstrate(text: string): { runs: { name: string; url: string }[] } {
  const { demonstration, loss, seed } = JSON.parse(text) as {
    demonstration: string;
    loss: number | null;
    seed: number;
  };
  const shown = FOLDER ? recordings(SHOWN[demonstration] ?? "") : [];
  const runs = (["forward", "core_nc"] as const).map((scheme, i) => {
    const messages =
      demonstration === "building"
        ? campus(scheme === "forward" ? seed : seed + 5)
        : cross(scheme, loss ?? 0.2, seed);
    const url = `demo/run/${demonstration}-${scheme}-${loss}-${seed}`;
    demos.set(url, shown[i] ?? fileOf(messages));
    return { name: scheme, url };
  });
  return { runs };
}

/** Meshes that are watched, by the name of the case. */
const LIVE: Record<string, { commands: boolean; messages: () => Message[] }> = {
  past: { commands: false, messages: past },
  live: { commands: false, messages: () => cross("core_nc") },
  // Daemons in the middle of a transfer: one takes commands, the other is for looking only.
  daemon: { commands: true, messages: daemon },
  looking: { commands: false, messages: daemon },
  some: { commands: false, messages: someAirtime },
};

/** A daemon that was there for 40 s before the page was opened, and told nobody but itself. */
function past(): Message[] {
  const [meta, ...rest] = cross("core_nc").slice(0, -1) as [{ type: "meta" } & Meta, ...Message[]];
  const keys = rest.filter((message) => message.type === "key");
  const before = keys.map((key, i) => ({ ...key, time_s: 10 * i }));
  const now = rest.map((message) =>
    message.type === "meta" ? message : { ...message, time_s: message.time_s + 40 },
  );
  return [{ ...meta, tick_s: 10 }, ...before, meta, ...now];
}

/** A daemon that knows the airtime of the first node only. */
function someAirtime(): Message[] {
  const [meta, key] = daemon() as [Message, { type: "key" } & Key];
  const nodes = { ...key.nodes };
  for (const name of NODE_COUNTERS) {
    nodes[name] = nodes[name].map((count, row) => (row === 0 ? count : null));
  }
  const at = (time_s: number) => ({ ...key, nodes, time_s });
  return [meta, ...Array.from({ length: 40 }, (_, i) => at(i / 10))];
}

function daemon(): Message[] {
  return campus(3, { source: "daemon", observer: 1 }).slice(0, 40);
}

/** Writes the messages of a mesh as server-sent events, ten times as fast as they were made. */
function stream(response: ServerResponse, messages: Message[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write("id: run\n");
  const send = (message: Message | undefined) =>
    message && response.write(`data: ${JSON.stringify(message)}\n\n`);
  send(messages.shift());
  send(messages.shift());
  const timer = setInterval(() => send(messages.shift()), 10);
  response.on("close", () => clearInterval(timer));
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, name = "", ...rest] = (request.url ?? "").split("/");
  const path = rest.join("/") || "index.html";
  const json = (value: unknown) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(value));
  };
  const bytes = (file: Buffer | undefined) => {
    response.writeHead(file ? 200 : 404, { "content-type": "application/octet-stream" });
    response.end(file);
  };

  if (path === "console.json") {
    const live = LIVE[name];
    if (live) return json({ kind: "live", commands: live.commands });
    if (name === "demo") return json({ kind: name });
    if (name === "empty") return bytes(undefined);
    if (name === "foreign") {
      return json({ kind: "recording", runs: [{ name: "a", url: "index.html" }] });
    }
    const source = name === "cut" ? "campus" : name;
    const runs = recordings(source).map((_, i) => ({
      name: i === 0 ? "baseline" : "coded",
      url: `recordings/${i}`,
    }));
    return json({ kind: "recording", runs });
  }
  if (path.startsWith("messages")) return stream(response, LIVE[name]?.messages() ?? []);
  if (path === "demo/run") return json(demonstrate(await bodyOf(request)));
  if (path.startsWith("demo/run/")) return bytes(demos.get(path));
  if (path.startsWith("recordings/")) {
    const [whole] = name === "cut" ? recordings("campus") : [];
    if (whole) return bytes(whole.subarray(0, whole.length / 2));
    return bytes(recordings(name)[Number(path.split("/")[1])]);
  }

  try {
    const file = readFileSync(join(DIST, path.replaceAll("..", "")));
    response.writeHead(200, {
      "content-type": TYPES[extname(path)] ?? "application/octet-stream",
      "content-security-policy": POLICY,
    });
    response.end(file);
  } catch {
    bytes(undefined);
  }
}

/** Starts the server on a free port of this machine. Returns its address and how to stop it. */
export async function serve(): Promise<{ address: string; close: () => void }> {
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
