//! Scenarios that come with the program, by name.

use std::path::Path;

/// Directory that stands for the shipped files. No real one has this name.
pub(super) const DIRECTORY: &str = "<shipped>";

/// Shipped scenarios, by the name of their files.
const SCENARIOS: [(&str, &str); 14] = [
    ("building", include_str!("../../scenarios/building.toml")),
    ("cars", include_str!("../../scenarios/cars.toml")),
    ("cross", include_str!("../../scenarios/cross.toml")),
    ("diamond", include_str!("../../scenarios/diamond.toml")),
    ("freifunk", include_str!("../../scenarios/freifunk.toml")),
    ("hub", include_str!("../../scenarios/hub.toml")),
    ("line", include_str!("../../scenarios/line.toml")),
    ("mesh", include_str!("../../scenarios/mesh.toml")),
    ("pair", include_str!("../../scenarios/pair.toml")),
    ("patrol", include_str!("../../scenarios/patrol.toml")),
    ("side-by-side", include_str!("../../scenarios/side-by-side.toml")),
    ("stream", include_str!("../../scenarios/stream.toml")),
    ("tunnel", include_str!("../../scenarios/tunnel.toml")),
    ("walkers", include_str!("../../scenarios/walkers.toml")),
];

/// Files that shipped scenarios name.
const DATA: [(&str, &str); 5] = [
    ("data/building.csv", include_str!("../../scenarios/data/building.csv")),
    ("data/cars.fcd.xml", include_str!("../../scenarios/data/cars.fcd.xml")),
    ("data/freifunk-leipzig.csv", include_str!("../../scenarios/data/freifunk-leipzig.csv")),
    ("data/patrol.tcl", include_str!("../../scenarios/data/patrol.tcl")),
    ("data/walkers.movements", include_str!("../../scenarios/data/walkers.movements")),
];

/// Returns the names of the shipped scenarios.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

/// Returns the text of a shipped scenario, by its name with or without `.toml`.
pub(super) fn text(path: &Path) -> Option<&'static str> {
    let name = path.to_str()?;
    let name = name.strip_suffix(".toml").unwrap_or(name);
    SCENARIOS.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

/// Returns the text of a file that a shipped scenario names.
pub(super) fn data(path: &Path) -> Option<&'static str> {
    let name = path.strip_prefix(DIRECTORY).ok()?;
    DATA.iter().find(|(shipped, _)| Path::new(shipped) == name).map(|(_, text)| *text)
}
