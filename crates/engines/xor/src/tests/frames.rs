//! Frames by their bytes: the golden vectors of `docs/reference/wire-format.md`, and bodies that
//! are malformed.

use super::*;
use crate::frame::{CodedPart, DecodeCount, Native, Report, ReportEntry, checksum, xor};
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn with<'a>(header: &'a Header, bytes: &'a [u8]) -> Native<'a> {
    Native { header, bytes }
}

/// Returns the body of a frame with two packets.
fn coded(one: Native<'_>, other: Native<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    Data::write_coded(one, other, &mut body);
    body
}

fn part(header: &Header, packet: &[u8]) -> CodedPart {
    let length = packet.len() as u16;
    let check = checksum(packet);
    CodedPart { header: header.clone(), length, check }
}

#[test]
fn golden_frame_with_one_packet() {
    let header = Header { sequence: 5, ..header() };
    let body = native(&header, b"IP");
    assert_eq!(hex(&body), "0111000000070005000100034950");
    assert_eq!(parse(&body), Ok(Data::Native(header.clone(), b"IP")));
    let body = native(&Header { hop: 0, ..header }, b"IP");
    assert_eq!(hex(&body), "01010000000700050001000200034950");
}

#[test]
fn golden_frame_with_two_packets() {
    let one = Header { sequence: 5, ..header() };
    let other = header_back();
    let body = coded(with(&one, b"IP"), with(&other, b"ACK"));
    let fields = "0200010003000211000000090000ce6bb2c91100000007000564f2c448";
    assert_eq!(hex(&body), format!("{fields}08134b"));
    assert_eq!(body.len(), Data::coded_len(&one, &other) + 3);
    let parts = [part(&other, b"ACK"), part(&one, b"IP")];
    assert_eq!(parse(&body), Ok(Data::Coded(parts, &[8, 0x13, b'K'])));
    // Cut anywhere before its second byte of payload, it is malformed.
    for end in 0..body.len() {
        assert_eq!(parse(&body[..end]).is_err(), end <= 30, "{end}");
    }
}

#[test]
fn golden_bits_for_more_packets_to_the_same_receiver() {
    let with_more = |header: Header, more| Header { more, ..header };
    let plain = coded(with(&header(), b"IP"), with(&header_back(), b"ACK"));
    // The longer packet, which is first, goes back.
    for (bits, more_back, more_forth) in [(0x80, true, false), (0x40, false, true)] {
        let one = with_more(header(), more_forth);
        let other = with_more(header_back(), more_back);
        let body = coded(with(&one, b"IP"), with(&other, b"ACK"));
        assert_eq!((body[0], &body[1..]), (2 | bits, &plain[1..]));
        let parts = [part(&other, b"ACK"), part(&one, b"IP")];
        assert_eq!(parse(&body), Ok(Data::Coded(parts, &[8, 0x13, b'K'])));
    }
    let one = with_more(header(), true);
    let mut body = native(&one, b"IP");
    assert_eq!((body[0], parse(&body)), (0x81, Ok(Data::Native(one, b"IP"))));
    for wrong in [0x41, 0xC1, 0x82 | 0x20, 0x80] {
        body[0] = wrong;
        assert!(parse(&body).is_err(), "{wrong:x}");
    }
}

#[test]
fn golden_report_and_request() {
    let mut body = Vec::new();
    let count = DecodeCount { coded: 40, decoded: 39 };
    let report = Report { entries: vec![ReportEntry { neighbour: NodeId(2), count }] };
    report.write(&mut body);
    assert_eq!(hex(&body), "00020000002800000027");
    assert_eq!(Report::parse(&body), Ok(report));

    body.clear();
    let request = Request { neighbour: NodeId(2), missing: vec![5, 9] };
    request.write(&mut body);
    assert_eq!(hex(&body), "000200050009");
    assert_eq!(Request::parse(&body), Ok(request));
    assert!(Request::parse(&body[..2]).is_err() && Request::parse(&body[..3]).is_err());
}

#[test]
fn headers_that_contradict_themselves_are_malformed() {
    let is_malformed = |header: &Header| parse(&native(header, b"IP")).is_err();
    let pair_is_malformed = |one: &Header, other: &Header| {
        parse(&coded(with(one, b"IP"), with(other, b"ACK"))).is_err()
    };
    let one = header();
    let other = header_back();
    assert!(!is_malformed(&one) && !pair_is_malformed(&one, &other));

    // A hop beyond the route, a node that is visited twice, no packet at all.
    assert!(is_malformed(&Header { hop: 2, ..one.clone() }));
    assert!(is_malformed(&Header { route: vec![NodeId(2), NodeId(1)], ..one.clone() }));
    assert!(parse(&native(&one, b"")).is_err());

    // Two packets at their first hop, a packet coded with itself.
    let [first, other_first] = [&one, &other].map(|h| Header { hop: 0, ..h.clone() });
    assert!(pair_is_malformed(&first, &other_first));
    assert!(pair_is_malformed(&one, &one));

    // A second packet that is empty, or longer than the first.
    for length in [0, 4] {
        let mut body = coded(with(&one, b"IP"), with(&other, b"ACK"));
        body[6] = length;
        assert!(parse(&body).is_err(), "{length}");
    }
}

#[test]
fn the_reserved_space_holds_the_longest_headers() {
    let long = |hops: u16, source: u16| Header {
        id: PacketId { source: NodeId(source), number: 1 },
        route: (source + 1..=source + hops).map(NodeId).collect(),
        hop: 0,
        ..header()
    };
    let body = native(&long(16, 1), b"");
    assert!(body.len() <= Data::RESERVED, "{}", body.len());
    assert_eq!(Data::coded_len(&long(8, 1), &long(4, 1)), Data::RESERVED);
}

proptest! {
    #[test]
    fn parsing_never_panics(mut body in prop::collection::vec(any::<u8>(), 0..90)) {
        // Most random bodies would fail at the first two bytes: let more of them pass.
        for (i, mask) in [(0, 0xC3), (1, 0x3F)] {
            if let Some(byte) = body.get_mut(i) {
                *byte &= mask;
            }
        }
        if let Ok(Data::Native(header, packet)) = parse(&body) {
            prop_assert_eq!(&native(&header, packet), &body);
        }
        if let Ok(report) = Report::parse(&body) {
            let mut again = Vec::new();
            report.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
        if let Ok(request) = Request::parse(&body) {
            let mut again = Vec::new();
            request.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
    }

    #[test]
    fn either_packet_comes_back_out_of_two(
        one in prop::collection::vec(any::<u8>(), 1..60),
        other in prop::collection::vec(any::<u8>(), 1..60),
        (before, behind) in (1..5_u8, 1..5_u16),
        (other_before, other_behind) in (1..5_u8, 1..5_u16),
    ) {
        // Both routes lead over 102, from and to 101 and 103. Their other nodes are anywhere.
        let route = |[previous, next]: [u16; 2], base: u16, before: u8, behind: u16| {
            let mut nodes: Vec<NodeId> = (1..u16::from(before)).map(|i| NodeId(base + i)).collect();
            nodes.extend([previous, 102, next].map(NodeId));
            nodes.extend((1..behind).map(|i| NodeId(base + 50 + i)));
            let id = PacketId { source: nodes[0], number: 7 };
            Header { id, sequence: 3, hop: before, route: nodes[1..].to_vec(), more: false }
        };
        let forth = route([101, 103], 200, before, behind);
        let back = route([103, 101], 300, other_before, other_behind);
        let body = coded(with(&forth, &one), with(&back, &other));
        let payload_len = one.len().max(other.len());
        prop_assert_eq!(body.len(), Data::coded_len(&forth, &back) + payload_len);

        let Data::Coded(parts, payload) = Data::parse(&body, NodeId(102)).unwrap() else {
            panic!("it has two packets")
        };
        let expected = if one.len() < other.len() {
            [(&back, &other, &one), (&forth, &one, &other)]
        } else {
            [(&forth, &one, &other), (&back, &other, &one)]
        };
        for (part, (header, packet, known)) in parts.into_iter().zip(expected) {
            prop_assert_eq!(&part, &self::part(header, packet));
            let mut decoded = payload.to_vec();
            xor(&mut decoded, known);
            decoded.truncate(usize::from(part.length));
            prop_assert_eq!(&decoded, packet);
        }
    }
}
