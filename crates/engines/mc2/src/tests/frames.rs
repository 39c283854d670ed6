//! Frames by their bytes.

use super::{credits_of, header, one_hop};
use crate::frame::{
    Acknowledgment, Data, Feedback, FlowState, GenerationHeader, MAX_ACKS, MAX_ANNOUNCED, Report,
    Request,
};
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_wire::NodeId;
use proptest::prelude::*;

/// The golden vectors of docs/reference/wire-format.md.
#[test]
fn golden_frames() {
    let mut data = Vec::new();
    header(one_hop()).write(&mut data);
    data.extend_from_slice(&[1, 0, 0, 1, 0xaa]);
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let expected = "00010001 02 0002 0002 0004 0000 02 0304 03 0005 00000000 01 \
                    0001 0009 00000003 01 01 00000006 0007 00000006 02 00 02 0003 0100 0001aa";
    assert_eq!(hex(&data), expected.replace(' ', ""));
    let parsed = Data::parse(&data).unwrap();
    assert_eq!(parsed.header, header(one_hop()));
    assert_eq!((parsed.coding_vector, parsed.payload), (&[1, 0][..], &[0, 1, 0xaa][..]));
    for end in 0..data.len() {
        assert!(Data::parse(&data[..end]).is_err(), "{end}");
    }
    let flow = FlowInstance { source: NodeId(2), destination: NodeId(4), incarnation: 1 };
    let mut report = Vec::new();
    Report { flow, state: FlowState { credits: 0, done: 7, acks: vec![] } }.write(&mut report);
    assert_eq!(hex(&report), "0002000400000001 0000 00000007 00".replace(' ', ""));
    let mut request = Vec::new();
    let next = NodeId(2);
    Request { flow, next, generation: 6, serial: 1, missing: 3 }.write(&mut request);
    assert_eq!(hex(&request), "00020004000000010002000000060103");
}

proptest! {
    /// Feedback of every allowed size, computed and written, ends where the frame does.
    #[test]
    fn feedback_takes_the_room_that_a_combination_leaves(
        spare in 0usize..200, hops in 1usize..=6, nodes in 2usize..=16, generation in 1u8..=128,
    ) {
        let mtu = GenerationHeader::reserved(generation) + 1000 + spare;
        let combination = 1000 + usize::from(generation);
        let Feedback { acks, announced } =
            GenerationHeader::feedback(mtu, combination, nodes, hops);
        prop_assert!((1..=MAX_ACKS).contains(&acks) && (1..=MAX_ANNOUNCED).contains(&announced));

        let ack = Acknowledgment { of: NodeId(1), latest: 1, before: 0 };
        let mut written = GenerationHeader {
            state: FlowState { acks: vec![ack; acks], ..FlowState::default() },
            announced: vec![credits_of(1, &vec![0; hops]); announced],
            ..header(one_hop())
        };
        let mut out = Vec::new();
        written.write(&mut out);
        // The paths of `header` are over two nodes, each of which takes four bytes.
        let length = out.len() + 4 * (nodes - 2) + combination;
        prop_assert!(length <= mtu, "{length} of {mtu}");

        // One acknowledgment more does not fit, unless a frame never has more.
        written.state.acks.push(ack);
        prop_assert!(acks == MAX_ACKS || length + 8 > mtu || announced > 1);
    }

    #[test]
    fn parsing_never_panics_and_writing_restores_what_was_parsed(
        body in prop::collection::vec(any::<u8>(), 0..90),
    ) {
        if let Ok(data) = Data::parse(&body) {
            let mut again = Vec::new();
            data.header.write(&mut again);
            again.extend_from_slice(data.coding_vector);
            again.extend_from_slice(data.payload);
            prop_assert_eq!(Data::parse(&again), Ok(data));
        }
        if let Ok(report) = Report::parse(&body) {
            let mut again = Vec::new();
            report.write(&mut again);
            prop_assert_eq!(again, body.clone());
        }
        if let Ok(request) = Request::parse(&body) {
            let mut again = Vec::new();
            request.write(&mut again);
            prop_assert_eq!(again, body);
        }
    }
}
