//! The golden vectors of `docs/reference/wire-format.md`, and what holds for frames of unknown
//! bytes.

use super::*;
use ncmesh_engine::file::check::{GenerationId, NONCE_LEN, Nonce};
use ncmesh_engine::file::{Geometry, Manifest, ReceiverState};
use ncmesh_engine::{Background, Malformed};
use ncmesh_wire::{FlowId, NodeId};
use proptest::prelude::*;

const FLOW: FlowId = FlowId { source: NodeId(3), serial: 0x0102_0304 };

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
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
        background: Background::of(10),
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

const NONCE: Nonce = Nonce([0xAB; NONCE_LEN]);

fn check_request() -> CheckRequest {
    let of = GenerationId { flow: FLOW, generation: 6 };
    CheckRequest { next_hop: NodeId(8), verifier: NodeId(5), of, nonce: NONCE }
}

fn check() -> Check {
    let CheckRequest { next_hop, verifier, of, nonce } = check_request();
    Check { next_hop, verifier, of, nonce, sums: vec![0x0C, 0x0D] }
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
        "000301020304000000000000000700000009800a00000000000003e8200578",
        &hashes,
        "05612e62696e0001000501",
    ];
    assert_eq!(hex(&out), expected.concat());
    assert_eq!(Announcement::parse(&out), Ok(announcement()));
}

#[test]
fn golden_acknowledgment() {
    let out = written(|out| ack().write(NodeId(8), out));
    assert_eq!(hex(&out), "00080003010203040005000000000000000700000002010000000180");
    assert_eq!(Ack::parse(&out), Ok((NodeId(8), ack())));
}

#[test]
fn golden_check_request_and_check() {
    let nonce = "ab".repeat(16);
    let request = written(|out| check_request().write(out));
    assert_eq!(hex(&request), ["00080005", "000301020304", "00000006", &nonce].concat());
    assert_eq!(CheckRequest::parse(&request), Ok(check_request()));

    let answer = written(|out| check().write(out));
    assert_eq!(hex(&answer), ["00080005", "000301020304", "00000006", &nonce, "0c0d"].concat());
    assert_eq!(Check::parse(&answer), Ok(check()));
}

#[test]
fn questions_are_their_verifiers_and_checks_are_their_sources() {
    let request = written(|out| check_request().write(out));
    let answer = written(|out| check().write(out));
    for (kind, body, origin) in [(CHECK_REQUEST, request, 5), (CHECK, answer, 3)] {
        // The next hop changes on the way, and is not signed.
        let contents = &body[2..];
        let origin = NodeId(origin);
        assert_eq!(statement(kind, &body), Some(Statement { origin, contents }));
    }
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
    let answer = written(|out| check().write(out));
    for len in 0..=Check::HEADER {
        assert_eq!(Check::parse(&answer[..len]), Err(Malformed), "{len} bytes");
    }
    let request = written(|out| check_request().write(out));
    for len in 0..request.len() {
        assert_eq!(CheckRequest::parse(&request[..len]), Err(Malformed), "{len} bytes");
    }
}

proptest! {
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
        if let Ok(request) = CheckRequest::parse(&bytes) {
            prop_assert_eq!(written(|out| request.write(out)), &bytes[..]);
        }
        if let Ok(check) = Check::parse(&bytes) {
            prop_assert_eq!(written(|out| check.write(out)), &bytes[..]);
        }
    }
}
