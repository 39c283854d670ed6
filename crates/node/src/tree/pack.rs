//! Packing files and directories into a tree.

use super::format::{
    Contents, Entry, Extent, HEAD, Index, MAGIC, MAX_INDEX, MODE, Modified, TreeError, check_path,
};
use glob::MatchOptions;
pub use glob::Pattern;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of a block, as a file's metadata counts them.
const BLOCK: u64 = 512;
/// Most extents of a file. One with more holes is sent without the smaller ones.
const MAX_EXTENTS: usize = 4096;

/// How patterns match: `*` and `?` match no `/`, as in a shell.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Why files cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// Something cannot be read.
    #[error("{path} cannot be read: {source}", path = path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Names are text in a transfer.
    #[error("the name of {} is not UTF-8; rename it, or leave it out (--exclude)", .0.display())]
    NotText(PathBuf),
    /// Two paths of the command line end in the same name.
    #[error("two of the paths end in {0:?}; send them one by one")]
    SameName(String),
    /// Nothing was found, or all was left out.
    #[error("there is nothing to send: no file, or all were left out")]
    Empty,
    /// Receivers would refuse it.
    #[error("receivers would refuse it: {0}")]
    Refused(#[from] TreeError),
}

/// Which files and directories go into a tree.
///
/// A pattern without `/` is compared with names, one with `/` with paths below the directory that
/// is sent.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Files that match none of these are left out, if there are any.
    pub include: Vec<Pattern>,
    /// Files and directories that match one of these are left out.
    pub exclude: Vec<Pattern>,
}

impl Filter {
    fn matches(patterns: &[Pattern], path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        patterns.iter().any(|pattern| {
            let is_path = pattern.as_str().contains('/');
            pattern.matches_with(if is_path { path } else { name }, MATCHING)
        })
    }

    fn takes(&self, path: &str, is_dir: bool) -> bool {
        let is_included = is_dir || self.include.is_empty() || Self::matches(&self.include, path);
        is_included && !Self::matches(&self.exclude, path)
    }
}

/// A tree that is read as it is sent.
#[derive(Debug)]
pub struct Tree {
    head: io::Cursor<Vec<u8>>,
    /// Files that are still to be read, and their extents.
    rest: VecDeque<(PathBuf, Vec<Extent>)>,
    open: Option<Open>,
    left_out: Vec<PathBuf>,
}

/// The file that is read now.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    file: File,
    extents: VecDeque<Extent>,
}

/// Files and directories found so far.
struct Walk<'a> {
    filter: &'a Filter,
    index: Index,
    files: VecDeque<(PathBuf, Vec<Extent>)>,
    left_out: Vec<PathBuf>,
}

/// Packs a directory: what is in it. Packs several paths, or a file, under their own names. Reads
/// names and sizes now, contents later.
///
/// # Errors
/// [`PackError`].
pub fn pack(paths: &[PathBuf], filter: &Filter) -> Result<Tree, PackError> {
    let mut walk =
        Walk { filter, index: Index::default(), files: VecDeque::new(), left_out: Vec::new() };

    match paths {
        [dir] if dir.is_dir() => walk.enter(dir, "")?,
        _ => {
            for path in paths {
                // The path itself may be a link, or end in `..`.
                let real = fs::canonicalize(path).map_err(|e| unreadable(path, e))?;
                let name = real.file_name().unwrap_or_default();
                let name = name.to_str().ok_or_else(|| PackError::NotText(real.clone()))?;
                if walk.index.entries.iter().any(|entry| entry.path == name) {
                    return Err(PackError::SameName(name.to_owned()));
                }
                walk.add(&real, name)?;
            }
        }
    }
    walk.finish()
}

impl Tree {
    /// Returns what was found and is not sent: symbolic links, pipes, sockets and devices.
    #[must_use]
    pub fn left_out(&self) -> &[PathBuf] {
        &self.left_out
    }

    /// Reads from the files.
    fn read_files(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(open) = &mut self.open else {
                let Some((path, extents)) = self.rest.pop_front() else { return Ok(0) };
                let file = File::open(&path).map_err(|e| about(&path, &e.to_string()))?;
                self.open = Some(Open { path, file, extents: extents.into() });
                continue;
            };
            let Some(extent) = open.extents.front_mut() else {
                self.open = None;
                continue;
            };

            let most = buffer.len().min(usize::try_from(extent.len).unwrap_or(usize::MAX));
            let read = open.file.read_at(&mut buffer[..most], extent.at)?;
            // The index was written before: it cannot be changed any more.
            if read == 0 && most > 0 {
                return Err(about(&open.path, "it became shorter while it was read"));
            }
            extent.at += read as u64;
            extent.len -= read as u64;
            if extent.len == 0 {
                open.extents.pop_front();
            }
            return Ok(read);
        }
    }
}

impl Read for Tree {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.head.read(buffer)? {
            0 if !buffer.is_empty() => self.read_files(buffer),
            read => Ok(read),
        }
    }
}

impl Walk<'_> {
    /// Adds what is in a directory, whose own path in the tree is `prefix`.
    fn enter(&mut self, dir: &Path, prefix: &str) -> Result<(), PackError> {
        let failed = |e| unreadable(dir, e);
        let mut found: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(dir).map_err(failed)? {
            found.push(entry.map_err(failed)?.path());
        }

        // In order of names, so the same directory makes the same tree.
        found.sort();
        for path in found {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| PackError::NotText(path.clone()))?;
            let below =
                if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            self.add(&path, &below)?;
        }
        Ok(())
    }

    /// Adds a file, or a directory and all that is in it.
    fn add(&mut self, path: &Path, below: &str) -> Result<(), PackError> {
        let metadata = fs::symlink_metadata(path).map_err(|e| unreadable(path, e))?;
        if !self.filter.takes(below, metadata.is_dir()) {
            return Ok(());
        }
        if !metadata.is_dir() && !metadata.is_file() {
            self.left_out.push(path.to_owned());
            return Ok(());
        }

        // Said before anything is read: receivers would refuse it much later.
        check_path(below)?;
        let mut file = None;
        if metadata.is_file() {
            let extents = extents(path, &metadata).map_err(|e| unreadable(path, e))?;
            self.files.push_back((path.to_owned(), extents.clone()));
            file = Some(Contents { size: metadata.len(), extents });
        }
        let modified = metadata.modified().ok().and_then(Modified::of);
        let mode = metadata.mode() & MODE;
        self.index.entries.push(Entry { path: below.to_owned(), mode, modified, file });
        if metadata.is_dir() { self.enter(path, below) } else { Ok(()) }
    }

    fn finish(mut self) -> Result<Tree, PackError> {
        // With patterns of files that are wanted, directories without one are not.
        if !self.filter.include.is_empty() {
            let files = self.index.entries.iter().filter(|entry| entry.file.is_some());
            let ends =
                files.flat_map(|file| file.path.match_indices('/').map(|(at, _)| &file.path[..at]));
            let wanted: BTreeSet<String> = ends.map(str::to_owned).collect();
            self.index.entries.retain(|entry| entry.file.is_some() || wanted.contains(&entry.path));
        }
        if self.index.entries.is_empty() {
            return Err(PackError::Empty);
        }

        let index = serde_json::to_vec(&self.index).map_err(TreeError::from)?;
        let len = u32::try_from(index.len()).ok().filter(|len| *len <= MAX_INDEX);
        let len = len.ok_or(TreeError::TooLong)?;

        // As a receiver reads it: whatever is wrong with it is said here.
        let size = self.index.end(index.len()).ok_or(TreeError::Sizes)?;
        Index::parse(&index, size)?;
        let mut head = Vec::with_capacity(HEAD as usize + index.len());
        head.extend(MAGIC);
        head.extend(len.to_be_bytes());
        head.extend(index);
        let head = io::Cursor::new(head);
        Ok(Tree { head, rest: self.files, open: None, left_out: self.left_out })
    }
}

/// Returns where a file is no hole.
fn extents(path: &Path, metadata: &Metadata) -> io::Result<Vec<Extent>> {
    let size = metadata.len();
    let whole = || Vec::from_iter((size > 0).then_some(Extent { at: 0, len: size }));
    if metadata.blocks().saturating_mul(BLOCK) >= size {
        return Ok(whole());
    }

    let file = File::open(path)?;
    let mut extents = Vec::new();
    let mut at = 0;
    loop {
        let begin = match seek(&file, SeekFrom::Data(at)) {
            Ok(begin) if begin < size => begin,
            // There is nothing but a hole behind.
            Ok(_) | Err(Errno::NXIO) => return Ok(extents),
            // The file system does not tell.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(whole()),
            Err(e) => return Err(e.into()),
        };
        let end = seek(&file, SeekFrom::Hole(begin))?.min(size);
        extents.push(Extent { at: begin, len: end - begin });
        if extents.len() >= MAX_EXTENTS {
            return Ok(whole());
        }
        at = end;
    }
}

fn unreadable(path: &Path, source: io::Error) -> PackError {
    PackError::Unreadable { path: path.to_owned(), source }
}

fn about(path: &Path, problem: &str) -> io::Error {
    io::Error::other(format!("{}: {problem}", path.display()))
}
