//! Files that survive power loss.
//!
//! After a power loss a file has either the old contents or the new, never a mixture. Reads are
//! limited in length, so that a damaged file cannot exhaust memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Replaces the file's contents atomically: writes a new file, forces it to disk, and renames it.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = File::create(&aside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    sync_parent(path)
}

/// Returns the first `limit` bytes of the file, or nothing if the file does not exist.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        file => drop(file?.take(limit).read_to_end(&mut bytes)?),
    }
    Ok(bytes)
}

/// Removes the file if it exists.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Makes the creation, renaming or removal of `path` durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => File::open(dir)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}
