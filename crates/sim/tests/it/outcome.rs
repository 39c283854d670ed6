//! The schema of results and the results themselves have the same fields.

use crate::support::outcome_of;
use ncmesh_sim::outcome::{LabOutcome, Outcome, Samples, schema};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const LINE: &str = r#"
name = "line"
nodes = ["a", "b", "c"]
medium = { phy = "802.11b", bit_rate = "11M" }
link = [{ from = "a", to = "b", loss = 0.1 }, { from = "b", to = "c", loss = 0.0 }]
"#;

const FLOWS: &str = r#"
flow = [
  { from = "a", to = "c", rate = "80k", seconds = 2 },
  { from = "c", to = "a", protocol = "tcp", seconds = 2 },
]
"#;

const STREAM: &str = r#"
[[stream]]
group = "tv"
from = "a"
layers = [{ name = "base", rate = "200k" }]
receivers = [{ node = "c" }]
seconds = 3
"#;

const FILE: &str = r#"traffic = { from = "a", to = ["c"], size = "100kB" }"#;

fn outcome(scheme: &str, traffic: &str) -> Outcome {
    outcome_of(&format!("{LINE}{traffic}"), scheme, 1000)
}

/// A real outcome of every kind. Fields that only the lab fills have made-up values.
fn outcomes() -> Vec<Outcome> {
    let file = outcome("pacifier", FILE);
    let both = outcome("file=pacifier,tunnel=xor", &[FILE, FLOWS].concat());
    let mut flows = outcome("xor", FLOWS);
    let mut streams = outcome("multirate", STREAM);
    if let Some(of) = &mut flows.services.flows {
        of.samples = Some(Samples { seconds: vec![1.0], delivered: vec![vec![1], vec![2]] });
    }
    if let Some(of) = &mut streams.services.streams {
        of.cpu = [("a".to_owned(), 0.1)].into();
    }
    let lab = LabOutcome { lag_mean_ms: 0.1, lag_max_ms: 1.0, frames: 7, dir: None };
    vec![Outcome { lab: Some(lab), trace: None, ..file.clone() }, file, flows, streams, both]
}

/// Follows a reference. Of a nullable type, returns the type itself.
fn resolved<'a>(root: &'a Value, of: &'a Value) -> &'a Value {
    if let Some(name) = of["$ref"].as_str() {
        return resolved(root, root.pointer(name.trim_start_matches('#')).unwrap());
    }
    let choices = of["anyOf"].as_array().filter(|_| of.get("properties").is_none());
    let other = choices.and_then(|all| all.iter().find(|one| one["type"] != "null"));
    other.map_or(of, |other| resolved(root, other))
}

/// Returns the fields of a type, those of its variants included.
fn fields(root: &Value, of: &Value) -> Map<String, Value> {
    let mut found = of["properties"].as_object().cloned().unwrap_or_default();
    for variant in of["anyOf"].as_array().into_iter().flatten() {
        found.extend(fields(root, resolved(root, variant)));
    }
    found
}

/// Adds the path of each field below a type.
fn add_described(root: &Value, of: &Value, path: &str, found: &mut BTreeSet<String>) {
    let of = resolved(root, of);
    for (name, field) in fields(root, of) {
        let path = format!("{path}.{name}");
        add_described(root, &field, &path, found);
        found.insert(path);
    }
    for inner in ["items", "additionalProperties"].iter().filter_map(|key| of.get(key)) {
        add_described(root, inner, &format!("{path}[]"), found);
    }
}

/// Adds the path of each field of a value. Fails at one that the schema lacks.
fn add_present(root: &Value, of: &Value, value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let of = resolved(root, of);
    let known = fields(root, of);
    match value {
        Value::Object(values) if !known.is_empty() => {
            for (name, value) in values {
                let path = format!("{path}.{name}");
                let field = known.get(name).unwrap_or_else(|| panic!("the schema lacks {path}"));
                add_present(root, field, value, &path, found);
                found.insert(path);
            }
        }
        Value::Object(values) => values.values().for_each(|value| {
            let inner = &of["additionalProperties"];
            add_present(root, inner, value, &format!("{path}[]"), found);
        }),
        Value::Array(values) => values.iter().for_each(|value| {
            add_present(root, &of["items"], value, &format!("{path}[]"), found);
        }),
        _ => {}
    }
}

#[test]
fn results_have_the_fields_of_the_schema_and_no_others() {
    let schema = serde_json::to_value(schema()).unwrap();
    let mut described = BTreeSet::new();
    let mut present = BTreeSet::new();
    add_described(&schema, &schema, "", &mut described);
    for outcome in outcomes() {
        let value = serde_json::to_value(outcome).unwrap();
        add_present(&schema, &schema, &value, "", &mut present);
    }
    assert_eq!(described, present);
    assert!(
        described.contains(".nodes[].control[].bytes") && described.contains(".flows[].tcp.rtt_s")
    );
}

#[test]
fn every_field_is_described() {
    fn check(of: &Value) {
        if let Some(fields) = of["properties"].as_object() {
            for (name, field) in fields {
                assert!(field["description"].is_string(), "{name}: {field}");
            }
        }
        of.as_object().into_iter().flat_map(Map::values).for_each(check);
    }
    check(&serde_json::to_value(schema()).unwrap());
}

#[test]
fn nodes_use_the_channel_for_part_of_the_time() {
    for outcome in outcomes() {
        let sent = outcome.nodes.values().map(|usage| usage.transmissions).sum::<u64>();
        assert_eq!(outcome.transmissions, sent);
        // The mesh measures its links for less than 20 s.
        let run_s = outcome.seconds + 20.0;
        for (node, usage) in &outcome.nodes {
            assert!((0.0..run_s).contains(&usage.airtime_s), "{node}: {usage:?}");
            assert!(usage.airtime_s > 0.0, "{node}: {usage:?}");
        }
    }
}
