//! The ends of a stream: a source that bursts, receivers that push back.

use super::node::{FLOW, Node, announcement, announcement_of, config, utility};
use crate::{Multirate, MultirateConfig};
use ncmesh_engine::settings::Section;
use ncmesh_engine::stream::{
    Deadline, NewStream, StreamError, StreamPacketError, StreamProblem, UtilityConfig,
};
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::toolkit::live::ANNOUNCEMENT;
use ncmesh_engine::{Event, StreamEngine};

#[test]
fn a_burst_beyond_a_max_waits_at_the_source() {
    let mut node = Node::new(config());
    let layers = ["base".to_owned()];
    let new = NewStream { group: "tv", layers: &layers, deadline: None };
    let timed = NewStream { deadline: Deadline::of_ms(200), ..new };
    assert_eq!(node.with(|e, cx| e.open(cx, timed)), Err(StreamError::NoDeadlines));
    let flow = node.with(|e, cx| e.open(cx, new)).unwrap();
    assert_eq!(node.with(|e, cx| e.open(cx, new)), Err(StreamError::Busy("tv".into())));
    node.wait(30);
    assert_eq!(node.fill().unwrap().0, ANNOUNCEMENT);
    let mut send = |layer, packet: &[u8]| node.with(|e, cx| e.send(cx, flow, layer, packet));
    assert_eq!(send(0, b""), Err(StreamPacketError::Empty));
    assert_eq!(send(1, b"p"), Err(StreamPacketError::Unknown));
    assert_eq!(send(0, &[0; 1387]), Err(StreamPacketError::TooLong { bytes: 1387, longest: 1386 }));
    // Ten packets enter in this slot, 1,024 wait, the others are refused.
    let taken = (0..1500).filter(|_| send(0, b"p").is_ok()).count();
    assert_eq!((taken, send(0, b"p")), (1034, Err(StreamPacketError::Burst)));
    let sending = |node: &Node| node.engine.streams()[0].sending.clone().unwrap();
    node.wait(100);
    assert_eq!((sending(&node).waiting, sending(&node).refused), (1014, 467));
    node.with(|e, cx| e.send(cx, flow, 0, b"p")).unwrap();
    assert_eq!((sending(&node).waiting, sending(&node).packets[0]), (1015, 1035));
    assert!(node.with(|e, cx| e.close(cx, "tv")));
    assert!(!node.with(|e, cx| e.close(cx, "tv")));
    assert!(node.engine.streams().is_empty());
}

#[test]
fn a_receiver_gets_its_packets_and_pushes_back() {
    let mut node = Node::new(config());
    let linear = |minimum| UtilityConfig { minimum, ..utility("linear") };
    // It joins before the stream is announced.
    node.with(|e, cx| e.join(cx, "tv", linear(Some(1.0)))).unwrap();
    node.announce();
    node.data(1, 1, 0);
    let Some(Event::StreamPacket { flow, group, layer, packet }) = node.events.pop_front() else {
        panic!("no packet");
    };
    assert_eq!((flow, &*group, &*layer, packet), (FLOW, "tv", "enh", vec![1; 100]));
    // It begins eager. Packets that come in raise its pressure, within bounds.
    let pressure = |node: &Node| node.engine.streams()[0].receiving.clone().unwrap().pressure;
    let begun = pressure(&node);
    assert!((0.9..1.1).contains(&begun), "{begun}");
    for seq in 1..400 {
        node.data(1, 0, seq);
    }
    node.wait(100);
    let fed = pressure(&node);
    assert!(fed > 10.0 * begun, "{fed} after {begun}");
    for _ in 0..100 {
        node.wait(100);
    }
    assert!(pressure(&node) < fed, "{fed}");
    for seq in 400..100_000 {
        node.data(1, 0, seq);
    }
    node.wait(100);
    assert!(pressure(&node) <= 80.0, "{}", pressure(&node));
}

#[test]
fn a_receiver_begins_with_the_pressure_at_which_it_asks_for_no_more() {
    let initial_pressure = |utility| {
        let mut node = Node::new(config());
        node.with(|e, cx| e.join(cx, "tv", utility)).unwrap();
        node.announce();
        node.engine.streams()[0].receiving.clone().unwrap().pressure
    };
    // V (theta - g'(0)) = 10 (4 - 1), and one packet where that is less.
    assert!((initial_pressure(utility("linear")) - 30.0).abs() < 1e-6);
    assert!((initial_pressure(utility("log")) - 1.0).abs() < 1e-6);
}

#[test]
fn status_tells_what_keeps_a_receiver_from_its_rate() {
    let mut node = Node::new(config());
    let linear = UtilityConfig { minimum: Some(1.0), ..utility("linear") };
    node.with(|e, cx| e.join(cx, "tv", linear)).unwrap();
    assert_eq!((node.engine.groups(), node.engine.streams()), (vec!["tv".to_owned()], vec![]));
    let trouble = |node: &Node| node.engine.streams()[0].receiving.clone().unwrap().problem;
    // Each 5 s 1,000 packets of 100 bytes enter, and 100 arrive.
    for version in 1..6 {
        let sent = vec![0, version * 1000];
        let mut body = Vec::new();
        let layers = announcement().contents.layers;
        announcement_of(version, &layers, &sent).write(&mut body);
        node.handle_frame(1, ANNOUNCEMENT, &body);
        (0..100).for_each(|seq| node.data(1, 1, version * 1000 + seq));
        assert!(version > 3 || trouble(&node).is_none());
        node.wait(5000);
    }
    let below = trouble(&node).unwrap();
    assert_eq!(below.name(), "below_minimum");
    assert!(below.to_string().starts_with("gets 0.02 of at least 1.00 Mbit/s"), "{below}");
    node.topology = symmetric(&[(2, 3, 1.0)]);
    node.wait(10);
    assert_eq!(trouble(&node), Some(StreamProblem::NoPath));
}

#[test]
fn utilities_that_are_too_steep_or_malformed_are_refused_with_the_reason() {
    let mut node = Node::new(config());
    let mut join =
        |utility| node.with(|e, cx| e.join(cx, "tv", utility)).map_err(|e| e.to_string());
    // Settings that are left out are chosen within theta = 4.
    for name in ["log", "max_min"] {
        assert_eq!(join(utility(name)), Ok(()));
        assert_eq!(join(UtilityConfig { minimum: Some(1.7), ..utility(name) }), Ok(()));
    }
    let refused =
        join(UtilityConfig { xi: Some(0.1), weight: Some(1.0), ..utility("log") }).unwrap_err();
    assert!(
        refused.contains("slope at rate 0 is 10") && refused.contains("theta = 4"),
        "{refused}"
    );
    let refused = join(UtilityConfig { xi: Some(0.0), ..utility("log") }).unwrap_err();
    assert!(refused.contains("unbounded") && refused.contains("xi"), "{refused}");
    let table = UtilityConfig {
        values: vec![0.0, 1.0, 3.0],
        slopes: vec![1.0, 1.5, 2.0],
        step: Some(1.0),
        ..utility("table")
    };
    let refused = join(table).unwrap_err();
    assert!(refused.contains("not concave"), "{refused}");
    assert!(join(utility("cubic")).unwrap_err().contains("no utility is called"));
    let group = node.with(|e, cx| e.join(cx, "t/v", utility("linear"))).unwrap_err();
    assert!(group.to_string().contains("group \"t/v\""), "{group}");
}

#[test]
fn settings_out_of_range_are_utility() {
    let refused = |config: MultirateConfig| match config.check() {
        Err(error) => error.to_string(),
        Ok(()) => Multirate::new(config).err().unwrap(),
    };
    let ok = MultirateConfig::default;
    assert!(refused(MultirateConfig { slot_ms: 0, ..ok() }).starts_with("slot_ms = 0: allowed"));
    assert!(refused(MultirateConfig { v: 0.0, ..ok() }).contains("v = 0"));
    assert!(refused(MultirateConfig { d_max: Some(3), ..ok() }).contains("d_max = 3"));
    assert!(refused(MultirateConfig { theta: 1e9, ..ok() }).contains("queues would grow"));
    assert!(refused(MultirateConfig { epsilon: Some(-1.0), ..ok() }).contains("epsilon"));
}
