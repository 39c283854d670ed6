//! Journal of a reception: the file it belongs to, and the generations that were written.
//!
//! It begins with a header (magic, length, manifest as JSON, checksum), which is on disk before any
//! data. A record of 44 bytes follows for each written generation: its number, its BLAKE3 hash, and
//! a checksum. Records are not forced to disk. After a power loss a record may therefore be torn,
//! or be there without its data. A record is a claim that must be checked against the data, never a
//! proof.
//!
//! While a journal is open, it holds a shared lock. Who removes the reception's files takes the
//! exclusive one first.

use crate::root::Root;
use crate::state::ManifestRecord;
use ncmesh_engine::file::Manifest;
use ncmesh_engine::file::merkle::Hash;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const MAGIC: &[u8; 8] = b"ncmj0001";
const CHECKSUM_LEN: usize = 8;
/// Length of the longest manifest read, bytes: a name of 200 bytes, escaped, and hashes.
const LONGEST_HEAD: u64 = 4096;
/// Length of a record, bytes.
pub const RECORD_LEN: usize = 4 + 32 + CHECKSUM_LEN;

/// Journal of one reception, open for adding records.
#[derive(Debug)]
pub struct Journal {
    file: File,
}

/// Claims of a journal, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Generations that were written according to the journal, with their hashes.
    pub generations: BTreeMap<u32, Hash>,
    /// Length of the journal up to the end of its last valid record, bytes.
    pub length: u64,
}

impl Claims {
    /// Returns the claims of a journal that was just made.
    pub(super) fn none() -> Self {
        Self { generations: BTreeMap::new(), length: 0 }
    }
}

impl Journal {
    /// Makes the journal of `manifest` and forces it to disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn create(inbox: &Root, path: &Path, manifest: &Manifest) -> io::Result<Self> {
        inbox.replace(path, &head(manifest)?)?;
        Ok(Self { file: locked(inbox.open_to_append(path)?)? })
    }

    /// Opens an existing journal and truncates it after its last valid record. Returns `None` if
    /// there is none, it is damaged, or nothing was received of the other file that it belongs to.
    ///
    /// # Errors
    /// The file cannot be read or truncated, or generations of another file are there. It may be
    /// the true one.
    pub(crate) fn resume(
        inbox: &Root,
        path: &Path,
        manifest: &Manifest,
    ) -> io::Result<Option<(Self, Claims)>> {
        if !inbox.has(path)? {
            return Ok(None);
        }
        // The lock comes before anything is read, so that no other program removes the part
        // meanwhile.
        let file = locked(inbox.open_to_append(path)?)?;
        // A journal of another file without generations is worth nothing, and is made again.
        let Some(claims) = read(BufReader::new(&file), manifest)? else {
            return match holds_generations(&file)? {
                true => Err(io::Error::new(
                    io::ErrorKind::ResourceBusy,
                    "another file was begun under this id; `ncmesh cancel` removes its part",
                )),
                false => Ok(None),
            };
        };

        // A torn record at the end would make all that follow unreadable.
        file.set_len(claims.length)?;
        Ok(Some((Self { file }, claims)))
    }

    /// Adds the record that `generation` was written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, generation: u32, hash: &Hash) -> io::Result<()> {
        self.file.write_all(&record(generation, hash))
    }
}

/// Returns whether a journal belongs to some file, and generations of that were written.
fn holds_generations(mut journal: &File) -> io::Result<bool> {
    journal.rewind()?;
    let Some((manifest, _)) = read_head(BufReader::new(journal)) else { return Ok(false) };
    journal.rewind()?;
    let claims = read(BufReader::new(journal), &manifest)?;
    Ok(claims.is_some_and(|claims| !claims.generations.is_empty()))
}

/// Locks a journal against removal.
fn locked(file: File) -> io::Result<File> {
    file.lock_shared()?;
    match file.metadata()?.nlink() {
        0 => Err(io::Error::new(io::ErrorKind::Interrupted, "the journal was just removed")),
        _ => Ok(file),
    }
}

/// Reads a journal of `manifest` up to the first torn or damaged record.
///
/// Returns `None` if it belongs to another file. Keeps at most as many records as the file has
/// generations, however long the journal is.
///
/// # Errors
/// The journal cannot be read.
pub fn read(mut journal: impl Read, manifest: &Manifest) -> io::Result<Option<Claims>> {
    // The head is compared byte by byte, so nothing of it has to be parsed.
    let expected = head(manifest)?;
    let mut found = Vec::with_capacity(expected.len());
    journal.by_ref().take(expected.len() as u64).read_to_end(&mut found)?;
    if found != expected {
        return Ok(None);
    }

    let mut claims = Claims { generations: BTreeMap::new(), length: expected.len() as u64 };
    let mut record = Vec::with_capacity(RECORD_LEN);
    loop {
        record.clear();
        journal.by_ref().take(RECORD_LEN as u64).read_to_end(&mut record)?;
        // The first record that is torn or damaged ends the list: what follows cannot be aligned.
        let Some((generation, hash)) = parse_record(&record) else { return Ok(Some(claims)) };
        claims.length += RECORD_LEN as u64;
        // A number beyond the file is not kept, so that a forged journal costs no memory.
        if generation < manifest.geometry.generations() {
            claims.generations.insert(generation, hash);
        }
    }
}

/// Reads the header of a journal. Returns the file it belongs to and the header's length, or `None`
/// if it is damaged.
pub(super) fn read_head(mut journal: impl Read) -> Option<(Manifest, u64)> {
    let mut start = [0; 12];
    journal.read_exact(&mut start).ok()?;
    let (_, length) = start.split_last_chunk::<4>()?;
    // Bounded, because the length may be damaged: no checksum was checked yet.
    let length = u64::from(u32::from_be_bytes(*length)).min(LONGEST_HEAD);
    let mut json = Vec::new();
    journal.take(length).read_to_end(&mut json).ok()?;
    let manifest = Manifest::try_from(&serde_json::from_slice::<ManifestRecord>(&json).ok()?);
    Some((manifest.ok()?, 12 + length + CHECKSUM_LEN as u64))
}

/// Returns the header of `manifest`'s journal. A journal that begins otherwise belongs to another
/// file.
///
/// # Errors
/// The manifest cannot be written as JSON.
pub fn head(manifest: &Manifest) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(&ManifestRecord::from(manifest))?;
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&(json.len() as u32).to_be_bytes());
    head.extend_from_slice(&json);
    // The checksum covers the length too.
    let sum = checksum(&head);
    head.extend_from_slice(&sum);
    Ok(head)
}

/// Returns the record that `generation` was written.
#[must_use]
pub fn record(generation: u32, hash: &Hash) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    record[..4].copy_from_slice(&generation.to_be_bytes());
    record[4..36].copy_from_slice(hash);
    let sum = checksum(&record[..36]);
    record[36..].copy_from_slice(&sum);
    record
}

fn parse_record(record: &[u8]) -> Option<(u32, Hash)> {
    let (claim, sum) = record.split_at_checked(36)?;
    let (generation, hash) = claim.split_first_chunk::<4>()?;
    (sum == checksum(claim)).then_some((u32::from_be_bytes(*generation), hash.try_into().ok()?))
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_LEN] {
    let mut sum = [0; CHECKSUM_LEN];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECKSUM_LEN]);
    sum
}
