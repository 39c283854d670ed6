/** Live streams, as tables. */
import type { Run } from "../run";

/** A layer at a receiver. */
export interface LayerCell {
  name: string;
  /** Packets received over packets sent in the last second, 0 to 1; null if none was sent. */
  share: number | null;
  /** Bits received in the last second, bit/s. */
  rate: number;
}

/** A live stream at the time shown. */
export interface StreamRow {
  place: number;
  group: string;
  scheme: string;
  from: string;
  layers: { name: string; offered: number | null }[];
  receivers: { node: number; name: string; problem: string; layers: LayerCell[] }[];
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
    const grown = (list: number[], old: number[] | undefined, layer: number) =>
      (list[layer] ?? 0) - (old?.[layer] ?? 0);
    return {
      place,
      group: about.group,
      scheme: about.scheme,
      from: run.nodeName(about.from),
      layers: about.layers.map(({ name, rate_bps }) => ({ name, offered: rate_bps })),
      receivers: stream.receivers.map((receiver) => {
        const old = earlier?.receivers.find(({ node }) => node === receiver.node);
        return {
          node: receiver.node,
          name: run.nodeName(receiver.node),
          problem: receiver.problem,
          layers: about.layers.map(({ name }, layer) => {
            const sent = grown(stream.taken, earlier?.taken, layer);
            const got = grown(receiver.packets, old?.packets, layer);
            const bits = grown(receiver.bits, old?.bits, layer);
            return {
              name,
              share: sent > 0 ? Math.min(1, got / sent) : null,
              rate: seconds > 0 ? bits / seconds : 0,
            };
          }),
        };
      }),
      tree: stream.tree.map(({ node, parent }) => ({
        node: run.nodeName(node),
        parent: run.nodeName(parent),
      })),
    };
  });
}
