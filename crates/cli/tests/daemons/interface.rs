//! Changes of a radio's interface while a daemon runs: told, and over when their cause is.

use crate::support::net::Segment;
use crate::support::{INBOX, Node, contents, mesh, send, wait_until};
use ncmesh_node::api::types::Peer;
use std::path::Path;

fn has_hint(node: &Node, words: &str) -> bool {
    node.status().hints.iter().any(|hint| hint.contains(words))
}

/// Waits until both nodes hear each other.
fn wait_until_heard(mesh: &[Node]) {
    wait_until("both are heard", || {
        mesh.iter().all(|node| {
            let peers: Vec<Peer> = node.ask(&["peers"]);
            peers.iter().any(|peer| peer.values.last_heard_s.is_some_and(|ago| ago < 0.5))
        })
    });
}

#[test]
fn an_interface_without_an_address_is_waited_for() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    segment.ip(1, "address flush dev mesh0");
    let mut mesh =
        [1, 2].map(|i| Node::new(&dir.path().join(format!("n{i}")), segment.host(i), i as u16, ""));
    mesh.iter_mut().for_each(Node::start);
    wait_until("the daemon says what it waits for", || has_hint(&mesh[0], "no IPv4 address"));
    assert!(mesh[0].log().contains("mesh0 has no IPv4 address"));
    segment.ip(1, "address add 10.77.0.1/24 broadcast + dev mesh0");
    wait_until_heard(&mesh);
    assert!(!has_hint(&mesh[0], "mesh0"));
}

#[test]
fn every_trouble_of_an_interface_is_told_and_passes() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", ""]);
    // In host 0, the bridge, `port1` is the other end of the cable.
    let own = 1;
    let bridge = 0;
    let address = "address add 10.77.0.1/24 broadcast + dev mesh0";
    for (told, breaks, mends) in [
        ("no IPv4 address", vec![(own, "address flush dev mesh0")], vec![(own, address)]),
        (
            "is down",
            vec![(own, "link set mesh0 down")],
            vec![
                (own, "link set mesh0 up"),
                (own, "address replace 10.77.0.1/24 broadcast + dev mesh0"),
            ],
        ),
        ("no carrier", vec![(bridge, "link set port1 down")], vec![(bridge, "link set port1 up")]),
        (
            "is called other0 now",
            vec![(own, "link set mesh0 down"), (own, "link set mesh0 name other0")],
            vec![(own, "link set other0 name mesh0"), (own, "link set mesh0 up")],
        ),
        (
            "MTU of mesh0 is 1000",
            vec![(own, "link set mesh0 mtu 1000")],
            vec![(own, "link set mesh0 mtu 1500")],
        ),
        ("no interface mesh0", vec![(own, "link del mesh0")], vec![]),
    ] {
        for (host, command) in breaks {
            segment.ip(host, command);
        }
        wait_until(told, || has_hint(&mesh[0], told));
        assert!(mesh[0].log().contains(told));
        if mends.is_empty() {
            segment.plug(own).unwrap();
        }
        for (host, command) in mends {
            segment.ip(host, command);
        }
        wait_until("it is over", || !has_hint(&mesh[0], "mesh0"));
        wait_until_heard(&mesh);
    }
    // Without a carrier nothing was sent, so nothing could be sent again.
    assert!(!mesh[0].log().contains("sends again"), "{}", mesh[0].log());
}

#[test]
fn a_new_address_is_used_at_once() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh(&segment, dir.path(), &["", INBOX]);
    segment.ip(1, "address flush dev mesh0");
    segment.ip(1, "address add 10.77.0.77/24 broadcast + dev mesh0");
    wait_until_heard(&mesh);
    send(&mesh[0], "file", &contents(200_000, 1), "n2");
    mesh[1].wait_for_completion();
    wait_until("the source knows", || mesh[0].transfers()[0].ended);
}

/// Starts two nodes whose rate no configuration says, and waits until the first hears the second,
/// which takes files.
fn mesh_without_rate(segment: &Segment, dir: &Path) -> Vec<Node> {
    let new = |(more, i): (&&str, u16)| {
        Node::new(&dir.join(format!("n{i}")), segment.host(i.into()), i, more)
    };
    let mut mesh: Vec<Node> = ["", INBOX].iter().zip(1..).map(new).collect();
    for node in &mut mesh {
        node.edit("rate = \"8M\"\n", "");
        node.start();
    }
    mesh[0].wait_for_peers(&["n2"]);
    mesh
}

#[test]
fn where_frames_are_held_back_no_rate_need_be_set() {
    let Some(segment) = Segment::new(2) else { return };
    if !segment.slow_down(1, "4mbit") || !segment.slow_down(2, "4mbit") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh_without_rate(&segment, dir.path());
    send(&mesh[0], "file", &contents(1_000_000, 1), "n2");
    // Without a rate and without back-pressure no more than 1 Mbit/s would be sent.
    let received = mesh[1].wait_for_completion();
    assert!(received.values.kbit_s > 1000.0, "{} kbit/s", received.values.kbit_s);
    assert!(!has_hint(&mesh[0], "takes every frame at once"));
}

#[test]
fn one_long_frame_waits_in_a_slow_driver() {
    let Some(segment) = Segment::new(2) else { return };
    if !segment.slow_down(1, "2mbit") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mesh = mesh_without_rate(&segment, dir.path());

    // The queue of the interface stands for a driver's. A frame takes 6 ms there.
    send(&mesh[0], "file", &contents(400_000, 1), "n2");
    let mut waiting = Vec::new();
    wait_until("the file is there", || {
        waiting.extend((0..8).map(|_| waiting_bytes(&segment, 1)));
        mesh[0].transfers()[0].ended
    });
    mesh[1].wait_for_completion();
    // Reports and hellos may be there beside the frame: short ones are handed over at once.
    let most = waiting.iter().max().unwrap();
    assert!((1..2 * 1_400).contains(most), "{most} bytes, of {} times", waiting.len());
}

/// Returns how many bytes wait in the queue of the interface of host `i`.
fn waiting_bytes(segment: &Segment, i: usize) -> u32 {
    let told = segment.run(i, "tc -s qdisc show dev mesh0");
    let told = String::from_utf8(told.stdout).unwrap();
    // As in `backlog 3028b 2p requeues 0`.
    let backlog = told.split("backlog ").nth(1).and_then(|rest| rest.split_whitespace().next());
    backlog.and_then(|bytes| bytes.strip_suffix('b')?.parse().ok()).unwrap()
}
