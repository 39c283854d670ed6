//! The schema: what messages look like, that ticks add up to keys, and the types in TypeScript.

mod common;

use common::{meta, state};
use ncmesh_console::Sampler;
use ncmesh_console::schema::{
    Count, Event, EventKind, FlowState, Key, Message, NeedsKey, QueueValues, SourceValues, Stage,
    Tick, TransferState, Values, typescript,
};
use proptest::prelude::*;
use std::convert::Infallible;
use std::path::Path;

/// Returns the messages of a sampler to which `states` are told.
fn sampled(states: impl IntoIterator<Item = Key>) -> Vec<Message> {
    let mut sampler = Sampler::new();
    let mut told = Vec::new();
    let meta = meta();
    for state in states {
        let tell = |message| {
            told.push(message);
            Ok::<_, Infallible>(())
        };
        let Ok(()) = sampler.sample(&meta, state, [], tell);
    }
    told
}

#[test]
fn the_types_in_typescript_are_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/src/schema/messages.ts");
    let written = std::fs::read_to_string(path).expect("the console's source has the types");
    assert!(
        written == typescript(),
        "the schema has changed: cargo run -p ncmesh-console --example types"
    );
}

#[test]
fn what_the_api_does_not_know_is_null_and_a_console_is_told_the_rest() {
    let sent = SourceValues { packets: Some(7), source_redundancy: None };
    let json = serde_json::json!({ "source_packets": 7, "source_redundancy": null });
    assert_eq!(serde_json::to_value(&sent).unwrap(), json);
    assert_eq!(serde_json::from_value::<SourceValues>(json).unwrap(), sent);

    let mut state = TransferState::default();
    sent.tell(&mut state);
    assert_eq!(state, TransferState { packets: Some(Count(7)), ..TransferState::default() });

    let queue = QueueValues { held: vec![3, 4], lost: 2, ..QueueValues::default() };
    let shown: Vec<String> = queue.numbers().map(|(field, value)| field.show(value)).collect();
    assert!(shown.contains(&"held 7".into()) && shown.contains(&"lost 2".into()), "{shown:?}");
}

#[test]
fn every_message_is_read_as_it_was_written() {
    let event = |what| Message::Event(Event { time_s: 1.5, node: Some(1), what });
    let change = state(0.1, &[9, 8, 70]).tick_since(&state(0.0, &[1, 2, 3])).expect("it grew");
    let messages = [
        Message::Meta(meta()),
        Message::Key(state(2.0, &[3, 5, 1 << 31])),
        Message::Tick(change),
        event(EventKind::NodeDown),
        event(EventKind::NeighborUp { neighbor: 2 }),
        event(EventKind::Transfer { transfer: 0, stage: Stage::Verifying }),
        event(EventKind::ReceiverDone { transfer: 0, receiver: 2 }),
        event(EventKind::Hint { text: "\"<b>\"".into() }),
        event(EventKind::Drops { reason: "replayed".into(), frames: 12, seconds: 1.0 }),
        event(EventKind::End),
    ];
    for message in messages {
        let text = serde_json::to_string(&message).expect("a message is JSON");
        let read: Message = serde_json::from_str(&text).expect(&text);
        assert_eq!(read, message);
    }
}

#[test]
fn numbers_of_64_bits_are_strings() {
    let text = serde_json::to_string(&Count(u64::MAX)).expect("a count is JSON");
    assert_eq!(text, "\"18446744073709551615\"");
    for wrong in ["1", "\"-1\"", "\"18446744073709551616\"", "\"1.5\"", "null"] {
        assert!(serde_json::from_str::<Count>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_unknown_field_is_refused() {
    let text = r#"{"type":"tick","time_s":1.0,"colour":"red"}"#;
    assert!(serde_json::from_str::<Message>(text).is_err());
}

#[test]
fn a_tick_without_changes_has_its_time_only() {
    let before = state(0.0, &[5, 6]);
    let now = state(0.1, &[5, 6]);
    let tick = now.tick_since(&before).expect("nothing fell");
    assert_eq!(serde_json::to_string(&tick).expect("JSON"), r#"{"time_s":0.1}"#);
}

#[test]
fn a_counter_that_fell_makes_a_key() {
    let told = sampled([state(0.0, &[5]), state(0.1, &[6]), state(0.2, &[4]), state(0.3, &[6])]);
    let kinds = told.iter().map(|message| match message {
        Message::Meta(_) => "meta",
        Message::Key(_) => "key",
        Message::Tick(_) => "tick",
        Message::Event(_) => "event",
    });
    let kinds: Vec<_> = kinds.collect();
    assert_eq!(kinds[..4], ["meta", "key", "tick", "key"]);
}

#[test]
fn what_is_no_longer_known_is_null_in_the_next_tick() {
    let flow = |rtt_s| FlowState { rtt_s, queue: Some(1), ..FlowState::default() };
    let state = |time_s, rtt_s| Key { time_s, flows: vec![flow(rtt_s)], ..Key::default() };
    let mut viewed = state(0.0, Some(0.25));
    for (rtt_s, text) in [
        (None, r#"{"time_s":0.1,"flows":[{"flow":0,"rtt_s":null}]}"#),
        (None, r#"{"time_s":0.1}"#),
        (Some(0.5), r#"{"time_s":0.1,"flows":[{"flow":0,"rtt_s":0.5}]}"#),
    ] {
        let tick = state(0.1, rtt_s).tick_since(&viewed).expect("a tick tells it");
        assert_eq!(serde_json::to_string(&tick).expect("JSON"), text);
        let read: Tick = serde_json::from_str(text).expect("a tick");
        viewed.apply(&read).expect("it fits");
        assert_eq!(viewed, state(0.1, rtt_s));
    }
    let text = serde_json::to_string(&viewed.flows[0]).expect("JSON");
    assert_eq!(text, r#"{"queue":1,"rtt_s":0.5,"scheme":"","why":""}"#, "keys leave out the rest");
}

#[test]
fn a_counter_that_becomes_known_makes_a_key() {
    let state =
        |heard| Key { flows: vec![FlowState { heard, ..FlowState::default() }], ..Key::default() };
    let unknown = state(None);
    let known = state(Some(Count(7)));
    assert_eq!(known.tick_since(&unknown), Err(NeedsKey));
    assert_eq!(unknown.tick_since(&known), Err(NeedsKey));
}

#[test]
fn a_tick_that_takes_away_what_is_always_known_is_refused() {
    let mut key = state(0.0, &[1]);
    let text = r#"{"time_s":0.1,"flows":[{"flow":0,"scheme":null}]}"#;
    let tick: Tick = serde_json::from_str(text).expect("a tick");
    assert!(key.apply(&tick).is_err());
}

#[test]
fn a_key_comes_every_five_seconds() {
    let told = sampled((0..=150).map(|tick| state(f64::from(tick) / 10.0, &[7])));
    let keys = told.iter().filter_map(|message| match message {
        Message::Key(key) => Some(key.time_s),
        _ => None,
    });
    assert_eq!(keys.collect::<Vec<_>>(), [0.0, 5.0, 10.0, 15.0]);
}

#[test]
fn a_tick_of_another_mesh_is_refused() {
    let mut nothing = Key::default();
    let tick = state(0.1, &[9]).tick_since(&state(0.0, &[1])).expect("it grew");
    assert!(nothing.apply(&tick).is_err());
    assert!(nothing.apply(&Tick::default()).is_ok());
}

proptest! {
    #[test]
    fn a_key_and_ticks_make_the_next_key(steps in proptest::collection::vec(
        proptest::collection::vec(0..1000u32, 1..40), 1..12,
    )) {
        // Counters grow by the numbers of each step; the rest is whatever it is.
        let mut sums = vec![0u32; 40];
        let states = steps.iter().zip(0u32..).map(|(grown, tick)| {
            sums.iter_mut().zip(grown.iter().cycle()).for_each(|(sum, grown)| *sum += grown);
            state(f64::from(tick) / 10.0, &sums)
        });
        let states: Vec<Key> = states.collect();
        let mut viewed = Key::default();
        let mut seen = states.iter();
        for message in sampled(states.clone()) {
            match message {
                Message::Key(key) => viewed = key,
                Message::Tick(tick) => viewed.apply(&tick).expect("it fits"),
                Message::Meta(_) | Message::Event(_) => continue,
            }
            prop_assert_eq!(Some(&viewed), seen.next());
        }
        prop_assert_eq!(seen.next(), None);
    }
}
