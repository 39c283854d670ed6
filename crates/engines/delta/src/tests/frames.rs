//! Frames by their bytes.

use super::node::{announcement, has, state};
use crate::frame::{Data, Have, Head, State};
use ncmesh_engine::stream::Deadline;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::toolkit::live::{Announcement, Timed};
use ncmesh_wire::{NodeId, Record};
use proptest::prelude::*;

fn head() -> Head {
    Head {
        state: State {
            heard: 0xc0,
            ..state(1, 2, 9, [Have { oldest: 3, needs: 5, map: vec![0x81] }, has(4)])
        },
        asked: vec![NodeId(4)],
        layer: 1,
        first: 6,
        age_of_first: 40,
        age_of_last: 20,
        coefficients: vec![7],
    }
}

/// The golden vectors of docs/reference/wire-format.md.
#[test]
fn golden_frames() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let state_bytes = concat!(
        "000100000007",
        "0009",
        "0001",
        "0002",
        "30",
        "00",
        "0009",
        "0000",
        "c0",
        "02",
        "00000003",
        "0002",
        "01",
        "81",
        "00000000",
        "0004",
        "00",
    );
    let mut body = Vec::new();
    Data { head: head(), symbol: b"RTP" }.write(&mut body);
    let rest = "010004 01 00000006 0028 0014 01 07 525450".replace(' ', "");
    assert_eq!(hex(&body), format!("{state_bytes}{rest}"));
    assert_eq!(Data::parse(&body), Ok(Data { head: head(), symbol: b"RTP" }));
    assert_eq!(body.len(), head().len() + 3);
    for end in 0..head().len() {
        assert!(Data::parse(&body[..end]).is_err(), "{end}");
    }

    body.clear();
    head().state.write(&mut body);
    assert_eq!(hex(&body), state_bytes);
    assert_eq!(State::parse(&body), Ok(head().state));
    assert_eq!(body.len(), head().state.len());

    body.clear();
    announcement().write(&mut body);
    let text = "000100000007 00000001 03e8 02 02 7476 04 62617365 03 656e68 00000003 00000004";
    assert_eq!(hex(&body), text.replace(' ', ""));
    assert_eq!(Timed::parse(&body), Ok(announcement()));
    for end in 0..body.len() {
        assert!(Timed::parse(&body[..end]).is_err(), "{end}");
    }
}

#[test]
fn a_frame_without_a_map_that_asks_one_node_has_room_for_a_few_coefficients() {
    for count in 1..=LAYERS {
        let layers = vec![has(1); count];
        let coefficients = vec![1; Head::COEFFICIENTS];
        let head = Head { state: State { layers, ..head().state }, coefficients, ..head() };
        assert_eq!(head.len(), Head::room(count));
    }
}

#[test]
fn frames_that_contradict_themselves_are_malformed() {
    let read = |head: Head| {
        let mut body = Vec::new();
        Data { head, symbol: &[] }.write(&mut body);
        Data::parse(&body).map(drop)
    };
    assert!(read(head()).is_ok());
    assert!(read(Head { layer: 4, ..head() }).is_err());
    assert!(read(Head { first: u32::MAX, ..head() }).is_err());
    assert!(read(Head { coefficients: vec![1; 64], ..head() }).is_err());
    assert!(read(Head { asked: vec![NodeId(1); 9], ..head() }).is_err());
    let with = |have: Have| Head { state: state(1, 1, 0, [have, has(0)]), ..head() };
    assert!(read(with(Have { map: vec![1; 33], ..has(0) })).is_err());
    assert!(read(with(Have { oldest: u32::MAX, ..has(0) })).is_err());
    let mut body = Vec::new();
    Announcement { terms: Deadline { ms: 0 }, ..announcement() }.write(&mut body);
    assert!(Timed::parse(&body).is_err());
}

proptest! {
    #[test]
    fn parsing_never_panics_and_writing_restores_what_was_parsed(
        body in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut again = Vec::new();
        if let Ok(data) = Data::parse(&body) {
            data.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
        again.clear();
        if let Ok(state) = State::parse(&body) {
            state.put(&mut ncmesh_wire::Writer::new(&mut again));
            prop_assert_eq!(&again, &body);
        }
        again.clear();
        if let Ok(announcement) = Timed::parse(&body) {
            announcement.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
    }
}
