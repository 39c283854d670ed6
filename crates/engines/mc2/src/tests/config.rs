//! Ranges of the settings.

use crate::Mc2Config;
use ncmesh_engine::settings::Section;

#[test]
fn settings_out_of_range_are_named() {
    let check = |config: Mc2Config| config.check().unwrap_err().to_string();
    let paths = Mc2Config { paths: 0, ..Default::default() };
    assert_eq!(check(paths), "paths = 0: allowed is 1 to 8 paths");
    let bad = [
        Mc2Config { least_gain: -0.1, ..Default::default() },
        Mc2Config { generation: 0, ..Default::default() },
        Mc2Config { k: f64::NAN, ..Default::default() },
        Mc2Config { queue: 0, ..Default::default() },
        Mc2Config { flush_ms: 0, ..Default::default() },
        Mc2Config { request_ms: 1, ..Default::default() },
        Mc2Config { requests: 101, ..Default::default() },
    ];
    let names = ["least_gain", "generation", "k", "queue", "flush_ms", "request_ms", "requests"];
    for (config, name) in bad.into_iter().zip(names) {
        assert!(check(config).starts_with(name), "{name}");
    }
}
