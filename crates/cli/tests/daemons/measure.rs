//! Measured round trips and bandwidth between real daemons, with a tunnel and without.

use crate::support::net::Segment;
use crate::support::{Node, assert_fails, mesh, ncmesh, wait_until};
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engines::registry;
use ncmesh_node::api::answers::{Measured, Path};

/// Returns the path from the first of three nodes to the last, once it leads over the second.
fn path(node: &Node, count: &str) -> Path {
    wait_until("the path has two hops", || {
        node.ask::<Path>(&["traceroute", "n3", "--count", "0"]).hops.len() == 2
    });
    node.ask(&["traceroute", "n3", "--count", count])
}

#[test]
fn round_trips_and_bandwidth_are_measured_along_a_line() {
    let Some(segment) = Segment::new(3) else { return };
    // The ends do not hear each other.
    if !segment.silence(1, "10.77.0.3") || !segment.silence(3, "10.77.0.1") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // Only the first has a device: packets of measurements reach none.
    let tunnel = "[tunnel]\naddress = [\"10.44.0.0/16\"]\nscheme = \"forward\"\n";
    let nodes = mesh(&segment, dir.path(), &[tunnel, "", ""]);

    let measured = path(&nodes[0], "3");
    let names: Vec<&str> = measured.hops.iter().map(|hop| hop.name.as_str()).collect();
    assert_eq!(names, ["n2", "n3"]);
    assert!(measured.hops.iter().all(|hop| hop.rtt_s.is_some_and(|s| s > 0.0)), "{measured:?}");
    assert!(path(&nodes[0], "0").hops.iter().all(|hop| hop.rtt_s.is_none()));
    let shown = String::from_utf8(nodes[0].call(&["traceroute", "n3"]).stdout).unwrap();
    assert!(shown.contains("RTT\n") && shown.matches(" ms\n").count() == 2, "{shown}");

    for (from, to, scheme) in [(0, "n3", "forward"), (2, "n1", "braid")] {
        let args = ["bandwidth", to, "--seconds", "1"];
        let measured: Measured = nodes[from].ask(&args);
        assert_eq!((measured.name.as_str(), measured.scheme.as_str()), (to, scheme));
        assert!(measured.received > 0 && measured.goodput_bps > 0.0, "{measured:?}");
        assert!(measured.received <= measured.sent && measured.bytes == 1200, "{measured:?}");
    }
    let args = ["bandwidth", "n3", "--seconds", "1", "--rate", "100k", "--bytes", "125"];
    let shown = String::from_utf8(nodes[0].call(&args).stdout).unwrap();
    let words = [" kbit/s to n3 by forward: ", " packets of 125 bytes in ", " % lost"];
    assert!(words.iter().all(|word| shown.contains(word)), "{shown}");
    // At a packet in each 10 ms.
    let sent = shown.split(' ').skip_while(|word| *word != "of").nth(1).unwrap();
    assert!((1..=100).contains(&sent.parse::<u32>().unwrap()), "{shown}");

    // The gateway saw no packet of them, and so no device did.
    let tunnel = nodes[0].status().tunnel.unwrap();
    assert!(tunnel.packets_in == 0 && !tunnel.drops.contains_key("malformed"), "{tunnel:?}");
}

/// A packet that a scheme can shorten would make it look faster than it is.
#[test]
fn every_scheme_carries_packets_in_full() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let tunnel = "[tunnel]\naddress = [\"10.44.0.0/16\"]\nscheme = \"core_nc\"\n";
    let nodes = mesh(&segment, dir.path(), &[tunnel, ""]);
    let sent = |scheme: &str| {
        let sent = nodes[0].status().sent;
        sent.iter().filter(|kind| kind.service == scheme).map(|kind| kind.bytes).sum::<u64>()
    };
    for entry in registry().of(ServiceKind::Tunnel) {
        assert!(nodes[0].call(&["tunnel", entry.name]).status.success());
        let before = sent(entry.name);
        let measured: Measured = nodes[0].ask(&["bandwidth", "n2", "--seconds", "0.5"]);
        assert_eq!(measured.scheme, entry.name);
        let frames = sent(entry.name) - before;
        let packets = u64::from(measured.received) * 1200;
        assert!(packets > 0 && frames > packets, "{frames} bytes of frames: {measured:?}");
    }
}

#[test]
fn what_cannot_be_measured_is_told() {
    let Some(segment) = Segment::new(2) else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut nodes = mesh(&segment, dir.path(), &["", ""]);
    let node = &nodes[0];
    assert_fails(&node.call(&["bandwidth", "n22"]), 6, &["\"n22\"", "did you mean `n2`?"]);
    assert_fails(&node.call(&["bandwidth", "n1"]), 2, &["this very node"]);
    let too_long = node.call(&["bandwidth", "n2", "--bytes", "1330"]);
    assert_fails(&too_long, 2, &["bytes = 1330", "braid carries packets of 9 to 1329"]);
    for (wrong, words) in [
        (["--seconds", "61"], "allowed are 0.1 to 60 seconds"),
        (["--rate", "fast"], "--rate"),
        (["--count", "3"], "--count"),
    ] {
        let refused = node.call(&[&["bandwidth", "n2"], &wrong[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(words), "{refused:?}");
    }

    // One run at a time.
    let mut first = ncmesh();
    first.arg("--api").arg(node.socket()).args(["bandwidth", "n2", "--seconds", "3"]);
    let mut first = first.spawn().unwrap();
    let again = ["bandwidth", "n2", "--seconds", "0.1"];
    wait_until("the first is under way", || !node.status().flows.is_empty());
    assert_fails(&node.call(&again), 8, &["already"]);
    assert!(first.wait().unwrap().success());
    assert!(node.call(&again).status.success());

    // A node that is gone does not answer, though link state knows it still.
    nodes[1].kill();
    let node = &nodes[0];
    assert_fails(&node.call(&again), 6, &["n2"]);
}
