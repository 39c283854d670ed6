//! Recorded messages, and what the screen shows of them.

use super::*;
use ncmesh_console::recording::{Reader, Writer};
use ncmesh_console::schema::{
    Event, Flow, FlowState, KEY_S, Link, LinkTable, Node, ReceiverState, Source, Stage, TICK_S,
    Transfer, TransferState,
};
use ncmesh_console::{Sampler, Sink};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn meta() -> Meta {
    let node = |id: u16, name: &str| Node { id, name: name.into(), position: None };
    let link = |from, to| Link { from, to, loss: None, ports: Vec::new() };
    Meta {
        schema: SCHEMA,
        source: Source::Daemon,
        version: "0.1.0".into(),
        scenario: None,
        seed: None,
        schemes: vec!["cascade".into()],
        bit_rate_bps: None,
        tick_s: TICK_S,
        key_s: KEY_S,
        observer: Some(3),
        nodes: vec![node(3, "roof-east"), node(5, "barn"), node(9, "")],
        links: vec![link(5, 3), link(3, 5)],
        transfers: vec![Transfer {
            id: "3-09ab12ff".into(),
            name: "firmware.img".into(),
            scheme: "cascade".into(),
            from: 3,
            to: vec![5],
            bytes: Count(1_000_000),
            generations: None,
        }],
        flows: vec![Flow { from: 5, to: 3, protocol: None, rate_bps: None, packet_bytes: None }],
        streams: vec![],
        rollouts: vec![],
    }
}

/// Returns the state that a mesh has `s` seconds after the start.
fn key(s: u64) -> Key {
    let mut nodes = NodeTable::unknown(3);
    nodes.begin(0);
    nodes.up = vec![true, true, false];
    nodes.control_us[0] = Some(Count(100_000 * s));
    nodes.data_us[0] = Some(Count(300_000 * s));
    let mut links = LinkTable::unknown(2);
    links.delivery = vec![Some(0.9), Some(0.7)];
    links.heard[0] = Some(Count(50 * s));
    links.innovative[0] = Some(Count(30 * s));
    links.redundant[0] = Some(Count(10 * s));
    let bytes = Count(100_000 * s);
    let receiver = ReceiverState { node: 5, stage: Stage::Open, bytes, ..Default::default() };
    let receivers = vec![receiver];
    let transfer = TransferState { stage: Some(Stage::Open), receivers, ..Default::default() };
    let flow = FlowState {
        delivered: Some(Count(20 * s)),
        bits: Some(Count(200_000 * s)),
        queue: Some(4),
        scheme: "braid".into(),
        coded_share: Some(0.25),
        rtt_s: Some(0.0213),
        ..Default::default()
    };
    let transfers = vec![transfer];
    let flows = vec![flow];
    Key { time_s: s as f64, nodes, links, transfers, flows, ..Key::default() }
}

/// Returns a daemon's messages, as they are read from a recording.
fn recorded() -> Vec<Message> {
    let mut sampler = Sampler::new();
    let mut writer = Writer::new(Vec::new());
    let event = |s: u64, what| Event { time_s: s as f64, node: Some(3), what };
    for s in 0..5 {
        let up = EventKind::NeighborUp { neighbor: 5 };
        let events = if s == 1 { vec![event(s, up)] } else { vec![] };
        sampler.sample(&meta(), key(s), events, |message| writer.tell(&message)).unwrap();
    }
    // Without it a recording is cut short.
    writer.tell(&Message::Event(event(4, EventKind::End))).unwrap();
    let bytes = writer.into_inner().unwrap();
    Reader::new(bytes.as_slice()).map(Result::unwrap).collect()
}

/// Returns the lines of a screen.
fn screen(top: &mut Top, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(top, frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| row(y).trim_end().to_owned()).collect()
}

fn told() -> Top {
    let mut top = Top::default();
    recorded().into_iter().for_each(|message| top.handle(message).unwrap());
    top
}

/// Returns the words of the line that begins with `head`.
#[track_caller]
fn line(screen: &[String], head: &str) -> Vec<String> {
    let found = screen.iter().find(|line| line.starts_with(head));
    let line = found.unwrap_or_else(|| panic!("no {head:?} in {screen:#?}"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn each_page_fits_a_terminal_of_80_by_24() {
    let mut top = told();
    let peers = screen(&mut top, 80, 24);
    assert_eq!(peers[0], "ncmesh 0.1.0  roof-east (id 3)  2 nodes  4 s");
    assert_eq!(line(&peers, "barn").join(" "), "barn 5 up 70 % 90 % 50 75 %");
    assert_eq!(line(&peers, "9").join(" "), "9 9 down - - - -");
    assert!(peers.iter().any(|line| line.contains("roof-east hears barn")), "{peers:#?}");
    assert!(peers[23].contains("q end"), "{peers:#?}");

    assert!(top.press(Press::NextTab));
    let flows = screen(&mut top, 80, 24);
    assert_eq!(
        line(&flows, "flow").join(" "),
        "flow barn roof-east braid 200 kbit/s queue 4, RTT 21.3 ms"
    );
    let file = line(&flows, "firmware.img").join(" ");
    assert_eq!(file, "firmware.img roof-east barn cascade 800 kbit/s 40 %");

    let wide = line(&screen(&mut top, 120, 24), "flow").join(" ");
    assert!(wide.ends_with(" queue 4, RTT 21.3 ms, coded 25 %"), "{wide}");

    assert!(top.press(Press::NextTab));
    let air = screen(&mut top, 80, 24);
    let own = line(&air, "roof-east").join(" ");
    assert!(own.starts_with("roof-east 10.0 % 30.0 % 0.0 % [---========="), "{own}");
    assert!(!air.iter().any(|line| line.starts_with("barn")), "a node knows its own airtime only");
    assert!(top.press(Press::NextTab));
    assert_eq!(screen(&mut top, 80, 24), peers);
}

#[test]
fn keys_scroll_help_and_end() {
    let mut top = told();
    for _ in 0..9 {
        assert!(top.press(Press::Down));
    }
    let few = screen(&mut top, 80, 11);
    assert!(few.iter().any(|line| line.starts_with('9')), "the last row stays: {few:#?}");
    assert!(top.press(Press::Help));
    assert!(screen(&mut top, 80, 24).iter().any(|line| line.contains("scroll")));
    assert!(top.press(Press::Quit), "it ends the help first");
    assert!(!top.press(Press::Quit));
    assert!(top.press(Press::Help));
    assert!(!top.press(Press::End));
}

#[test]
fn any_terminal_and_any_state_is_drawn() {
    for (width, height) in [(1, 1), (10, 3), (40, 12), (200, 60)] {
        let mut top = Top::default();
        screen(&mut top, width, height);
        for message in recorded() {
            top.handle(message).unwrap();
            for _ in Tab::ALL {
                top.press(Press::NextTab);
                top.press(Press::Help);
                screen(&mut top, width, height);
            }
        }
    }
}

#[test]
fn a_source_that_starts_again_has_no_negative_rates() {
    let mut top = told();
    top.handle(Message::Key(key(0))).unwrap();
    let peers = screen(&mut top, 80, 24);
    assert_eq!(line(&peers, "barn").join(" "), "barn 5 up 70 % 90 % - -");
    let other = Meta { schema: SCHEMA + 1, ..meta() };
    assert_eq!(top.handle(Message::Meta(other)), Err(Foreign));
}
