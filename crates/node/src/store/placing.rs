//! Placing what is in a tree: each file in the tree's directory as soon as it is whole.
//!
//! A directory that is free is made in the inbox with the first look, and noted ([`made`](super::made)).
//! Nothing that has a name is ever written over, and nothing
//! is followed out of the inbox: [`Root`].

use super::made::claim;
use super::naming::{alternative, is_refused, names};
use super::places::Places;
use super::space;
use crate::config::SpaceLimits;
use crate::root::Root;
use crate::tree::format::{Contents, Entry, Head, MODE, Modified, read_head};
use ncmesh_engine::file::{BatchSet, Geometry, Manifest};
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Bytes that are copied at once.
const CHUNK: usize = 1 << 18;
/// Modes that this node's user needs, whoever sent the tree, and that nobody else gets: to write.
const OWNER_FILE: u32 = 0o600;
const OWNER_DIR: u32 = 0o700;
const OTHERS_WRITE: u32 = 0o022;

/// Held while something is placed, or the list is written: all use the same names for a while.
static PLACING: Mutex<()> = Mutex::new(());

/// The files of a tree that were placed so far.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    head: Option<Head>,
    /// Files by their place in the index.
    files: BTreeSet<usize>,
}

/// Where a tree is placed.
struct Place<'a> {
    inbox: &'a Root,
    flow: FlowId,
    part: &'a File,
    limits: &'a SpaceLimits,
    used: u64,
}

/// Places what is whole, of batches that this node `have`s. Blocks on the disk.
///
/// # Errors
/// It is no tree, or something cannot be written.
pub(crate) fn place_whole(
    inbox: &Path,
    manifest: &Manifest,
    have: &BatchSet,
    placed: &mut Placed,
    limits: &SpaceLimits,
) -> io::Result<()> {
    let inbox = Root::open_strict(inbox)?;
    let part = inbox.open_to_read(Places::new(manifest.flow).part)?;
    let is_there = |bytes: Range<u64>| has(&manifest.geometry, have, bytes);
    place(&inbox, &part, manifest, is_there, placed, limits).map(drop)
}

/// Places what is left of a tree whose bytes are all there. Returns its directory, with the mode
/// and the times that it had at its source. Blocks on the disk.
///
/// # Errors
/// It is no tree, or something cannot be written.
pub(crate) fn finish(
    inbox: &Root,
    part: &File,
    manifest: &Manifest,
    limits: &SpaceLimits,
) -> io::Result<PathBuf> {
    let mut placed = Placed::default();
    let found = place(inbox, part, manifest, |_| true, &mut placed, limits)?;
    let dirs = found.ok_or_else(|| io::Error::from(ErrorKind::UnexpectedEof))?;

    // The innermost first: a file that is placed changes the time of its directory.
    let entries = placed.head.iter().flat_map(|head| head.index.entries.iter().rev());
    for entry in entries.filter(|entry| entry.file.is_none()) {
        let modified = entry.modified.and_then(Modified::time);
        let mode = entry.mode & MODE & !OTHERS_WRITE | OWNER_DIR;
        inbox.set_dir(&dirs[entry.path.as_str()], mode, modified)?;
    }
    inbox.sync_parent(&dirs[""])?;
    Ok(inbox.join(&dirs[""]))
}

/// Places what is there. Returns the directories by their paths in the tree, its own under the
/// empty one; nothing while the index is not there.
fn place(
    inbox: &Root,
    part: &File,
    manifest: &Manifest,
    is_there: impl Fn(Range<u64>) -> bool,
    placed: &mut Placed,
    limits: &SpaceLimits,
) -> io::Result<Option<BTreeMap<String, PathBuf>>> {
    let _placing = PLACING.lock().unwrap_or_else(PoisonError::into_inner);
    let size = manifest.geometry.size();
    if placed.head.is_none() {
        placed.head = read_head(part, size, &is_there)?;
    }
    let Some(head) = &placed.head else { return Ok(None) };

    let used = space::used(inbox, limits)?;
    let mut place = Place { inbox, flow: manifest.flow, part, limits, used };
    let mut dirs = BTreeMap::from([(String::new(), claim(inbox, manifest)?)]);
    let mut begin = head.end;
    for (number, entry) in head.index.entries.iter().enumerate() {
        let (parent, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
        // The index was checked: a directory comes before what is in it.
        let parent = dirs[parent].clone();
        let Some(contents) = &entry.file else {
            dirs.insert(entry.path.clone(), make_dir(inbox, &parent, name)?);
            continue;
        };

        let bytes = begin..begin + contents.carried();
        begin = bytes.end;
        if !placed.files.contains(&number) && is_there(bytes.clone()) {
            place.file(&parent, name, entry, contents, bytes.start)?;
            placed.files.insert(number);
        }
    }
    Ok(Some(dirs))
}

impl Place<'_> {
    /// Places a file whose bytes begin at `begin` of the part.
    fn file(
        &mut self,
        parent: &Path,
        name: &str,
        entry: &Entry,
        contents: &Contents,
        begin: u64,
    ) -> io::Result<()> {
        let aside = Places::new(self.flow).aside;
        let file = self.inbox.create(&aside)?;
        space::check(&file, self.used, contents.carried(), self.limits)?;
        self.used = self.used.saturating_add(contents.carried());
        self.copy(&file, contents, begin)?;

        // As at its source, except that only this node's user may write to it.
        let mode = entry.mode & MODE & !OTHERS_WRITE | OWNER_FILE;
        file.set_permissions(Permissions::from_mode(mode))?;
        if let Some(time) = entry.modified.and_then(Modified::time) {
            file.set_modified(time)?;
        }
        // On disk before it has its name: whoever sees the name finds it whole.
        file.sync_data()?;
        self.name(&aside, parent, name)
    }

    /// Copies the extents of a file from the part.
    fn copy(&self, file: &File, contents: &Contents, begin: u64) -> io::Result<()> {
        file.set_len(contents.size)?;
        let mut from = begin;
        let mut chunk = vec![0; CHUNK];
        for extent in &contents.extents {
            let mut done = 0;
            while done < extent.len {
                let len = chunk.len().min(usize::try_from(extent.len - done).unwrap_or(CHUNK));
                self.part.read_exact_at(&mut chunk[..len], from)?;
                file.write_all_at(&chunk[..len], extent.at + done)?;
                done += len as u64;
                from += len as u64;
            }
        }
        Ok(())
    }

    /// Gives a file that was written aside its name, or the first free one of that kind.
    fn name(&self, aside: &Path, parent: &Path, name: &str) -> io::Result<()> {
        let mut refused = None;
        for name in names(name).chain(names(&alternative(name))) {
            let path = parent.join(name);
            match self.inbox.rename_to_free(aside, &path) {
                Ok(()) => return Ok(()),
                // It was placed before a restart, or a file system took two names for one.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                    if self.is_same(aside, &path)? {
                        return self.inbox.remove(aside);
                    }
                }
                Err(e) if refused.is_none() && is_of_name(&e) => refused = Some(e),
                Err(e) if is_of_name(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Err(refused.unwrap_or_else(|| ErrorKind::AlreadyExists.into()))
    }

    /// Returns whether two files have the same contents.
    fn is_same(&self, one: &Path, other: &Path) -> io::Result<bool> {
        // A directory or a link is somebody else's.
        let Ok(other) = self.inbox.open_to_read(other) else { return Ok(false) };
        let one = self.inbox.open_to_read(one)?;
        let len = one.metadata()?.len();
        if other.metadata()?.len() != len {
            return Ok(false);
        }

        let mut at = 0;
        let mut chunks = [vec![0; CHUNK], vec![0; CHUNK]];
        while at < len {
            let step = CHUNK.min(usize::try_from(len - at).unwrap_or(CHUNK));
            let [a, b] = &mut chunks;
            one.read_exact_at(&mut a[..step], at)?;
            other.read_exact_at(&mut b[..step], at)?;
            if a[..step] != b[..step] {
                return Ok(false);
            }
            at += step as u64;
        }
        Ok(true)
    }
}

/// Returns whether a file system refuses a name, and not every one.
fn is_of_name(e: &io::Error) -> bool {
    use ErrorKind::{InvalidFilename, InvalidInput};
    matches!(e.kind(), InvalidFilename | InvalidInput) || is_refused(e)
}

/// Makes a directory of the tree, or finds the one that was made before.
fn make_dir(inbox: &Root, parent: &Path, name: &str) -> io::Result<PathBuf> {
    let path = parent.join(name);
    match inbox.make_dir(&path) {
        Err(e) if is_of_name(&e) => {
            let path = parent.join(alternative(name));
            inbox.make_dir(&path).map(|()| path)
        }
        made => made.map(|()| path),
    }
}

/// Returns whether all batches with these bytes are there.
fn has(geometry: &Geometry, have: &BatchSet, bytes: Range<u64>) -> bool {
    if bytes.is_empty() {
        return true;
    }
    // All batches but the last are as long as the first.
    let batch_of = |byte: u64| u32::try_from(byte / geometry.data_len(0) as u64);
    let (Ok(first), Ok(last)) = (batch_of(bytes.start), batch_of(bytes.end - 1)) else {
        return false;
    };
    (first..=last).all(|batch| have.contains(batch))
}
