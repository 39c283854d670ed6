//! Files that survive power loss, each given by its path. The directory is trusted, the file in it
//! is not: it is opened as [`Root`] opens files.

use crate::root::Root;
use std::io;
use std::path::Path;

/// Replaces the file's contents atomically.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let (root, name) = split(path)?;
    root.replace(name, contents)
}

/// Returns the first `limit` bytes of the file, or nothing if the file does not exist.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (root, name) = split(path)?;
    root.read(name, limit)
}

fn split(path: &Path) -> io::Result<(Root, &Path)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((Root::open(parent.unwrap_or(Path::new(".")))?, Path::new(name)))
}
