//! The JSON Schema of scenarios.

use ncmesh_sim::scenario::Scenario;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Each table in the schema, and a scenario that has an unknown setting there.
const TABLES: [(&str, &str); 13] = [
    ("", "zzz = 1"),
    ("/node/items", "[[node]]\nzzz = 1"),
    ("/topology", "[topology]\nzzz = 1"),
    ("/link/items", "[[link]]\nzzz = 1"),
    ("/channel/items", "[[channel]]\nzzz = 1"),
    ("/medium", "[medium]\nzzz = 1"),
    ("/medium/properties/propagation", "[medium.propagation]\nzzz = 1"),
    ("/medium/properties/reception", "[medium.reception]\nzzz = 1"),
    ("/measure", "[measure]\nzzz = 1"),
    ("/processing", "[processing]\nzzz = 1"),
    ("/traffic/anyOf/0", "[traffic]\nzzz = 1"),
    ("/flow/items", "[[flow]]\nzzz = 1"),
    ("/stream/items", "[[stream]]\nzzz = 1"),
];

#[test]
fn the_schema_has_the_settings_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/reference/scenario.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    for (place, table) in TABLES {
        let pointer = match place {
            "" => "/properties".to_owned(),
            place => format!("/properties{place}/properties"),
        };
        let described = schema.pointer(&pointer).unwrap().as_object().unwrap();
        let described: BTreeSet<&str> = described.keys().map(String::as_str).collect();
        let error = Scenario::parse(table, "s.toml", &root).map(|_| ()).unwrap_err().to_string();
        // The error lists the settings that there are.
        let (_, listed) = error.split_once("expected ").unwrap_or_else(|| panic!("{error}"));
        let known: BTreeSet<&str> = listed.split('`').skip(1).step_by(2).collect();
        assert_eq!(described, known, "{table}: {error}");
    }
}
