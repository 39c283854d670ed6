//! Whether a release counts, and whether it is for a node.

use crate::image::Image;
use crate::manifest::Manifest;
use crate::release::ReleaseId;
use crate::version::Version;
use core::cmp::Ordering;
use ncmesh_wire::identity::PublicKey;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Keys that answer for releases, and how many of them must have signed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    keys: BTreeSet<PublicKey>,
    need: usize,
}

/// Reason why keys and a number make no [`Trust`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// No signature would be needed.
    #[error("at least one signature must be needed")]
    None,
    /// More signatures would be needed than there are keys. A key that is named twice is one.
    #[error("{need} signatures are needed, but only {keys} different keys are trusted")]
    FewKeys {
        /// Signatures that are needed.
        need: usize,
        /// Different keys.
        keys: usize,
    },
}

impl Trust {
    /// Trusts releases that `need` of the keys have signed.
    ///
    /// # Errors
    /// [`TrustError`] if none or all releases would count.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>, need: usize) -> Result<Self, TrustError> {
        let keys: BTreeSet<_> = keys.into_iter().collect();
        if need == 0 {
            return Err(TrustError::None);
        }
        // Such a number could never be reached, and no update would be installed any more.
        if need > keys.len() {
            return Err(TrustError::FewKeys { need, keys: keys.len() });
        }

        Ok(Self { keys, need })
    }

    /// Returns the trusted keys that signed a release.
    ///
    /// # Errors
    /// [`Refusal::Signatures`] if too few did.
    pub fn check(&self, manifest: &Manifest) -> Result<BTreeSet<PublicKey>, Refusal> {
        let signers = manifest.signers(&self.keys);

        if signers.len() < self.need {
            return Err(Refusal::Signatures { good: signers.len(), need: self.need });
        }
        Ok(signers)
    }
}

/// A release that a node has taken, or heard of from trusted signers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Its version.
    pub version: Version,
    /// Its id.
    pub id: ReleaseId,
}

impl Known {
    /// Returns what identifies the release of a manifest.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Self {
        let release = manifest.release();
        Self { version: release.head().version.clone(), id: release.id() }
    }
}

/// Facts about a node by which it judges a release. Absent ones are not checked.
#[derive(Clone, Debug, Default)]
pub struct Station {
    /// Name of the firmware that it follows.
    pub name: Option<String>,
    /// Channel that it follows.
    pub channel: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Version that it runs.
    pub running: Option<Version>,
    /// Newest release that it knows.
    pub newest: Option<Known>,
    /// Whether it may go to an older version.
    pub may_downgrade: bool,
}

/// Reason why a release is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Too few trusted keys signed it.
    #[error("{good} of the {need} signatures that are needed")]
    Signatures {
        /// Good signatures by different trusted keys.
        good: usize,
        /// Signatures that are needed.
        need: usize,
    },
    /// It is another firmware.
    #[error("it is a release of {found}, not of {wanted}")]
    Name {
        /// The release's name.
        found: String,
        /// The node's.
        wanted: String,
    },
    /// It is in another channel.
    #[error("it is in channel {found}, not in {wanted}")]
    Channel {
        /// The release's channel.
        found: String,
        /// The node's.
        wanted: String,
    },
    /// It has no image for the model.
    #[error("it has no image for {0}")]
    Model(String),
    /// The node runs this version.
    #[error("version {0} runs already")]
    Runs(Version),
    /// It is older than what the node runs or knows.
    #[error("version {found} is older than {newest}")]
    Older {
        /// The release's version.
        found: Version,
        /// The newer version.
        newest: Version,
    },
    /// Another release has its version.
    #[error("another release of version {0} is known, which differs")]
    Differs(Version),
    /// It is not made to follow the version that runs.
    #[error("it does not replace version {0}")]
    Replaces(Version),
}

impl Station {
    /// Judges a release whose signatures count. Returns the image for the node's model, if that is
    /// known.
    ///
    /// # Errors
    /// The first [`Refusal`] that applies.
    pub fn judge<'a>(&self, manifest: &'a Manifest) -> Result<Option<&'a Image>, Refusal> {
        let release = manifest.release();
        let head = release.head();

        // Another firmware or channel first: versions count within one of them only.
        if let Some(wanted) = self.name.clone().filter(|name| *name != head.name) {
            return Err(Refusal::Name { found: head.name.clone(), wanted });
        }
        if let Some(wanted) = self.channel.clone().filter(|channel| *channel != head.channel) {
            return Err(Refusal::Channel { found: head.channel.clone(), wanted });
        }

        // One version is one release, whoever signed the other one.
        if let Some(Known { version, id }) = &self.newest {
            match head.version.order(version) {
                Ordering::Equal if *id != release.id() => {
                    return Err(Refusal::Differs(head.version.clone()));
                }
                Ordering::Less if !self.may_downgrade => {
                    let found = head.version.clone();
                    return Err(Refusal::Older { found, newest: version.clone() });
                }
                _ => {}
            }
        }

        // The same against the version that runs, which another updater may have installed.
        if let Some(running) = &self.running {
            match head.version.order(running) {
                Ordering::Equal => return Err(Refusal::Runs(running.clone())),
                Ordering::Less if !self.may_downgrade => {
                    let found = head.version.clone();
                    return Err(Refusal::Older { found, newest: running.clone() });
                }
                // Which versions a release replaces says nothing of the way back.
                Ordering::Less => {}
                Ordering::Greater => {
                    let replaces = &head.replaces;
                    if !replaces.is_empty() && !replaces.iter().any(|old| old.is_same(running)) {
                        return Err(Refusal::Replaces(running.clone()));
                    }
                }
            }
        }

        let Some(model) = &self.model else { return Ok(None) };
        release.image(model).map(Some).ok_or_else(|| Refusal::Model(model.clone()))
    }
}
