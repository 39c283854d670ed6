//! Arbitrary text as a scenario, as an override, and as a NetJSON topology.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_sim::scenario::{Scenario, netjson};
use std::path::Path;

const SMALL: &str = r#"
name = "small"
nodes = ["a", "b"]
link = [{ from = "a", to = "b", loss = 0.25 }]
[medium]
phy = "802.11b"
bit_rate = "2M"
"#;

/// Parses `text` as a scenario in a directory without files.
fn parse(text: &str) -> Option<Scenario> {
    let read = Scenario::parse(text, "fuzz.toml", Path::new("nowhere"));
    if let Err(e) = &read {
        assert!(!e.to_string().contains('\n'), "{e}");
    }
    read.ok()
}

fuzz_target!(|text: &str| {
    // Without these characters no name leads to an existing file.
    let text = text.replace(['/', '\\'], "-");
    if let Some(scenario) = parse(&text) {
        assert!((256..=2304).contains(&scenario.mtu));
        let written = netjson::write_scenario(&scenario);
        let read = netjson::read(&written, "written.json").expect("what is written is read");
        assert_eq!(read.nodes.len(), scenario.nodes.len());
    }
    let mut small = parse(SMALL).expect("it is valid");
    if small.set(&text).is_err() {
        assert_eq!(small.nodes.len(), 2);
    }
    if let Ok(topology) = netjson::read(&text, "fuzz.json") {
        let nodes = topology.nodes.len();
        assert!(topology.links.iter().all(|(from, to, loss)| {
            *from < nodes && *to < nodes && (0.0..=1.0).contains(loss)
        }));
    }
});
