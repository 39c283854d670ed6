//! Announcement of a file as it is kept on disk.

use ncmesh_engine::file::{Geometry, GeometryError, Manifest};
use serde::{Deserialize, Serialize};

/// [`Manifest`] as JSON, with hashes in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestRecord {
    flow: String,
    name: String,
    size: u64,
    generation: u8,
    symbol_size: u16,
    root: String,
    hash: String,
}

/// Reason why a record is not a valid manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is not JSON of this form.
    #[error("damaged: {0}")]
    Json(String),
    /// A field has an invalid value.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// The geometry is impossible.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

impl From<&Manifest> for ManifestRecord {
    fn from(m: &Manifest) -> Self {
        Self {
            flow: m.flow.to_string(),
            name: m.name.clone(),
            size: m.geometry.size(),
            generation: m.geometry.generation(),
            symbol_size: m.geometry.symbol_size(),
            root: to_hex(&m.root),
            hash: to_hex(&m.hash),
        }
    }
}

impl TryFrom<&ManifestRecord> for Manifest {
    type Error = RecordError;

    fn try_from(r: &ManifestRecord) -> Result<Self, RecordError> {
        Ok(Self {
            flow: r.flow.parse().map_err(|_| RecordError::Damaged("flow"))?,
            name: r.name.clone(),
            geometry: Geometry::new(r.size, r.generation, r.symbol_size)?,
            root: from_hex(&r.root).ok_or(RecordError::Damaged("root"))?,
            hash: from_hex(&r.hash).ok_or(RecordError::Damaged("hash"))?,
        })
    }
}

/// Returns a hash in hexadecimal.
pub(crate) fn to_hex(hash: &[u8; 32]) -> String {
    blake3::Hash::from(*hash).to_hex().to_string()
}

/// Parses a hash of 64 hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(Into::into)
}
