//! The golden vectors of `docs/reference/wire-format.md`, and what holds for frames of unknown
//! bytes.

use super::*;
use ncmesh_engine::time::Duration;
use proptest::prelude::*;

const FLOW: FlowId = FlowId { source: NodeId(3), serial: 0x0102_0304 };

/// The last frame that it had handled, and 144 microseconds after that.
const HANDLED: Handled = Handled { number: 0x0708, ago: Duration::from_micros(144) };

/// Bytes of a report of the cascade before its ranks.
const SHORTEST_REPORT: usize = 24;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Header of a coded packet of two, of a node that receives and forwards the file and polls.
fn header() -> DataHeader {
    let wants = Wants {
        first: 5,
        ranks: vec![1, 255],
        backlog: 1,
        receives: true,
        forwards: true,
        ..Wants::default()
    };
    DataHeader {
        flow: FLOW,
        generation: 4,
        packets: 2,
        rank: 2,
        poll: true,
        number: 0x0102,
        parent: NodeId(3),
        handled: HANDLED,
        wants,
    }
}

/// The golden data packet of the cascade.
fn packet() -> Vec<u8> {
    let mut out = written(|out| header().write(false, out));
    out.extend_from_slice(&[0x0A, 0x0B, 0xFF]);
    out
}

fn report() -> Report {
    Report {
        next_hop: NodeId(8),
        parent: NodeId(3),
        child: NodeId(9),
        flow: FLOW,
        number: 0x0102,
        handled: HANDLED,
        wants: Wants { first: 4, ranks: vec![7, 255], ..header().wants },
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[test]
fn golden_data() {
    let expected =
        "000301020304".to_owned() + "00000004020e0201020003070800090000" + "0005010201ff0a0bff";
    assert_eq!(hex(&packet()), expected);
    let coding = Coding::Combined(&[10, 11]);
    let expected = Data { header: header(), coding, payload: &[255] };
    assert_eq!(Data::parse(&packet()), Ok(expected));
}

#[test]
fn golden_systematic_data() {
    // As the source, node 3, sends it: it wants nothing, and has no parent but itself.
    let nothing = Wants { first: u32::MAX, forwards: true, feeds: true, ..Wants::default() };
    let header = DataHeader {
        packets: 12,
        rank: 12,
        poll: false,
        handled: Handled::default(),
        wants: nothing,
        ..header()
    };
    let mut out = written(|out| header.write(true, out));
    out.extend_from_slice(&[11, 0xFF]);
    let expected =
        "000301020304".to_owned() + "000000040c190c010200030000ffffffff" + "ffff00000bff";
    assert_eq!(hex(&out), expected);
    let coding = Coding::Systematic(11);
    assert_eq!(Data::parse(&out), Ok(Data { header, coding, payload: &[255] }));
}

#[test]
fn golden_report() {
    let out = written(|out| report().write(out));
    assert_eq!(hex(&out), "0008000300090003010203040102".to_owned() + "070800090c000000040107ff");
    assert_eq!(Report::parse(&out), Ok(report()));
}

#[test]
fn a_list_of_ranks_is_cut_to_what_its_frame_holds() {
    let mut header = header();
    header.wants.ranks = vec![7; 300];
    let mut out = written(|out| header.write(true, out));
    assert_eq!(out.len(), DataHeader::MAX_LEN);
    out.extend_from_slice(&[1, 0xFF]);
    let ranks = Data::parse(&out).unwrap().header.wants.ranks;
    assert_eq!(ranks, [7; DataHeader::LISTED]);

    let mut report = report();
    report.wants.ranks = vec![7; 300];
    let out = written(|out| report.write(out));
    assert_eq!(Report::parse(&out).unwrap().wants.ranks, [7; Report::LISTED]);
}

#[test]
fn frames_that_contradict_themselves_are_malformed() {
    // Places in the data packet: its packets, its flags and how many ranks it lists.
    const PACKETS: usize = 10;
    const FLAGS: usize = 11;
    const RANKS: usize = 26;
    let changed = |mut body: Vec<u8>, at: usize, value| {
        body[at] = value;
        body
    };
    let data = |at, value| changed(packet(), at, value);
    assert!(Data::parse(&data(FLAGS, 0x1E)).is_ok());
    for (at, value) in [(PACKETS, 0), (FLAGS, 0x20), (FLAGS, 0x40), (FLAGS, 0x80)] {
        let body = data(at, value);
        assert_eq!(Data::parse(&body), Err(Malformed), "byte {at} is {value:#x}");
    }
    // Packets 0 and 1 of two are there.
    let mut systematic = written(|out| header().write(true, out));
    systematic.extend_from_slice(&[1, 0xFF]);
    let index = systematic.len() - 2;
    assert!(Data::parse(&systematic).is_ok());
    for value in [2, 255] {
        let body = changed(systematic.clone(), index, value);
        assert_eq!(Data::parse(&body), Err(Malformed), "packet {value}");
    }
    // One rank more than a header lists, with all bytes that it would have.
    let mut long = data(RANKS, DataHeader::LISTED as u8 + 1);
    long.extend_from_slice(&[7; 40]);
    assert_eq!(Data::parse(&long), Err(Malformed));
    long[RANKS] -= 1;
    assert!(Data::parse(&long).is_ok());
    // The longest payload, and a byte more.
    let mut long = packet();
    long.resize(long.len() + usize::from(u16::MAX) - 1, 0);
    assert!(Data::parse(&long).is_ok());
    long.push(0);
    assert_eq!(Data::parse(&long), Err(Malformed));

    // Flags of the report: those of a data packet alone are unknown in it.
    let report = written(|out| report().write(out));
    assert!(Report::parse(&changed(report.clone(), 18, 0x1C)).is_ok());
    for flags in [0x01, 0x02, 0x20, 0x40, 0x80] {
        let body = changed(report.clone(), 18, flags);
        assert_eq!(Report::parse(&body), Err(Malformed), "{flags:#x}");
    }
    let mut long = report;
    long.resize(SHORTEST_REPORT + Report::LISTED, 7);
    assert!(Report::parse(&long).is_ok());
    long.push(7);
    assert_eq!(Report::parse(&long), Err(Malformed));
}

#[test]
fn a_frame_cut_anywhere_in_its_fields_is_malformed() {
    // The golden packet's payload is one byte.
    let data = packet();
    for len in 0..data.len() {
        assert_eq!(Data::parse(&data[..len]), Err(Malformed), "{len} bytes");
    }
    let mut systematic = written(|out| header().write(true, out));
    systematic.extend_from_slice(&[1, 0xFF]);
    for len in 0..systematic.len() {
        assert_eq!(Data::parse(&systematic[..len]), Err(Malformed), "{len} bytes");
    }
    // A report ends with its ranks, however many there are.
    let report = written(|out| report().write(out));
    for len in 0..SHORTEST_REPORT {
        assert_eq!(Report::parse(&report[..len]), Err(Malformed), "{len} bytes");
    }
    let ranks = Report::parse(&report[..SHORTEST_REPORT]).map(|report| report.wants.ranks);
    assert_eq!(ranks, Ok(Vec::new()));
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

fn handled() -> impl Strategy<Value = Handled> {
    any::<(u16, u16)>().prop_map(|(number, units)| Handled {
        number,
        ago: Duration::from_micros(16 * u64::from(units)),
    })
}

fn flow_id() -> impl Strategy<Value = FlowId> {
    any::<(u16, u32)>().prop_map(|(source, serial)| FlowId { source: NodeId(source), serial })
}

proptest! {
    #[test]
    fn data_parses_to_what_was_written(
        (flow, generation, packets) in (flow_id(), any::<u32>(), 1..=255_u8),
        (rank, poll, number, parent) in any::<(u8, bool, u16, u16)>(),
        handled in handled(),
        wants in wants(DataHeader::LISTED),
        index in prop::option::of(any::<u8>()),
        payload in prop::collection::vec(any::<u8>(), 1..50),
    ) {
        let parent = NodeId(parent);
        let numbers = DataHeader { number, handled, ..header() };
        let header = DataHeader { flow, generation, packets, rank, poll, parent, wants, ..numbers };
        let vector = vec![0x5A; usize::from(packets)];
        let coding = match index {
            Some(index) => Coding::Systematic(index % packets),
            None => Coding::Combined(&vector),
        };
        let mut out = written(|out| header.write(index.is_some(), out));
        prop_assert!(out.len() <= DataHeader::MAX_LEN);
        match coding {
            Coding::Systematic(index) => out.push(index),
            Coding::Combined(vector) => out.extend_from_slice(vector),
        }
        out.extend_from_slice(&payload);
        prop_assert_eq!(Data::parse(&out), Ok(Data { header, coding, payload: &payload }));
    }

    #[test]
    fn reports_parse_to_what_was_written(
        nodes in any::<[u16; 3]>(),
        (flow, number) in (flow_id(), any::<u16>()),
        handled in handled(),
        wants in wants(Report::LISTED),
    ) {
        let [next_hop, parent, child] = nodes.map(NodeId);
        let report = Report { next_hop, parent, child, flow, number, handled, wants };
        prop_assert_eq!(Report::parse(&written(|out| report.write(out))), Ok(report));
    }

    /// Few random bytes are such frames, so golden ones are changed.
    #[test]
    fn changed_frames_are_malformed_or_can_be_written_again(
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
        let body = changed(packet());
        if let Ok(data) = Data::parse(&body) {
            let is_systematic = matches!(data.coding, Coding::Systematic(_));
            prop_assert!(body.starts_with(&written(|out| data.header.write(is_systematic, out))));
        }
        let body = changed(written(|out| report().write(out)));
        if let Ok(report) = Report::parse(&body) {
            prop_assert_eq!(written(|out| report.write(out)), body);
        }
    }

    /// Bytes that parse have one meaning: written again, they parse to the same frame.
    #[test]
    fn unknown_bytes_are_malformed_or_parse_to_a_frame_that_can_be_written(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Ok(data) = Data::parse(&bytes) {
            let is_systematic = matches!(data.coding, Coding::Systematic(_));
            prop_assert!(bytes.starts_with(&written(|out| data.header.write(is_systematic, out))));
        }
        if let Ok(report) = Report::parse(&bytes) {
            prop_assert_eq!(written(|out| report.write(out)), &bytes[..]);
        }
    }
}
