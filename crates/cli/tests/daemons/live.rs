//! Live streams through daemons whose hops lose frames, and no MAC repeats them.

use crate::support::net::Segment;
use crate::support::{mesh, wait_until};
use ncmesh_node::api::types::Stream;
use std::process::Command;

/// Packets of each layer.
const PACKETS: u64 = 1000;
/// Sends them to the ports of two layers, 50 in a second.
const SOURCE: &str = "
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(int(sys.argv[1])):
    for port in (5004, 5006):
        s.sendto(bytes(1000), ('127.0.0.1', port))
    time.sleep(0.02)
";

#[test]
fn the_base_is_whole_over_two_hops_that_lose_fifteen_percent() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();
    // A row: the ends do not hear each other, and every node loses frames of its neighbours.
    let ends = segment.silence(1, "10.77.0.3") && segment.silence(3, "10.77.0.1");
    if !ends || !(1..=3).all(|host| segment.lose(host, 15)) {
        return;
    }
    let nodes = mesh(&segment, dir.path(), &["", "", ""]);
    for host in 1..=3 {
        segment.ip(host, "link set lo up");
    }

    // One stream of two layers from n1 to n3.
    let layers = |base: u16| [format!("base=udp:{base}"), format!("enh=udp:{}", base + 2)];
    let [base, enhancement] = layers(5004);
    let send = ["stream", "send", "--group", "tv", "--layer", &base, "--layer", &enhancement];
    assert!(nodes[0].call(&[&send[..], &["--no-wait"]].concat()).status.success());
    let [base, enhancement] = layers(6004);
    let join = ["stream", "receive", "--group", "tv", "--layer", &base, "--layer", &enhancement];
    assert!(nodes[2].call(&[&join[..], &["--no-wait"]].concat()).status.success());
    let streams = |node: usize| nodes[node].ask::<Vec<Stream>>(&["stream", "list"]);
    wait_until("the source knows of the receiver", || {
        streams(0).iter().any(|stream| stream.receivers == 1)
    });

    let mut source = Command::new("ip");
    source.args(["netns", "exec", segment.host(1), "python3", "-c", SOURCE]);
    assert!(source.arg(PACKETS.to_string()).status().unwrap().success());

    // The receiver learns from the source's announcements how many packets there were.
    let received = || streams(2)[0].receiving.clone().unwrap().values;
    wait_until("the last packets are announced", || received().offered[0] == PACKETS);
    let values = received();
    assert!(values.missing[0] * 100 <= PACKETS, "{values:?}");
}
