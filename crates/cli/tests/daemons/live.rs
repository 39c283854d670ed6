//! Live streams through daemons whose hops lose frames, and no MAC repeats them.

use crate::support::net::Segment;
use crate::support::{mesh, wait_until};
use ncmesh_node::api::types::Stream;

/// Packets of each layer.
const PACKETS: u64 = 400;
/// Sends them to the ports of two layers, 100 in a second.
const SOURCE: &str = "
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in range(400):
    for port in (5004, 5006):
        s.sendto(bytes(1000), ('127.0.0.1', port))
    time.sleep(0.01)
";

#[test]
fn the_base_is_whole_over_two_hops_that_lose_fifteen_percent() {
    let Some(segment) = Segment::new(3) else { return };
    let dir = tempfile::tempdir().unwrap();

    // A row: the ends do not hear each other, and every node loses frames of its neighbours.
    let is_row = segment.silence(1, "10.77.0.3") && segment.silence(3, "10.77.0.1");
    if !is_row || !(1..=3).all(|host| segment.lose(host, 15)) {
        return;
    }
    let nodes = mesh(&segment, dir.path(), &["", "", ""]);
    for host in [1, 3] {
        segment.ip(host, "link set lo up");
    }

    // One stream of two layers from n1 to n3.
    let send = ["stream", "send", "--group", "tv", "--no-wait"];
    let sent = ["--layer", "base=udp:5004", "--layer", "more=udp:5006"];
    let began = nodes[0].call(&[&send[..], &sent].concat());
    assert!(began.status.success(), "{began:?}");
    let receive = ["stream", "receive", "--group", "tv", "--no-wait"];
    let played = ["--layer", "base=udp:6004", "--layer", "more=udp:6006"];
    let joined = nodes[2].call(&[&receive[..], &played].concat());
    assert!(joined.status.success(), "{joined:?}");
    let streams = |node: usize| nodes[node].ask::<Vec<Stream>>(&["stream", "list"]);
    wait_until("the source knows of the receiver", || {
        streams(0).iter().any(|stream| stream.receivers == 1)
    });
    if !segment.python(1, SOURCE) {
        return;
    }

    // Packets that are too old never arrive, so those that do came in time. The receiver's own
    // count of what was offered begins with the first announcement after it joined: it may be
    // seconds later, and says nothing of the packets before it.
    let taken = || streams(0)[0].sending.clone().unwrap().taken;
    wait_until("the source took all packets", || taken() == [PACKETS; 2]);
    let came = || streams(2)[0].receiving.clone().unwrap().values.packets;
    wait_until("99 % of the base arrives", || came()[0] * 100 >= PACKETS * 99);
}
