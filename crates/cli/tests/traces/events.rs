//! Event lines agree with the outcome, and have the form of docs/reference/traces.md.

use crate::support::Run;
use serde_json::Value;
use std::collections::BTreeSet;

/// Names of the fields that an event of each kind may have besides time, node and kind.
const SCHEMA: [(&str, &[&str]); 8] = [
    (
        "sent",
        &["sender", "to", "length", "salt", "counter", "service", "type", "flow", "generation"],
    ),
    (
        "heard",
        &[
            "sender",
            "length",
            "power_dbm",
            "salt",
            "counter",
            "service",
            "type",
            "flow",
            "generation",
        ],
    ),
    ("reported", &["result", "attempts", "airtime_ns"]),
    ("delivered", &["flow"]),
    ("receiver_done", &["flow", "receiver"]),
    ("send_ended", &["flow"]),
    ("send_failed", &["flow"]),
    ("withdrawn", &["flow"]),
];

#[test]
fn events_agree_with_the_outcome() {
    let run = Run::new(&["--to", "d,r1"]);
    let on_the_air = run.of(&["sent", "heard", "reported"]).count();
    assert_eq!(run.outcome["events"], on_the_air);
    let data = run.of(&["sent"]).filter(|event| event["type"] == "data").count();
    assert_eq!(run.outcome["transmissions"], data);
    let from = run.of(&["sent"]).find(|event| event["type"] == "announcement").unwrap();
    let nodes = |kind: &str, field: &str| -> BTreeSet<String> {
        run.of(&[kind]).map(|event| event[field].as_str().unwrap().to_owned()).collect()
    };
    let receivers = BTreeSet::from(["d".to_owned(), "r1".to_owned()]);
    assert_eq!(nodes("delivered", "node"), receivers);
    assert_eq!(nodes("receiver_done", "receiver"), receivers);
    assert_eq!(nodes("send_ended", "node"), BTreeSet::from(["s".to_owned()]));
    for receiver in run.outcome["receivers"].as_array().unwrap() {
        let at = run.of(&["delivered"]).find(|event| event["node"] == receiver["node"]).unwrap();
        let ended = run.of(&["send_ended"]).next().unwrap();
        let before_end = ended["time_ns"].as_f64().unwrap() - at["time_ns"].as_f64().unwrap();
        let outcome =
            run.outcome["seconds"].as_f64().unwrap() - receiver["seconds"].as_f64().unwrap();
        assert!((before_end / 1e9 - outcome).abs() < 1e-6, "{before_end} ns, reported {outcome} s");
        assert_eq!(at["flow"], from["flow"]);
    }
}

#[test]
fn events_have_the_fields_that_are_documented_and_no_others() {
    let run = Run::new(&[]);
    let mut kinds = BTreeSet::new();
    for event in &run.events {
        let (kind, fields) = SCHEMA.iter().find(|(kind, _)| event["kind"] == *kind).unwrap();
        let known = |name: &String| {
            ["time_ns", "node", "kind"].contains(&name.as_str()) || fields.contains(&name.as_str())
        };
        assert!(event.as_object().unwrap().keys().all(known), "{event}");
        kinds.insert(*kind);
    }
    assert!(kinds.is_superset(&["sent", "heard", "reported", "delivered", "send_ended"].into()));
    let document = include_str!("../../../../docs/reference/traces.md");
    for (kind, fields) in SCHEMA {
        for name in [&["time_ns", "node", "kind", kind], fields].concat() {
            assert!(document.contains(&format!("`{name}`")), "traces.md lacks {name}");
        }
    }
}

#[test]
fn a_frame_is_followed_from_its_sender_to_its_hearers() {
    let run = Run::new(&[]);
    let name = |event: &Value| ["sender", "salt", "counter"].map(|field| event[field].to_string());
    let sent: BTreeSet<_> = run.of(&["sent"]).map(name).collect();
    assert_eq!(sent.len(), run.of(&["sent"]).count(), "one name, one frame");
    assert!(run.of(&["heard"]).all(|event| sent.contains(&name(event))));
    let reports = run.of(&["reported"]).count();
    assert!(reports <= sent.len() && reports + 4 >= sent.len(), "{reports} of {}", sent.len());
    for report in run.of(&["reported"]) {
        let attempts = report["attempts"].as_u64().unwrap();
        let result = report["result"].as_str().unwrap();
        assert!(["sent", "acked", "failed"].contains(&result));
        assert!(result != "sent" || attempts == 1, "{report}");
        // 192 us of preamble at least.
        assert!(report["airtime_ns"].as_u64().unwrap() > attempts * 192_000);
    }
}
