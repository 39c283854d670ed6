/** Live streams, as tables. */
import type { StreamReceiverNow } from "../../schema/messages";
import { count, delay } from "../format";
import type { Run } from "../run";

/** A layer at a receiver. */
export interface LayerCell {
  name: string;
  /** Packets received over packets sent in the last second, 0 to 1; null if none was sent. */
  share: number | null;
  /** Bits received in the last second, bit/s; null if that is not known. */
  rate: number | null;
}

/** A receiver of a stream. */
export interface StreamReceiverRow {
  node: number;
  name: string;
  problem: string;
  layers: LayerCell[];
  /** Values of layers and of the base that are known, with their names. */
  known: string[];
  /** Bits of all layers received in the last second, bit/s; null if that is not known. */
  rate: number | null;
}

/** A live stream at the time shown. */
export interface StreamRow {
  place: number;
  group: string;
  scheme: string;
  from: string;
  layers: { name: string; offered: number | null }[];
  receivers: StreamReceiverRow[];
  /** Packets that were given up, by reason and layer, in words; empty if that is not known. */
  givenUp: string[];
  /** Nodes of the tree with their previous hops. */
  tree: { node: string; parent: string }[];
}

/** Returns the streams of a run at the time shown. */
export function streamRows(run: Run): StreamRow[] {
  const { now, before, meta, seconds } = run;
  if (!now || !meta) return [];
  return now.streams.flatMap((stream, place) => {
    const about = meta.streams[place];
    if (!about) return [];
    const earlier = before?.streams[place];
    const grown = (list: number[], old: number[] | undefined, layer: number) => {
      const growth = (list[layer] ?? NaN) - (old?.[layer] ?? NaN);
      return seconds > 0 && growth >= 0 ? growth : null;
    };
    return {
      place,
      group: about.group,
      scheme: about.scheme,
      from: run.nodeName(about.from),
      layers: about.layers.map(({ name, rate_bps }) => ({ name, offered: rate_bps })),
      receivers: stream.receivers.map((receiver) => {
        const old = earlier?.receivers.find(({ node }) => node === receiver.node);
        const layers = about.layers.map(({ name }, layer): LayerCell => {
          const sent = grown(stream.taken, earlier?.taken, layer);
          const got = grown(receiver.packets, old?.packets, layer);
          const bits = grown(receiver.bits, old?.bits, layer);
          return {
            name,
            share: sent && got !== null ? Math.min(1, got / sent) : null,
            rate: bits === null ? null : bits / seconds,
          };
        });
        const known = layers.flatMap(({ rate }) => rate ?? []);
        return {
          node: receiver.node,
          name: run.nodeName(receiver.node),
          problem: receiver.problem,
          layers,
          known: timeliness(receiver),
          rate: known.length > 0 ? known.reduce((sum, rate) => sum + rate, 0) : null,
        };
      }),
      // Older recordings do not tell it.
      givenUp: [
        ...byLayer("too late for a next hop", stream.late),
        ...byLayer("without room in a queue", stream.no_room),
      ],
      tree: stream.tree.map(({ node, parent }) => ({
        node: run.nodeName(node),
        parent: run.nodeName(parent),
      })),
    };
  });
}

/** Returns packets of layers with a name, if there are layers. */
function byLayer(name: string, packets: number[]): string[] {
  return packets.length > 0 ? [`${name} ${packets.map(count).join(", ")}`] : [];
}

/**
 * Returns what a receiver knows of losses, order, delays and whole seconds, with names. Lists are
 * by layer; a layer of which nothing came has the delay 0, and older recordings have no lists.
 */
function timeliness(receiver: StreamReceiverNow): string[] {
  const { offered, missing, out_of_order, delay_p50_s, delay_p99_s, whole_base_s, base_s } =
    receiver;
  const delays = (list: number[] | null) =>
    (list ?? []).map((seconds) => (seconds > 0 ? delay(seconds) : "–")).join(", ");
  const parts: string[] = [];
  if (offered.length > 0) {
    const missed = offered.map((sent, layer) => `${count(missing[layer] ?? 0)} of ${count(sent)}`);
    parts.push(`missing ${missed.join(", ")}`);
  }
  if (delay_p50_s?.length) {
    parts.push(`median delay ${delays(delay_p50_s)}`);
    parts.push(`99 of 100 within ${delays(delay_p99_s)}`);
  }
  parts.push(...byLayer("out of order", out_of_order));
  if (whole_base_s !== null && base_s !== null) {
    parts.push(`${whole_base_s} of ${base_s} seconds of the base whole`);
  }
  return parts;
}
