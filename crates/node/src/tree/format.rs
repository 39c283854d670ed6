//! The format of a tree, read and checked.

use ncmesh_engine::file::{NameProblem, check_file_name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};

/// First bytes of a tree.
pub(crate) const MAGIC: &[u8] = b"ncmesh tree 1\n";
/// Bytes before the index: [`MAGIC`] and the length.
pub(crate) const HEAD: u64 = MAGIC.len() as u64 + 4;
/// Longest index, bytes.
pub(crate) const MAX_INDEX: u32 = 16 << 20;
/// Most files and directories: each takes an inode, however small the transfer is.
const MAX_ENTRIES: usize = 1 << 16;
/// Longest path, bytes, and its most names.
const MAX_PATH: usize = 1024;
const MAX_DEPTH: usize = 32;
/// Largest file, bytes; with holes it may be larger than the transfer.
const MAX_FILE: u64 = 1 << 44;
/// Bits of a mode that are carried: who may read, write and execute.
pub(crate) const MODE: u32 = 0o777;

/// Why something is not a tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// It does not begin as one does.
    #[error("it does not begin as a directory's transfer does")]
    NotATree,
    /// The index is longer than a receiver reads, or has more entries.
    #[error("its index is too long: {MAX_INDEX} bytes and {MAX_ENTRIES} entries are allowed")]
    TooLong,
    /// The index cannot be read.
    #[error("its index cannot be read: {0}")]
    Index(#[from] serde_json::Error),
    /// A path could lead elsewhere, or no file may have it.
    #[error("the path {path:?} is not allowed: {problem}")]
    Path {
        /// The path.
        path: String,
        /// The problem of one of its names.
        problem: NameProblem,
    },
    /// A path is too long or too deep, comes twice, or is in no directory of the tree.
    #[error("the path {0:?} is too long, comes twice, or its directory does not come before it")]
    Place(String),
    /// Extents of a file overlap, or lie outside it; or the bytes are not as many as they say.
    #[error("the sizes in its index contradict each other, or its own")]
    Sizes,
}

/// Files and directories of a tree, directories before what is in them.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Index {
    pub entries: Vec<Entry>,
}

/// A file or a directory.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Its path below the tree's directory.
    pub path: String,
    /// The rights to read, write and execute it.
    pub mode: u32,
    /// When it was changed.
    pub modified: Option<Modified>,
    /// Its contents; none if it is a directory.
    pub file: Option<Contents>,
}

/// A time: since the beginning of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Modified {
    pub seconds: u64,
    pub nanos: u32,
}

/// Contents of a file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contents {
    /// Its length, holes included, bytes.
    pub size: u64,
    /// Where it is not a hole, in order.
    pub extents: Vec<Extent>,
}

/// Part of a file that is no hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extent {
    pub at: u64,
    pub len: u64,
}

impl Modified {
    pub(crate) fn of(time: SystemTime) -> Option<Self> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Self { seconds: since.as_secs(), nanos: since.subsec_nanos() })
    }

    /// Returns the time, if this computer can name it.
    pub(crate) fn time(self) -> Option<SystemTime> {
        let since = Duration::from_secs(self.seconds)
            .checked_add(Duration::from_nanos(self.nanos.into()))?;
        SystemTime::UNIX_EPOCH.checked_add(since)
    }
}

impl Contents {
    /// Returns how many bytes of it are in the transfer.
    pub(crate) fn carried(&self) -> u64 {
        self.extents.iter().map(|extent| extent.len).fold(0, u64::saturating_add)
    }

    /// Returns whether its extents are in order and within it.
    fn is_sound(&self) -> bool {
        let mut free_from = 0;
        let fits = self.extents.iter().all(|extent| {
            let end = extent.at.checked_add(extent.len);
            let is_next = extent.len > 0 && extent.at >= free_from;
            free_from = end.unwrap_or(u64::MAX);
            is_next && free_from <= self.size
        });
        fits && self.size <= MAX_FILE
    }
}

impl Index {
    /// Reads an index whose bytes are these, of a tree of `size` bytes.
    pub(crate) fn parse(bytes: &[u8], size: u64) -> Result<Self, TreeError> {
        let index: Self = serde_json::from_slice(bytes)?;
        if index.entries.len() > MAX_ENTRIES {
            return Err(TreeError::TooLong);
        }

        // Directories come first, so whatever makes the entries in order finds its place.
        let mut paths = BTreeSet::new();
        let mut dirs = BTreeSet::new();
        for entry in &index.entries {
            check_path(&entry.path)?;
            let parent = entry.path.rsplit_once('/').map(|(parent, _)| parent);
            let has_place = parent.is_none_or(|parent| dirs.contains(parent));
            if !has_place || !paths.insert(entry.path.as_str()) {
                return Err(TreeError::Place(entry.path.clone()));
            }
            if entry.file.is_none() {
                dirs.insert(entry.path.as_str());
            }
        }

        let mut files = index.entries.iter().filter_map(|entry| entry.file.as_ref());
        if !files.all(Contents::is_sound) || index.end(bytes.len()) != Some(size) {
            return Err(TreeError::Sizes);
        }
        Ok(index)
    }

    /// Returns where the bytes of a tree with an index of this length end.
    pub(crate) fn end(&self, index_len: usize) -> Option<u64> {
        let files = self.entries.iter().filter_map(|entry| entry.file.as_ref());
        let begin = HEAD.checked_add(index_len as u64)?;
        files.map(Contents::carried).try_fold(begin, u64::checked_add)
    }
}

/// Checks that a path stays in the tree's directory, and that its names may be files' names. Names
/// that begin with a dot are allowed: they are hidden in a directory that is not.
pub(crate) fn check_path(path: &str) -> Result<(), TreeError> {
    if path.len() > MAX_PATH || path.split('/').count() > MAX_DEPTH {
        return Err(TreeError::Place(path.to_owned()));
    }
    for name in path.split('/') {
        // `.` and `..` have nothing behind their dots.
        check_file_name(name.trim_start_matches('.'))
            .map_err(|problem| TreeError::Path { path: path.to_owned(), problem })?;
    }
    Ok(())
}

/// Index of a tree, and where it ends.
#[derive(Debug)]
pub(crate) struct Head {
    pub index: Index,
    pub end: u64,
}

/// Reads the index of a tree of `size` bytes, if the bytes that it needs are there.
pub(crate) fn read_head(
    tree: &File,
    size: u64,
    is_there: impl Fn(Range<u64>) -> bool,
) -> io::Result<Option<Head>> {
    let wrong = |e: TreeError| io::Error::new(io::ErrorKind::InvalidData, e);
    if size < HEAD {
        return Err(wrong(TreeError::NotATree));
    }
    if !is_there(0..HEAD) {
        return Ok(None);
    }

    let mut head = [0; HEAD as usize];
    tree.read_exact_at(&mut head, 0)?;
    let Some((MAGIC, len)) = head.split_last_chunk() else {
        return Err(wrong(TreeError::NotATree));
    };
    let len = u32::from_be_bytes(*len);
    let end = HEAD + u64::from(len);
    if len > MAX_INDEX || end > size {
        return Err(wrong(TreeError::TooLong));
    }
    if !is_there(HEAD..end) {
        return Ok(None);
    }

    let mut bytes = vec![0; len as usize];
    tree.read_exact_at(&mut bytes, HEAD)?;
    let index = Index::parse(&bytes, size).map_err(wrong)?;
    Ok(Some(Head { index, end }))
}

/// Checks that a whole file is a tree.
///
/// # Errors
/// Why it is not, or cannot be read.
pub(crate) fn check_tree(tree: &File) -> io::Result<()> {
    let size = tree.metadata()?.len();
    read_head(tree, size, |_| true).map(drop)
}

/// Returns whether an error says that something is not a tree.
pub(crate) fn is_no_tree(e: &io::Error) -> bool {
    e.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TreeError>)
}
