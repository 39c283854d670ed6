//! Flows through tunnels: kernel UDP and TCP between network namespaces, over a line of three
//! daemons.

use crate::support::{room, room_alone, scenario_file, wait};
use ncmesh_lab::{Lab, LabOptions, POLL_INTERVAL};
use ncmesh_node::api::types::Status;
use ncmesh_sim::outcome::{FlowOutcome, FlowsOutcome, Outcome};
use ncmesh_sim::scenario::Scenario;
use ncmesh_test_support::skip;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Timeout of every wait in a test.
const TIMEOUT: Duration = Duration::from_secs(60);

/// One flow in each direction, one of each kind.
const LINE: &str = r#"
name = "line"
nodes = ["a", "b", "c"]
medium = { phy = "802.11b", bit_rate = "11M" }
link = [{ from = "a", to = "b", loss = 0.1 }, { from = "b", to = "c", loss = 0.1 }]
protocol.link = { quick_hello_s = 0.05 }
flow = [
  { from = "a", to = "c", rate = "200k", packet = 1000, seconds = 12 },
  { from = "c", to = "a", protocol = "tcp", congestion = "reno", packet = 1000, seconds = 12 },
]
"#;

/// Returns whether flows are possible here. If not, the test is skipped and must return.
pub(crate) fn is_possible() -> bool {
    // Checked once: tests that start together would take each other's namespace for a lack of
    // rights.
    static IS: LazyLock<bool> = LazyLock::new(try_out);
    if !*IS {
        skip("flows need root, /dev/net/tun, iproute2 and iperf3");
    }
    *IS
}

fn try_out() -> bool {
    let ran = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        let status = command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let name = format!("ncmesh-test-{}", std::process::id());
    let makes_namespaces =
        ran("ip", &["netns", "add", &name]) && ran("ip", &["netns", "del", &name]);
    makes_namespaces && Path::new("/dev/net/tun").exists() && ran("iperf3", &["-v"])
}

pub(crate) fn options(scheme: &str) -> LabOptions {
    LabOptions {
        program: env!("CARGO_BIN_EXE_ncmesh").into(),
        dir: None,
        // The test is about what arrives, not when: a busy machine may lag.
        max_lag: Duration::from_secs(20),
        tunnel: Some(scheme.into()),
        stream: None,
        web: None,
    }
}

fn namespaces_of(lab: u32) -> Vec<String> {
    let all = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("ncmesh-lab-{lab}-"))).collect()
}

fn flow(outcome: &Outcome, protocol: &str) -> FlowOutcome {
    let FlowsOutcome { flows, .. } = outcome.flows().unwrap();
    flows.iter().find(|flow| flow.protocol == protocol).unwrap().clone()
}

#[tokio::test]
async fn udp_and_tcp_go_on_when_the_relay_is_killed_and_started_again() {
    if !is_possible() {
        return;
    }
    let _room = room_alone().await;
    let scenario = Scenario::parse(LINE, "line.toml", Path::new("")).unwrap();
    let mut lab = Lab::start(&scenario, &options("forward")).await.unwrap();
    lab.settle_flows().await.unwrap();
    let running = lab.begin_flows().await.unwrap();
    delivered(&mut lab, 2, 20).await;
    lab.kill(1).await.unwrap();
    let then = delivered(&mut lab, 2, 0).await;
    lab.restart(1).await.unwrap();
    // When the mesh knows its new relay, packets arrive again and connections continue.
    delivered(&mut lab, 2, then + 20).await;
    let outcome = lab.finish_flows(running).await.unwrap();
    let udp = flow(&outcome, "udp");
    assert!(udp.delivered > 40 && udp.innovative == udp.heard, "{udp:?}");
    assert!((1e4..230e3).contains(&udp.throughput_bps) && udp.jitter_s.unwrap() > 0.0, "{udp:?}");
    let tcp = flow(&outcome, "tcp");
    assert!(tcp.throughput_bps > 1e4 && tcp.loss.is_none(), "{tcp:?}");
    let kernel = tcp.tcp.unwrap();
    assert!(kernel.rtt_s.unwrap() > 0.0 && kernel.retransmissions > 0, "{kernel:?}");
    assert_eq!(kernel.congestion.as_deref(), Some("reno"));
    assert!(outcome.transmissions > 100);
    // The relay forwards everything.
    assert!(outcome.nodes.values().all(|usage| usage.airtime_s > 0.0), "{:?}", outcome.nodes);
    assert!(!namespaces_of(std::process::id()).is_empty());
    lab.stop().await.unwrap();
    assert_eq!(namespaces_of(std::process::id()), Vec::<String>::new());
}

/// Waits until a node's daemon knows the round trip of a connection of its host. Returns it, s.
async fn round_trip(lab: &mut Lab, node: usize) -> f64 {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        lab.check().unwrap();
        let status: Status = lab.client(node).read("/v1/status").await.unwrap();
        if let Some(rtt_s) = status.flows.iter().find_map(|flow| flow.values.rtt_s) {
            return rtt_s;
        }
        assert!(Instant::now() < deadline, "no round trip: {:?}", status.flows);
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Waits until a node's daemon has delivered this many packets of flows to its host. Returns the
/// number.
pub(crate) async fn delivered(lab: &mut Lab, node: usize, wanted: u64) -> u64 {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        lab.check().unwrap();
        let status: Status = lab.client(node).read("/v1/status").await.unwrap();
        let delivered = status.flows.iter().filter_map(|flow| flow.values.delivered).sum();
        if delivered >= wanted {
            return delivered;
        }
        assert!(Instant::now() < deadline, "{delivered} of {wanted} packets");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

#[tokio::test]
async fn schemes_that_code_within_flows_carry_them_too() {
    if !is_possible() {
        return;
    }
    let _room = room().await;
    let short = LINE.replace("seconds = 12", "seconds = 5");
    let scenario = Scenario::parse(&short, "line.toml", Path::new("")).unwrap();
    for scheme in ["mc2", "core_nc"] {
        let lab = Lab::start(&scenario, &options(scheme)).await.unwrap();
        lab.settle_flows().await.unwrap();
        let running = lab.begin_flows().await.unwrap();
        let outcome = lab.finish_flows(running).await.unwrap();
        assert_eq!(outcome.scheme, scheme);
        let udp = flow(&outcome, "udp");
        let tcp = flow(&outcome, "tcp");
        assert!(udp.delivered > 20 && udp.innovative > 20, "{scheme}: {udp:?}");
        let rtt_s = tcp.tcp.as_ref().and_then(|tcp| tcp.rtt_s);
        assert!(tcp.throughput_bps > 1e4 && rtt_s.unwrap() > 0.0, "{scheme}: {tcp:?}");
        lab.stop().await.unwrap();
    }
}

/// Alice and Bob on either side of a relay, with a connection in each direction.
const HUB: &str = r#"
name = "hub"
nodes = ["alice", "relay", "bob"]
medium = { phy = "802.11b", bit_rate = "2M", sense = "everyone" }
link = [{ from = "alice", to = "relay", loss = 0.0 }, { from = "relay", to = "bob", loss = 0.0 }]
protocol.link = { quick_hello_s = 0.05 }
flow = [
  { from = "alice", to = "bob", protocol = "tcp", packet = 1000, seconds = 4 },
  { from = "bob", to = "alice", protocol = "tcp", packet = 1000, seconds = 4 },
]
"#;

/// Returns the routes of the network namespaces of this process's labs.
fn routes() -> String {
    let of = |name: String| {
        let shown = Command::new("ip").args(["-n", &name, "route"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    namespaces_of(std::process::id()).into_iter().map(of).collect()
}

/// The kernel's TCP in both directions through a relay that codes, with a scenario's timing. The
/// daemon and the lab report what it does.
#[tokio::test]
async fn tcp_that_crosses_is_coded_and_the_daemons_say_how_much() {
    if !is_possible() {
        return;
    }
    let _room = room().await;
    let timed = HUB.replacen("\"tcp\"", "\"tcp\", ack_delay_s = 0, min_rto_s = 0.3", 1);
    let scenario = Scenario::parse(&timed, "hub.toml", Path::new("")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let kept = LabOptions { dir: Some(dir.path().join("lab")), ..options("xor") };
    let mut lab = Lab::start(&scenario, &kept).await.unwrap();
    lab.settle_flows().await.unwrap();
    let running = lab.begin_flows().await.unwrap();
    for end in ["10.200.0.1", "10.200.0.3"] {
        let routes = routes();
        let mut route = routes.lines().filter(|route| route.starts_with(&format!("{end} ")));
        let is_timed = |r: &str| r.contains("quickack 1") && r.contains("rto_min lock 300ms");
        assert!(route.any(is_timed), "{end}: {routes}");
    }
    // Two hops of two frames at 2 Mbit/s take that long in each direction.
    for end in [0, 2] {
        let rtt_s = round_trip(&mut lab, end).await;
        assert!(rtt_s > 0.002, "{rtt_s}");
    }
    let outcome = lab.finish_flows(running).await.unwrap();
    let outcome = outcome.flows().unwrap();
    assert!(outcome.flows.iter().all(|flow| flow.throughput_bps > 1e4), "{:?}", outcome.flows);
    let [alice, relay, bob] = ["alice", "relay", "bob"].map(|node| &outcome.coding[node]);
    assert!(relay.values.coded > 10 && relay.values.ratio.unwrap() > 0.05, "{relay:?}");
    assert!(
        alice.values.decoded > 10
            && bob.values.decoded > 10
            && alice.values.coded + bob.values.coded == 0
    );
    let status: Status = lab.client(1).read("/v1/status").await.unwrap();
    let coding = status.coding.iter().find(|coding| coding.scheme == "xor").unwrap();
    assert_eq!(coding.stopped.len(), 0);
    assert!(
        coding.values.coded >= relay.values.coded && coding.values.ratio.unwrap() > 0.05,
        "{coding:?}"
    );
    let ways: Vec<_> = coding.holds.iter().map(|h| (&h.previous[..], &h.next[..])).collect();
    assert_eq!(ways, [("alice", "bob"), ("bob", "alice")]);
    let socket = dir.path().join("lab/2-relay/state/api.sock");
    let mut shown = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
    let shown = shown.arg("status").arg("--api").arg(socket).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("\ncoding     by xor: ") && shown.contains("from alice to bob held"));
    lab.stop().await.unwrap();
}

/// If every coded packet must be decoded, the first one that is lost ends coding.
#[tokio::test]
async fn a_relay_stops_coding_for_who_decodes_too_little_and_says_why() {
    if !is_possible() {
        return;
    }
    let _room = room().await;
    let udp = HUB.replace(
        "protocol = \"tcp\", packet = 1000, seconds = 4",
        "rate = \"250k\", packet = 400, seconds = 8",
    );
    let udp = udp.replace("loss = 0.0", "loss = 0.1");
    let mut scenario = Scenario::parse(&udp, "hub.toml", Path::new("")).unwrap();
    for setting in ["min_decoded=1.0", "hold_time_s=0.02"] {
        scenario.set(&format!("protocol.xor.{setting}")).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let kept = LabOptions { dir: Some(dir.path().join("lab")), ..options("xor") };
    let lab = Lab::start(&scenario, &kept).await.unwrap();
    lab.settle_flows().await.unwrap();
    let running = lab.begin_flows().await.unwrap();
    let outcome = lab.finish_flows(running).await.unwrap();
    let relay = &outcome.flows().unwrap().coding["relay"];
    assert!(relay.stopped.iter().all(|why| why.contains(" decoded only ")), "{relay:?}");
    assert!(!relay.stopped.is_empty() && relay.values.coded < relay.values.sent, "{relay:?}");
    let status: Status = lab.client(1).read("/v1/status").await.unwrap();
    assert!(status.hints.iter().any(|h| h.contains("xor codes nothing for")), "{:?}", status.hints);
    let log = dir.path().join("lab/2-relay/log");
    let deadline = Instant::now() + TIMEOUT;
    while !std::fs::read_to_string(&log).unwrap().contains("xor codes no more for") {
        assert!(Instant::now() < deadline, "the log does not say it");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    lab.stop().await.unwrap();
}

#[test]
fn one_command_compares_two_schemes() {
    if !is_possible() {
        return;
    }
    let _room = wait(room_alone());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hub.toml");
    std::fs::write(&file, HUB).unwrap();
    let compare = |scheme: &str, against: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ncmesh"));
        command.arg("lab").arg(&file).args(["--scheme", scheme, "--compare", against]);
        command.args(["--json", "--max-lag", "20"]).output().unwrap()
    };
    let output = compare("xor", "forward");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    let comparison = &outcome["comparison"][0];
    let names = (&comparison["scheme"], &comparison["against"]);
    assert_eq!(names, (&"xor".into(), &"forward".into()));
    assert_eq!((&outcome["runs"][0]["scheme"], &outcome["runs"][1]["scheme"]), (names.1, names.0));
    for (measure, least) in [("throughput_bps", 1e4), ("rtt_s", 0.001), ("idle_rtt_s", 0.001)] {
        for scheme in [0, 1] {
            assert!(comparison[measure][scheme].as_f64().unwrap() > least, "{measure}: {outcome}");
        }
    }
    let gain = comparison["throughput_bps"][1].as_f64().unwrap()
        / comparison["throughput_bps"][0].as_f64().unwrap();
    assert!((comparison["throughput_gain"].as_f64().unwrap() - (gain - 1.0)).abs() < 1e-9);
    assert!(comparison["coding_ratio"]["relay"].as_f64().unwrap() > 0.05);
    assert_eq!(comparison["coding_ratio"].as_object().unwrap().len(), 1);
    for (scheme, against, words) in [
        ("multirate", "forward", "[[stream]]"),
        (
            "xor",
            "pacifier",
            "no tunnel scheme is called \"pacifier\"; there are: auto, braid, forward",
        ),
        ("xor", "xr", "there are: auto, braid, forward"),
    ] {
        let output = compare(scheme, against);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(words), "{said}");
    }
}

/// The next lab removes what a killed lab left behind.
#[test]
fn the_command_carries_flows_and_cleans_up_after_a_killed_lab() {
    if !is_possible() {
        return;
    }
    let _room = wait(room());
    let mut gone = Command::new("true").spawn().unwrap();
    let left_behind = format!("ncmesh-lab-{}-1", gone.id());
    gone.wait().unwrap();
    assert!(Command::new("ip").args(["netns", "add", &left_behind]).status().unwrap().success());
    let mut lingers = Command::new("ip");
    lingers.args(["netns", "exec", &left_behind, "sleep", "600"]);
    let mut lingers = lingers.spawn().unwrap();
    let quick = "protocol.link.quick_hello_s=0.05";
    // Flows use `braid` if no scheme is named.
    let outcome = ncmesh_lab(&["--set", quick, "--json", "--max-lag", "20"]);
    assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stderr));
    let outcome: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    assert_eq!((&outcome["scheme"], &outcome["scenario"]), (&"braid".into(), &"tunnel".into()));
    for (i, from, to) in [(0, "a", "c"), (1, "c", "a")] {
        let flow = &outcome["flows"][i];
        assert_eq!((&flow["from"], &flow["to"]), (&from.into(), &to.into()));
        assert!(flow["throughput_bps"].as_f64().unwrap() > 200e3, "{flow}");
    }
    assert!(!Path::new("/run/netns").join(&left_behind).exists());
    assert!(!lingers.wait().unwrap().success(), "what ran in it was ended");
}

#[test]
fn flows_that_cannot_be_are_refused() {
    let fails = |args: &[&str], code: i32, words: &str| {
        let output = ncmesh_lab(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.lines().last().unwrap().contains(words), "{said}");
    };
    fails(&["--scheme", "forward", "--send", "x"], 2, "flows and streams stand in the scenario");
    fails(&["--scheme", "pacifier"], 2, "names no source");
    fails(&["--scheme", "forward", "--set", "medium.mtu=600"], 3, "packets of 1000 bytes");
    if is_possible() {
        let output =
            ncmesh_lab_by(&["setpriv", "--bounding-set=-sys_admin"], &["--scheme", "forward"]);
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("run as root, with iproute2"), "{said}");
    }
}

fn ncmesh_lab(args: &[&str]) -> Output {
    ncmesh_lab_by(&["env"], args)
}

/// Runs the command through another one, `by`.
fn ncmesh_lab_by(by: &[&str], args: &[&str]) -> Output {
    let mut command = Command::new(by[0]);
    command
        .args(&by[1..])
        .arg(env!("CARGO_BIN_EXE_ncmesh"))
        .arg("lab")
        .arg(scenario_file("tunnel.toml"))
        .args(args)
        .stdin(Stdio::null());
    command.output().unwrap()
}
