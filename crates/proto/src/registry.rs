//! Every protocol engine ncmesh has: one row each. Command line, daemon, results and the conformance suite
//! read this table and know no engine by any other way.

use crate::cope::{self, CopeConfig};
use crate::core_nc::{self, CoreConfig};
use crate::file::{FileEngine, FileLimits, frame};
use crate::forward::{self, Forward, ForwardConfig};
use crate::mc2::{self, Mc2, Mc2Config};
use crate::more::{self, More, MoreConfig};
use crate::multirate::{self, Multirate, MultirateConfig};
use crate::pacifier::{self, Pacifier, PacifierConfig};
use crate::service::Service;
use crate::summary::Summary;
use crate::uncoded::{self, Uncoded, UncodedConfig};
use crate::xor::{self, Xor, XorConfig};
use ncmesh_wire::{NodeId, ServiceId};
use serde::Deserialize;

/// One protocol engine.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name in configuration, commands and results.
    pub name: &'static str,
    /// What it does for the user: `file`, `tunnel` or `stream`.
    pub service: &'static str,
    /// Under which its frames travel; never given to another.
    pub id: ServiceId,
    /// One line for `--help` and documents.
    pub summary: &'static str,
    /// The paper it comes from.
    pub paper: &'static str,
    /// What a frame of it, by this sender, of this kind and with these fields, says of itself.
    pub read: fn(NodeId, u8, &[u8]) -> Option<Summary>,
    /// Builds it from its section of the configuration.
    pub build: fn(&Settings<'_>) -> Result<Box<dyn Service>, String>,
}

/// What an engine is built from.
pub struct Settings<'a> {
    /// Its section of the configuration; empty if there is none.
    pub section: &'a toml::Table,
    /// Bounds for file services.
    pub file: FileLimits,
}

impl Settings<'_> {
    /// The section as the engine's own settings.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn parse<T: for<'de> Deserialize<'de>>(&self) -> Result<T, String> {
        toml::Value::Table(self.section.clone())
            .try_into()
            .map_err(|e: toml::de::Error| e.message().to_owned())
    }
}

/// All engines.
pub const REGISTRY: &[Entry] = &[
    Entry {
        name: pacifier::NAME,
        service: "file",
        id: pacifier::ID,
        summary: "reliable multicast of files; a poor receiver does not slow the good ones",
        paper: "Koutsonikolas, Hu, Wang: Pacifier (IEEE/ACM ToN 2012)",
        read: |_, kind, body| frame::summary(pacifier::NAME, kind, body),
        build: |settings| {
            let config: PacifierConfig = settings.parse()?;
            config.check()?;
            Ok(Box::new(FileEngine::new(pacifier::ID, Pacifier::new(config), settings.file)))
        },
    },
    Entry {
        name: more::NAME,
        service: "file",
        id: more::ID,
        summary: "its baseline: everybody nearer to a receiver forwards, batch by batch for all",
        paper: "Chachulski, Jennings, Katti, Katabi: MORE (SIGCOMM 2007)",
        read: |_, kind, body| frame::summary(more::NAME, kind, body),
        build: |settings| {
            let config: MoreConfig = settings.parse()?;
            config.check()?;
            Ok(Box::new(FileEngine::new(more::ID, More::new(config), settings.file)))
        },
    },
    Entry {
        name: uncoded::ETX_UNICAST,
        service: "file",
        id: uncoded::ETX_UNICAST_ID,
        summary: "a baseline without coding: to one receiver after the other by unicast",
        paper: "none; paths as De Couto, Aguayo, Bicket, Morris (MobiCom 2003)",
        read: |_, kind, body| frame::summary(uncoded::ETX_UNICAST, kind, body),
        build: |settings| {
            let config: UncodedConfig = settings.parse()?;
            config.check()?;
            let scheme = Uncoded::etx_unicast(config);
            Ok(Box::new(FileEngine::new(uncoded::ETX_UNICAST_ID, scheme, settings.file)))
        },
    },
    Entry {
        name: uncoded::TREE_FLOOD,
        service: "file",
        id: uncoded::TREE_FLOOD_ID,
        summary: "a baseline without coding: down a tree, each hop repeated until all have it",
        paper: "none; tree as Koutsonikolas, Hu, Wang (IEEE/ACM ToN 2012)",
        read: |_, kind, body| frame::summary(uncoded::TREE_FLOOD, kind, body),
        build: |settings| {
            let config: UncodedConfig = settings.parse()?;
            config.check()?;
            let scheme = Uncoded::tree_flood(config);
            Ok(Box::new(FileEngine::new(uncoded::TREE_FLOOD_ID, scheme, settings.file)))
        },
    },
    Entry {
        name: forward::NAME,
        service: "tunnel",
        id: forward::ID,
        summary: "packets as they are, hop by hop along the shortest path by unicast",
        paper: "none; paths as De Couto, Aguayo, Bicket, Morris (MobiCom 2003)",
        read: |_, kind, body| forward::summary(kind, body),
        build: |settings| {
            let config: ForwardConfig = settings.parse()?;
            config.check()?;
            Ok(Box::new(Forward::new(config)))
        },
    },
    Entry {
        name: mc2::NAME,
        service: "tunnel",
        id: mc2::ID,
        summary: "packets over all good paths at once, coded; fair among flows",
        paper: "Gkantsidis et al.: Multipath Code Casting (CoNEXT 2007)",
        read: |_, kind, body| mc2::summary(kind, body),
        build: |settings| {
            let config: Mc2Config = settings.parse()?;
            config.check()?;
            Ok(Box::new(Mc2::new(config)))
        },
    },
    Entry {
        name: xor::NAME,
        service: "tunnel",
        id: xor::ID,
        summary: "relays code packets of opposite directions together, such as TCP's data and acknowledgments",
        paper: "Huang, Ghaderi, Towsley, Gong: TCP performance in coded wireless mesh networks (SECON 2008)",
        read: xor::summary,
        build: |settings| {
            let config: XorConfig = settings.parse()?;
            config.check()?;
            Ok(Box::new(Xor::new(config)))
        },
    },
    Entry {
        name: multirate::NAME,
        service: "stream",
        id: multirate::ID,
        summary: "live layered multicast; every receiver at the rate its own links allow",
        paper: "Paschos et al.: In-Network Congestion Control for Multirate Multicast (IEEE/ACM ToN 2016)",
        read: |_, kind, body| multirate::summary(kind, body),
        build: |settings| {
            let config: MultirateConfig = settings.parse()?;
            Ok(Box::new(Multirate::new(config)?))
        },
    },
    Entry {
        name: core_nc::NAME,
        service: "tunnel",
        id: core_nc::ID,
        summary: "packets coded within flows, and between flows that cross at a relay",
        paper: "Hansen, Krigslund, Lucani, Pahlevani, Fitzek: CORE (Computer Networks 2018)",
        read: |_, kind, body| core_nc::summary(kind, body),
        build: |settings| {
            let config: CoreConfig = settings.parse()?;
            config.check()?;
            Ok(Box::new(core_nc::Engine::new(&config)))
        },
    },
    Entry {
        name: cope::NAME,
        service: "tunnel",
        id: cope::ID,
        summary: "its baseline: packets as they are, two xored where flows cross at a relay",
        paper: "Hansen et al.: CORE (Computer Networks 2018); Katti et al.: COPE (SIGCOMM 2006)",
        read: |_, kind, body| cope::summary(kind, body),
        build: |settings| {
            let config: CopeConfig = settings.parse()?;
            config.check()?;
            Ok(Box::new(cope::engine(&config)))
        },
    },
];

/// The engines for that service, the one that is used where none is named first.
pub fn of(service: &str) -> impl Iterator<Item = &'static Entry> {
    REGISTRY.iter().filter(move |entry| entry.service == service)
}

/// The engine of that name.
#[must_use]
pub fn entry(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().find(|e| e.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_and_ids_are_unique_and_clear_of_link_and_route() {
        let names: BTreeSet<_> = REGISTRY.iter().map(|e| e.name).collect();
        let ids: BTreeSet<_> = REGISTRY.iter().map(|e| e.id).collect();
        assert_eq!((names.len(), ids.len()), (REGISTRY.len(), REGISTRY.len()));
        assert!(ids.iter().all(|id| id.0 >= 16));
    }

    #[test]
    fn unknown_settings_are_named() {
        let section: toml::Table = toml::from_str("knbo = 1.0").unwrap();
        let settings = Settings { section: &section, file: FileLimits::default() };
        let refused = (REGISTRY[0].build)(&settings).err().unwrap();
        assert!(refused.contains("knbo") && refused.contains("knob"), "{refused}");
    }
}
