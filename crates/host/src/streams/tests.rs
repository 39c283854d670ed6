//! Tests of ports and advice, without a stack.

use super::*;
use ncmesh_engine::stream::{Receiving, Sending};
use ncmesh_wire::NodeId;

fn streams() -> Streams<u16> {
    let ports = Egress::Layers(BTreeMap::from([("base".to_owned(), 5004)]));
    let egress = BTreeMap::from([("news".to_owned(), ports), ("all".to_owned(), Egress::Every(9))]);
    Streams { egress, longest_dropped: 0 }
}

fn status(layers: &[&str]) -> StreamStatus {
    StreamStatus {
        flow: FlowId { source: NodeId(3), serial: 1 },
        group: "news".into(),
        layers: layers.iter().map(|layer| (*layer).to_owned()).collect(),
        receivers: 1,
        parent: None,
        sending: None,
        receiving: Some(Receiving::default()),
        queues: Vec::new(),
    }
}

#[test]
fn a_layer_leaves_by_its_port_and_one_without_goes_nowhere() {
    let streams = streams();
    assert_eq!(streams.port("news", "base"), Some(&5004));
    assert_eq!((streams.port("news", "enh"), streams.port("sport", "base")), (None, None));
    assert_eq!(streams.port("all", "anything"), Some(&9));
    assert_eq!(streams.ports("news").collect::<Vec<_>>(), [("base", &5004)]);
    assert_eq!(streams.ports("all").count() + streams.ports("sport").count(), 0);
}

#[test]
fn what_is_wrong_is_told() {
    let mut streams = streams();
    let hints_of = |scheme: &str, streams: &Streams<u16>, status: StreamStatus| {
        let groups = ["news".to_owned(), "sport".to_owned()];
        streams.hints(&[(scheme, status)], &groups, Some(1300), |_| "barn".into())
    };
    let hints = |streams: &Streams<u16>, status| hints_of("delta", streams, status);
    assert_eq!(streams.problem(&status(&["base", "enh"])), None);
    let silent = "group sport: nobody whom this node hears of sends to it (streams known here are \
                  to news)";
    assert_eq!(hints(&streams, status(&["base"])), [silent]);

    let problem = streams.problem(&status(&["low"])).unwrap();
    assert_eq!(
        (problem.code, &problem.text[..]),
        ("no_such_layer", "it has no layer base: its layers are low")
    );

    streams.longest_dropped = 1400;
    let busy = StreamStatus {
        sending: Some(Sending { refused: 7, ..Sending::default() }),
        ..status(&["low"])
    };
    let told = hints(&streams, busy.clone());
    assert!(told[0].contains("up to 1400 bytes long, and frames here carry 1300"), "{told:?}");
    assert!(
        told[2].starts_with("stream 3-00000001 to group news: 7 packets were refused"),
        "{told:?}"
    );
    assert!(told[3].contains("from barn: it has no layer base"), "{told:?}");

    // Settings of a scheme are named where they help.
    assert!(!told[2].contains("[multirate]"), "{told:?}");
    let told = hints_of("multirate", &streams, busy);
    assert!(told[2].contains("raise [multirate] a_max"), "{told:?}");
}
