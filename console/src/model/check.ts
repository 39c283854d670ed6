/**
 * Turns lines of JSON into messages. What arrives may come from any file, so everything that the
 * model relies on is checked here, once: kinds, lists, and columns of equal length.
 */
import {
  LINK_COUNTERS,
  NODE_COUNTERS,
  type Key,
  type Message,
  type Meta,
  type Tick,
} from "../schema/messages";

/** Version of the schema that this console reads. */
export const SCHEMA = 4;

/** Oldest version that it reads. In it, what is not known is zero. */
const OLDEST_SCHEMA = 1;

/** The file, or the line, is not what it should be. The message says what to do. */
export class BadMessage extends Error {}

type Fields = Record<string, unknown>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function need(condition: boolean, problem: string): asserts condition {
  if (!condition) throw new BadMessage(problem);
}

/** Requires that every one of `names` is a list of objects. */
function needLists(fields: Fields, names: string[]): void {
  for (const name of names) {
    const list = fields[name];
    need(Array.isArray(list) && list.every(isFields), `\`${name}\` is no list of objects`);
  }
}

/** Requires that every column is a list, and returns the length that all have. */
function needColumns(table: unknown, where: string, names: readonly string[]): number {
  need(isFields(table), `\`${where}\` is missing`);
  const lengths = names.map((name) => {
    const column = table[name];
    need(Array.isArray(column), `\`${where}.${name}\` is no list`);
    return column.length;
  });
  const [first = 0] = lengths;
  need(
    lengths.every((length) => length === first),
    `columns of \`${where}\` differ in length`,
  );
  return first;
}

/** Columns of the places of nodes. */
export const PLACES = ["x_dm", "y_dm", "z_dm"] as const;

function checkMeta(fields: Fields): Meta {
  need(
    Number(fields["schema"]) >= OLDEST_SCHEMA && Number(fields["schema"]) <= SCHEMA,
    `its schema ${String(fields["schema"])} is not ${OLDEST_SCHEMA} to ${SCHEMA}: record the run ` +
      "again with this version of ncmesh, or open it with a newer one",
  );
  needLists(fields, ["nodes", "links", "transfers", "flows", "streams"]);
  const meta = fields as unknown as Meta;
  const ids = new Set(meta.nodes.map((node) => node.id));
  need(ids.size === meta.nodes.length, "two nodes have the same id");
  for (const { from, to, ports = [] } of meta.links) {
    need(ids.has(from) && ids.has(to), "a link joins a node that does not exist");
    need(Array.isArray(ports) && ports.every(isText), "the ports of a link are no names");
  }
  for (const { from, to } of meta.transfers) {
    need(ids.has(from) && Array.isArray(to), "a transfer has no source or no receivers");
  }
  for (const { from, to } of meta.flows) {
    need(ids.has(from) && ids.has(to), "a flow joins a node that does not exist");
  }
  for (const { from, to, layers } of meta.streams) {
    need(ids.has(from) && Array.isArray(to) && Array.isArray(layers), "a stream lacks layers");
  }
  // Older versions have no roll-outs.
  if ("rollouts" in fields) needLists(fields, ["rollouts"]);
  for (const { from } of meta.rollouts ?? []) {
    need(ids.has(from), "a roll-out is led by a node that does not exist");
  }
  return meta;
}

function checkKey(fields: Fields): Key {
  need(typeof fields["time_s"] === "number", "`time_s` is no number");
  needColumns(fields["nodes"], "nodes", ["up", ...NODE_COUNTERS, "queue"]);
  needColumns(fields["links"], "links", [...LINK_COUNTERS, "delivery"]);
  needLists(fields, ["transfers", "flows", "streams"]);
  if ("rollouts" in fields) needRollouts(fields);
  if ("places" in fields) needColumns(fields["places"], "places", PLACES);
  return fields as unknown as Key;
}

/** Requires that roll-outs have lists of nodes. */
function needRollouts(fields: Fields): void {
  needLists(fields, ["rollouts"]);
  for (const rollout of fields["rollouts"] as Fields[]) {
    if ("nodes" in rollout) needLists(rollout, ["nodes"]);
  }
}

function checkTick(fields: Fields): Tick {
  need(typeof fields["time_s"] === "number", "`time_s` is no number");
  const present = (table: Fields, names: string[]) => names.filter((name) => name in table);
  for (const [where, names] of [
    ["nodes", [...NODE_COUNTERS, "queue", "up"]],
    ["links", LINK_COUNTERS],
    ["moves", PLACES],
  ] as const) {
    const table = fields[where];
    if (table === undefined) continue;
    need(isFields(table), `\`${where}\` is no table`);
    needColumns(table, where, ["row", ...present(table, [...names])]);
    if ("delivery" in table) needColumns(table, where, ["delivery_row", "delivery"]);
  }
  const lists = present(fields, ["transfers", "flows", "streams"]);
  needLists(fields, lists);
  if ("rollouts" in fields) needRollouts(fields);
  return fields as unknown as Tick;
}

/**
 * Returns the message in a line of JSON.
 *
 * Throws `BadMessage` with what is wrong if there is none.
 */
export function parseMessage(line: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new BadMessage("it is no JSON");
  }
  need(isFields(value), "it is no object");
  switch (value["type"]) {
    case "meta":
      return { ...checkMeta(value), type: "meta" };
    case "key":
      return { ...checkKey(value), type: "key" };
    case "tick":
      return { ...checkTick(value), type: "tick" };
    case "event": {
      const what = value["what"];
      need(typeof value["time_s"] === "number", "`time_s` is no number");
      need(isFields(what) && typeof what["kind"] === "string", "the event has no kind");
      return value as unknown as Message;
    }
    default:
      throw new BadMessage(`it is of the unknown type ${JSON.stringify(value["type"])}`);
  }
}
