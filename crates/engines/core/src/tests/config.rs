//! Settings.

use crate::{CoreConfig, cope};
use ncmesh_engine::settings::Section;
use ncmesh_engine::tunnel::RelayMode;

#[test]
fn names_of_relays_are_those_of_the_configuration() {
    for relay in [RelayMode::Core, RelayMode::Recoding, RelayMode::NonRecoding] {
        let text = format!("relay = \"{}\"", relay.name());
        assert_eq!(toml::from_str::<CoreConfig>(&text).unwrap().relay, relay);
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let good = CoreConfig::default;
    let bad = [
        ("extra", CoreConfig { extra: f64::NAN, ..good() }),
        ("decode_probability", CoreConfig { decode_probability: Some(1.0), ..good() }),
        ("generation", CoreConfig { generation: 121, ..good() }),
        ("window", CoreConfig { window: 9, ..good() }),
        ("queue", CoreConfig { queue: 0, ..good() }),
        ("requests", CoreConfig { requests: 0, ..good() }),
        ("flush_ms", CoreConfig { flush_ms: 10_001, ..good() }),
        ("hold_ms", CoreConfig { hold_ms: 1001, ..good() }),
        ("request_ms", CoreConfig { request_ms: 4, ..good() }),
    ];
    for (name, config) in bad {
        let error = config.check().unwrap_err().to_string();
        assert!(error.starts_with(name), "{name}: {error}");
    }
    assert_eq!(good().check(), Ok(()));
    let cope = cope::CopeConfig { min_decodable: 1.1, ..Default::default() };
    let error = cope.check().unwrap_err().to_string();
    assert_eq!(error, "min_decodable = 1.1: allowed is 0 to 1");
}
