//! The golden vectors of `docs/reference/wire-format.md`, and frames that are malformed.

use super::node::{FLOW, got, report};
use crate::frame::{Data, Got, Header, Report};
use ncmesh_engine::time::Duration;
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn golden_live() {
    let header = Header::new(FLOW, 1, 5, Duration::from_millis(100));
    let data = Data { header, packet: b"RTP" };
    let mut body = Vec::new();
    data.write(&mut body);
    let text = "000100000007 01 00000005 0190 525450";
    assert_eq!(hex(&body), text.replace(' ', ""));
    assert_eq!(Data::parse(&body), Ok(data));
    assert_eq!(Header::LEN, body.len() - 3);
    for end in 0..=Header::LEN {
        assert!(Data::parse(&body[..end]).is_err(), "{end}");
    }

    body.clear();
    let said = report(1, 2, Got { end: 9, before: 0b101 });
    said.write(&mut body);
    let text = "000100000007 0001 0002 02 00000009 0000000000000005 00000000 0000000000000000";
    assert_eq!(hex(&body), text.replace(' ', ""));
    assert_eq!(Report::parse(&body), Ok(said));
    for end in 0..body.len() {
        assert!(Report::parse(&body[..end]).is_err(), "{end}");
    }
}

#[test]
fn a_layer_tells_of_its_newest_packets_only() {
    let has = |number| Got { end: 100, before: 0b10 }.has(number);
    assert_eq!([has(99), has(98), has(97)], [Some(true), Some(false), Some(true)]);
    assert_eq!([has(100), has(34), has(u32::MAX)], [None; 3]);
    assert_eq!(Got::default().has(0), None);
    assert_eq!(got(3).has(0), Some(true));
}

#[test]
fn frames_that_contradict_themselves_are_malformed() {
    let mut body = Vec::new();
    let header = Header::new(FLOW, 4, 5, Duration::ZERO);
    Data { header, packet: b"RTP" }.write(&mut body);
    assert!(Data::parse(&body).is_err());
    body.clear();
    Report { layers: vec![got(1); 5], ..report(1, 1, got(1)) }.write(&mut body);
    assert!(Report::parse(&body).is_err());
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
        if let Ok(report) = Report::parse(&body) {
            report.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
    }
}
