//! Writing so that it stays written: through power loss the old contents or the new, never half of it. And
//! reading no more than can be meant.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Replaces the file's contents at once.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = File::create(&aside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    std::fs::rename(&aside, path)?;
    sync_parent(path)
}

/// The first `limit` bytes of the file; none where there is no file.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        file => drop(file?.take(limit).read_to_end(&mut bytes)?),
    }
    Ok(bytes)
}

/// Removes the file if it is there.
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
