//! Frames by their bytes.

use super::{SYMBOL_SIZE, combined, generation_id, header, part};
use crate::frame::{
    CountFrame, DataFrame, FeedbackFrame, GenerationHeader, LinkReport, Part, RelayedFeedback,
    Request,
};
use ncmesh_wire::NodeId;
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The golden vectors of `docs/reference/wire-format.md`.
#[test]
fn golden_frames() {
    let header_7 = GenerationHeader { id: generation_id(1, 4, 7), older_open: 1, ..header(1, 4) };
    let first = part(header_7, 4, [9, 8, 0, 0]);
    let second = part(header(2, 5), 5, [0, 3, 0, 0]);
    let data = combined(0x0102, first, second, &[0xaa, 0xbb]);
    let mut body = Vec::new();
    data.write(&mut body);
    let expected = "0102 02 00010004 00000001 0004 00000007 01 04 02 01 0028 02 0908 \
                    00020005 00000001 0005 00000000 00 04 02 01 0028 02 0003 aabb";
    assert_eq!(hex(&body), expected.replace(' ', ""));
    assert_eq!(DataFrame::parse(&body), Ok(data));
    for end in 0..body.len() - 2 {
        assert!(DataFrame::parse(&body[..end]).is_err(), "cut to {end} bytes");
    }

    let count = CountFrame {
        serial: 0x0102,
        number: 0x0304,
        again: true,
        header: header(1, 4),
        next_hop: NodeId(3),
    };
    let mut body = Vec::new();
    count.write(&mut body);
    let expected = "0102 0304 01 00010004 00000001 0003 00000000 00 04 02 01 0028";
    assert_eq!(hex(&body), expected.replace(' ', ""));
    assert_eq!(CountFrame::parse(&body), Ok(count));

    let feedback = FeedbackFrame {
        id: generation_id(1, 4, 7),
        to: NodeId(3),
        number: 0x0506,
        request: Request::More,
        missing_alone: 2,
        missing_combined: 5,
        progress: 62,
        missing_numbers: vec![0, 9],
        links: vec![LinkReport { transmitter: NodeId(3), received: 90, sent: 100 }],
    };
    let mut body = Vec::new();
    feedback.write(&mut body);
    let expected = "00010004 00000001 0003 00000007 0506 01 02 05 003e 02 0009 01 0003 005a 0064";
    assert_eq!(hex(&body), expected.replace(' ', ""));
    assert_eq!(FeedbackFrame::parse(&body).as_ref(), Ok(&feedback));

    let relayed = RelayedFeedback { next_hop: NodeId(5), author: NodeId(4), feedback };
    let mut body = Vec::new();
    relayed.write(&mut body);
    assert_eq!(hex(&body), format!("00050004{}", expected.replace(' ', "")));
    assert_eq!(RelayedFeedback::parse(&body).as_ref(), Ok(&relayed));
    for end in 0..body.len() {
        assert!(RelayedFeedback::parse(&body[..end]).is_err(), "cut to {end} bytes");
    }
    let mut body = Vec::new();
    RelayedFeedback { author: NodeId(3), ..relayed }.write(&mut body);
    assert!(RelayedFeedback::parse(&body).is_err(), "a node that answers itself");
}

#[test]
fn data_frames_that_contradict_themselves_are_malformed() {
    let is_malformed = |first: Part, second: Option<Part>, payload: &[u8]| {
        let mut body = Vec::new();
        DataFrame { serial: 1, first, second, payload }.write(&mut body);
        DataFrame::parse(&body).is_err()
    };
    let good = part(header(1, 4), 3, [1, 0, 0, 0]);
    let longest = [1; SYMBOL_SIZE as usize];
    assert!(!is_malformed(good.clone(), None, &longest));
    assert!(is_malformed(good.clone(), None, &[1; 41]), "longer than its symbols");
    assert!(is_malformed(good.clone(), Some(good.clone()), &[1]), "a flow with itself");
    assert!(is_malformed(part(header(1, 4), 3, [0; 4]), None, &[1]), "no coefficients");
    let longer = Part { vector: vec![1; 5], ..good.clone() };
    assert!(is_malformed(longer, None, &[1]), "more coefficients than packets");
    for wrong in [
        GenerationHeader { generation_size: 0, ..header(1, 4) },
        GenerationHeader { generation_size: 121, ..header(1, 4) },
        GenerationHeader { count: 5, ..header(1, 4) },
        GenerationHeader { id: generation_id(1, 4, 9), older_open: 8, ..header(1, 4) },
        GenerationHeader { older_open: 1, ..header(1, 4) },
        GenerationHeader { symbol_size: 2, ..header(1, 4) },
    ] {
        assert!(is_malformed(Part { header: wrong, ..good.clone() }, None, &[1]), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics_and_what_is_read_is_written_alike(
        body in prop::collection::vec(any::<u8>(), 0..90),
    ) {
        if let Ok(data) = DataFrame::parse(&body) {
            let mut again = Vec::new();
            data.write(&mut again);
            let parts = DataFrame::parse(&again).map(|data| (data.first, data.second));
            prop_assert_eq!(parts, Ok((data.first, data.second)));
        }
        if let Ok(feedback) = FeedbackFrame::parse(&body) {
            let mut again = Vec::new();
            feedback.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
        if let Ok(relayed) = RelayedFeedback::parse(&body) {
            let mut again = Vec::new();
            relayed.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
        if let Ok(count) = CountFrame::parse(&body) {
            let mut again = Vec::new();
            count.write(&mut again);
            prop_assert_eq!(&again, &body);
        }
    }
}
