//! Ports of real daemons without IP addresses, over IPv6 alone, and to peers.

use crate::support::net::Segment;
use crate::support::{INBOX, Node, assert_fails, contents, ncmesh, send, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Setting that the nodes of these tests have unless they are given others.
const KIND: &str = "kind = \"udp\"\n";

/// Returns `[inbox]` and `[tunnel]` of node `id`.
fn ends(id: u16) -> String {
    format!("{INBOX}[tunnel]\naddress = [\"10.44.0.{id}/24\"]\n")
}

/// Starts nodes n1, n2, ... with these settings in place of the kind of their radios, and waits
/// until all know each other.
fn mesh_of(segment: &Segment, dir: &Path, radios: &[&str]) -> Vec<Node> {
    let mut mesh: Vec<Node> = Vec::new();
    for (id, radio) in (1..).zip(radios) {
        let host = segment.host(id.into());
        let mut node = Node::new(&dir.join(format!("n{id}")), host, id, &ends(id));
        node.edit(KIND, &format!("{radio}\n"));
        node.start();
        mesh.push(node);
    }
    wait_until_known(&mesh);
    mesh
}

fn wait_until_known(mesh: &[Node]) {
    let names: Vec<String> = (1..=mesh.len()).map(|id| format!("n{id}")).collect();
    for (node, own) in mesh.iter().zip(&names) {
        let others: Vec<&str> = names.iter().filter(|n| *n != own).map(String::as_str).collect();
        node.wait_for_peers(&others);
    }
}

/// Sends a file from n1 to all others, and a ping to each.
fn carries_both(segment: &Segment, mesh: &[Node]) {
    let bytes = contents(200_000, 1);
    send(&mesh[0], "file", &bytes, "all");
    for node in &mesh[1..] {
        node.wait_for_completion();
        assert_eq!(std::fs::read(node.dir.join("inbox/file")).unwrap(), bytes);
    }
    for id in 2..=mesh.len() {
        let ping = segment.run(1, &format!("ping -n -c 3 -i 0.2 -W 5 10.44.0.{id}"));
        assert!(ping.status.success(), "{ping:?}");
    }
}

fn has_hint(node: &Node, words: &str) -> bool {
    node.status().hints.iter().any(|hint| hint.contains(words))
}

#[test]
fn three_nodes_without_any_ip_address_form_a_mesh() {
    let Some(segment) = Segment::new(3) else { return };
    (1..=3).for_each(|host| segment.strip(host));
    let dir = tempfile::tempdir().unwrap();
    // Where nothing is said, the interface decides.
    let mesh = mesh_of(&segment, dir.path(), &["kind = \"link\"", "", ""]);
    carries_both(&segment, &mesh);
    assert_eq!(mesh[0].status().radio, "link on mesh0, EtherType 0x88b5");
    let decided = "link on mesh0, EtherType 0x88b5 (it has a MAC address)";
    assert_eq!(mesh[1].status().radio, decided);
}

#[test]
fn a_cable_between_two_hosts_is_found_by_its_pattern_when_it_is_plugged_in() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut pair = [1, 2].map(|id: u16| {
        let host = segment.host(id.into());
        let node = Node::new(&dir.path().join(format!("n{id}")), host, id, &ends(id));
        node.edit(KIND, "");
        node.edit("interface = \"mesh0\"", "interface = \"cable*\"");
        node
    });
    pair.iter_mut().for_each(Node::start);
    let waits = "waits for the interface cable*";
    wait_until("it says what it waits for", || pair[0].status().radio == waits);
    assert!(has_hint(&pair[0], "no interface is called cable*"));
    let host = segment.host(2);
    segment.ip(1, &format!("link add cable7 type veth peer name cable9 netns {host}"));
    segment.ip(1, "link set cable7 up");
    segment.ip(2, "link set cable9 up");
    wait_until_known(&pair);
    carries_both(&segment, &pair);
    let taken = "link on cable7, EtherType 0x88b5 (the first of cable*; it has a MAC address)";
    assert_eq!(pair[0].status().radio, taken);
    segment.ip(1, "link del cable7");
    wait_until("it waits again", || pair[0].status().radio == waits);
}

#[test]
fn every_trouble_of_an_interface_without_addresses_is_told_and_passes() {
    let Some(segment) = Segment::new(2) else { return };
    (1..=2).for_each(|host| segment.strip(host));
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh_of(&segment, dir.path(), &["", ""]);
    for (told, breaks, mends) in [
        ("is down", vec!["link set mesh0 down"], vec!["link set mesh0 up"]),
        (
            "is called other0 now",
            vec!["link set mesh0 down", "link set mesh0 name other0"],
            vec!["link set other0 name mesh0", "link set mesh0 up"],
        ),
        (
            "long frames are not sent: the MTU of mesh0 is 1000",
            vec!["link set mesh0 mtu 1000"],
            vec!["link set mesh0 mtu 1500"],
        ),
        // Then another interface has the name, and the one that had it another.
        (
            "is called other0 now",
            vec!["link set mesh0 down", "link set mesh0 name other0"],
            vec!["link set other0 down"],
        ),
    ] {
        breaks.into_iter().for_each(|command| segment.ip(1, command));
        wait_until(told, || has_hint(&mesh[0], told));
        mends.into_iter().for_each(|command| segment.ip(1, command));
    }
    segment.ip(1, "link del other0");
    segment.plug(1).unwrap();
    wait_until("it is over", || !has_hint(&mesh[0], "mesh0"));
    carries_both(&segment, &mesh);
}

/// Makes the first host's interface a port of a bridge.
fn put_into_bridge(segment: &Segment) {
    segment.ip(1, "link add br-lan type bridge");
    segment.ip(1, "link set br-lan up");
    segment.ip(1, "link set mesh0 master br-lan");
}

#[test]
fn a_port_of_a_bridge_is_heard_and_leaves_the_bridge_without_a_word() {
    let Some(segment) = Segment::new(2) else { return };
    (1..=2).for_each(|host| segment.strip(host));
    put_into_bridge(&segment);
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh_of(&segment, dir.path(), &["", ""]);
    carries_both(&segment, &mesh);
    segment.ip(1, "link set mesh0 nomaster");
    send(&mesh[1], "back", &contents(200_000, 2), "n1");
    wait_until("the file is back", || mesh[0].dir.join("inbox/back").exists());
    assert!(!has_hint(&mesh[0], "mesh0"), "{:?}", mesh[0].status().hints);
}

#[test]
fn a_bridge_is_answered_with_the_port_that_may_be_meant() {
    let Some(segment) = Segment::new(2) else { return };
    (1..=2).for_each(|host| segment.strip(host));
    put_into_bridge(&segment);
    let dir = tempfile::tempdir().unwrap();
    let mut mesh: Vec<Node> = [1, 2]
        .map(|id: u16| {
            let host = segment.host(id.into());
            let node = Node::new(&dir.path().join(format!("n{id}")), host, id, &ends(id));
            node.edit(KIND, "");
            node
        })
        .into();
    mesh[0].edit("interface = \"mesh0\"", "interface = \"br-lan\"");
    mesh.iter_mut().for_each(Node::start);
    wait_until_known(&mesh);
    assert!(has_hint(&mesh[0], "set [radio] interface = \"mesh0\""));
}

#[test]
fn ipv6_alone_is_enough_for_udp_and_said() {
    let Some(segment) = Segment::new(2) else { return };
    (1..=2).for_each(|host| segment.ip(host, "-4 address flush dev mesh0"));
    let dir = tempfile::tempdir().unwrap();
    let udp = "kind = \"udp\"\nmtu = 1452";
    let meant = "mtu = 1452\ngroup = \"ff12::6e63:6d\"\ndscp = 46";
    let mesh = mesh_of(&segment, dir.path(), &[udp, meant]);
    carries_both(&segment, &mesh);
    let radio = "udp on mesh0, port 7117, group ff12::6e63:6d";
    assert_eq!(mesh.iter().map(|node| node.status().radio).collect::<Vec<_>>(), [radio; 2]);
    assert!(has_hint(&mesh[0], "nodes with IPv4 do not hear"));
    assert_eq!(mesh[1].status().hints, Vec::<String>::new());
}

#[test]
fn peers_are_reached_without_broadcast_and_one_side_need_not_name_the_other() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let named = "peers = [\"10.77.0.2:7117\", \"10.77.0.1:7117\", \"nowhere.invalid:1\", \
                 \"10.77.0.99:7117\"]";
    let mesh = mesh_of(&segment, dir.path(), &[named, "peers = []"]);
    carries_both(&segment, &mesh);
    assert_eq!(mesh[1].status().radio, "udp on mesh0, port 7117, peers: 1");
    assert!(has_hint(&mesh[0], "peer \"10.77.0.1:7117\" is this node itself"));
    wait_until("the name is told", || {
        has_hint(&mesh[0], "peer \"nowhere.invalid:1\" cannot be resolved")
    });
    // A host of this network that is not there holds up no frame for the others.
    wait_until("the dead one is told", || {
        has_hint(&mesh[0], "\"10.77.0.99:7117\": it is on the same network")
    });
    // The path to it carries less than the interface, or so a router says. Frames go all the same.
    segment.ip(1, "route replace 10.77.0.0/24 dev mesh0 mtu lock 1000");
    send(&mesh[0], "more", &contents(20_000, 2), "n2");
    wait_until("the path is told", || has_hint(&mesh[0], "set [radio] mtu = 972 on all nodes"));
    wait_until("the file is there", || mesh[1].dir.join("inbox/more").exists());
}

#[test]
fn one_interface_has_room_for_one_daemon_of_an_ethertype() {
    let Some(segment) = Segment::new(1) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut first = Node::new(&dir.path().join("n1"), segment.host(1), 1, "");
    first.edit(KIND, "");
    first.start();
    let mut second = Node::new(&dir.path().join("n2"), segment.host(1), 2, "");
    second.edit(KIND, "kind = \"link\"\n");
    let refused = second.daemon().stdout(Stdio::null()).output().unwrap();
    assert_fails(&refused, 8, &["EtherType 0x88b5 on mesh0 is in use", "[radio] ethertype"]);
    second.edit("kind = \"link\"\n", "ethertype = 0x88B6\n");
    second.start();
    assert_eq!(second.status().radio, "link on mesh0, EtherType 0x88b6");
}

#[test]
fn a_daemon_without_the_right_to_send_such_frames_says_which_one() {
    let Some(segment) = Segment::new(1) else { return };
    let dir = tempfile::tempdir().unwrap();
    let node = Node::new(&dir.path().join("n1"), segment.host(1), 1, "");
    node.edit(KIND, "");
    let program = ncmesh().get_program().to_owned();
    let mut command = Command::new("ip");
    command.args(["netns", "exec", segment.host(1), "setpriv", "--bounding-set=-net_raw"]);
    command.args(["--inh-caps=-net_raw"]).arg(program).args(["node", "--config"]);
    let output = command.arg(node.dir.join("node.toml")).stdin(Stdio::null()).output().unwrap();
    assert_fails(&output, 1, &["need the right CAP_NET_RAW", "AmbientCapabilities=CAP_NET_RAW"]);
}

#[test]
fn strange_frames_of_the_ethertype_are_counted_and_harmless() {
    let Some(segment) = Segment::new(2) else { return };
    segment.ip(2, "link set mesh0 address 02:00:00:00:00:02");
    (1..=2).for_each(|host| segment.strip(host));
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh_of(&segment, dir.path(), &["", ""]);
    let dropped = || mesh[1].status().drops.values().sum::<u64>();
    let malformed = || mesh[1].status().drops.get("malformed").copied();
    let before = dropped();
    let program = "\
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(('mesh0', 0))
head = b'\\xff' * 6 + b'\\x02strng' + b'\\x88\\xb5'
for body in [b'', b'\\x00', b'\\x2d', b'\\x29' + b'\\xc2' * 41, b'\\xc2' * 46, b'\\xc2' * 1500]:
    for _ in range(20):
        s.send(head + body)
";
    if !segment.python(1, program) {
        return;
    }
    wait_until("all are counted", || dropped() >= before + 6 * 20);

    // Its own frames, which a loop of bridges sends back, are none of these.
    let before = malformed();
    let own = program.replace("x02strng", "x02\\x00\\x00\\x00\\x00\\x02");
    segment.python(1, &own);
    carries_both(&segment, &mesh);
    assert_eq!(malformed(), before);
}

#[test]
fn unicast_frames_wait_for_the_driver_and_stay_unicast() {
    let Some(segment) = Segment::new(2) else { return };
    if !segment.slow_down(1, "2mbit") || !segment.count(2) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut mesh: Vec<Node> = Vec::new();
    for id in 1..=2 {
        let host = segment.host(id.into());
        let more = format!("{}scheme = \"forward\"\n", ends(id));
        let mut node = Node::new(&dir.path().join(format!("n{id}")), host, id, &more);
        node.edit("rate = \"8M\"\n", "");
        node.start();
        mesh.push(node);
    }
    wait_until_known(&mesh);
    let measured = mesh[0].call(&["bandwidth", "n2", "--seconds", "4"]);
    assert!(measured.status.success(), "{measured:?}");
    let counts = ["unicast", "broadcast"].map(|kind| segment.counted(2, kind));
    assert!(counts[0] > 100 && counts[1] * 10 < counts[0], "{counts:?}");
}

#[test]
fn frames_without_addresses_are_held_back_by_the_driver_too() {
    let Some(segment) = Segment::new(2) else { return };
    if !segment.slow_down(1, "4mbit") || !segment.slow_down(2, "4mbit") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut mesh: Vec<Node> = Vec::new();
    for id in 1..=2 {
        let host = segment.host(id.into());
        let mut node = Node::new(&dir.path().join(format!("n{id}")), host, id, &ends(id));
        node.edit(KIND, "kind = \"link\"\n");
        node.edit("rate = \"8M\"\n", "");
        node.start();
        mesh.push(node);
    }
    wait_until_known(&mesh);
    send(&mesh[0], "file", &contents(1_000_000, 1), "n2");
    // Without a rate and without back-pressure no more than 1 Mbit/s would be sent.
    let received = mesh[1].wait_for_completion();
    assert!(received.values.kbit_s > 1000.0, "{} kbit/s", received.values.kbit_s);
    assert!(!has_hint(&mesh[0], "takes every frame at once"));
}

#[test]
fn doctor_names_what_an_interface_costs_and_who_else_uses_it() {
    let Some(segment) = Segment::new(1) else { return };
    let dir = tempfile::tempdir().unwrap();
    // A script has its own name as that of its process.
    let babeld = dir.path().join("babeld");
    std::fs::write(&babeld, "#!/bin/sh\nread forever\n").unwrap();
    std::fs::set_permissions(&babeld, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut other = Command::new("ip");
    other.args(["netns", "exec", segment.host(1)]).arg(&babeld).args(["-d", "1", "mesh0"]);
    let mut other = other.stdin(Stdio::piped()).spawn().unwrap();
    segment.ip(1, "link set mesh0 mtu 1400");
    let doctor = |more: &str| {
        let program = ncmesh().get_program().to_str().unwrap().to_owned();
        let output = segment.run(1, &format!("{program} doctor --radio {more}"));
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    wait_until("it runs", || doctor("mesh0").1.contains("babeld uses it too"));
    let told = doctor("mesh0").1;
    assert!(told.starts_with("mesh0: no radio, MTU 1400\n"), "{told}");
    assert!(told.contains("\n    ip link set mesh0 mtu 1500\n"), "{told}");
    let json: serde_json::Value = serde_json::from_str(&doctor("mesh0 --json").1).unwrap();
    assert_eq!(json[0]["others"], serde_json::json!(["babeld"]));
    assert_eq!(json[0]["findings"][0]["command"], "ip link set mesh0 mtu 1500");
    // It is on another interface, as its arguments say.
    assert_eq!(doctor("lo").1, "lo: no radio, MTU 65536\n  nothing costs throughput here\n");
    // Without a radio an interface has to be named, and be there.
    assert_eq!(doctor("").0, Some(1));
    assert_eq!(doctor("nowhere0").0, Some(1));
    other.kill().unwrap();
    other.wait().unwrap();
}
