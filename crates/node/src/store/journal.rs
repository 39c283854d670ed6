//! What a reception remembers across a crash: which file it is, and which batches were written.
//!
//! A head (magic, length, manifest as JSON, checksum), durable before any data, then 44 bytes for each batch
//! written: its number, its BLAKE3, a checksum. Records are not forced to disk: after a power loss a record
//! may be there without its data, or torn. So a record is a claim to be checked against the data, never proof.

use crate::durable;
use crate::state::ManifestRecord;
use ncmesh_engine::file::Manifest;
use ncmesh_engine::file::merkle::Hash;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"ncmj0001";
const CHECKSUM_LEN: usize = 8;
/// Bytes of a record.
pub const RECORD_LEN: usize = 4 + 32 + CHECKSUM_LEN;

/// The journal of one reception, open for adding records.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

/// What a journal claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Batches said to be written, with their hashes.
    pub batches: BTreeMap<u32, Hash>,
    /// Bytes of the journal up to the end of its last whole record.
    pub length: u64,
}

impl Journal {
    /// Begins the journal of `manifest`, durably.
    ///
    /// # Errors
    /// What writing gives.
    pub fn create(path: &Path, manifest: &Manifest) -> io::Result<Self> {
        durable::replace(path, &head(manifest)?)?;
        Ok(Self { file: OpenOptions::new().append(true).open(path)? })
    }

    /// Opens an earlier journal, cut behind its last whole record. `None` where there is none or it is not
    /// of this very file.
    ///
    /// # Errors
    /// What reading or cutting it gives.
    pub fn resume(path: &Path, manifest: &Manifest) -> io::Result<Option<(Self, Claims)>> {
        let file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let Some(claims) = read(BufReader::new(file), manifest)? else { return Ok(None) };
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(claims.length)?;
        Ok(Some((Self { file }, claims)))
    }

    /// Notes that `batch` was written.
    ///
    /// # Errors
    /// What writing gives.
    pub fn append(&mut self, batch: u32, hash: &Hash) -> io::Result<()> {
        self.file.write_all(&record(batch, hash))
    }
}

/// Reads a journal of `manifest` up to the first record that is torn or damaged. `None` where it is not of
/// this very file. Keeps no more than the file has batches, however long the journal is.
///
/// # Errors
/// What reading gives.
pub fn read(mut journal: impl Read, manifest: &Manifest) -> io::Result<Option<Claims>> {
    let expected = head(manifest)?;
    let mut found = Vec::with_capacity(expected.len());
    journal.by_ref().take(expected.len() as u64).read_to_end(&mut found)?;
    if found != expected {
        return Ok(None);
    }
    let mut claims = Claims { batches: BTreeMap::new(), length: expected.len() as u64 };
    let mut record = Vec::with_capacity(RECORD_LEN);
    loop {
        record.clear();
        journal.by_ref().take(RECORD_LEN as u64).read_to_end(&mut record)?;
        let Some((batch, hash)) = parse_record(&record) else { return Ok(Some(claims)) };
        claims.length += RECORD_LEN as u64;
        if batch < manifest.geometry.batches() {
            claims.batches.insert(batch, hash);
        }
    }
}

/// The whole head of `manifest`'s journal: a journal that begins otherwise is of another file.
///
/// # Errors
/// What JSON cannot say.
pub fn head(manifest: &Manifest) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(&ManifestRecord::from(manifest))?;
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&(json.len() as u32).to_be_bytes());
    head.extend_from_slice(&json);
    let sum = checksum(&head);
    head.extend_from_slice(&sum);
    Ok(head)
}

/// The record that `batch` was written.
#[must_use]
pub fn record(batch: u32, hash: &Hash) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    record[..4].copy_from_slice(&batch.to_be_bytes());
    record[4..36].copy_from_slice(hash);
    let sum = checksum(&record[..36]);
    record[36..].copy_from_slice(&sum);
    record
}

fn parse_record(record: &[u8]) -> Option<(u32, Hash)> {
    let (claim, sum) = record.split_at_checked(36)?;
    let (batch, hash) = claim.split_first_chunk::<4>()?;
    (sum == checksum(claim)).then_some((u32::from_be_bytes(*batch), hash.try_into().ok()?))
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut sum = [0; CHECKSUM_LEN];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECKSUM_LEN]);
    sum
}
