//! The node's counters as OpenMetrics text, for Prometheus and programs like it.
//!
//! [`FAMILIES`] lists the states whose values are metrics; name, unit and help come from the
//! declaration of each value in `ncmesh-console`. [`METRICS`] lists the others once: name, labels,
//! help, and how its values are read. They are read again for each scrape, so nothing has to be
//! kept in step. Labels are bounded: peers are those heard directly or blamed, kinds of frames are
//! known ones, transfers are the newest that are under way. The table of the reference is made from
//! the same lists.

use super::Node;
use crate::api::types::{Direction, Peer, PortState, Status, Transfer};
use ncmesh_console::schema::{
    CodingValues, Field, FlowValues, NodeValues, PeerValues, PortValues, QueueValues,
    ReceivedValues, SourceValues, StreamReceiverValues, StreamSending, Unit, Values as _,
};
use ncmesh_engines::registry;
use ncmesh_stack::summary::services;
use ncmesh_wire::{NodeId, ServiceId};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt;

/// Media type of the text.
pub(crate) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Most transfers that are shown one by one.
const MOST_TRANSFERS: usize = 32;

type Labels = Vec<(&'static str, String)>;
type Values = Vec<(Labels, f64)>;

/// Whether a metric can fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A counter: it only grows, from the daemon's start on. Its name in the text ends in `_total`.
    Grows,
    /// A gauge.
    Varies,
}
use Kind::{Grows, Varies};

/// Name without the prefix `ncmesh_`, kind, labels as the reference has them, help, and what reads
/// the values.
struct Metric(&'static str, Kind, &'static str, &'static str, fn(&Look<'_>) -> Values);

/// Description of a metric.
#[derive(Debug)]
struct Head {
    /// Name without the prefix `ncmesh_`, and without the suffix of counters.
    name: String,
    kind: Kind,
    labels: &'static str,
    help: String,
}

impl Metric {
    fn head(&self) -> Head {
        let Self(name, kind, labels, help, _) = *self;
        Head { name: name.to_owned(), kind, labels, help: help.to_owned() }
    }
}

impl Head {
    /// Returns the description of a value of a state.
    fn of(family: &Family, field: &Field) -> Self {
        let unit = field.unit.name();
        // The name in JSON may be its unit, or end in it: `ratio`, `rtt_s`, `delivered_bytes`.
        let ends = [&format!("_{unit}"), "_s", "_bps"];
        let stem = ends.iter().find_map(|end| field.name.strip_suffix(*end));
        let stem = stem.unwrap_or(field.name);
        let words = [family.prefix, stem, if stem == unit { "" } else { unit }];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        Self {
            name: words.join("_"),
            kind: if field.is_counter() { Grows } else { Varies },
            labels: family.labels,
            help: field.meaning().trim_end_matches('.').to_owned(),
        }
    }

    /// Returns the name in the text, without labels.
    fn full_name(&self) -> String {
        let suffix = if self.kind == Grows { "_total" } else { "" };
        format!("ncmesh_{}{suffix}", self.name)
    }
}

/// Values of one entry of a state, with its labels.
type Entry = (Labels, Vec<Option<f64>>);

/// A state each of whose values is a metric. Lists of layers are summed up.
struct Family {
    /// First word of the names, behind `ncmesh_`.
    prefix: &'static str,
    /// Labels as the reference has them.
    labels: &'static str,
    fields: &'static [Field],
    /// Values that [`METRICS`] has in another form, or that follow from other metrics.
    but: &'static [&'static str],
    read: fn(&Look<'_>) -> Vec<Entry>,
}

/// The states whose values are metrics, in the order of the text.
const FAMILIES: &[Family] = &[
    Family {
        prefix: "",
        labels: "",
        fields: NodeValues::FIELDS,
        but: &["transfers_open"],
        read: |look| vec![(Vec::new(), look.status.values.known())],
    },
    Family {
        prefix: "port",
        labels: "`port`",
        fields: PortValues::FIELDS,
        but: &[],
        read: |look| {
            let ports = look.status.ports.iter();
            ports.map(|port| (label_of(port), port.values.known())).collect()
        },
    },
    Family {
        prefix: "peer",
        labels: "`peer`",
        fields: PeerValues::FIELDS,
        but: &["delivery_to", "delivery_from"],
        read: |look| {
            let is_shown = |peer: &Peer| peer.neighbor || peer.values.false_packets.is_some();
            let heard = look.node.peers().into_iter().filter(is_shown);
            heard.map(|peer| (vec![("peer", peer.id.to_string())], peer.values.known())).collect()
        },
    },
    Family {
        prefix: "coding",
        labels: "`scheme`",
        fields: CodingValues::FIELDS,
        but: &[],
        read: |look| {
            let labels = |scheme: &String| vec![("scheme", scheme.clone())];
            look.status.coding.iter().map(|c| (labels(&c.scheme), c.values.known())).collect()
        },
    },
    Family {
        prefix: "transfer",
        labels: "`transfer`",
        fields: SourceValues::FIELDS,
        but: &[],
        read: |look| {
            let labels = |id: &String| vec![("transfer", id.clone())];
            look.open_transfers().map(|t| (labels(&t.id), t.sent.known())).collect()
        },
    },
    Family {
        prefix: "transfer_receiver",
        labels: "`transfer`, `receiver`",
        fields: ReceivedValues::FIELDS,
        but: &["bytes", "kbit_s"],
        read: |look| look.receivers().map(|(labels, values)| (labels, values.known())).collect(),
    },
    Family {
        prefix: "stream_source",
        labels: "`stream`",
        fields: StreamSending::FIELDS,
        but: &[],
        read: |look| {
            let streams = look.status.streams.iter();
            let known = streams.filter_map(|s| Some((s, s.sending.as_ref()?.known())));
            known.map(|(s, known)| (vec![("stream", s.id.clone())], known)).collect()
        },
    },
    Family {
        prefix: "stream_receiver",
        labels: "`stream`",
        fields: StreamReceiverValues::FIELDS,
        but: &["bytes"],
        read: |look| {
            let streams = look.status.streams.iter();
            let known = streams.filter_map(|s| Some((s, s.receiving.as_ref()?.values.known())));
            known.map(|(s, known)| (vec![("stream", s.id.clone())], known)).collect()
        },
    },
    Family {
        prefix: "stream_queue",
        labels: "`stream`, `to`",
        fields: QueueValues::FIELDS,
        but: &["held"],
        read: |look| look.queues().map(|(labels, values)| (labels, values.known())).collect(),
    },
    Family {
        prefix: "flow",
        labels: "`scheme`, `source`, `destination`",
        fields: FlowValues::FIELDS,
        but: &[],
        read: |look| {
            look.status.flows.iter().map(|flow| (labels_of(flow), flow.values.known())).collect()
        },
    },
];

impl Family {
    /// Returns the values that are metrics, each with its place among those of the state.
    fn metrics(&self) -> impl Iterator<Item = (usize, &'static Field)> {
        let fields = self.fields.iter().enumerate();
        fields.filter(|(_, field)| !self.but.contains(&field.name))
    }

    /// Returns the metrics with their values.
    fn read(&self, look: &Look<'_>) -> Vec<(Head, Values)> {
        let entries = (self.read)(look);
        let values = |(place, field): (usize, &Field)| {
            // One node may have had several flows to another one, whose packets count together.
            let is_sum = field.is_counter() || field.unit == Unit::Packets;
            let mut sums = BTreeMap::<&Labels, f64>::new();
            for (labels, known) in &entries {
                let Some(value) = known[place] else { continue };
                let sum = sums.entry(labels).or_default();
                *sum = if is_sum { *sum + value } else { value };
            }
            sums.into_iter().map(|(labels, sum)| (labels.clone(), sum)).collect()
        };
        self.metrics().map(|metric| (Head::of(self, metric.1), values(metric))).collect()
    }
}

/// Returns the descriptions of all metrics, in the order of the text.
fn heads() -> impl Iterator<Item = Head> {
    let states = FAMILIES.iter();
    let declared = states.flat_map(|of| of.metrics().map(|(_, field)| Head::of(of, field)));
    METRICS.iter().map(Metric::head).chain(declared)
}

/// Returns the table of all metrics for the reference, in Markdown.
pub(crate) fn table() -> String {
    let row =
        |head: Head| format!("| `{}` | {} | {} |\n", head.full_name(), head.labels, head.help);
    let rows: String = heads().map(row).collect();
    format!("| metric | labels | meaning |\n| --- | --- | --- |\n{rows}")
}

/// Returns the label of a port.
fn label_of(port: &PortState) -> Labels {
    vec![("port", port.name.clone())]
}

/// Source of the values.
struct Look<'a> {
    node: &'a Node,
    status: Status,
    transfers: Vec<Transfer>,
}

/// Every metric, in the order of the text.
const METRICS: &[Metric] = &[
    Metric(
        "node_info",
        Varies,
        "`id`, `name`, `version`, `radio`",
        "Who this is; always 1",
        |look| {
            let Status { id, name, version, radio, .. } = &look.status;
            let labels = [("id", id.to_string()), ("name", name.clone())];
            let more = [("version", version.clone()), ("radio", radio.clone())];
            vec![(labels.into_iter().chain(more).collect(), 1.0)]
        },
    ),
    Metric("port_up", Varies, "`port`", "1 while frames pass a port, else 0", |look| {
        let ports = look.status.ports.iter();
        ports.map(|port| (label_of(port), f64::from(u8::from(port.up)))).collect()
    }),
    Metric("hints", Varies, "", "Problems that `ncmesh status` names", |look| {
        one(look.status.hints.len() as f64)
    }),
    Metric("identity_info", Varies, "`key`", "1: the beginning of this node's key", |look| {
        let own = look.status.identity.iter();
        own.map(|own| (vec![("key", own.fingerprint.clone())], 1.0)).collect()
    }),
    Metric("certificate_end_seconds", Varies, "", "End of the certificate, since 1970", |look| {
        let end = look.status.identity.as_ref().and_then(|own| own.expires);
        end.map(|end| one(end as f64)).unwrap_or_default()
    }),
    Metric(
        "identity_conflicts",
        Varies,
        "",
        "Ids under which states were told lately that their keys had not signed",
        |look| {
            let own = look.status.identity.as_ref();
            own.map(|own| one(own.conflicts.len() as f64)).unwrap_or_default()
        },
    ),
    // Peers are told apart by id: one that is given another name goes on with its series.
    Metric(
        "peer_info",
        Varies,
        "`peer`, `name`",
        "1 for each node heard directly: the name that goes with its id. Join it with `* on \
         (instance, peer) group_left (name) ncmesh_peer_info`",
        |look| {
            let info = |(peer, _): (NodeId, f64)| {
                (vec![("peer", peer.to_string()), ("name", look.node.name_of(peer))], 1.0)
            };
            look.node.stack.inbound().map(info).collect()
        },
    ),
    Metric(
        "link_delivery_ratio",
        Varies,
        "`peer`, `direction` (`to`, `from`)",
        "Share of broadcast frames that arrive",
        |look| {
            let to = |peer| look.node.stack.topology().delivery(look.node.id(), peer);
            look.of_peers("direction", |peer, from| [("to", to(peer)), ("from", from)])
        },
    ),
    Metric(
        "peer_frames",
        Grows,
        "`peer`, `payload` (`innovative`, `redundant`)",
        "Frames with payload for this node heard from a peer, by whether they brought \
         something new",
        |look| {
            look.of_peers("payload", |peer, _| {
                let heard = look.node.stack.counters().usefulness(peer);
                [("innovative", heard.innovative as f64), ("redundant", heard.redundant as f64)]
            })
        },
    ),
    Metric("sent_frames", Grows, "`service`, `kind`", "Frames sent", |look| {
        let all = look.node.stack.counters().all_sent();
        by_kind(all.map(|(kind, tally)| (kind, tally.frames as f64)))
    }),
    Metric("sent_bytes", Grows, "`service`, `kind`", "Bytes of the frames sent", |look| {
        let all = look.node.stack.counters().all_sent();
        by_kind(all.map(|(kind, tally)| (kind, tally.bytes as f64)))
    }),
    Metric(
        "airtime_seconds",
        Grows,
        "`service`, `kind`",
        "Time for which frames of this node used the channel",
        |look| {
            let counters = look.node.stack.counters();
            let airtime = |(service, kind)| counters.airtime(service, kind).as_secs_f64();
            by_kind(counters.all_sent().map(|(kind, _)| (kind, airtime(kind))))
        },
    ),
    Metric("heard_frames", Grows, "`service`, `kind`", "Frames heard", |look| {
        let all = look.node.stack.counters().all_heard();
        by_kind(all.map(|(kind, tally)| (kind, tally.frames as f64)))
    }),
    Metric("heard_bytes", Grows, "`service`, `kind`", "Bytes of the frames heard", |look| {
        let all = look.node.stack.counters().all_heard();
        by_kind(all.map(|(kind, tally)| (kind, tally.bytes as f64)))
    }),
    Metric("dropped_frames", Grows, "`reason`", "Frames heard and dropped", |look| {
        by("reason", &look.status.drops)
    }),
    Metric(
        "carried_frames",
        Grows,
        "`payload` (`control`, `native`, `coded`)",
        "Frames sent, by what they carry. The coded share is `coded` over `native` and \
         `coded`",
        |look| {
            let carried = look.node.stack.counters().carried();
            let all = [
                ("control", carried.control),
                ("native", carried.native),
                ("coded", carried.coded),
            ];
            all.map(|(payload, (n, _))| (vec![("payload", payload.into())], n as f64)).into()
        },
    ),
    Metric(
        "coding_gain_ratio",
        Varies,
        "`scheme`",
        "Frames that plain forwarding would have sent for what the next hops got, over those \
         sent",
        |look| {
            let gain = |c: &crate::api::types::Coding| {
                c.gain.map(|gain| (vec![("scheme", c.scheme.clone())], gain))
            };
            look.status.coding.iter().filter_map(gain).collect()
        },
    ),
    Metric(
        "tunnel_packets",
        Grows,
        "`direction` (`out`, `in`)",
        "IP packets of this host that the tunnel took (`out`) and delivered (`in`)",
        |look| both_ways(look, |tunnel| [tunnel.packets_out, tunnel.packets_in]),
    ),
    Metric("tunnel_bytes", Grows, "`direction` (`out`, `in`)", "Bytes of these packets", |look| {
        both_ways(look, |tunnel| [tunnel.bytes_out, tunnel.bytes_in])
    }),
    Metric(
        "tunnel_waiting_packets",
        Varies,
        "",
        "IP packets that wait because the scheme's queue is full",
        |look| look.status.tunnel.iter().map(|t| (Vec::new(), t.waiting as f64)).collect(),
    ),
    Metric("tunnel_dropped_packets", Grows, "`reason`", "IP packets that were dropped", |look| {
        look.status.tunnel.as_ref().map_or_else(Vec::new, |tunnel| by("reason", &tunnel.drops))
    }),
    Metric(
        "transfers",
        Varies,
        "`direction`, `state` (`open`, `ended`)",
        "Transfers that this node remembers",
        |look| {
            let mut numbers = BTreeMap::<_, f64>::new();
            for transfer in &look.transfers {
                let state = if transfer.ended { "ended" } else { "open" };
                *numbers.entry((direction(transfer), state)).or_default() += 1.0;
            }
            let labels = |direction: &str, state: &str| {
                vec![("direction", direction.into()), ("state", state.into())]
            };
            numbers.into_iter().map(|((way, state), n)| (labels(way, state), n)).collect()
        },
    ),
    Metric("transfer_size_bytes", Varies, "`transfer`", "Size of a file under way", |look| {
        look.open_transfers().map(|t| (vec![("transfer", t.id.clone())], t.size as f64)).collect()
    }),
    Metric(
        "transfer_received_bytes",
        Varies,
        "`transfer`, `receiver`",
        "Bytes of it that a receiver has",
        |look| look.receivers().map(|(labels, values)| (labels, values.bytes as f64)).collect(),
    ),
    Metric(
        "hooks",
        Grows,
        "`result`",
        "Runs of the program after a received file: `succeeded`, `failed`, `skipped`",
        |look| {
            let hooks = &look.status.hooks;
            let results = [
                ("succeeded", hooks.succeeded),
                ("failed", hooks.failed),
                ("skipped", hooks.skipped),
            ];
            results.map(|(result, n)| (vec![("result", result.to_owned())], n as f64)).into()
        },
    ),
    Metric(
        "fleet_nodes",
        Varies,
        "`version`, `standing`",
        "Nodes of the roll-out that this node leads, by the version that they run and by how far \
         they are; `unknown` for those that were never heard",
        |look| {
            let nodes = look.node.fleet_status().rollout.map(|rollout| rollout.nodes);
            let mut counts: BTreeMap<[String; 2], u32> = BTreeMap::new();
            for node in nodes.into_iter().flatten() {
                let known = |word: Option<String>| word.unwrap_or_else(|| "unknown".into());
                *counts.entry([known(node.running), known(node.standing)]).or_default() += 1;
            }
            let entry = |([version, standing], n): ([String; 2], u32)| {
                (vec![("version", version), ("standing", standing)], f64::from(n))
            };
            counts.into_iter().map(entry).collect()
        },
    ),
    Metric(
        "stream_queue_packets",
        Varies,
        "`stream`, `to`",
        "Packets of a stream held for a next hop",
        |look| {
            let held = |values: &QueueValues| values.held.iter().sum::<u64>() as f64;
            look.queues().map(|(labels, values)| (labels, held(values))).collect()
        },
    ),
    Metric(
        "stream_received_bytes",
        Grows,
        "`stream`, `layer`",
        "Bytes received of a layer",
        |look| {
            let layers = look.status.streams.iter().filter_map(|stream| {
                let received = stream.receiving.as_ref()?;
                Some(stream.layers.iter().zip(&received.values.bytes).map(|(layer, bytes)| {
                    let labels = vec![("stream", stream.id.clone()), ("layer", layer.clone())];
                    (labels, *bytes as f64)
                }))
            });
            layers.flatten().collect()
        },
    ),
];

impl Look<'_> {
    /// Returns two values of each node heard directly, told apart by `label`. `read` is given the
    /// node and the share of its broadcasts that arrives here.
    fn of_peers(
        &self,
        label: &'static str,
        read: impl Fn(NodeId, f64) -> [(&'static str, f64); 2],
    ) -> Values {
        let both = |(peer, delivery)| {
            read(peer, delivery).map(|(which, value)| {
                (vec![("peer", peer.to_string()), (label, which.to_owned())], value)
            })
        };
        self.node.stack.inbound().flat_map(both).collect()
    }

    /// Returns the newest transfers that are under way.
    fn open_transfers(&self) -> impl Iterator<Item = &Transfer> {
        self.transfers.iter().rev().filter(|t| !t.ended).take(MOST_TRANSFERS)
    }

    /// Returns each receiver of these transfers, with its labels.
    fn receivers(&self) -> impl Iterator<Item = (Labels, &ReceivedValues)> {
        self.open_transfers().flat_map(|t| {
            let labels =
                |name: &str| vec![("transfer", t.id.clone()), ("receiver", name.to_owned())];

            match t.direction {
                Direction::Receiving => vec![(labels(&self.status.name), &t.values)],
                Direction::Sending => {
                    t.receivers.iter().map(|r| (labels(&r.name), &r.values)).collect()
                }
            }
        })
    }

    /// Returns each queue of each stream, with its labels.
    fn queues(&self) -> impl Iterator<Item = (Labels, &QueueValues)> {
        self.status.streams.iter().flat_map(|stream| {
            let labels = |to: &str| vec![("stream", stream.id.clone()), ("to", to.to_owned())];
            stream.queues.iter().map(move |queue| (labels(&queue.to), &queue.values))
        })
    }
}

fn one(value: f64) -> Values {
    vec![(Vec::new(), value)]
}

fn by(label: &'static str, counts: &BTreeMap<String, u64>) -> Values {
    counts.iter().map(|(name, n)| (vec![(label, name.clone())], *n as f64)).collect()
}

/// Sums values by the names of service and kind. Those without a name are `other`.
fn by_kind(values: impl Iterator<Item = ((ServiceId, u8), f64)>) -> Values {
    let mut sums = BTreeMap::<(&str, &str), f64>::new();
    for ((service, kind), value) in values {
        // Frames of a newer release have no name here.
        let name = services(registry()).find(|known| known.id == service).and_then(|known| {
            let layout = known.layouts.iter().find(|layout| layout.kind == kind)?;
            Some((known.name, layout.name))
        });
        *sums.entry(name.unwrap_or(("other", "other"))).or_default() += value;
    }

    let labels =
        |service: &str, kind: &str| vec![("service", service.into()), ("kind", kind.into())];
    sums.into_iter().map(|((service, kind), sum)| (labels(service, kind), sum)).collect()
}

fn both_ways(look: &Look<'_>, read: fn(&crate::api::types::Tunnel) -> [u64; 2]) -> Values {
    let Some(tunnel) = &look.status.tunnel else { return Vec::new() };
    let [out, inward] = read(tunnel);
    let labels = |direction: &str| vec![("direction", direction.to_owned())];
    vec![(labels("out"), out as f64), (labels("in"), inward as f64)]
}

fn labels_of(flow: &crate::api::types::Flow) -> Labels {
    let crate::api::types::Flow { scheme, source, destination, .. } = flow.clone();
    vec![("scheme", scheme), ("source", source), ("destination", destination)]
}

fn direction(transfer: &Transfer) -> &'static str {
    match transfer.direction {
        Direction::Sending => "sending",
        Direction::Receiving => "receiving",
    }
}

/// Returns the counters of a node as OpenMetrics text.
///
/// # Errors
/// Errors of the encoder.
pub(super) fn open_metrics(node: &Node) -> Result<String, fmt::Error> {
    let look = Look { node, status: node.status(), transfers: node.transfers() };
    let fixed = METRICS.iter().map(|metric| (metric.head(), (metric.4)(&look)));
    text_of(fixed.chain(FAMILIES.iter().flat_map(|of| of.read(&look))))
}

/// A metric as it was read for one scrape.
///
/// The library's own families keep their values in 64-bit atomics, which small routers lack.
#[derive(Debug)]
struct Read {
    head: Head,
    /// Each series once: labels are names, which two nodes may share.
    series: BTreeMap<Labels, f64>,
}

impl Read {
    fn new(head: Head, values: Values) -> Self {
        let mut series = BTreeMap::new();
        for (labels, value) in values {
            let shown = series.entry(labels).or_default();
            *shown = if head.kind == Grows { *shown + value } else { value };
        }
        Self { head, series }
    }
}

impl Collector for Read {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = if self.head.kind == Grows { MetricType::Counter } else { MetricType::Gauge };
        let help = format!("{}.", self.head.help);
        let mut family = encoder.encode_descriptor(&self.head.name, &help, None, kind)?;
        for (labels, value) in &self.series {
            let one = family.encode_family(labels)?;
            match self.head.kind {
                Grows => ConstCounter::new(*value).encode(one)?,
                Varies => ConstGauge::new(*value).encode(one)?,
            }
        }
        Ok(())
    }
}

/// Writes metrics with their values. A metric without values is left out.
fn text_of(all: impl Iterator<Item = (Head, Values)>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("ncmesh");
    for (head, values) in all.filter(|(_, values)| !values.is_empty()) {
        registry.register_collector(Box::new(Read::new(head, values)));
    }

    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
