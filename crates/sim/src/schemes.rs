//! Schemes of a run: one for each service whose traffic it carries.
//!
//! A user names them in one of three ways. `auto` runs all traffic of a scenario, each service by
//! its default scheme. A name, such as `braid`, runs the traffic of that scheme's service. A list
//! of services, such as `file=cascade,tunnel=braid`, runs the traffic of these.

use ncmesh_engine::registry::{AUTO, Entry, ServiceKind, UnknownScheme};
use ncmesh_engine::wording::did_you_mean;
use ncmesh_engines::registry;
use std::fmt;

/// Reason why a text names no schemes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemesError {
    /// No scheme of the service has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownScheme),
    /// No service has this name.
    #[error("no service is called {name:?}; there are: file, tunnel, stream{question}")]
    Service {
        /// The name that the user gave.
        name: String,
        /// Question whether the nearest service was meant; empty if none is near.
        question: String,
    },
    /// A part of a list has no service.
    #[error(
        "{0:?} in a list of schemes lacks its service: write SERVICE=SCHEME, such as file=auto"
    )]
    Part(String),
    /// A service is named twice.
    #[error("service {0} is named twice: give it one scheme")]
    Twice(&'static str),
}

/// Schemes of a run, at most one for each service and at least one.
#[derive(Clone)]
pub struct Schemes {
    /// In the order of [`ServiceKind::ALL`].
    entries: Vec<&'static Entry>,
}

impl Schemes {
    /// Returns the schemes that `text` names: `SCHEME`, or `SERVICE=SCHEME` with commas between
    /// them. `usual` is the service of a plain name that no scheme has, for the error, and of a
    /// plain `auto`.
    ///
    /// # Errors
    /// [`SchemesError`].
    pub fn read(text: &str, usual: ServiceKind) -> Result<Self, SchemesError> {
        if !text.contains(['=', ',']) {
            let service = registry().entry(text).map_or(usual, Entry::service);
            return Ok(Self { entries: vec![registry().choose(service, text)?.entry] });
        }

        // A service runs under one scheme, so a list names it once.
        let mut entries: Vec<&'static Entry> = Vec::new();
        for part in text.split(',') {
            let (service, name) =
                part.split_once('=').ok_or_else(|| SchemesError::Part(part.trim().to_owned()))?;
            let service = service_called(service.trim())?;
            if entries.iter().any(|entry| entry.service() == service) {
                return Err(SchemesError::Twice(service.name()));
            }
            entries.push(registry().choose(service, name.trim())?.entry);
        }

        entries.sort_by_key(|entry| entry.service());
        Ok(Self { entries })
    }

    /// Returns the default schemes of services, of files if there are none.
    ///
    /// # Errors
    /// [`UnknownScheme`] if this build has no scheme of a service.
    pub(crate) fn default_of(services: &[ServiceKind]) -> Result<Self, UnknownScheme> {
        let services = if services.is_empty() { &[ServiceKind::File] } else { services };
        let entries = services.iter().map(|service| registry().choose(*service, AUTO));
        let entries: Result<_, _> = entries.map(|choice| choice.map(|c| c.entry)).collect();
        Ok(Self { entries: entries? })
    }

    /// Returns the scheme of a service, if its traffic is carried.
    #[must_use]
    pub fn of(&self, service: ServiceKind) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.service() == service)
    }

    /// Returns all schemes: that of files, that of tunnels, that of streams.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        self.entries.iter().copied()
    }

    /// Returns the scheme of a run that carries the traffic of one service.
    #[must_use]
    pub fn only(&self) -> Option<&'static Entry> {
        match self.entries.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

impl From<&'static Entry> for Schemes {
    fn from(entry: &'static Entry) -> Self {
        Self { entries: vec![entry] }
    }
}

/// Writes the schemes as [`Schemes::read`] reads them.
impl fmt::Display for Schemes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(only) = self.only() {
            return f.write_str(only.name);
        }
        for (i, entry) in self.entries().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{}={}", entry.service().name(), entry.name)?;
        }
        Ok(())
    }
}

/// Returns the service of this name.
fn service_called(name: &str) -> Result<ServiceKind, SchemesError> {
    ServiceKind::ALL.into_iter().find(|service| service.name() == name).ok_or_else(|| {
        let question = did_you_mean(name, ServiceKind::ALL.map(ServiceKind::name));
        SchemesError::Service { name: name.to_owned(), question }
    })
}
