//! The node's counters as OpenMetrics text, for Prometheus and programs like it.
//!
//! [`METRICS`] lists each metric once: name, help, and how its values are read. They are read anew
//! for each scrape, so nothing has to be kept in step. Labels are bounded: peers are those heard
//! directly, kinds of frames are known ones, transfers are the newest that are under way.

use super::Node;
use crate::api::types::{Direction, Status, Transfer};
use ncmesh_engines::REGISTRY;
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

/// Name without the prefix `ncmesh_`, kind, help, and what reads the values.
struct Metric(&'static str, Kind, &'static str, fn(&Look<'_>) -> Values);

/// What the values are read from.
struct Look<'a> {
    node: &'a Node,
    status: Status,
    transfers: Vec<Transfer>,
}

/// Every metric, in the order of the text.
const METRICS: &[Metric] = &[
    Metric("node_info", Varies, "Who this is; always 1", |look| {
        let Status { id, name, version, radio, .. } = &look.status;
        let labels = [("id", id.to_string()), ("name", name.clone())];
        let more = [("version", version.clone()), ("radio", radio.clone())];
        vec![(labels.into_iter().chain(more).collect(), 1.0)]
    }),
    Metric("uptime_seconds", Varies, "Time since the daemon started", |look| {
        one(look.status.uptime_s)
    }),
    Metric("hints", Varies, "Problems that `ncmesh status` names", |look| {
        one(look.status.hints.len() as f64)
    }),
    Metric("neighbors", Varies, "Nodes that are heard directly", |look| {
        one(look.status.neighbors as f64)
    }),
    Metric("nodes", Varies, "Other nodes of the mesh that are known", |look| {
        one(look.status.nodes as f64)
    }),
    // Peers are told apart by id: one that is given another name goes on with its series.
    Metric("peer_info", Varies, "Who a peer is; always 1", |look| {
        let info = |(peer, _): (NodeId, f64)| {
            (vec![("peer", peer.to_string()), ("name", look.node.name_of(peer))], 1.0)
        };
        look.node.stack.inbound().map(info).collect()
    }),
    Metric("link_delivery_ratio", Varies, "Share of broadcast frames that arrive", |look| {
        let to = |peer| look.node.stack.topology().delivery(look.node.id(), peer);
        look.of_peers("direction", |peer, from| [("to", to(peer)), ("from", from)])
    }),
    Metric("peer_frames", Grows, "Frames with payload heard from a peer", |look| {
        look.of_peers("payload", |peer, _| {
            let heard = look.node.stack.counters().usefulness(peer);
            [("innovative", heard.innovative as f64), ("redundant", heard.redundant as f64)]
        })
    }),
    Metric("sent_frames", Grows, "Frames sent", |look| {
        let all = look.node.stack.counters().all_sent();
        by_kind(all.map(|(kind, tally)| (kind, tally.frames as f64)))
    }),
    Metric("sent_bytes", Grows, "Bytes of the frames sent", |look| {
        let all = look.node.stack.counters().all_sent();
        by_kind(all.map(|(kind, tally)| (kind, tally.bytes as f64)))
    }),
    Metric("airtime_seconds", Grows, "Time for which own frames used the channel", |look| {
        let counters = look.node.stack.counters();
        let airtime = |(service, kind)| counters.airtime(service, kind).as_secs_f64();
        by_kind(counters.all_sent().map(|(kind, _)| (kind, airtime(kind))))
    }),
    Metric("heard_frames", Grows, "Frames heard", |look| {
        let all = look.node.stack.counters().all_heard();
        by_kind(all.map(|(kind, tally)| (kind, tally.frames as f64)))
    }),
    Metric("heard_bytes", Grows, "Bytes of the frames heard", |look| {
        let all = look.node.stack.counters().all_heard();
        by_kind(all.map(|(kind, tally)| (kind, tally.bytes as f64)))
    }),
    Metric("dropped_frames", Grows, "Frames heard and dropped", |look| {
        by("reason", &look.status.drops)
    }),
    Metric("carried_frames", Grows, "Frames sent, by what they carry", |look| {
        let carried = look.node.stack.counters().carried();
        let all =
            [("control", carried.control), ("native", carried.native), ("coded", carried.coded)];
        all.map(|(payload, (n, _))| (vec![("payload", payload.into())], n as f64)).into()
    }),
    Metric("coding_gain_ratio", Varies, "Frames forwarding would have sent, per one", |look| {
        let gain = |c: &crate::api::types::Coding| {
            c.gain.map(|gain| (vec![("scheme", c.scheme.clone())], gain))
        };
        look.status.coding.iter().filter_map(gain).collect()
    }),
    Metric("tunnel_packets", Grows, "IP packets of the host", |look| {
        both_ways(look, |tunnel| [tunnel.packets_out, tunnel.packets_in])
    }),
    Metric("tunnel_bytes", Grows, "Bytes of the IP packets of the host", |look| {
        both_ways(look, |tunnel| [tunnel.bytes_out, tunnel.bytes_in])
    }),
    Metric("tunnel_waiting_packets", Varies, "IP packets that wait for the scheme", |look| {
        look.status.tunnel.iter().map(|t| (Vec::new(), t.waiting as f64)).collect()
    }),
    Metric("tunnel_dropped_packets", Grows, "IP packets that were dropped", |look| {
        look.status.tunnel.as_ref().map_or_else(Vec::new, |tunnel| by("reason", &tunnel.drops))
    }),
    Metric("flow_queue_packets", Varies, "Packets of a flow still to be sent here", |look| {
        of_flows(look, |flow| flow.credits)
    }),
    Metric("flow_innovative_frames", Grows, "Frames of a flow that were new here", |look| {
        of_flows(look, |flow| flow.innovative)
    }),
    Metric("flow_delivered_packets", Grows, "Packets of a flow for this host", |look| {
        of_flows(look, |flow| flow.delivered)
    }),
    Metric("flow_delivered_bytes", Grows, "Bytes of packets of a flow for this host", |look| {
        of_flows(look, |flow| flow.delivered_bytes)
    }),
    Metric("flow_lost_packets", Grows, "Packets of a flow lost at this node", |look| {
        of_flows(look, |flow| flow.lost)
    }),
    Metric("flow_rtt_seconds", Varies, "Smoothed round trip of a flow's packets", |look| {
        gauges_of_flows(look, |flow| flow.rtt_s)
    }),
    Metric("flow_min_rtt_seconds", Varies, "Shortest round trip of the last 10 s", |look| {
        gauges_of_flows(look, |flow| flow.min_rtt_s)
    }),
    Metric("transfers", Varies, "Transfers that this node remembers", |look| {
        let mut numbers = BTreeMap::<_, f64>::new();
        for transfer in &look.transfers {
            let state = if transfer.ended { "ended" } else { "open" };
            *numbers.entry((direction(transfer), state)).or_default() += 1.0;
        }
        let labels = |direction: &str, state: &str| {
            vec![("direction", direction.into()), ("state", state.into())]
        };
        numbers.into_iter().map(|((way, state), n)| (labels(way, state), n)).collect()
    }),
    Metric("transfer_size_bytes", Varies, "Size of a file under way", |look| {
        look.open_transfers().map(|t| (vec![("transfer", t.id.clone())], t.size as f64)).collect()
    }),
    Metric("transfer_received_bytes", Varies, "Bytes that a receiver has of a file", |look| {
        let mine = look.status.name.as_str();
        let of = |t: &Transfer| -> Values {
            let labels = |receiver: &str| {
                vec![("transfer", t.id.clone()), ("receiver", receiver.to_owned())]
            };
            match t.direction {
                Direction::Receiving => vec![(labels(mine), t.bytes as f64)],
                Direction::Sending => {
                    t.receivers.iter().map(|r| (labels(&r.name), r.bytes as f64)).collect()
                }
            }
        };
        look.open_transfers().flat_map(of).collect()
    }),
    Metric("hooks", Grows, "Runs of the program after a received file", |look| {
        let hooks = &look.status.hooks;
        let results =
            [("succeeded", hooks.succeeded), ("failed", hooks.failed), ("skipped", hooks.skipped)];
        results.map(|(result, n)| (vec![("result", result.to_owned())], n as f64)).into()
    }),
    Metric("stream_queue_packets", Varies, "Packets of a stream held for a next hop", |look| {
        let queues = look
            .status
            .streams
            .iter()
            .flat_map(|stream| stream.queues.iter().map(move |queue| (stream, queue)));
        queues
            .map(|(stream, queue)| {
                let held: u32 = queue.held.iter().sum();
                let labels = vec![("stream", stream.id.clone()), ("to", queue.to.clone())];
                (labels, f64::from(held))
            })
            .collect()
    }),
    Metric("stream_received_bytes", Grows, "Bytes received of a layer of a stream", |look| {
        let layers = look.status.streams.iter().filter_map(|stream| {
            let received = stream.receiving.as_ref()?;
            Some(stream.layers.iter().zip(&received.bytes).map(|(layer, bytes)| {
                let labels = vec![("stream", stream.id.clone()), ("layer", layer.clone())];
                (labels, *bytes as f64)
            }))
        });
        layers.flatten().collect()
    }),
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
        let name =
            services(REGISTRY).find(|(id, ..)| *id == service).and_then(|(_, name, layouts)| {
                let layout = layouts.iter().find(|layout| layout.kind == kind)?;
                Some((name, layout.name))
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

fn of_flows(look: &Look<'_>, read: fn(&crate::api::types::Flow) -> u64) -> Values {
    // One node may have had several flows to another one; they count together.
    let mut sums = BTreeMap::<_, f64>::new();
    for flow in &look.status.flows {
        *sums.entry(labels_of(flow)).or_default() += read(flow) as f64;
    }
    sums.into_iter().collect()
}

fn gauges_of_flows(look: &Look<'_>, read: fn(&crate::api::types::Flow) -> Option<f64>) -> Values {
    let flows = look.status.flows.iter();
    flows.filter_map(|flow| Some((labels_of(flow), read(flow)?))).collect()
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

impl Node {
    /// `GET /metrics`: the counters as OpenMetrics text.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn metrics(&self) -> Result<String, fmt::Error> {
        let look = Look { node: self, status: self.status(), transfers: self.transfers() };
        text_of(METRICS.iter().map(|metric| (metric, (metric.3)(&look))))
    }
}

/// A metric as it was read for one scrape.
///
/// The library's own families keep their values in 64-bit atomics, which small routers lack.
#[derive(Debug)]
struct Read {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    /// Each series once: labels are names, which two nodes may share.
    series: BTreeMap<Labels, f64>,
}

impl Read {
    fn new(Metric(name, kind, help, _): &Metric, values: Values) -> Self {
        let mut series = BTreeMap::new();
        for (labels, value) in values {
            let shown = series.entry(labels).or_default();
            *shown = if *kind == Grows { *shown + value } else { value };
        }
        Self { name, kind: *kind, help, series }
    }
}

impl Collector for Read {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = if self.kind == Grows { MetricType::Counter } else { MetricType::Gauge };
        let help = format!("{}.", self.help);
        let mut family = encoder.encode_descriptor(self.name, &help, None, kind)?;
        for (labels, value) in &self.series {
            let one = family.encode_family(labels)?;
            match self.kind {
                Grows => ConstCounter::new(*value).encode(one)?,
                Varies => ConstGauge::new(*value).encode(one)?,
            }
        }
        Ok(())
    }
}

/// Writes metrics with their values. A metric without values is left out.
fn text_of<'a>(all: impl Iterator<Item = (&'a Metric, Values)>) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("ncmesh");
    for (metric, values) in all.filter(|(_, values)| !values.is_empty()) {
        registry.register_collector(Box::new(Read::new(metric, values)));
    }
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CONFIG, node};
    use super::*;
    use crate::config::NodeConfig;
    use axum::Router;
    use axum::routing::get;
    use ncmesh_test_support::skip;
    use serde_json::Value;
    use std::collections::BTreeSet;
    use std::net::SocketAddr;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// A name that a member with the key may tell.
    const HOSTILE: &str = "\" 1\\\n# EOF\nncmesh_forged{a=\"</script>";

    /// Name in the text, without labels.
    fn full_name(Metric(name, kind, ..): &Metric) -> String {
        let suffix = if *kind == Grows { "_total" } else { "" };
        format!("ncmesh_{name}{suffix}")
    }

    /// Every name that begins as ours do.
    fn names_in(text: &str) -> BTreeSet<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("ncmesh_"));
        words.map(str::to_owned).collect()
    }

    #[test]
    fn every_metric_is_documented_and_the_dashboard_asks_for_no_other() {
        let ours: BTreeSet<String> = METRICS.iter().map(full_name).collect();
        let read = |file: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/");
            std::fs::read_to_string(format!("{folder}{file}")).unwrap()
        };
        assert_eq!(names_in(&read("metrics.md")), ours);
        let asked = names_in(&read("grafana-dashboard.json"));
        assert!(asked.len() > 10 && asked.is_subset(&ours), "{asked:?}");
    }

    #[test]
    fn frames_of_unknown_kinds_count_as_one() {
        let values = [((ServiceId(250), 7), 1.0), ((ServiceId(250), 8), 2.0)];
        let labels = vec![("service", "other".to_owned()), ("kind", "other".to_owned())];
        assert_eq!(by_kind(values.into_iter()), [(labels, 3.0)]);
    }

    #[test]
    fn nodes_of_one_name_share_a_series() {
        let metric = |kind| Metric("flow", kind, "Flows", |_| Vec::new());
        let lines = |kind| {
            let values = [1.0, 2.0].map(|value| (vec![("source", "barn".to_owned())], value));
            let text = text_of([(&metric(kind), values.to_vec())].into_iter()).unwrap();
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        let counted: Vec<String> = lines(Grows);
        let measured: Vec<String> = lines(Varies);
        assert_eq!(counted, ["ncmesh_flow_total{source=\"barn\"} 3.0"]);
        assert_eq!(measured, ["ncmesh_flow{source=\"barn\"} 2.0"]);
    }

    #[tokio::test]
    async fn the_text_is_openmetrics() {
        let (mut node, _calls, _dir) = node();
        assert_eq!(node.handle_datagram(&[0; 60]), None);
        let text = node.metrics().unwrap();
        let line = |line: &str| assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        line("# TYPE ncmesh_dropped_frames counter");
        line("ncmesh_dropped_frames_total{reason=\"foreign\"} 1.0");
        line("ncmesh_neighbors 0.0");
        assert!(text.ends_with("# EOF\n"), "{text}");

        // Each family is described before its values, which stand together, no series twice.
        let mut family = "";
        let (mut families, mut series) = (BTreeSet::new(), BTreeSet::new());
        for line in text.lines().take_while(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                family = rest.split(' ').next().unwrap();
                assert!(families.insert(family), "{family} is described twice");
            } else if !line.starts_with('#') {
                let (name, value) = line.rsplit_once(' ').unwrap();
                assert!(name.starts_with(family) && series.insert(name), "{line}");
                assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
            }
        }
    }

    /// A Prometheus that runs until the test ends.
    struct Prometheus {
        process: Child,
        address: SocketAddr,
    }

    impl Drop for Prometheus {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    impl Prometheus {
        /// Starts one that reads each of `targets` ten times a second; `None` if there is no such
        /// program.
        async fn start(dir: &std::path::Path, targets: [SocketAddr; 2]) -> Option<Self> {
            // The kernel gives a port that is free now to nobody else for a while.
            let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = free.local_addr().unwrap();
            drop(free);
            let config = format!(
                "global: {{scrape_interval: 100ms, scrape_timeout: 100ms}}\n\
                 scrape_configs: [{{job_name: a, static_configs: [{{targets: {:?}}}]}}]\n",
                targets.map(|target| target.to_string())
            );
            let file = dir.join("prometheus.yml");
            std::fs::write(&file, config).unwrap();
            let process = Command::new("prometheus")
                .arg(format!("--config.file={}", file.display()))
                .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
                .arg(format!("--web.listen-address={address}"))
                .stderr(Stdio::null())
                .spawn();
            match process {
                Ok(process) => Some(Self { process, address }),
                Err(e) => {
                    skip(format_args!("prometheus cannot run: {e}"));
                    None
                }
            }
        }

        /// Asks its API. Null while it does not answer yet.
        async fn ask(&mut self, path: &str) -> Value {
            assert_eq!(self.process.try_wait().unwrap(), None, "prometheus has ended");
            let Ok(mut stream) = TcpStream::connect(self.address).await else {
                return Value::Null;
            };
            let mut answer = String::new();
            let request = format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            stream.read_to_string(&mut answer).await.unwrap();
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            serde_json::from_str(body).unwrap_or_default()
        }

        /// Waits until it has read each target 20 times. A target that it cannot parse fails.
        async fn read_often(&mut self) {
            loop {
                let targets = self.ask("targets").await;
                for target in targets["data"]["activeTargets"].as_array().into_iter().flatten() {
                    let error = target["lastError"].as_str().unwrap();
                    // A machine with much to do may be late.
                    assert!(error.is_empty() || error.contains("deadline"), "{target}");
                }
                let sums = self.ask("query?query=sum_over_time(up%5B5m%5D)").await;
                let sums = sums["data"]["result"].as_array().cloned().unwrap_or_default();
                let reads = sums.iter().filter_map(|sum| sum["value"][1].as_str()?.parse().ok());
                if reads.filter(|n: &f64| *n >= 20.0).count() == 2 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    #[tokio::test]
    async fn prometheus_reads_it_ten_times_a_second_and_hostile_names_stay_names() {
        let (mut node, mut calls, dir) = node();
        let file = dir.path().join("node.toml");
        std::fs::write(&file, format!("{CONFIG}[web]\nlisten = \"127.0.0.1:0\"\n")).unwrap();
        let config = NodeConfig::read(&file).unwrap();
        let web = config.web.clone().unwrap();
        let hub = crate::web::hub(node.handle.clone());
        let daemon = crate::web::serve(&config, &web, node.handle.clone(), hub).await.unwrap();

        // Every metric, with a label that a member chose.
        let labels = || vec![("peer", HOSTILE.to_owned())];
        let text = text_of(METRICS.iter().map(|metric| (metric, vec![(labels(), 1.0)]))).unwrap();
        assert_eq!(text.lines().count(), 3 * METRICS.len() + 1, "{text}");
        let answer = ([(axum::http::header::CONTENT_TYPE, MEDIA_TYPE)], text);
        let router = Router::new().route("/metrics", get(async || answer));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hostile = listener.local_addr().unwrap();
        tokio::spawn(async { axum::serve(listener, router).await });

        let Some(mut prometheus) = Prometheus::start(dir.path(), [daemon, hostile]).await else {
            return;
        };
        let reading = async {
            prometheus.read_often().await;
            let names = prometheus.ask("label/__name__/values").await;
            let names: BTreeSet<_> =
                names["data"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let names = names.into_iter().filter(|name| name.starts_with("ncmesh_"));
            let ours: BTreeSet<_> = METRICS.iter().map(full_name).collect();
            assert_eq!(names.map(str::to_owned).collect::<BTreeSet<_>>(), ours);
            assert_eq!(prometheus.ask("label/peer/values").await["data"][0], HOSTILE);
        };
        let answering = async {
            while let Some(call) = calls.recv().await {
                call(&mut node);
            }
        };
        tokio::select! {
            () = reading => {}
            () = answering => panic!("nobody asks the node"),
        }
    }
}
