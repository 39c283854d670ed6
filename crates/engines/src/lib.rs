//! The engines that this program was built with.
//!
//! Each engine is a crate of its own and a Cargo feature of this one, all on by default. A program
//! that leaves some out has a smaller [`REGISTRY`]; nothing else in it changes.

use ncmesh_engine::registry::{Choice, Entry, Registry, ServiceKind};

/// Every engine of this build. The first entry of each service is its default scheme.
pub const REGISTRY: Registry = Registry(ENTRIES);

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
    use std::collections::BTreeSet;

    #[test]
    fn names_and_ids_are_unique_and_clear_of_link_and_route() {
        let names: BTreeSet<_> = REGISTRY.entries().map(|e| e.name).collect();
        let ids: BTreeSet<_> = REGISTRY.entries().map(|e| e.id).collect();
        let count = REGISTRY.entries().count();
        assert_eq!((names.len(), ids.len()), (count, count));
        assert!(ids.iter().all(|id| id.0 >= 16));
    }

    #[test]
    fn auto_is_the_first_scheme_of_a_service() {
        for service in ServiceKind::ALL {
            let first = REGISTRY.of(service).next().unwrap();
            let choice = REGISTRY.choose(service, AUTO).unwrap();
            assert_eq!((choice.entry.name, choice.automatic), (first.name, true));
            let choice = REGISTRY.choose(service, first.name).unwrap();
            assert_eq!((choice.entry.name, choice.automatic), (first.name, false));
        }
        let choice = REGISTRY.choose(ServiceKind::File, AUTO).unwrap();
        assert_eq!(choice.entry.name, "cascade");
        assert_eq!(reason(choice), "auto: the best on every measured mesh");
        assert_eq!(REGISTRY.choose(ServiceKind::Tunnel, AUTO).unwrap().entry.name, "braid");
        assert_eq!(reason(REGISTRY.choose(ServiceKind::File, "more").unwrap()), "as asked");
    }

    #[test]
    fn an_unknown_scheme_is_told_with_the_known_ones() {
        for name in ["forward", "x", ""] {
            let error = REGISTRY.choose(ServiceKind::File, name).err().unwrap().to_string();
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
        for entry in REGISTRY.entries() {
            let error = entry.engine(&settings).err().unwrap();
            assert!(error.contains("no_such_setting"), "{}: {error}", entry.name);
        }
    }
}

#[cfg(test)]
mod golden_summaries {
    use super::REGISTRY;
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
            (16, 1, data, Summary { flow, batch: Some(4), ..Summary::new("pacifier", "data") }),
            (17, 1, belts, Summary { flow, batch: Some(4), ..Summary::new("more", "data") }),
            (16, 2, ack, Summary { flow, ..Summary::new("pacifier", "acknowledgment") }),
            (
                26,
                0,
                &announcement.concat(),
                Summary { flow, ..Summary::new("cascade", "announcement") },
            ),
            (26, 1, ranked, Summary { flow, batch: Some(4), ..Summary::new("cascade", "data") }),
            (
                26,
                1,
                systematic,
                Summary { flow, batch: Some(4), ..Summary::new("cascade", "data") },
            ),
            (26, 2, ack, Summary { flow, ..Summary::new("cascade", "acknowledgment") }),
            (26, 3, rank_report, Summary { flow, ..Summary::new("cascade", "report") }),
        ] {
            let body = hex(body);
            assert_eq!(summarise(REGISTRY, NodeId(1), ServiceId(service), kind, &body), Some(says));
            for cut in 1..body.len() {
                assert_eq!(
                    summarise(REGISTRY, NodeId(1), ServiceId(service), kind, &body[..cut]),
                    None,
                    "{says:?} {cut}"
                );
            }
            assert_eq!(summarise(REGISTRY, NodeId(1), ServiceId(service), 99, &body), None);
        }
        assert_eq!(summarise(REGISTRY, NodeId(1), ServiceId(15), 0, &[]), None);
    }
}
