//! The golden vectors of `docs/reference/wire-format.md`, and what holds for frames of unknown
//! bytes.

use super::wants::Wants;
use super::*;
use crate::multicast::packet_set::PacketSet;
use crate::multicast::routing::{Cast, Forwarder, Forwarding, Hop, Routing, Upstream};
use ncmesh_engine::Malformed;
use ncmesh_engine::file::{Geometry, Manifest, ReceiverState};
use ncmesh_wire::{FlowId, NodeId};
use proptest::prelude::*;

const FLOW: FlowId = FlowId { source: NodeId(3), serial: 0x0102_0304 };
const TURN: TurnId = TurnId { incarnation: 0x1122, number: 6 };

/// Bytes of a report by rank before its ranks.
const REPORT_BY_RANK: usize = 20;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Header of the golden data packets but for their routing.
fn header(packets: u8, routing: Routing, revision: u8) -> DataHeader {
    let (poll, piggyback) = (None, None);
    DataHeader { flow: FLOW, turn: TURN, batch: 4, packets, routing, revision, poll, piggyback }
}

fn announcement() -> Announcement {
    let manifest = Manifest {
        flow: FLOW,
        name: "a.bin".into(),
        geometry: Geometry::new(1000, 32, 1400).unwrap(),
        root: [0xAA; 32],
        hash: [0xBB; 32],
    };
    Announcement {
        version: Version { epoch: 7, number: 9 },
        phase: TransferPhase::Open,
        open_to_all: true,
        manifest,
        receivers: vec![(NodeId(5), ReceiverState::Active)],
    }
}

fn ack() -> Ack {
    Ack {
        flow: FLOW,
        receiver: NodeId(5),
        version: Version { epoch: 7, number: 2 },
        state: ReceiverState::Active,
        first_missing: 1,
        bits: vec![0x80],
    }
}

fn report() -> Report {
    let (parent, has) = (NodeId(8), PacketSet::first_of(2));
    Report { parent, flow: FLOW, turn: TURN, batch: 4, poll: 0x77, has }
}

/// A packet in a tree where node 3 sends to 8 and 8 to 9; it polls the children.
fn tree_header() -> DataHeader {
    let hops =
        [(8, 3), (9, 8)].map(|(node, parent)| Hop { node: NodeId(node), parent: NodeId(parent) });
    DataHeader { poll: Some(0x77), ..header(12, Routing::Tree(hops.to_vec()), 3) }
}

/// Header of a coded packet of two, of a node that receives and forwards the file and polls.
fn ranked_header() -> RankedHeader {
    let (ranks, receives, forwards) = (vec![1, 255], true, true);
    let wants = Wants { first: 5, ranks, backlog: 1, receives, forwards, ..Wants::default() };
    let (packets, rank, poll) = (2, 2, true);
    let (number, parent) = (0x0102, NodeId(3));
    RankedHeader { flow: FLOW, generation: 4, packets, rank, poll, number, parent, wants }
}

/// The golden data packet by rank.
fn ranked() -> Vec<u8> {
    let mut out = written(|out| ranked_header().write(false, out));
    out.extend_from_slice(&[0x0A, 0x0B, 0xFF]);
    out
}

fn rank_report() -> RankReport {
    let wants = Wants { first: 4, ranks: vec![7, 255], ..ranked_header().wants };
    let (next_hop, parent, child) = (NodeId(8), NodeId(3), NodeId(9));
    RankReport { next_hop, parent, child, flow: FLOW, number: 0x0102, wants }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[test]
fn golden_announcement() {
    let out = written(|out| announcement().write(out));
    let hashes = "aa".repeat(32) + &"bb".repeat(32);
    let expected = [
        "0003010203040000000000000007000000098000000000000003e8200578",
        &hashes,
        "05612e62696e0001000501",
    ];
    assert_eq!(hex(&out), expected.concat());
    assert_eq!(Announcement::parse(&out), Ok(announcement()));
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
fn golden_acknowledgment() {
    let out = written(|out| ack().write(NodeId(8), out));
    assert_eq!(hex(&out), "00080003010203040005000000000000000700000002010000000180");
    assert_eq!(Ack::parse(&out), Ok((NodeId(8), ack())));
}

#[test]
fn golden_report() {
    let out = written(|out| report().write(out));
    assert_eq!(hex(&out), "0008000301020304112200000006000000040000007".to_owned() + "7c0");
    assert_eq!(Report::parse(&out), Ok(report()));
}

#[test]
fn golden_data_by_rank() {
    let expected = "000301020304".to_owned() + "00000004020e020102000300000005010201ff0a0bff";
    assert_eq!(hex(&ranked()), expected);
    let (header, coding) = (ranked_header(), Coding::Combined(&[10, 11]));
    assert_eq!(Ranked::parse(&ranked()), Ok(Ranked { header, coding, payload: &[255] }));
}

#[test]
fn golden_systematic_data_by_rank() {
    // As the source, node 3, sends it: it wants nothing, and has no parent but itself.
    let nothing = Wants { first: u32::MAX, forwards: true, feeds: true, ..Wants::default() };
    let (packets, rank, poll) = (12, 12, false);
    let header = RankedHeader { packets, rank, poll, wants: nothing, ..ranked_header() };
    let mut out = written(|out| header.write(true, out));
    out.extend_from_slice(&[11, 0xFF]);
    let expected = "000301020304".to_owned() + "000000040c190c01020003ffffffff00000bff";
    assert_eq!(hex(&out), expected);
    let coding = Coding::Systematic(11);
    assert_eq!(Ranked::parse(&out), Ok(Ranked { header, coding, payload: &[255] }));
}

#[test]
fn golden_report_by_rank() {
    let out = written(|out| rank_report().write(out));
    assert_eq!(hex(&out), "0008000300090003010203040102".to_owned() + "0c000000040107ff");
    assert_eq!(RankReport::parse(&out), Ok(rank_report()));
}

#[test]
fn a_list_of_ranks_is_cut_to_what_its_frame_holds() {
    let mut header = ranked_header();
    header.wants.ranks = vec![7; 300];
    let mut out = written(|out| header.write(true, out));
    assert_eq!(out.len(), RankedHeader::MOST);
    out.extend_from_slice(&[1, 0xFF]);
    let ranks = Ranked::parse(&out).unwrap().header.wants.ranks;
    assert_eq!(ranks, [7; RankedHeader::LISTED]);

    let mut report = rank_report();
    report.wants.ranks = vec![7; 300];
    let out = written(|out| report.write(out));
    assert_eq!(RankReport::parse(&out).unwrap().wants.ranks, [7; RankReport::LISTED]);
}

#[test]
fn frames_by_rank_that_contradict_themselves_are_malformed() {
    // Places in the data packet: its packets, its flags and how many ranks it lists.
    const PACKETS: usize = 10;
    const FLAGS: usize = 11;
    const RANKS: usize = 22;
    let changed = |mut body: Vec<u8>, at: usize, value| {
        body[at] = value;
        body
    };
    let data = |at, value| changed(ranked(), at, value);
    assert!(Ranked::parse(&data(FLAGS, 0x1E)).is_ok());
    for (at, value) in [(PACKETS, 0), (FLAGS, 0x20), (FLAGS, 0x40), (FLAGS, 0x80)] {
        let body = data(at, value);
        assert_eq!(Ranked::parse(&body), Err(Malformed), "byte {at} is {value:#x}");
    }
    // Packets 0 and 1 of two are there.
    let mut systematic = written(|out| ranked_header().write(true, out));
    systematic.extend_from_slice(&[1, 0xFF]);
    let index = systematic.len() - 2;
    assert!(Ranked::parse(&systematic).is_ok());
    for value in [2, 255] {
        let body = changed(systematic.clone(), index, value);
        assert_eq!(Ranked::parse(&body), Err(Malformed), "packet {value}");
    }
    // One rank more than a header lists, with all bytes that it would have.
    let mut long = data(RANKS, RankedHeader::LISTED as u8 + 1);
    long.extend_from_slice(&[7; 40]);
    assert_eq!(Ranked::parse(&long), Err(Malformed));
    long[RANKS] -= 1;
    assert!(Ranked::parse(&long).is_ok());
    // The longest payload, and a byte more.
    let mut long = ranked();
    long.resize(long.len() + usize::from(u16::MAX) - 1, 0);
    assert!(Ranked::parse(&long).is_ok());
    long.push(0);
    assert_eq!(Ranked::parse(&long), Err(Malformed));

    // Flags of the report: those of a data packet alone are unknown in it.
    let report = written(|out| rank_report().write(out));
    assert!(RankReport::parse(&changed(report.clone(), 14, 0x1C)).is_ok());
    for flags in [0x01, 0x02, 0x20, 0x40, 0x80] {
        let body = changed(report.clone(), 14, flags);
        assert_eq!(RankReport::parse(&body), Err(Malformed), "{flags:#x}");
    }
    let mut long = report;
    long.resize(REPORT_BY_RANK + RankReport::LISTED, 7);
    assert!(RankReport::parse(&long).is_ok());
    long.push(7);
    assert_eq!(RankReport::parse(&long), Err(Malformed));
}

#[test]
fn a_frame_by_rank_cut_anywhere_in_its_fields_is_malformed() {
    // The golden packet's payload is one byte.
    let data = ranked();
    for len in 0..data.len() {
        assert_eq!(Ranked::parse(&data[..len]), Err(Malformed), "{len} bytes");
    }
    let mut systematic = written(|out| ranked_header().write(true, out));
    systematic.extend_from_slice(&[1, 0xFF]);
    for len in 0..systematic.len() {
        assert_eq!(Ranked::parse(&systematic[..len]), Err(Malformed), "{len} bytes");
    }
    // A report ends with its ranks, however many there are.
    let report = written(|out| rank_report().write(out));
    for len in 0..REPORT_BY_RANK {
        assert_eq!(RankReport::parse(&report[..len]), Err(Malformed), "{len} bytes");
    }
    let ranks = RankReport::parse(&report[..REPORT_BY_RANK]).map(|report| report.wants.ranks);
    assert_eq!(ranks, Ok(Vec::new()));
}

#[test]
fn a_frame_cut_anywhere_in_its_fields_is_malformed() {
    let announcement = written(|out| announcement().write(out));
    for len in 0..announcement.len() {
        assert_eq!(Announcement::parse(&announcement[..len]), Err(Malformed), "{len} bytes");
    }
    let ack = written(|out| ack().write(NodeId(8), out));
    for len in 0..Ack::HEADER {
        assert_eq!(Ack::parse(&ack[..len]), Err(Malformed), "{len} bytes");
    }
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

/// Any wants with at most `listed` ranks.
fn wants(listed: usize) -> impl Strategy<Value = Wants> {
    let ranks = prop::collection::vec(any::<u8>(), 0..=listed);
    let fields = (any::<u32>(), ranks, any::<u8>(), any::<[bool; 3]>());
    fields.prop_map(move |(first, ranks, backlog, [receives, forwards, feeds])| Wants {
        first,
        is_cut: ranks.len() == listed,
        ranks,
        backlog,
        receives,
        forwards,
        feeds,
    })
}

fn flow_id() -> impl Strategy<Value = FlowId> {
    any::<(u16, u32)>().prop_map(|(source, serial)| FlowId { source: NodeId(source), serial })
}

proptest! {
    #[test]
    fn data_by_rank_parses_to_what_was_written(
        (flow, generation, packets) in (flow_id(), any::<u32>(), 1..=255_u8),
        (rank, poll, number, parent) in any::<(u8, bool, u16, u16)>(),
        wants in wants(RankedHeader::LISTED),
        index in prop::option::of(any::<u8>()),
        payload in prop::collection::vec(any::<u8>(), 1..50),
    ) {
        let parent = NodeId(parent);
        let header = RankedHeader { flow, generation, packets, rank, poll, number, parent, wants };
        let vector = vec![0x5A; usize::from(packets)];
        let coding = match index {
            Some(index) => Coding::Systematic(index % packets),
            None => Coding::Combined(&vector),
        };
        let mut out = written(|out| header.write(index.is_some(), out));
        prop_assert!(out.len() <= RankedHeader::MOST);
        match coding {
            Coding::Systematic(index) => out.push(index),
            Coding::Combined(vector) => out.extend_from_slice(vector),
        }
        out.extend_from_slice(&payload);
        prop_assert_eq!(Ranked::parse(&out), Ok(Ranked { header, coding, payload: &payload }));
    }

    #[test]
    fn reports_by_rank_parse_to_what_was_written(
        nodes in any::<[u16; 3]>(),
        (flow, number) in (flow_id(), any::<u16>()),
        wants in wants(RankReport::LISTED),
    ) {
        let [next_hop, parent, child] = nodes.map(NodeId);
        let report = RankReport { next_hop, parent, child, flow, number, wants };
        prop_assert_eq!(RankReport::parse(&written(|out| report.write(out))), Ok(report));
    }

    /// Few random bytes are such frames, so golden ones are changed.
    #[test]
    fn changed_frames_by_rank_are_malformed_or_can_be_written_again(
        changes in prop::collection::vec((0..40_usize, any::<u8>()), 0..4),
        more in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let changed = |mut body: Vec<u8>| {
            for (at, value) in &changes {
                if let Some(byte) = body.get_mut(*at) {
                    *byte = *value;
                }
            }
            body.extend_from_slice(&more);
            body
        };
        let body = changed(ranked());
        if let Ok(data) = Ranked::parse(&body) {
            let is_systematic = matches!(data.coding, Coding::Systematic(_));
            prop_assert!(body.starts_with(&written(|out| data.header.write(is_systematic, out))));
        }
        let body = changed(written(|out| rank_report().write(out)));
        if let Ok(report) = RankReport::parse(&body) {
            prop_assert_eq!(written(|out| report.write(out)), body);
        }
    }

    /// Bytes that parse have one meaning: written again, they parse to the same frame.
    #[test]
    fn unknown_bytes_are_malformed_or_parse_to_a_frame_that_can_be_written(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Ok(announcement) = Announcement::parse(&bytes) {
            prop_assert_eq!(written(|out| announcement.write(out)), &bytes[..]);
        }
        if let Ok((next_hop, ack)) = Ack::parse(&bytes) {
            prop_assert_eq!(written(|out| ack.write(next_hop, out)), &bytes[..]);
        }
        if let Ok(report) = Report::parse(&bytes) {
            let again = written(|out| report.write(out));
            prop_assert!(bytes.starts_with(&again));
            prop_assert!(bytes[again.len()..].iter().all(|byte| *byte == 0));
        }
        if let Ok(data) = Data::parse(&bytes) {
            let is_systematic = matches!(data.coding, Coding::Systematic(_));
            prop_assert!(bytes.starts_with(&written(|out| data.header.write(is_systematic, out))));
        }
        if let Ok(data) = Ranked::parse(&bytes) {
            let is_systematic = matches!(data.coding, Coding::Systematic(_));
            prop_assert!(bytes.starts_with(&written(|out| data.header.write(is_systematic, out))));
        }
        if let Ok(report) = RankReport::parse(&bytes) {
            prop_assert_eq!(written(|out| report.write(out)), &bytes[..]);
        }
    }
}
