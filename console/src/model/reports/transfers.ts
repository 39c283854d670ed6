/** Transfers of files, as tables. */
import { TRANSFER_FIELDS, type ReceiverNow, type Stage } from "../../schema/messages";
import { quantities } from "../format";
import type { Run } from "../run";
import { trackKey } from "../track";

/** State of a generation at a receiver. */
export type Generation = "missing" | "begun" | "complete";

/** A transfer at a receiver, at the time shown. */
export interface ReceiverRow {
  node: number;
  name: string;
  stage: Stage;
  bytes: number;
  /** Share of the file that is there, 0 to 1. */
  share: number;
  /** Bits that came in the last second, bit/s; null if that is not known. */
  rate: number | null;
  innovative: number | null;
  redundant: number | null;
  /** Generations by state; empty if their number is not known. */
  generations: Generation[];
  /** Share of the generation being received, 0 to 1. */
  begun: number;
  /** Time that it took to get the whole file, s; null if it never has it. */
  finished: number | null;
}

/** A transfer at the time shown. */
export interface TransferRow {
  place: number;
  id: string;
  name: string;
  scheme: string;
  from: string;
  /** Whether the node that tells is the source. */
  isSource: boolean;
  size: number;
  /** Stage at the source; null, as the rest of what it does, if it is not known. */
  stage: Stage | null;
  /** Quantities that are known of it, with their names. */
  known: string[];
  forwarders: string[];
  receivers: ReceiverRow[];
}

/** Most cells of a strip of generations. More are put together. */
export const CELLS = 120;

/** Returns the transfers of a run at the time shown. */
export function transferRows(run: Run): TransferRow[] {
  const { now, meta } = run;
  if (!now || !meta) return [];
  return now.transfers.flatMap((transfer, place) => {
    const about = meta.transfers[place];
    if (!about) return [];
    const size = Number(about.bytes);
    return {
      place,
      id: about.id,
      name: about.name,
      scheme: about.scheme,
      from: run.nodeName(about.from),
      isSource: about.from === meta.observer,
      size,
      stage: transfer.stage,
      known: quantities(TRANSFER_FIELDS, transfer),
      forwarders: (transfer.forwarders ?? []).map((id) => run.nodeName(id)),
      receivers: transfer.receivers.map((receiver) =>
        receiverRow(run, place, size, about.generations ?? 0, receiver),
      ),
    };
  });
}

function receiverRow(
  run: Run,
  place: number,
  size: number,
  generations: number,
  receiver: ReceiverNow,
): ReceiverRow {
  const earlier = run.before?.transfers[place]?.receivers;
  const before = earlier?.find(({ node }) => node === receiver.node)?.bytes ?? NaN;
  const grown = receiver.bytes - before;
  const { rank } = receiver;
  const isWhole = receiver.stage === "complete";
  const share = size > 0 ? Math.min(1, receiver.bytes / size) : Number(isWhole);
  return {
    node: receiver.node,
    name: run.nodeName(receiver.node),
    stage: receiver.stage,
    bytes: receiver.bytes,
    share: isWhole ? 1 : share,
    rate: run.seconds > 0 && grown >= 0 ? (grown * 8) / run.seconds : null,
    innovative: receiver.innovative,
    redundant: receiver.redundant,
    generations: strip(generations, receiver),
    begun: rank && rank.size > 0 ? Math.min(1, rank.rank / rank.size) : 0,
    finished: finishedAt(run, place, size, receiver),
  };
}

/** Returns at most `CELLS` cells. A cell of several generations is complete if all of them are. */
function strip(generations: number, receiver: ReceiverNow): Generation[] {
  const each = Math.max(1, Math.ceil(generations / CELLS));
  const cells: Generation[] = [];
  for (let first = 0; first < generations; first += each) {
    const end = Math.min(first + each, generations);
    let complete = 0;
    for (let i = first; i < end; i++) complete += Number(receiver.complete.has(i));
    const rank = receiver.rank;
    const isBegun = complete > 0 || (rank && rank.generation >= first && rank.generation < end);
    cells.push(complete === end - first ? "complete" : isBegun ? "begun" : "missing");
  }
  return cells;
}

/**
 * Returns the time that a receiver took to get the whole file, s; null if it never did. A daemon
 * tells it by its own clock. A simulation is seen from its beginning, so its ticks tell it.
 */
export function finishedAt(
  run: Run,
  place: number,
  size: number,
  receiver: ReceiverNow,
): number | null {
  if (run.meta?.observer != null) return receiver.finished_s;
  const bytes = run.track.bytes.get(trackKey(place, receiver.node)) ?? [];
  if (size === 0 || (bytes.at(-1) ?? 0) < size) return null;
  const done = bytes.findIndex((value) => value !== null && value >= size);
  const time = run.track.times[done];
  return time === undefined ? null : time - (run.track.began[place] ?? 0);
}

/** Returns the time that the last receiver took to get the file, s; null if one lacks it. */
export function completion(run: Run, place: number): number | null {
  const about = run.timeline.meta?.transfers[place];
  if (!about || about.to.length === 0) return null;
  const size = Number(about.bytes);
  const receivers = run.latest?.transfers[place]?.receivers ?? [];
  const times = about.to.map((node) => {
    const receiver = receivers.find((receiver) => receiver.node === node);
    return receiver ? finishedAt(run, place, size, receiver) : null;
  });
  return times.reduce<number | null>(
    (last, time) => (last === null || time === null ? null : Math.max(last, time)),
    0,
  );
}
