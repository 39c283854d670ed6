//! The golden vectors of `docs/reference/wire-format.md`, and what holds for frames of unknown
//! bytes.

use super::*;
use crate::planned::packet_set::PacketSet;
use crate::planned::routing::{Cast, Forwarder, Forwarding, Hop, Routing, Upstream};
use ncmesh_engine::Malformed;
use ncmesh_wire::{FlowId, NodeId};
use proptest::prelude::*;

const FLOW: FlowId = FlowId { source: NodeId(3), serial: 0x0102_0304 };

const TURN: TurnId = TurnId { incarnation: 0x1122, number: 6 };

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Header of the golden data packets but for their routing.
fn header(packets: u8, routing: Routing, revision: u8) -> DataHeader {
    let poll = None;
    let piggyback = None;
    DataHeader {
        flow: FLOW,
        turn: TURN,
        generation: 4,
        packets,
        routing,
        revision,
        poll,
        piggyback,
    }
}

fn report() -> Report {
    let parent = NodeId(8);
    let has = PacketSet::first_of(2);
    Report { parent, flow: FLOW, turn: TURN, generation: 4, poll: 0x77, has }
}

/// A packet in a tree where node 3 sends to 8 and 8 to 9; it polls the children.
fn tree_header() -> DataHeader {
    let hops =
        [(8, 3), (9, 8)].map(|(node, parent)| Hop { node: NodeId(node), parent: NodeId(parent) });
    DataHeader { poll: Some(0x77), ..header(12, Routing::Tree(hops.to_vec()), 3) }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[test]
fn golden_data_with_ordered_forwarders() {
    let routing = Routing::Ordered(vec![Forwarder::new(NodeId(8), 1.5)]);
    let piggyback = Some(Piggyback { receiver: NodeId(5), serial: 0x55 });
    let header = DataHeader { piggyback, ..header(2, routing, 0) };
    let mut out = written(|out| header.write(false, out));
    assert_eq!(out.len() + 2, Forwarding::Ordered.overhead(1, 2));
    out.extend_from_slice(&[0x0A, 0x0B, 0xFF]);
    let expected = "0003010203041122000000060000000402020100080180000500000055".to_owned();
    assert_eq!(hex(&out), expected + "0a0bff");
    let data = Data::parse(&out).unwrap();
    assert_eq!(data, Data { header, coding: Coding::Combined(&[10, 11]), payload: &[255] });
}

#[test]
fn golden_data_with_belts() {
    // The second of two forwarders is upstream of the first.
    let listed = vec![Forwarder::new(NodeId(8), 1.5), Forwarder::new(NodeId(9), 0.25)];
    let mut upstream = Upstream::none(2);
    upstream.insert(0, 1);
    let header = header(2, Routing::Belts(listed, upstream), 3);
    let mut out = written(|out| header.write(true, out));
    out.extend_from_slice(&[1, 0xFF]);
    let expected = "0003010203041122000000060000000402050200080180000900400340".to_owned();
    assert_eq!(hex(&out), expected + "01ff");
    let data = Data::parse(&out).unwrap();
    assert_eq!(data, Data { header, coding: Coding::Systematic(1), payload: &[255] });
    assert_eq!(data.header.routing.credit(NodeId(8), NodeId(9), NodeId(3)), Some(1.5));
    assert_eq!(data.header.routing.credit(NodeId(9), NodeId(8), NodeId(3)), None);
    assert_eq!(data.header.routing.credit(NodeId(9), NodeId(3), NodeId(3)), Some(0.25));
}

#[test]
fn golden_data_in_a_tree() {
    let header = tree_header();
    let mut out = written(|out| header.write(true, out));
    out.extend_from_slice(&[11, 0xFF]);
    let expected =
        "00030102030411220000000600000004".to_owned() + "0c1902000800030009000803000000770bff";
    assert_eq!(hex(&out), expected);
    // The largest header also has a piggyback of 6 bytes; the byte 0xFF is payload.
    assert_eq!(out.len() + 6 - 1, Forwarding::HopByHop(Cast::Unicast).overhead(2, 12));
    let data = Data::parse(&out).unwrap();
    assert_eq!(data, Data { header, coding: Coding::Systematic(11), payload: &[255] });
}

#[test]
fn golden_report() {
    let out = written(|out| report().write(out));
    assert_eq!(hex(&out), "0008000301020304112200000006000000040000007".to_owned() + "7c0");
    assert_eq!(Report::parse(&out), Ok(report()));
}

#[test]
fn a_frame_cut_anywhere_in_its_fields_is_malformed() {
    let report = written(|out| report().write(out));
    for len in 0..report.len() - 1 {
        assert_eq!(Report::parse(&report[..len]), Err(Malformed), "{len} bytes");
    }
    let mut data = written(|out| tree_header().write(true, out));
    data.push(11);
    for len in 0..=data.len() {
        assert_eq!(Data::parse(&data[..len]), Err(Malformed), "{len} bytes");
    }
}

#[test]
fn flags_that_contradict_each_other_are_malformed() {
    let mut data = written(|out| tree_header().write(true, out));
    data.extend_from_slice(&[11, 0xFF]);
    let with_flags = |flags| {
        let mut data = data.clone();
        data[17] = flags;
        data
    };
    assert!(Data::parse(&with_flags(0x19)).is_ok());
    // Unknown bit; belts and tree; a coded packet in a tree; a poll without a tree.
    for flags in [0x20 | 0x19, 0x0D, 0x18, 0x11] {
        assert_eq!(Data::parse(&with_flags(flags)), Err(Malformed), "{flags:#x}");
    }
}

#[test]
fn turns_supersede_each_other_as_serial_numbers() {
    let turn = |incarnation, number| TurnId { incarnation, number };
    let now = turn(7, u32::MAX);
    assert!(!now.is_superseded_by(now));
    assert!(now.is_superseded_by(now.next()));
    assert!(!now.next().is_superseded_by(now));
    assert_eq!(now.next(), turn(7, 0));
    assert!(now.is_superseded_by(turn(8, 0)) && turn(8, 0).is_superseded_by(now));
}

proptest! {
    /// Bytes that parse have one meaning: written again, they parse to the same frame.
    #[test]
    fn unknown_bytes_are_malformed_or_parse_to_a_frame_that_can_be_written(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Ok(report) = Report::parse(&bytes) {
            let again = written(|out| report.write(out));
            prop_assert!(bytes.starts_with(&again));
            prop_assert!(bytes[again.len()..].iter().all(|byte| *byte == 0));
        }
        if let Ok(data) = Data::parse(&bytes) {
            let is_systematic = matches!(data.coding, Coding::Systematic(_));
            prop_assert!(bytes.starts_with(&written(|out| data.header.write(is_systematic, out))));
        }
    }
}
