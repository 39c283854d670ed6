//! What a reception remembers across a crash: which file it is, and which batches were written.
//!
//! A head (magic, length, manifest as JSON, checksum), durable before any data, then 44 bytes for each batch
//! written: its number, its BLAKE3, a checksum. Records are not forced to disk: after a power loss a record
//! may be there without its data, or torn. So a record is a claim to be checked against the data, never proof.

use crate::durable;
use crate::state::ManifestRecord;
use ncmesh_proto::file::Manifest;
use ncmesh_proto::file::merkle::Hash;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

const MAGIC: &[u8; 8] = b"ncmj0001";
const CHECKSUM_LEN: usize = 8;
const RECORD_LEN: usize = 4 + 32 + CHECKSUM_LEN;

/// The journal of one reception, open for adding records.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

/// What a journal claims.
#[derive(Debug)]
pub struct Claims {
    /// The journal, ready for further records.
    pub journal: Journal,
    /// Batches said to be written, with their hashes.
    pub batches: Vec<(u32, Hash)>,
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
    pub fn resume(path: &Path, manifest: &Manifest) -> io::Result<Option<Claims>> {
        let bytes = match std::fs::read(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let Some(records) = bytes.strip_prefix(head(manifest)?.as_slice()) else { return Ok(None) };
        let batches: Vec<(u32, Hash)> =
            records.chunks(RECORD_LEN).map_while(parse_record).collect();
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len((bytes.len() - records.len() + batches.len() * RECORD_LEN) as u64)?;
        Ok(Some(Claims { journal: Self { file }, batches }))
    }

    /// Notes that `batch` was written.
    ///
    /// # Errors
    /// What writing gives.
    pub fn append(&mut self, batch: u32, hash: &Hash) -> io::Result<()> {
        let mut record = [0; RECORD_LEN];
        record[..4].copy_from_slice(&batch.to_be_bytes());
        record[4..36].copy_from_slice(hash);
        let sum = checksum(&record[..36]);
        record[36..].copy_from_slice(&sum);
        self.file.write_all(&record)
    }
}

/// The whole head of `manifest`'s journal: a journal that begins otherwise is of another file.
fn head(manifest: &Manifest) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(&ManifestRecord::from(manifest))?;
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&(json.len() as u32).to_be_bytes());
    head.extend_from_slice(&json);
    let sum = checksum(&head);
    head.extend_from_slice(&sum);
    Ok(head)
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
