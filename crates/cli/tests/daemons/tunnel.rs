//! IP through the tunnel of real daemons, and the messages where no tunnel is possible.

use crate::support::net::Segment;
use crate::support::{Node, assert_fails, wait_until};
use ncmesh_console::schema::{Count, Key, Message};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::tunnel::RelayMode;
use ncmesh_engines::registry;
use ncmesh_node::api::client::ApiClient;
use ncmesh_node::api::types::TunnelChange;
use ncmesh_node::tunnel::device::Device;
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns `[tunnel]` of node `id` of two, with `routes` besides the one to the other node.
fn tunnel(id: u16, more: &str, routes: &str) -> String {
    let other = 3 - id;
    format!(
        "[tunnel]\naddress = [\"10.44.0.{id}/24\", \"fd44::{id}/64\"]\n{more}\n\
         [tunnel.routes]\n\"10.44.0.{other}\" = \"n{other}\"\n\
         \"fd44::{other}\" = {other}\n{routes}\n"
    )
}

/// Starts two nodes with tunnels and waits until they know each other.
fn pair(segment: &Segment, dir: &Path, routes: &str) -> [Node; 2] {
    pair_of(segment, dir, |id| tunnel(id, "", routes))
}

/// Starts two nodes with these configurations and waits until they know each other.
fn pair_of(segment: &Segment, dir: &Path, config: impl Fn(u16) -> String) -> [Node; 2] {
    let pair = [1, 2].map(|id: u16| {
        let host = segment.host(id.into());
        let mut node = Node::new(&dir.join(format!("n{id}")), host, id, &config(id));
        node.start();
        node
    });
    pair[0].wait_for_peers(&["n2"]);
    pair[1].wait_for_peers(&["n1"]);
    pair
}

#[track_caller]
fn does(segment: &Segment, host: usize, command: &str) {
    let output = segment.run(host, command);
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&said));
}

/// Returns the output of a ping that fails.
#[track_caller]
fn ping_fails(segment: &Segment, host: usize, more: &str) -> String {
    let output = segment.run(host, &format!("ping -n -c 2 -i 0.2 -W 2 {more}"));
    assert!(!output.status.success(), "{more} got through");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn hosts_reach_each_other_in_both_versions_of_ip() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = pair(&segment, dir.path(), "");
    for (host, other) in [(1, 2), (2, 1)] {
        does(&segment, host, &format!("ping -n -c 3 -i 0.2 -W 5 10.44.0.{other}"));
        does(&segment, host, &format!("ping -n -c 3 -i 0.2 -W 5 fd44::{other}"));
        // Packets that fit, and longer ones, which the host fragments.
        does(&segment, host, &format!("ping -n -c 1 -W 5 -s 1301 -M do 10.44.0.{other}"));
        does(&segment, host, &format!("ping -n -c 1 -W 5 -s 6000 -M dont 10.44.0.{other}"));
    }
    let status = pair[0].status();
    let tunnel = status.tunnel.unwrap();
    assert_eq!((tunnel.device.as_str(), tunnel.mtu), ("ncmesh0", 1329));
    assert!(tunnel.packets_out >= 18 && tunnel.packets_in >= 18, "{tunnel:?}");
    let to = |name: &str| status.flows.iter().find(|f| f.destination == name).unwrap();
    let to_n1 = to("n1");
    assert!(to_n1.values.delivered >= Some(18), "{:?}", status.flows);
    assert!(to_n1.values.delivered_bytes > Some(14_000), "{:?}", status.flows);
    assert_eq!((to("n1").scheme.as_str(), to("n2").source.as_str()), ("braid", "n1"));
    let shown = String::from_utf8(pair[0].call(&["status"]).stdout).unwrap();
    let by = "tunnel     ncmesh0 by braid (auto: carries most over the measured meshes): 10.44.0.1";
    assert!(shown.contains(by), "{shown}");
}

/// Returns how many packets with a mark of congestion have come to a host.
fn marks(segment: &Segment, host: usize) -> u64 {
    let output = segment.run(host, "nstat -asz IpExtInCEPkts");
    let said = String::from_utf8(output.stdout).unwrap();
    said.split_whitespace()
        .skip_while(|word| *word != "IpExtInCEPkts")
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// A server of iperf3 that ends after one client, or with the test.
struct Server(Child);

impl Server {
    fn start(segment: &Segment, host: usize) -> Self {
        let words = ["netns", "exec", segment.host(host), "iperf3", "-s", "-1"];
        let server = Command::new("ip").args(words).stdout(Stdio::null()).spawn().unwrap();
        wait_until("iperf3 listens", || {
            let sockets = segment.run(host, "ss -Hltn sport = :5201");
            !sockets.stdout.is_empty()
        });
        Self(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn tcp_with_ecn_is_slowed_down_by_marks() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = pair(&segment, dir.path(), "");
    let on = dir.path().join("on");
    std::fs::write(&on, "1").unwrap();
    for host in [1, 2] {
        does(&segment, host, &format!("cp {} /proc/sys/net/ipv4/tcp_ecn", on.display()));
    }
    if !segment.slow_down(1, "2mbit") {
        return;
    }
    let _server = Server::start(&segment, 2);
    does(&segment, 1, "iperf3 -c 10.44.0.2 -t 4");
    assert!(marks(&segment, 2) > 0);
    let tunnel = pair[0].status().tunnel.unwrap();
    // A retransmission of TCP must not carry a mark (RFC 3168, 6.1.5): when the queue was
    // full for a moment, a few such packets are dropped.
    let dropped = tunnel.drops.get("late").copied().unwrap_or(0);
    assert!(tunnel.ecn_marked > dropped, "{tunnel:?}");
}

/// Returns the longest round trip that some pings through the tunnel had, s.
#[track_caller]
fn longest_ping(segment: &Segment, host: usize, to: &str) -> f64 {
    let output = segment.run(host, &format!("ping -n -c 3 -i 0.2 -W 5 {to}"));
    let said = String::from_utf8(output.stdout).unwrap();
    let times = said.split("time=").skip(1).filter_map(|rest| rest.split(' ').next());
    times.map(|ms| ms.parse::<f64>().unwrap() / 1e3).fold(0.0, f64::max)
}

/// Returns what a daemon tells Prometheus.
fn metrics(node: &Node) -> String {
    let mut stream = UnixStream::connect(node.socket()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_source_knows_the_round_trip_from_its_pings() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = pair(&segment, dir.path(), "");
    let mut longest = 0.0;
    for to in ["10.44.0.2", "fd44::2"] {
        let mut flows = Vec::new();
        wait_until("pings tell the round trip, everywhere", || {
            longest = longest_ping(&segment, 1, to).max(longest);
            flows = pair[0].status().flows;
            let shown = String::from_utf8(pair[0].call(&["status"]).stdout).unwrap();
            let metrics = metrics(&pair[0]);
            flows.iter().any(|flow| flow.values.rtt_s.is_some())
                && shown.contains(", RTT ")
                && metrics.contains("\nncmesh_flow_rtt_seconds{scheme=\"braid\",source=\"n1\"")
        });
        let known: Vec<_> = flows.iter().filter(|flow| flow.values.rtt_s.is_some()).collect();
        let [flow] = &known[..] else { panic!("{flows:?}") };
        assert_eq!((flow.source.as_str(), flow.destination.as_str()), ("n1", "n2"));
        // The gateway sees a request later than the program that sends it, and the reply earlier.
        let rtt = flow.values.rtt_s.unwrap();
        let least = flow.values.min_rtt_s.unwrap();
        assert!(0.0 < least && least.max(rtt) < longest + 1e-5, "{flow:?} {longest}");
        // The other node only answered.
        assert!(pair[1].status().flows.iter().all(|flow| flow.values.rtt_s.is_none()));
    }
    console_has_what_the_node_knows(&pair[0]);
}

/// Follows a node's console until it shows the round trip of the flow from there, and checks that
/// nothing is shown that the node does not know.
fn console_has_what_the_node_knows(node: &Node) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut messages = ApiClient::new(node.socket()).follow("/v1/messages").await.unwrap();
        let mut meta = None;
        let mut key = Key::default();
        while key.flows.iter().all(|flow| flow.rtt_s.is_none()) {
            match serde_json::from_str(&messages.next().await.unwrap().unwrap()).unwrap() {
                Message::Meta(new) => meta = Some(new),
                Message::Key(new) => key = new,
                Message::Tick(tick) => key.apply(&tick).unwrap(),
                Message::Event(_) => {}
            }
        }
        let meta = meta.unwrap();
        let other = meta.nodes.iter().position(|other| Some(other.id) != meta.observer).unwrap();
        let known = |column: &[Option<Count>]| column.iter().filter(|n| n.is_some()).count();
        assert_eq!((key.nodes.control_us[other], key.nodes.queue[other]), (None, None));
        assert_eq!((known(&key.nodes.control_us), known(&key.links.channel)), (1, 0));
        for (flow, state) in meta.flows.iter().zip(&key.flows) {
            let is_here = Some(flow.to) == meta.observer;
            assert_eq!((state.delivered.is_some(), state.bits.is_some()), (is_here, is_here));
            assert_eq!((state.offered, state.delay_s), (None, None), "{state:?}");
        }
    });
}

/// Nobody is told a route: each node has an address by its id and announces it, and one announces
/// the network behind it.
#[test]
fn hosts_reach_what_other_nodes_announce() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let own = |id: u16| match id {
        1 => "announce = [\"192.168.7.0/24\"]",
        _ => "accept = [\"192.168.0.0/16\"]",
    };
    let address = "address = [\"10.44.0.0/16\", \"fd44::/64\"]";
    let config = |id| format!("[tunnel]\n{address}\n{}\n", own(id));
    let pair = pair_of(&segment, dir.path(), config);
    does(&segment, 1, "ip address add 192.168.7.1/24 dev lo");
    does(&segment, 1, "ping -n -c 3 -i 0.2 -W 5 10.44.0.2");
    does(&segment, 1, "ping -n -c 3 -i 0.2 -W 5 fd44::2");
    does(&segment, 2, "ping -n -c 3 -i 0.2 -W 5 10.44.0.1");
    does(&segment, 2, "ping -n -c 3 -i 0.2 -W 5 192.168.7.1");
    // Nobody announces it.
    assert!(ping_fails(&segment, 2, "192.168.8.1").contains("Destination Net Unreachable"));

    let routes = pair[1].status().tunnel.unwrap().routes;
    let routes: Vec<_> =
        routes.iter().map(|route| (route.prefix.as_str(), route.node.as_deref())).collect();
    let n1 = Some("n1");
    let expected = [("10.44.0.1/32", n1), ("192.168.7.0/24", n1), ("fd44::1/128", n1)];
    assert_eq!(routes, expected);
    let shown = String::from_utf8(pair[1].call(&["status"]).stdout).unwrap();
    assert!(shown.contains("192.168.7.0/24 leads to n1, as announced"), "{shown}");

    // The network is taken back without a restart.
    let file = dir.path().join("n1/node.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace(own(1), "");
    std::fs::write(&file, text).unwrap();
    let said = String::from_utf8(pair[0].call(&["reload"]).stdout).unwrap();
    assert!(said.contains("[tunnel] announce"), "{said}");
    wait_until("the other forgets the network", || {
        pair[1].status().tunnel.unwrap().routes.len() == 2
    });
}

#[test]
fn all_schemes_carry_the_packets_that_ipv6_demands() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    // The scheme that leaves least of a frame, with its defaults.
    let pair = pair_of(&segment, dir.path(), |id| tunnel(id, "scheme = \"core_nc\"", ""));
    assert_eq!(pair[0].status().tunnel.unwrap().mtu, 1280);
    for entry in registry().of(ServiceKind::Tunnel) {
        for node in &pair {
            let changed = node.call(&["tunnel", entry.name]);
            assert!(changed.status.success(), "{}: {changed:?}", entry.name);
        }
        // With the headers of IPv6 and ICMPv6 1,280 bytes, which nobody may fragment.
        does(&segment, 1, "ping -6 -n -c 3 -i 0.2 -W 5 -M do -s 1232 fd44::2");
    }
}

/// The kernel would hold back a frame whose hardware address it does not know, and all behind it.
#[test]
fn a_neighbour_that_answers_no_arp_is_sent_its_frames_all_the_same() {
    let Some(segment) = Segment::new(2) else { return };
    // A question would also tell the address of whoever asks.
    if ![1, 2].into_iter().all(|host| segment.drop_arp(host)) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let _pair = pair_of(&segment, dir.path(), |id| tunnel(id, "scheme = \"forward\"", ""));
    does(&segment, 1, "ping -n -c 10 -i 0.2 -W 2 10.44.0.2");
    let known = segment.run(1, "ip neigh show 10.77.0.2");
    let known = String::from_utf8(known.stdout).unwrap();
    assert!(known.contains("FAILED") || known.contains("INCOMPLETE"), "{known}");
}

#[test]
fn the_scheme_is_changed_while_it_runs() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = pair_of(&segment, dir.path(), |id| tunnel(id, "mtu = 1300", ""));
    let set = pair[0].call(&["tunnel", "xor"]);
    assert_eq!(String::from_utf8(set.stdout).unwrap(), "packets leave by xor\n");
    // Out by one scheme, back by the other.
    does(&segment, 1, "ping -n -c 3 -i 0.2 -W 5 10.44.0.2");
    let flows = pair[1].status().flows;
    let by = |scheme: &str| flows.iter().filter(|f| f.scheme == scheme).count();
    assert!(by("xor") >= 1 && by("braid") >= 1, "{flows:?}");
    assert_eq!(pair[0].status().tunnel.unwrap().scheme, "xor");
    assert_fails(
        &pair[0].call(&["tunnel", "cope9"]),
        2,
        &["\"cope9\"", "braid, forward, mc2, xor"],
    );
}

#[test]
fn a_relay_is_what_its_configuration_says_until_it_is_told_otherwise() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let settings = [
        "[core_nc]\nrelay = \"recoding\"\ncoding = false\n",
        "[tunnel]\nscheme = \"core_nc\"\nmtu = 1000\naddress = [\"10.44.0.2/24\"]\n",
    ];
    let [relay, other] = [1, 2].map(|id: u16| {
        let config = settings[usize::from(id) - 1];
        let mut node =
            Node::new(&dir.path().join(format!("n{id}")), segment.host(id.into()), id, config);
        node.start();
        node
    });
    let shown = |node: &Node, scheme: &str| {
        let coding =
            node.status().coding.into_iter().find(|coding| coding.scheme == scheme).unwrap();
        (coding.relay.map(RelayMode::name), coding.combines.unwrap())
    };
    let said = |args: &[&str]| String::from_utf8(relay.call(args).stdout).unwrap();
    assert_eq!(shown(&relay, "core_nc"), (Some("recoding"), false));
    assert_eq!(shown(&relay, "cope"), (None, true));
    assert_eq!(shown(&other, "core_nc"), (Some("core"), true));
    assert_eq!(
        said(&["tunnel", "--relay", "non_recoding"]),
        "of core_nc this node is a non_recoding relay\n"
    );
    assert_eq!(shown(&relay, "core_nc"), (Some("non_recoding"), false));
    assert_eq!(said(&["tunnel", "--coding", "on"]), "flows that cross here are combined\n");
    assert_eq!(shown(&relay, "core_nc"), (Some("non_recoding"), true));
    said(&["tunnel", "--relay", "core", "--coding", "off"]);
    assert_eq!(shown(&relay, "core_nc"), (Some("core"), false));
    assert_eq!(shown(&relay, "cope"), (None, false));
    // Nothing is changed, because one part is impossible: the node has no tunnel of its own.
    let both = relay.call(&["tunnel", "core_nc", "--coding", "on"]);
    assert_fails(&both, 2, &["no tunnel here"]);
    assert_eq!(shown(&relay, "core_nc"), (Some("core"), false));
    let both = other.call(&["tunnel", "cope", "--relay", "recoding", "--json"]);
    let answer: TunnelChange = serde_json::from_slice(&both.stdout).unwrap();
    assert_eq!((answer.scheme.as_deref(), answer.coding), (Some("cope"), None));
    assert_eq!(other.status().tunnel.unwrap().scheme, "cope");
    let lazy = relay.call(&["tunnel", "--relay", "lazy"]);
    let said_to_lazy = String::from_utf8_lossy(&lazy.stderr);
    assert!(lazy.status.code() == Some(2) && said_to_lazy.contains("non_recoding"));

    // Without a change it shows what holds.
    assert_eq!(
        said(&["tunnel"]),
        "there is no tunnel here: packets of others are passed on\n\
         of core_nc this node is a core relay\n\
         flows that cross here are not combined\n"
    );
    let shown: TunnelChange = other.ask(&["tunnel"]);
    assert_eq!((shown.scheme.as_deref(), shown.relay), (Some("cope"), Some(RelayMode::Recoding)));
}

#[test]
fn hosts_learn_why_a_packet_is_not_carried() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = pair(&segment, dir.path(), "\"10.44.0.9\" = 9\n\"fd44::9\" = \"nobody\"");
    let unreachable = ping_fails(&segment, 1, "10.44.0.9");
    assert!(unreachable.contains("Destination Host Unreachable"), "{unreachable}");
    let unreachable = ping_fails(&segment, 1, "fd44::9");
    assert!(unreachable.contains("Address unreachable"), "{unreachable}");
    // The device's prefix covers the address, but no route of the tunnel leads there.
    let unreachable = ping_fails(&segment, 1, "10.44.0.77");
    assert!(unreachable.contains("Destination Net Unreachable"), "{unreachable}");
    does(&segment, 1, "ip link set ncmesh0 mtu 9000");
    let too_big = ping_fails(&segment, 1, "-M do -s 2000 10.44.0.2");
    assert!(too_big.contains("mtu = 1329") || too_big.contains("mtu=1329"), "{too_big}");
    let drops = pair[0].status().tunnel.unwrap().drops;
    for why in ["no_path", "no_route", "too_long"] {
        assert!(drops[why] >= 1, "{why}: {drops:?}");
    }
}

#[test]
fn addresses_of_others_are_not_taken() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = pair(&segment, dir.path(), "");
    does(&segment, 2, "ip addr add 10.44.0.77/32 dev ncmesh0");
    ping_fails(&segment, 2, "-I 10.44.0.77 10.44.0.1");
    assert_eq!(pair[0].status().tunnel.unwrap().drops["spoofed"], 2);
}

/// Whatever a network manager does to the device: within 5 s it is as it was, and a hint says what
/// was done.
#[test]
fn a_device_that_another_program_changes_is_restored() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let routes = "\"10.60.0.0/16\" = 2\n\"fd60::/64\" = 2\n";
    let mut node = Node::new(dir.path(), segment.host(1), 1, &tunnel(1, "", routes));
    node.start();
    let is_whole = || {
        let shown =
            |command: &str| String::from_utf8_lossy(&segment.run(1, command).stdout).into_owned();
        let device = shown("ip link show ncmesh0");
        let addresses = shown("ip addr show dev ncmesh0");
        let routes = shown("ip route show dev ncmesh0") + &shown("ip -6 route show dev ncmesh0");
        device.contains(",UP")
            && ["10.44.0.1/24", "fd44::1/64"].iter().all(|own| addresses.contains(own))
            && ["10.60.0.0/16", "fd60::/64"].iter().all(|prefix| routes.contains(prefix))
    };
    assert!(is_whole());
    assert!(!node.status().hints.iter().any(|hint| hint.contains("ncmesh0")));
    for (change, hint) in [
        ("ip link set ncmesh0 down", "it was down"),
        ("ip link del ncmesh0", "it was removed"),
        ("ip link set ncmesh0 down; ip link set ncmesh0 name other0", "renamed to other0"),
        ("ip addr flush dev ncmesh0", "the address 10.44.0.1/24 was gone"),
        ("ip -6 addr flush dev ncmesh0", "the address fd44::1/64 was gone"),
        ("ip route flush dev ncmesh0", "the route to 10.60.0.0/16 was gone"),
        ("ip -6 route del fd60::/64 dev ncmesh0", "the route to fd60::/64 was gone"),
    ] {
        let changed = Instant::now();
        change.split("; ").for_each(|command| does(&segment, 1, command));
        wait_until(change, || is_whole() && node.status().hints.iter().any(|h| h.contains(hint)));
        assert!(changed.elapsed() < Duration::from_secs(5), "{change}");
    }
    // In another namespace it is out of reach, and made again here.
    does(&segment, 1, &format!("ip link set ncmesh0 netns {}", segment.host(2)));
    wait_until("it is made again", is_whole);
    assert_eq!(node.stop(), 0);
    let gone = segment.run(1, "ip link show ncmesh0");
    assert!(!gone.status.success(), "the device goes with the daemon");
}

#[tokio::test]
async fn a_device_knows_that_it_is_gone_without_being_woken() {
    let Some(segment) = Segment::new(1) else { return };
    let config = json!({"namespace": segment.host(1), "address": ["10.44.0.1/24"]});
    let (upkeep, _) = tokio::sync::mpsc::unbounded_channel();
    let device = Device::open(&serde_json::from_value(config).unwrap(), 1400, upkeep).unwrap();
    assert!(device.check().is_ok());
    does(&segment, 1, "ip link del ncmesh0");
    let gone = device.check().unwrap_err().to_string();
    assert!(gone.contains("the device ncmesh0 is gone"), "{gone}");
}

#[test]
fn where_there_can_be_no_tunnel_it_says_what_to_do() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let node = |id: u16, more: &str| {
        let dir = dir.path().join(format!("n{id}"));
        Node::new(&dir, segment.host(id.into()), id, &tunnel(id, more, ""))
    };
    let fails = |node: &Node, code, words: &[&str]| {
        assert_fails(&node.daemon().output().unwrap(), code, words);
    };
    fails(&node(1, "namespace = \"nowhere\""), 1, &["\"nowhere\"", "ip netns add nowhere"]);
    fails(&node(1, "mtu = 1330"), 3, &["node.toml:", "mtu = 1330", "up to 1329"]);
    fails(&node(1, "mtu = 1279"), 3, &["node.toml:", "IPv6 needs packets of 1280 bytes"]);
    let announces = Node::new(
        &dir.path().join("n2"),
        segment.host(1),
        1,
        "[tunnel]\naddress = [\"10.44.0.1/24\"]\nannounce = [\"fd45::/64\"]\nmtu = 1279\n",
    );
    fails(&announces, 3, &["node.toml:", "IPv6 needs packets of 1280 bytes"]);
    let small = node(1, "");
    small.edit("rate = \"8M\"", "rate = \"8M\"\nmtu = 700");
    fails(&small, 3, &["node.toml:", "IPv6", "set [radio] mtu = 786 or more"]);
    does(&segment, 1, "ip route add 10.45.0.0/16 dev mesh0");
    let taken = Node::new(
        &dir.path().join("n1"),
        segment.host(1),
        1,
        &tunnel(1, "", "\"10.45.0.0/16\" = 2\n"),
    );
    fails(&taken, 1, &["10.45.0.0/16", "remove what is there"]);
    does(&segment, 1, "ip route del 10.45.0.0/16 dev mesh0");
    let mut first = node(1, "");
    first.start();
    let second = Node::new(&dir.path().join("n3"), segment.host(1), 3, &tunnel(1, "", ""));
    second.edit("rate = \"8M\"", "rate = \"8M\"\nport = 7118");
    fails(&second, 8, &["ncmesh0 is in use", "[tunnel] device"]);
}

#[test]
fn without_rights_it_says_which_are_missing() {
    let Some(segment) = Segment::new(1) else { return };
    let dir = tempfile::tempdir().unwrap();
    let node = Node::new(dir.path(), segment.host(1), 1, &tunnel(1, "", ""));
    let daemon = node.daemon();
    let mut powerless = Command::new("ip");
    let mut args = daemon.get_args();
    powerless.args(args.by_ref().take(3)).args(["setpriv", "--bounding-set=-net_admin"]).args(args);
    assert_fails(&powerless.output().unwrap(), 1, &["setcap cap_net_admin+ep"]);
}
