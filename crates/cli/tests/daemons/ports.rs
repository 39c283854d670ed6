//! Daemons with several ports: cables between hosts, pulled and plugged in while a file runs.

use crate::support::net::Segment;
use crate::support::{INBOX, Node, assert_fails, contents, send, wait_until};
use ncmesh_node::api::answers::Reloaded;
use ncmesh_node::api::types::{Peer, PeerPort, PortState};
use std::path::Path;

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
