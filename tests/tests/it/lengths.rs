//! Lengths that pages state are those of the engines.
//!
//! The pages keep the numbers, so that they can be read without the site; here they are computed.

use ncmesh_engine::registry::{ServiceKind, Settings};
use ncmesh_engine::{AnyEngine, TunnelEngine};
use ncmesh_engines::registry;
use ncmesh_tests::frames::root;
use ncmesh_wire::frame::OVERHEAD;

/// Bytes of a frame body with the default `[radio] mtu`.
const BODY: usize = 1472 - OVERHEAD;
/// Longest packet that a daemon makes room for: that of IPv6.
const V6: usize = 1280;

fn page(path: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(path)).unwrap()
}

/// Returns the schemes of a service with default settings, by name.
fn engines(service: ServiceKind) -> impl Iterator<Item = (&'static str, AnyEngine)> {
    let section = toml::Table::new();
    registry().of(service).map(move |entry| {
        let settings = Settings { section: &section, file: Default::default() };
        (entry.name, entry.engine(&settings).unwrap())
    })
}

fn tunnels() -> impl Iterator<Item = (&'static str, Box<dyn TunnelEngine>)> {
    engines(ServiceKind::Tunnel).map(|(name, engine)| match engine {
        AnyEngine::Tunnel(engine) => (name, engine),
        _ => panic!("{name} carries packets"),
    })
}

#[test]
fn the_guide_has_the_mtu_of_each_tunnel_scheme() {
    let guide = page("guide/tunnel.md");
    for (name, mut engine) in tunnels() {
        engine.make_room(BODY, V6);
        let longest = engine.longest(BODY);
        let row = guide.lines().find(|line| {
            line.starts_with("| `")
                && line.split('|').nth(1).unwrap().contains(&format!("`{name}`"))
        });
        let cells: Vec<&str> = row.unwrap_or_else(|| panic!("{name}")).split(" | ").collect();
        let stated = [cells[1], cells[2].trim_end_matches(" |")];
        assert_eq!(stated, [(BODY - longest).to_string(), longest.to_string()], "{name}");
    }
}

#[test]
fn pages_state_the_longest_packets_of_core_nc_and_of_streams() {
    let thousands = |number: usize| format!("{},{:03}", number / 1000, number % 1000);
    let (_, core) = tunnels().find(|(name, _)| *name == "core_nc").unwrap();
    let longest = thousands(core.longest(BODY));
    assert!(page("internals/core_nc.md").contains(&format!("up to {longest} bytes")), "{longest}");

    for (name, engine) in engines(ServiceKind::Stream) {
        let AnyEngine::Stream(engine) = engine else { panic!("{name} carries streams") };
        let longest = thousands(engine.longest(BODY));
        let stated = format!("up to {longest} bytes with `[radio] mtu = 1472`");
        let pages = [page("guide/streams.md"), page("internals/live.md")];
        assert!(pages.iter().any(|page| page.contains(&stated)), "{name}: {longest}");
    }
}
