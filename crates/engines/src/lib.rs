//! The engines that this program was built with.
//!
//! Each engine is a crate of its own and a Cargo feature of this one, all on by default. A program
//! that leaves some out has a smaller [`BUILT_IN`]; nothing else in it changes. A program with
//! schemes of its own says so with [`add`] when it starts. Settings, commands, daemon and
//! simulator ask [`registry`], so they know these as they know the others.

use ncmesh_engine::registry::{AUTO, Choice, Entry, Registry, ServiceKind};
use std::ops::RangeInclusive;
use std::sync::OnceLock;

/// Every engine of this build. The first entry of each service is its default scheme.
pub const BUILT_IN: Registry = Registry(ENTRIES);

/// Service bytes for schemes from outside. Those below are this project's.
pub const OUTSIDE: RangeInclusive<u8> = 192..=255;

const ENTRIES: &[Entry] = &[
    #[cfg(feature = "cascade")]
    ncmesh_engine_cascade::CASCADE,
    #[cfg(feature = "file")]
    ncmesh_engine_file::PACIFIER,
    #[cfg(feature = "file")]
    ncmesh_engine_file::MORE,
    #[cfg(feature = "file")]
    ncmesh_engine_file::ETX_UNICAST,
    #[cfg(feature = "file")]
    ncmesh_engine_file::TREE_FLOOD,
    #[cfg(feature = "braid")]
    ncmesh_engine_braid::BRAID,
    #[cfg(feature = "forward")]
    ncmesh_engine_forward::FORWARD,
    #[cfg(feature = "mc2")]
    ncmesh_engine_mc2::MC2,
    #[cfg(feature = "xor")]
    ncmesh_engine_xor::XOR,
    #[cfg(feature = "delta")]
    ncmesh_engine_delta::DELTA,
    #[cfg(feature = "multirate")]
    ncmesh_engine_multirate::MULTIRATE,
    #[cfg(feature = "live")]
    ncmesh_engine_live::STREAM_TREE,
    #[cfg(feature = "live")]
    ncmesh_engine_live::SMF,
    #[cfg(feature = "core")]
    ncmesh_engine_core::CORE,
    #[cfg(feature = "core")]
    ncmesh_engine_core::COPE,
];

/// The registry of this process.
static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Returns the schemes of this program: those of [`BUILT_IN`], and behind them those that it
/// [`add`]ed.
#[must_use]
pub fn registry() -> Registry {
    *REGISTRY.get_or_init(|| BUILT_IN)
}

/// Adds schemes of a program's own. It does so once, before anything else of ncmesh: what was set
/// up before would not know them.
///
/// # Errors
/// [`AddError`] if a scheme could be taken for another one, or the registry was used before.
pub fn add(own: &[Entry]) -> Result<(), AddError> {
    let mut entries = ENTRIES.to_vec();
    for entry in own {
        check(entry, &entries)?;
        entries.push(*entry);
    }

    // A process has one registry, for as long as it runs.
    REGISTRY.set(Registry(entries.leak())).map_err(|_| AddError::Late)
}

/// Why a scheme cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// The registry was used before, or schemes were added before.
    #[error("schemes are added once, before anything else of ncmesh is called")]
    Late,
    /// Its name cannot be written in commands and configurations, or means something else there.
    #[error("scheme {0:?}: names are of a-z, 0-9 and _, begin with a letter, and not {AUTO:?}")]
    Name(&'static str),
    /// Another scheme has this name.
    #[error("scheme {0:?}: another one has this name")]
    NameTwice(&'static str),
    /// Its service byte is not one of those for schemes from outside.
    #[error(
        "scheme {name:?}: its service byte is {id}; those from {} on are for schemes from outside",
        OUTSIDE.start()
    )]
    Id {
        /// Its name.
        name: &'static str,
        /// The service byte.
        id: u8,
    },
    /// Another scheme has this service byte.
    #[error("scheme {name:?}: {other:?} has the service byte {id}, too")]
    IdTwice {
        /// Its name.
        name: &'static str,
        /// The other scheme.
        other: &'static str,
        /// The service byte.
        id: u8,
    },
}

/// Checks that a scheme can be told apart from those before it.
fn check(own: &Entry, before: &[Entry]) -> Result<(), AddError> {
    let Entry { name, id, .. } = *own;
    let id = id.0;

    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_word =
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_allowed);
    if !is_word || name == AUTO {
        return Err(AddError::Name(name));
    }
    if before.iter().any(|other| other.name == name) {
        return Err(AddError::NameTwice(name));
    }

    // A service byte of ours may mean another scheme in a later release.
    if !OUTSIDE.contains(&id) {
        return Err(AddError::Id { name, id });
    }
    match before.iter().find(|other| other.id == own.id) {
        Some(other) => Err(AddError::IdTwice { name, other: other.name, id }),
        None => Ok(()),
    }
}

/// Returns why files or packets go by this scheme, in words for people.
#[must_use]
pub fn reason(choice: Choice) -> &'static str {
    // The first schemes above are first because of `docs/results/scoreboard.md`.
    match choice.entry.service() {
        _ if !choice.automatic => "as asked",
        ServiceKind::File => "auto: the best on every measured mesh",
        ServiceKind::Stream => "auto: brings the base to most receivers of the measured meshes",
        ServiceKind::Tunnel => "auto: carries most over the measured meshes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::file::FileLimits;
    use ncmesh_engine::registry::{AUTO, ServiceKind, Settings};
    use ncmesh_wire::ServiceId;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_ids_are_unique_and_clear_of_link_and_route() {
        let names: BTreeSet<_> = BUILT_IN.entries().map(|e| e.name).collect();
        let ids: BTreeSet<_> = BUILT_IN.entries().map(|e| e.id).collect();
        let count = BUILT_IN.entries().count();
        assert_eq!((names.len(), ids.len()), (count, count));
        assert!(ids.iter().all(|id| id.0 >= 16 && !OUTSIDE.contains(&id.0)));
    }

    /// A scheme from outside.
    fn own(name: &'static str, id: u8) -> Entry {
        Entry { name, id: ServiceId(id), ..ENTRIES[0] }
    }

    #[test]
    fn a_scheme_from_outside_is_told_apart() {
        let check = |name, id| check(&own(name, id), ENTRIES);
        assert_eq!(check("even_2", 200), Ok(()));
        for name in ["", "Even", "2even", "even-2", "größe", "auto"] {
            assert_eq!(check(name, 200), Err(AddError::Name(name)));
        }
        assert_eq!(check("cascade", 200), Err(AddError::NameTwice("cascade")));
        for id in [0, 16, 26, 191] {
            assert_eq!(check("even", id), Err(AddError::Id { name: "even", id }));
        }

        let before = [own("odd", 200)];
        let twice = AddError::IdTwice { name: "even", other: "odd", id: 200 };
        assert_eq!(super::check(&own("even", 200), &before), Err(twice));
    }

    #[test]
    fn schemes_are_added_once_and_before_they_are_used() {
        assert_eq!(registry().entries().count(), ENTRIES.len());
        assert_eq!(add(&[own("even", 200)]), Err(AddError::Late));
        assert!(registry().entry("even").is_none());
    }

    #[test]
    fn auto_is_the_first_scheme_of_a_service() {
        for service in ServiceKind::ALL {
            let first = BUILT_IN.of(service).next().unwrap();
            let choice = BUILT_IN.choose(service, AUTO).unwrap();
            assert_eq!((choice.entry.name, choice.automatic), (first.name, true));
            let choice = BUILT_IN.choose(service, first.name).unwrap();
            assert_eq!((choice.entry.name, choice.automatic), (first.name, false));
        }
        let choice = BUILT_IN.choose(ServiceKind::File, AUTO).unwrap();
        assert_eq!(choice.entry.name, "cascade");
        assert_eq!(reason(choice), "auto: the best on every measured mesh");
        assert_eq!(BUILT_IN.choose(ServiceKind::Tunnel, AUTO).unwrap().entry.name, "braid");
        assert_eq!(reason(BUILT_IN.choose(ServiceKind::File, "more").unwrap()), "as asked");
    }

    #[test]
    fn an_unknown_scheme_is_told_with_the_known_ones() {
        for name in ["forward", "x", ""] {
            let error = BUILT_IN.choose(ServiceKind::File, name).err().unwrap().to_string();
            let says = format!("no file scheme is called {name:?}; there are: auto, cascade, ");
            assert!(error.starts_with(&says), "{error}");
        }
        let error = Registry(&[]).choose(ServiceKind::File, AUTO).err().unwrap().to_string();
        assert!(error.ends_with("there are: none in this build"), "{error}");
    }

    #[test]
    fn unknown_settings_are_named() {
        let section: toml::Table = toml::from_str("no_such_setting = 1.0").unwrap();
        let settings = Settings { section: &section, file: FileLimits::default() };
        for entry in BUILT_IN.entries() {
            let error = entry.engine(&settings).err().unwrap();
            assert!(error.contains("no_such_setting"), "{}: {error}", entry.name);
        }
    }
}

#[cfg(test)]
mod golden_summaries {
    use super::BUILT_IN;
    use ncmesh_engine::Summary;
    use ncmesh_stack::summary::summarise;
    use ncmesh_wire::{FlowId, NodeId, ServiceId};

    /// The golden bodies of docs/reference/wire-format.md, of which each shorter one is malformed.
    #[test]
    fn golden_bodies_are_told_apart() {
        let hex = |text: &str| -> Vec<u8> {
            let digits = text.as_bytes().chunks(2);
            digits.map(|d| u8::from_str_radix(str::from_utf8(d).unwrap(), 16).unwrap()).collect()
        };
        let flow = Some(FlowId { source: NodeId(3), serial: 0x0102_0304 });
        let hello = [
            "03e8000301020009deadbeef01020304010100070008111100070005",
            "0007010203040506070800000103",
            "0006010203040506070800000009",
        ];
        let announcement = [
            "000301020304000000000000000700000009800a00000000000003e8200578",
            &"aa".repeat(32),
            &"bb".repeat(32),
            "05612e62696e0001000501",
        ];
        let data = "00030102030411220000000600000004020201000801800005000000550a0bff";
        let belts = "000301020304112200000006000000040205020008018000090040034001ff";
        let ack = "000800030102030400050000000000000007000000020100000001";
        let ranked = "00030102030400000004020e02010200030708000900000005010201ff0a0bff";
        let systematic = "000301020304000000040c190c010200030000ffffffffffff00000bff";
        let rank_report = "0008000300090003010203040102070800090c0000000401";
        for (service, kind, body, says) in [
            (0, 0, &hello.concat()[..], Summary::new("control", "hello")),
            (
                16,
                0,
                &announcement.concat(),
                Summary { flow, ..Summary::new("pacifier", "announcement") },
            ),
            (
                16,
                1,
                data,
                Summary { flow, generation: Some(4), ..Summary::new("pacifier", "data") },
            ),
            (17, 1, belts, Summary { flow, generation: Some(4), ..Summary::new("more", "data") }),
            (16, 2, ack, Summary { flow, ..Summary::new("pacifier", "acknowledgment") }),
            (
                26,
                0,
                &announcement.concat(),
                Summary { flow, ..Summary::new("cascade", "announcement") },
            ),
            (
                26,
                1,
                ranked,
                Summary { flow, generation: Some(4), ..Summary::new("cascade", "data") },
            ),
            (
                26,
                1,
                systematic,
                Summary { flow, generation: Some(4), ..Summary::new("cascade", "data") },
            ),
            (26, 2, ack, Summary { flow, ..Summary::new("cascade", "acknowledgment") }),
            (26, 3, rank_report, Summary { flow, ..Summary::new("cascade", "report") }),
        ] {
            let body = hex(body);
            assert_eq!(summarise(BUILT_IN, NodeId(1), ServiceId(service), kind, &body), Some(says));
            for cut in 1..body.len() {
                assert_eq!(
                    summarise(BUILT_IN, NodeId(1), ServiceId(service), kind, &body[..cut]),
                    None,
                    "{says:?} {cut}"
                );
            }
            assert_eq!(summarise(BUILT_IN, NodeId(1), ServiceId(service), 99, &body), None);
        }
        assert_eq!(summarise(BUILT_IN, NodeId(1), ServiceId(15), 0, &[]), None);
    }
}
