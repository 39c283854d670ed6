//! The text and its documents, read by a Prometheus.

use super::super::tests::{CONFIG, node};
use super::*;
use crate::config::NodeConfig;
use crate::node::Heard;
use axum::Router;
use axum::routing::get;
use ncmesh_engine::Port;
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

/// Every name that begins as ours do.
fn names_in(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("ncmesh_"));
    words.map(str::to_owned).collect()
}

#[test]
fn every_metric_is_documented_and_the_dashboard_asks_for_no_other() {
    let ours: BTreeSet<String> = heads().map(|head| head.full_name()).collect();
    let read = |file: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/");
        std::fs::read_to_string(format!("{folder}{file}")).unwrap()
    };
    assert_eq!(names_in(&read("metrics.md")), ours);
    let asked = names_in(&read("grafana-dashboard.json"));
    assert!(asked.len() > 10 && asked.is_subset(&ours), "{asked:?}");
}

#[test]
fn each_name_is_given_once_and_says_its_unit_once() {
    let mut names = BTreeSet::new();
    for Head { name, .. } in heads() {
        let words: Vec<&str> = name.split('_').collect();
        assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{name}");
        assert!(names.insert(name.clone()), "{name} is given twice");
    }
}

#[test]
fn frames_of_unknown_kinds_count_as_one() {
    let values = [((ServiceId(250), 7), 1.0), ((ServiceId(250), 8), 2.0)];
    let labels = vec![("service", "other".to_owned()), ("kind", "other".to_owned())];
    assert_eq!(by_kind(values.into_iter()), [(labels, 3.0)]);
}

#[test]
fn nodes_of_one_name_share_a_series() {
    let metric = |kind| Metric("flow", kind, "source", "Flows", |_| Vec::new());
    let lines = |kind| {
        let values = [1.0, 2.0].map(|value| (vec![("source", "barn".to_owned())], value));
        let text = text_of([(metric(kind).head(), values.to_vec())].into_iter()).unwrap();
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
    assert_eq!(node.handle_datagram(Port::FIRST, &[0; 60]), Heard::Dropped);
    let text = node.metrics().unwrap();
    let line = |line: &str| assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    line("# TYPE ncmesh_dropped_frames counter");
    line("ncmesh_dropped_frames_total{reason=\"foreign\"} 1.0");
    line("ncmesh_neighbors 0.0");
    assert!(text.ends_with("# EOF\n"), "{text}");

    // Each family is described before its values, which stand together, no series twice.
    let mut family = "";
    let mut families = BTreeSet::new();
    let mut series = BTreeSet::new();
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
    async fn start(dir: &std::path::Path, token: &str, targets: [SocketAddr; 2]) -> Option<Self> {
        // The kernel gives a port that is free now to nobody else for a while.
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let config = format!(
            "global: {{scrape_interval: 100ms, scrape_timeout: 100ms}}\n\
             scrape_configs: [{{job_name: a, authorization: {{credentials: {token}}}, \
             static_configs: [{{targets: {:?}}}]}}]\n",
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
    let hub = crate::web::hub(node.handle.clone(), true);
    let daemon = crate::web::serve(&config, &web, node.handle.clone(), hub).await.unwrap();

    // Every metric, with a label that a member chose.
    let labels = || vec![("peer", HOSTILE.to_owned())];
    let text = text_of(heads().map(|head| (head, vec![(labels(), 1.0)]))).unwrap();
    assert_eq!(text.lines().count(), 3 * heads().count() + 1, "{text}");
    let answer = ([(axum::http::header::CONTENT_TYPE, MEDIA_TYPE)], text);
    let router = Router::new().route("/metrics", get(async || answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hostile = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, router).await });

    let token = crate::web::readers_token(&config);
    let started = Prometheus::start(dir.path(), &token, [daemon, hostile]).await;
    let Some(mut prometheus) = started else { return };
    let reading = async {
        prometheus.read_often().await;
        let names = prometheus.ask("label/__name__/values").await;
        let names: BTreeSet<_> =
            names["data"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let names = names.into_iter().filter(|name| name.starts_with("ncmesh_"));
        let ours: BTreeSet<_> = heads().map(|head| head.full_name()).collect();
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
