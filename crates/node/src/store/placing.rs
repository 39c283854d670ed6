//! Placing what is in a tree: each file in the tree's directory as soon as it is whole.
//!
//! A directory that is free is made in the inbox with the first look, and noted
//! ([`made`](super::made)). Nothing that has a name is ever written over, and nothing is followed
//! out of the inbox: [`Root`].

use super::made::claim;
use super::naming::{alternative, is_refused, names};
use super::places::Places;
use super::space;
use crate::config::SpaceLimits;
use crate::root::Root;
use crate::tree::format::{Contents, Entry, Head, MODE, Modified, read_head};
use ncmesh_engine::file::{GenerationSet, Geometry, Manifest};
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

/// Places what is whole, of generations that this node `have`s. Blocks on the disk.
///
/// # Errors
/// It is no tree, or something cannot be written.
pub(crate) fn place_whole(
    inbox: &Path,
    manifest: &Manifest,
    have: &GenerationSet,
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
    /// Places a file whose bytes begin at `begin` of the part, unless it is there already: placed
    /// by an earlier look, or before a restart.
    fn file(
        &mut self,
        parent: &Path,
        name: &str,
        entry: &Entry,
        contents: &Contents,
        begin: u64,
    ) -> io::Result<()> {
        if self.is_placed(parent, name, contents, begin)? {
            return Ok(());
        }

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
        self.each_chunk(contents, begin, |at, chunk| file.write_all_at(chunk, at).map(|()| true))?;
        Ok(())
    }

    /// Reads the extents of a file from the part, and hands over each chunk with its place in the
    /// file, while `takes` returns true. Returns whether it always did.
    fn each_chunk(
        &self,
        contents: &Contents,
        begin: u64,
        mut takes: impl FnMut(u64, &[u8]) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let mut from = begin;
        let mut buffer = vec![0; CHUNK];
        for extent in &contents.extents {
            let mut done = 0;
            while done < extent.len {
                let len = CHUNK.min(usize::try_from(extent.len - done).unwrap_or(CHUNK));
                let chunk = &mut buffer[..len];
                self.part.read_exact_at(chunk, from)?;
                if !takes(extent.at + done, chunk)? {
                    return Ok(false);
                }
                done += len as u64;
                from += len as u64;
            }
        }
        Ok(true)
    }

    /// Gives a file that was written aside its name, or the first free one of that kind.
    fn name(&self, aside: &Path, parent: &Path, name: &str) -> io::Result<()> {
        let mut refused = None;
        for name in names(name).chain(names(&alternative(name))) {
            match self.inbox.rename_to_free(aside, &parent.join(name)) {
                Ok(()) => return Ok(()),
                // Somebody else's, or a file system takes two names for one.
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) if refused.is_none() && is_of_name(&e) => refused = Some(e),
                Err(e) if is_of_name(&e) => {}
                Err(e) => return Err(e),
            }
        }
        Err(refused.unwrap_or_else(|| ErrorKind::AlreadyExists.into()))
    }

    /// Returns whether a file is there under one of the names that it may have got.
    fn is_placed(
        &self,
        parent: &Path,
        name: &str,
        contents: &Contents,
        begin: u64,
    ) -> io::Result<bool> {
        for kind in [name, &alternative(name)] {
            // Names are given in order, so a gap ends the search.
            for name in names(kind) {
                let path = parent.join(name);
                match self.inbox.has(&path) {
                    Ok(true) if self.is_same(&path, contents, begin)? => return Ok(true),
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(e) if is_of_name(&e) => break,
                    Err(e) => return Err(e),
                }
            }
        }
        Ok(false)
    }

    /// Returns whether a file has these contents. Holes are not read: a sender chooses how long
    /// they are.
    fn is_same(&self, path: &Path, contents: &Contents, begin: u64) -> io::Result<bool> {
        // A directory or a link is somebody else's.
        let Ok(file) = self.inbox.open_to_read(path) else { return Ok(false) };
        if file.metadata()?.len() != contents.size {
            return Ok(false);
        }
        let mut there = vec![0; CHUNK];
        self.each_chunk(contents, begin, |at, chunk| {
            let there = &mut there[..chunk.len()];
            file.read_exact_at(there, at)?;
            Ok(there == chunk)
        })
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

/// Returns whether all generations with these bytes are there.
fn has(geometry: &Geometry, have: &GenerationSet, bytes: Range<u64>) -> bool {
    if bytes.is_empty() {
        return true;
    }
    // All generations but the last are as long as the first.
    let generation_of = |byte: u64| u32::try_from(byte / geometry.data_len(0) as u64);
    let (Ok(first), Ok(last)) = (generation_of(bytes.start), generation_of(bytes.end - 1)) else {
        return false;
    };
    (first..=last).all(|generation| have.contains(generation))
}
