//! Frames by their bytes.

use super::node::{announcement, entry, header};
use crate::frame::{DataHeader, ReportEntry};
use ncmesh_engine::toolkit::live::{Announcement, Contents, Untimed};
use proptest::prelude::*;

/// The golden vectors of docs/reference/wire-format.md.
#[test]
fn golden_frames() {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let mut body = Vec::new();
    header().write(&mut body);
    body.extend_from_slice(b"RTP");
    assert_eq!(hex(&body), "0001000000070002010000000509525450");
    assert_eq!(DataHeader::parse(&body), Ok((header(), &b"RTP"[..])));
    for end in 0..=DataHeader::LEN {
        assert!(DataHeader::parse(&body[..end]).is_err(), "{end}");
    }
    body.clear();
    let reported = ReportEntry { pressure: 2.5, ..entry(1, 2, 1.5) };
    reported.write(&mut body);
    assert_eq!(hex(&body), "000100000007000100023fc0000040200000");
    assert_eq!(ReportEntry::parse_all(&body), Ok(vec![reported]));
    assert!(ReportEntry::parse_all(&body[1..]).is_err() && ReportEntry::parse_all(&[]).is_err());
    body.clear();
    announcement().write(&mut body);
    assert_eq!(hex(&body), "0001000000070000000102027476046261736503656e680000000300000004");
    assert_eq!(Untimed::parse(&body), Ok(announcement()));
    for end in 0..body.len() {
        assert!(Untimed::parse(&body[..end]).is_err(), "{end}");
    }
}

#[test]
fn frames_that_contradict_themselves_are_malformed() {
    let data = |header: DataHeader| {
        let mut body = Vec::new();
        header.write(&mut body);
        body.push(1);
        DataHeader::parse(&body).map(drop)
    };
    assert!(data(DataHeader { hops: 0, ..header() }).is_err());
    assert!(data(DataHeader { layer: 4, ..header() }).is_err());
    for value in [f32::NAN, f32::INFINITY] {
        for entry in [entry(1, 1, value), ReportEntry { pressure: value, ..entry(1, 1, 0.0) }] {
            let mut body = Vec::new();
            entry.write(&mut body);
            assert!(ReportEntry::parse_all(&body).is_err());
        }
    }
    let names = |group: &str, layers: &[&str]| {
        let mut body = Vec::new();
        let layers: Vec<String> = layers.iter().map(|&name| name.to_owned()).collect();
        let sent = vec![0; layers.len()];
        let contents = Contents { group: group.into(), layers, sent };
        Announcement { contents, ..announcement() }.write(&mut body);
        Untimed::parse(&body).map(drop)
    };
    assert_eq!(names("tv", &[]), Ok(()));
    assert!(names("t v", &["a"]).is_err() && names("", &["a"]).is_err());
    assert!(names("tv", &["a", "a"]).is_err() && names("tv", &["\u{202e}"]).is_err());
    assert!(names("tv", &["a", "b", "c", "d", "e"]).is_err());
}

proptest! {
    #[test]
    fn parsing_never_panics_and_writing_restores_what_was_parsed(
        body in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut again = Vec::new();
        if let Ok((header, packet)) = DataHeader::parse(&body) {
            header.write(&mut again);
            again.extend_from_slice(packet);
            prop_assert_eq!(&again, &body);
        }
        again.clear();
        if let Ok(entries) = ReportEntry::parse_all(&body) {
            entries.iter().for_each(|entry| entry.write(&mut again));
            prop_assert_eq!(&again, &body);
        }
        again.clear();
        if let Ok(announcement) = Untimed::parse(&body) {
            announcement.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
    }
}
