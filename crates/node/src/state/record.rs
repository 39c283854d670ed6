//! A file's announcement as it is kept on disk.

use ncmesh_engine::file::{Geometry, GeometryError, Manifest};
use serde::{Deserialize, Serialize};

/// A [`Manifest`] for a journal: JSON, hashes in hexadecimal.
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

/// Why a record is no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is not written as a record is.
    #[error("damaged: {0}")]
    Json(String),
    /// A field does not read as what it should be.
    #[error("damaged: {0}")]
    Damaged(&'static str),
    /// The file cannot be cut so.
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

/// A hash in hexadecimal.
pub(crate) fn to_hex(hash: &[u8; 32]) -> String {
    blake3::Hash::from(*hash).to_hex().to_string()
}

/// A hash from 64 hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 32]> {
    blake3::Hash::from_hex(text).ok().map(Into::into)
}
