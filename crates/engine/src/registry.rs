//! The list of engines that a program was built with.
//!
//! Each engine's crate exports one [`Entry`] for each of its schemes; a program puts together the
//! [`Registry`] it wants and hands it to its nodes. Configuration, daemon, API, command line,
//! simulator and the conformance suite read the registry and know no engine by any other way.

use crate::engine::{AnyEngine, FileEngine, StreamEngine, TunnelEngine};
use crate::file::FileLimits;
use crate::settings::{Declared, Section, from_table};
use crate::summary::Summary;
use crate::wording::did_you_mean;
use ncmesh_wire::layout::Layout;
use ncmesh_wire::{NodeId, ServiceId};

/// Name by which a user leaves the choice of the scheme to the program.
pub const AUTO: &str = "auto";

/// Service that an engine gives to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServiceKind {
    /// Reliable multicast of files.
    File,
    /// IP over the mesh.
    Tunnel,
    /// Live layered multicast.
    Stream,
}

impl ServiceKind {
    /// All services, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::File, Self::Tunnel, Self::Stream];

    /// Returns its name in commands and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Tunnel => "tunnel",
            Self::Stream => "stream",
        }
    }
}

/// Builds an engine of type `T` from its settings. The error is one line that names the setting and
/// says what is allowed.
pub type Build<T> = fn(&Settings<'_>) -> Result<Box<T>, String>;

/// Constructor of an engine, by its kind.
#[derive(Clone, Copy)]
pub enum Constructor {
    /// Builds an engine that multicasts files.
    File(Build<dyn FileEngine>),
    /// Builds an engine that carries packets.
    Tunnel(Build<dyn TunnelEngine>),
    /// Builds an engine that carries live streams.
    Stream(Build<dyn StreamEngine>),
}

/// Description of one scheme.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name in configuration, commands and results.
    pub name: &'static str,
    /// Service byte of its frames; never reused for another scheme.
    pub id: ServiceId,
    /// One line for `--help` and documents.
    pub summary: &'static str,
    /// The paper it comes from.
    pub paper: &'static str,
    /// Returns what is declared of its settings.
    pub settings: fn() -> Vec<Declared>,
    /// Descriptions of its frames, one for each kind.
    pub layouts: &'static [Layout],
    /// Summarises a frame body for traces: sender, kind and body to summary, `None` if malformed.
    pub read: fn(NodeId, u8, &[u8]) -> Option<Summary>,
    /// Builds the engine.
    pub build: Constructor,
}

impl Entry {
    /// Returns the service that the engine gives to the user.
    #[must_use]
    pub fn service(&self) -> ServiceKind {
        match self.build {
            Constructor::File(_) => ServiceKind::File,
            Constructor::Tunnel(_) => ServiceKind::Tunnel,
            Constructor::Stream(_) => ServiceKind::Stream,
        }
    }

    /// Builds the engine.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn engine(&self, settings: &Settings<'_>) -> Result<AnyEngine, String> {
        Ok(match self.build {
            Constructor::File(build) => AnyEngine::File(build(settings)?),
            Constructor::Tunnel(build) => AnyEngine::Tunnel(build(settings)?),
            Constructor::Stream(build) => AnyEngine::Stream(build(settings)?),
        })
    }
}

/// Settings that an engine is built from.
pub struct Settings<'a> {
    /// Its section of the configuration; empty if there is none.
    pub section: &'a toml::Table,
    /// Bounds for engines that multicast files.
    pub file: FileLimits,
}

impl Settings<'_> {
    /// Parses and checks the section: the engine's own settings.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn parse<T: Section>(&self) -> Result<T, String> {
        from_table(self.section)
    }
}

/// A scheme, by its position in the registry of a program. A name is looked up once, when what it
/// carries is set up: packets pass by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scheme(usize);

impl Scheme {
    /// Returns its position in the registry.
    #[must_use]
    pub fn index(self) -> usize {
        self.0
    }
}

/// Scheme for what a user sends.
#[derive(Clone, Copy)]
pub struct Choice {
    /// Its position in the registry.
    pub scheme: Scheme,
    /// The scheme.
    pub entry: &'static Entry,
    /// Whether the user left the choice to the program.
    pub automatic: bool,
}

/// No scheme of the service has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no {service} scheme is called {name:?}; there are: {known}{question}")]
pub struct UnknownScheme {
    /// The name that the user gave.
    pub name: String,
    /// Name of the service.
    pub service: &'static str,
    /// Names that are allowed, in a list for people.
    pub known: String,
    /// Question whether the nearest of them was meant; empty if none is near.
    pub question: String,
}

/// The engines of a program, in the order in which nodes ask them. The first entry of a service is
/// its default scheme.
#[derive(Clone, Copy)]
pub struct Registry(pub &'static [Entry]);

impl Registry {
    /// Returns all entries.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        self.0.iter()
    }

    /// Returns the entries of a service, its default first.
    pub fn of(self, service: ServiceKind) -> impl Iterator<Item = &'static Entry> {
        self.entries().filter(move |entry| entry.service() == service)
    }

    /// Returns the scheme that a user names for a service. [`AUTO`] is the service's default.
    ///
    /// # Errors
    /// [`UnknownScheme`] if no scheme of the service has this name.
    pub fn choose(self, service: ServiceKind, name: &str) -> Result<Choice, UnknownScheme> {
        let automatic = name == AUTO;
        let is_meant =
            |entry: &Entry| entry.service() == service && (automatic || entry.name == name);
        // The first scheme of a service in the registry is its default.
        let found = self.entries().enumerate().find(|(_, entry)| is_meant(entry));
        let choice = |(at, entry)| Choice { scheme: Scheme(at), entry, automatic };
        found.map(choice).ok_or_else(|| {
            let known: Vec<&str> = self.of(service).map(|entry| entry.name).collect();
            let question = did_you_mean(name, known.iter().copied());
            let known = match known.as_slice() {
                [] => "none in this build".into(),
                names => format!("{AUTO}, {}", names.join(", ")),
            };

            UnknownScheme { name: name.into(), service: service.name(), known, question }
        })
    }

    /// Returns the entry of this name.
    #[must_use]
    pub fn entry(self, name: &str) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.name == name)
    }

    /// Returns the scheme of this name.
    #[must_use]
    pub fn scheme(self, name: &str) -> Option<Scheme> {
        self.entries().position(|entry| entry.name == name).map(Scheme)
    }

    /// Returns the entry whose frames carry this service byte.
    #[must_use]
    pub fn by_id(self, id: ServiceId) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.id == id)
    }
}
