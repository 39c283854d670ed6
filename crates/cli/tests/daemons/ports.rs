//! Daemons with several ports: cables between hosts, pulled and plugged in while a file runs.

use crate::support::net::Segment;
use crate::support::{INBOX, Node, assert_fails, contents, send, wait_until};
use ncmesh_node::api::answers::Reloaded;
use ncmesh_node::api::types::{Peer, PeerPort, PortState};
use ncmesh_test_support::skip;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Settings that the tests replace.
const RADIO: &str = "[radio]\nkind = \"udp\"\ninterface = \"mesh0\"\nrate = \"8M\"\n";

/// Returns a `[[port]]` for each cable.
fn on(cables: &[&str]) -> String {
    let port = |cable: &&str| format!("[[port]]\ninterface = {cable:?}\nrate = \"8M\"\n");
    cables.iter().map(port).collect()
}

/// Returns a node with these ports, which is not started.
fn node(segment: &Segment, dir: &Path, id: u16, ports: &str) -> Node {
    let node = Node::new(&dir.join(format!("n{id}")), segment.host(id.into()), id, INBOX);
    node.edit(RADIO, ports);
    node
}

/// Returns the neighbour `id` of a node on each port.
fn ways(node: &Node, id: u16) -> Vec<PeerPort> {
    let peers: Vec<Peer> = node.ask(&["peers"]);
    peers.into_iter().find(|peer| peer.id == id).map(|peer| peer.ports).unwrap_or_default()
}

fn port(node: &Node, name: &str) -> PortState {
    node.status().ports.into_iter().find(|port| port.name == name).unwrap()
}

/// Two hosts with two cables between them, and a daemon on each.
fn pair(segment: &Segment, dir: &Path, ports: &str) -> [Node; 2] {
    segment.join(1, 2, "cable0");
    segment.join(1, 2, "cable1");
    let mut pair = [1, 2].map(|id| node(segment, dir, id, ports));
    pair.iter_mut().for_each(Node::start);
    pair[0].wait_for_peers(&["n2"]);
    pair[1].wait_for_peers(&["n1"]);
    pair
}

#[test]
fn a_file_arrives_though_the_cable_that_carries_it_is_pulled() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = pair(&segment, dir.path(), &on(&["cable0", "cable1"]));
    wait_until("both hear the other on both cables", || {
        ways(&pair[0], 2).len() == 2 && ways(&pair[1], 1).len() == 2
    });

    let bytes = contents(4_000_000, 1);
    send(&pair[0], "file", &bytes, "n2");
    pair[1].wait_for_bytes(1_000_000);
    let used = ways(&pair[0], 2).into_iter().find(|way| way.way).unwrap().port;
    let other = if used == "cable0" { "cable1" } else { "cable0" };
    segment.ip(1, &format!("link set {used} down"));
    wait_until("the port is down", || !port(&pair[0], &used).up && !port(&pair[1], &used).up);
    let received = pair[1].wait_for_completion();
    assert_eq!(std::fs::read(received.path.unwrap()).unwrap(), bytes);
    let left = ways(&pair[0], 2);
    assert!(left.len() == 1 && left[0].port == other && left[0].way, "{left:?}");
    let said = String::from_utf8(pair[0].call(&["status"]).stdout).unwrap();
    assert!(said.contains(&format!("port       {used}, down: link on {used}")), "{said}");

    segment.ip(1, &format!("link set {used} up"));
    wait_until("it is back", || ways(&pair[0], 2).len() == 2 && ways(&pair[1], 1).len() == 2);
    let said = String::from_utf8(pair[0].call(&["peers"]).stdout).unwrap();
    assert!(said.contains("PORTS"), "{said}");
}

#[test]
fn ports_of_all_kinds_carry_side_by_side_and_each_is_enough() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    for cable in ["cable0", "vpn0", "six0"] {
        segment.join(1, 2, cable);
    }
    for host in [1, 2] {
        segment.ip(host, &format!("addr add 10.78.0.{host}/24 dev vpn0"));
    }
    // Frames without addresses, a broadcast address, an IPv6 group, and one end that names the
    // other, as in a VPN. All have one UDP port, and one length of the longest frame.
    let kinds = [
        "interface = \"cable0\"",
        "interface = \"mesh0\"\nkind = \"udp\"",
        "interface = \"six0\"\ngroup = \"ff12::6e63:6d\"",
        "interface = \"vpn0\"\npeers = [",
    ];
    let ports = |named: &str| -> String {
        let port = |kind: &&str| format!("[[port]]\n{kind}\nrate = \"8M\"\nmtu = 1392\n");
        kinds
            .iter()
            .map(port)
            .collect::<String>()
            .replace("peers = [", &format!("peers = [{named}]"))
    };
    let peers = ["\"10.78.0.2:7117\"", ""];
    let mut pair =
        [1, 2].map(|id: u16| node(&segment, dir.path(), id, &ports(peers[usize::from(id) - 1])));
    pair.iter_mut().for_each(Node::start);
    wait_until("both hear the other by all four", || {
        ways(&pair[0], 2).len() == 4 && ways(&pair[1], 1).len() == 4
    });
    pair[0].wait_for_peers(&["n2"]);

    // One after the other is pulled, and a file goes by one of those that are left.
    for (number, pulled) in (1..).zip([None, Some("cable0"), Some("mesh0"), Some("six0")]) {
        if let Some(pulled) = pulled {
            segment.ip(1, &format!("link set {pulled} down"));
            wait_until("it is down", || !port(&pair[0], pulled).up);
        }
        let name = format!("file{number}");
        let bytes = contents(200_000, number);
        send(&pair[0], &name, &bytes, "n2");
        let arrived = pair[1].dir.join("inbox").join(&name);
        wait_until("it is there", || arrived.exists());
        assert_eq!(std::fs::read(arrived).unwrap(), bytes);
    }
    let left = ways(&pair[0], 2);
    assert!(left.len() == 1 && left[0].port == "vpn0" && left[0].way, "{left:?}");
}

#[test]
fn a_relay_with_two_ports_joins_two_cables() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    segment.join(1, 2, "left");
    segment.join(2, 3, "right");
    let named = on(&["left", "right"]).replacen("[[port]]\n", "[[port]]\nname = \"roof\"\n", 1);
    let ports = [on(&["left"]).replace("[[port]]", "[radio]"), named, on(&["right"])];
    let mut mesh: Vec<Node> =
        (1..).zip(&ports).map(|(id, ports)| node(&segment, dir.path(), id, ports)).collect();
    mesh.iter_mut().for_each(Node::start);
    mesh[0].wait_for_peers(&["n2", "n3"]);
    mesh[2].wait_for_peers(&["n1", "n2"]);

    let bytes = contents(500_000, 2);
    send(&mesh[0], "file", &bytes, "n3");
    let received = mesh[2].wait_for_completion();
    assert_eq!(std::fs::read(received.path.unwrap()).unwrap(), bytes);
    let heard = [1, 3].map(|id| ways(&mesh[1], id));
    let names =
        heard.each_ref().map(|ways| ways.iter().map(|way| way.port.as_str()).collect::<Vec<_>>());
    assert_eq!(names, [vec!["roof"], vec!["right"]]);
    for name in ["roof", "right"] {
        let port = port(&mesh[1], name);
        let frames = port.values.sent + port.values.heard;
        assert!(port.up && port.values.neighbors == 1 && frames > 300, "{port:?}");
    }
    assert_eq!(mesh[0].status().ports.len(), 1);
}

/// The two ends of a mesh whose relay sends on by a port with shorter frames, as a VPN has them.
#[test]
fn files_and_packets_are_cut_for_the_shortest_frames_of_the_mesh() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    segment.join(1, 2, "left");
    segment.join(2, 3, "vpn");
    let short = on(&["vpn"]).replace("rate", "mtu = 1392\nrate");
    let ports = [on(&["left"]), on(&["left"]) + &short, short];
    let mut mesh: Vec<Node> =
        (1..).zip(&ports).map(|(id, ports)| node(&segment, dir.path(), id, ports)).collect();
    for (id, node) in [1, 3].into_iter().zip([0, 2]) {
        let addresses = format!("\"10.44.0.{id}/24\", \"fd44::{id}/64\"");
        let tunnel = format!("[tunnel]\naddress = [{addresses}]\n\n[inbox]");
        mesh[node].edit("[inbox]", &tunnel);
    }
    mesh.iter_mut().for_each(Node::start);
    mesh[0].wait_for_peers(&["n2", "n3"]);
    mesh[2].wait_for_peers(&["n1", "n2"]);

    let bytes = contents(300_000, 4);
    send(&mesh[0], "file", &bytes, "n3");
    let received = mesh[2].wait_for_completion();
    assert_eq!(std::fs::read(received.path.unwrap()).unwrap(), bytes);

    // The device takes longer packets than the relay does, so the kernel is told to cut them.
    assert_eq!(mesh[0].status().tunnel.unwrap().mtu, 1329);
    let ping = |to: &str, size: usize, more: &str| {
        let ping = format!("ping -n -c 1 -W 2 -s {size} {more} {to}");
        segment.run(1, &ping).status.success()
    };
    let v4 = |size, more| ping("10.44.0.3", size, more);
    wait_until("a short packet is answered", || v4(100, "-q"));
    wait_until("a long packet is answered, in parts", || v4(1301, "-M dont"));
    assert!(v4(1221, "-M do") && !v4(1222, "-M do"));

    // IPv6 knows no path that carries less than 1,280 bytes: they cross in halves, whole on its
    // device. Longer ones are cut by the host once it knows the path.
    let v6 = |size, more| ping("fd44::3", size, more);
    wait_until("a packet of 1,280 bytes is answered", || v6(1232, "-M do"));
    assert!(v6(1201, "-M do") && v6(1202, "-M do"));
    wait_until("a longer packet is answered, in parts", || v6(1281, "-M dont"));
    assert_eq!(mesh[2].status().tunnel.unwrap().mtu, 1280);
}

/// Each port hears what the other one sends, and what both of the neighbour send.
#[test]
fn two_ports_on_one_switch_carry_a_file() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    for host in [1, 2] {
        let space = segment.host(host);
        segment.ip(0, &format!("link add more{host} type veth peer name more0 netns {space}"));
        segment.ip(0, &format!("link set more{host} master br0 up"));
        segment.ip(host, "link set more0 up");
    }
    let mut pair = [1, 2].map(|id| node(&segment, dir.path(), id, &on(&["mesh0", "more0"])));
    pair.iter_mut().for_each(Node::start);
    pair[0].wait_for_peers(&["n2"]);
    let bytes = contents(500_000, 6);
    send(&pair[0], "file", &bytes, "n2");
    let received = pair[1].wait_for_completion();
    assert_eq!(std::fs::read(received.path.unwrap()).unwrap(), bytes);
    for node in &pair {
        let status = node.status();
        assert!(status.duplicates.is_empty() && status.hints.is_empty(), "{:?}", status.hints);
    }
}

/// A routing daemon of another mesh, which ends with the test.
struct Babel(Child);

impl Babel {
    /// Starts babeld on these interfaces of a host, which tells its address 10.99.0.`host`.
    fn start(segment: &Segment, dir: &Path, host: usize, interfaces: &[&str]) -> Self {
        segment.ip(host, "link set lo up");
        segment.ip(host, &format!("addr add 10.99.0.{host}/32 dev lo"));
        let forwards = segment.run(host, "sysctl -q -w net.ipv4.ip_forward=1");
        assert!(forwards.status.success(), "{forwards:?}");
        let file = |name: &str| dir.join(format!("babel{host}.{name}"));
        let mut babeld = Command::new("ip");
        babeld.args(["netns", "exec", segment.host(host), "babeld"]);
        babeld.arg("-I").arg(file("pid")).arg("-S").arg(file("state"));
        babeld.arg("-L").arg(file("log")).args(["-C", "redistribute local ip 10.99.0.0/24 allow"]);
        babeld.args(["-C", "redistribute local deny"]).args(interfaces).stdin(Stdio::null());
        Self(babeld.spawn().unwrap())
    }
}

impl Drop for Babel {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn babel_routes_over_the_interfaces_that_carry_the_mesh() {
    if Command::new("babeld").arg("-V").output().is_err() {
        return skip("babeld is not installed");
    }
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    segment.join(1, 2, "left");
    segment.join(2, 3, "right");
    let cables = [vec!["left"], vec!["left", "right"], vec!["right"]];
    let _babel: Vec<Babel> = (1..)
        .zip(&cables)
        .map(|(host, cables)| Babel::start(&segment, dir.path(), host, cables))
        .collect();
    let mut mesh: Vec<Node> = (1..)
        .zip(&cables)
        .map(|(id, cables)| node(&segment, dir.path(), id, &on(cables)))
        .collect();
    mesh.iter_mut().for_each(Node::start);
    mesh[0].wait_for_peers(&["n2", "n3"]);

    // Both carry from end to end at the same time.
    let has_route = |host: usize, to: usize| {
        let routes = segment.run(host, &format!("ip route show 10.99.0.{to}")).stdout;
        String::from_utf8_lossy(&routes).contains("proto babel")
    };
    wait_until("babel knows the way, and the way back", || has_route(1, 3) && has_route(3, 1));
    let bytes = contents(1_000_000, 4);
    send(&mesh[0], "file", &bytes, "n3");
    let ping = segment.run(1, "ping -n -c 5 -i 0.2 -W 5 -I 10.99.0.1 10.99.0.3");
    assert!(ping.status.success(), "{ping:?}");
    let received = mesh[2].wait_for_completion();
    assert_eq!(std::fs::read(received.path.unwrap()).unwrap(), bytes);
    assert!(has_route(1, 3), "the route is still there");
}

#[test]
fn an_interface_that_is_given_the_name_of_another_ports_is_that_ports() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let pair = pair(&segment, dir.path(), &on(&["cable0", "cable1"]));
    let rename = |old: &str, new: &str| {
        segment.ip(1, &format!("link set {old} down"));
        segment.ip(1, &format!("link set {old} name {new}"));
        segment.ip(1, &format!("link set {new} up"));
    };
    rename("cable0", "spare");
    rename("cable1", "cable0");
    wait_until("one port has it, and the other none", || {
        port(&pair[0], "cable0").up && !port(&pair[0], "cable1").up
    });
    let hints = pair[0].status().hints;
    assert!(hints.iter().any(|hint| hint.contains("cable1 is called cable0 now")), "{hints:?}");

    rename("spare", "cable1");
    wait_until("both hear the other on both cables", || {
        ways(&pair[0], 2).len() == 2 && ways(&pair[1], 1).len() == 2
    });
    let bytes = contents(200_000, 5);
    send(&pair[0], "file", &bytes, "n2");
    let received = pair[1].wait_for_completion();
    assert_eq!(std::fs::read(received.path.unwrap()).unwrap(), bytes);
}

#[test]
fn ports_that_would_send_on_one_interface_are_refused() {
    let Some(segment) = Segment::new(1) else { return };
    let dir = tempfile::tempdir().unwrap();
    segment.ip(1, "link add br-lan type bridge");
    segment.ip(1, "link set br-lan up");
    segment.ip(1, "link set mesh0 master br-lan");
    for (ports, words) in [
        (["mesh0", "mesh*"], ["[[port]] interface", "the port mesh0 is on the same interface"]),
        (["br-lan", "mesh0"], ["node.toml:11:", "one is on the other's bridge"]),
        (["mesh0", "nowhere0"], ["[[port]] interface = \"nowhere0\"", "no such interface"]),
    ] {
        let node = node(&segment, dir.path(), 1, &on(&ports));
        assert_fails(&node.daemon().output().unwrap(), 3, &words);
    }

    // An interface that gets into the bridge later is not used any more. Without another one the
    // bridge would have no carrier.
    segment.ip(1, "link set mesh0 nomaster");
    segment.ip(1, "link add spare0 type veth peer name spare1");
    segment.ip(1, "link set spare1 up");
    segment.ip(1, "link set spare0 up master br-lan");
    let mut late = node(&segment, dir.path(), 1, &on(&["br-lan", "mesh0"]));
    late.start();
    wait_until("both are up", || late.status().ports.iter().all(|port| port.up));
    segment.ip(1, "link set mesh0 master br-lan");
    wait_until("one is down", || !port(&late, "mesh0").up);
    let hints = late.status().hints;
    assert!(hints.iter().any(|hint| hint.contains("on the port mesh0")), "{hints:?}");
}

#[test]
fn a_reload_adds_a_cable_and_takes_another_while_a_file_runs() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let one = on(&["cable0"]);
    let pair = pair(&segment, dir.path(), &one);
    let bytes = contents(5_000_000, 3);
    send(&pair[0], "file", &bytes, "n2");
    pair[1].wait_for_bytes(500_000);

    let both = on(&["cable0", "cable1"]);
    for node in &pair {
        node.edit(&one, &both);
        let answer: Reloaded = node.ask(&["reload"]);
        let Reloaded { changed, restart } = answer;
        assert!(changed == ["[[port]] cable1"] && restart.is_empty(), "{changed:?} {restart:?}");
    }
    wait_until("both hear the other on both cables", || {
        ways(&pair[0], 2).len() == 2 && ways(&pair[1], 1).len() == 2
    });
    for node in &pair {
        node.edit(&both, &on(&["cable1"]));
        let answer: Reloaded = node.ask(&["reload"]);
        assert_eq!(answer.changed, ["[[port]] cable0"]);
        assert_eq!(node.status().ports.len(), 1);
    }
    let received = pair[1].wait_for_completion();
    assert_eq!(std::fs::read(received.path.unwrap()).unwrap(), bytes);
}
