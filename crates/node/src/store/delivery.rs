//! Delivery, the last step of a reception: the file is verified, forced to disk and renamed.

use super::{Places, refusal};
use crate::durable;
use ncmesh_engine::file::merkle::Hash;
use ncmesh_engine::file::{Manifest, Refusal};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Number of alternative names that are tried if the file's own is taken.
const MAX_NAMES: u32 = 1000;

/// Verifies the assembled file of `manifest` and gives it its name in `inbox`.
///
/// If another file has the name, it becomes `name (2).ext` and so on. A file of that name with the
/// same contents is taken as this one. Blocks on the disk.
///
/// # Errors
/// [`Refusal::Corrupt`] if the whole file's hash is wrong, [`Refusal::NoSpace`],
/// [`Refusal::Unwritable`].
pub fn deliver(inbox: &Path, manifest: &Manifest) -> Result<PathBuf, Refusal> {
    match deliver_in(inbox, manifest) {
        Ok(path) => path.ok_or(Refusal::Corrupt),
        Err(e) => {
            tracing::warn!("{}: {:?} cannot be completed: {e}", inbox.display(), manifest.name);
            Err(refusal(&e))
        }
    }
}

/// Like [`deliver`]. Returns `None` if the hash is wrong.
fn deliver_in(inbox: &Path, manifest: &Manifest) -> io::Result<Option<PathBuf>> {
    let places = Places::new(inbox, manifest.flow);
    let part = match File::open(&places.part) {
        // The file was renamed before a restart.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return find_delivered(inbox, manifest),
        other => other?,
    };
    if hash_of(&part)? != manifest.hash {
        return Ok(None);
    }
    part.sync_all()?;
    let path = place(&places.part, inbox, manifest)?;
    durable::sync_parent(&path)?;
    Ok(Some(path))
}

/// Returns the path of a delivered file, which may have one of several names.
pub(super) fn find_delivered(inbox: &Path, manifest: &Manifest) -> io::Result<Option<PathBuf>> {
    for path in names(inbox, &manifest.name) {
        if !path.try_exists()? {
            return Ok(None);
        }
        if is_same(&path, manifest)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn place(part: &Path, inbox: &Path, manifest: &Manifest) -> io::Result<PathBuf> {
    for path in names(inbox, &manifest.name) {
        match rename_to_free(part, &path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                if is_same(&path, manifest)? {
                    durable::remove(part)?;
                    return Ok(path);
                }
            }
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name is taken"))
}

/// Renames a file, but never over another one.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // For file systems without such a call (for instance NFS): add a second name, then remove
        // the first.
        Err(Errno::INVAL | Errno::NOSYS) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        other => Ok(other?),
    }
}

/// Returns the possible names: `a.txt`, `a (2).txt`, `a (3).txt`, ...
fn names(inbox: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    let (stem, extension) = match name.rfind('.') {
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    };
    let inbox = inbox.to_owned();
    let first = std::iter::once(inbox.join(name));
    let (stem, extension) = (stem.to_owned(), extension.to_owned());
    first.chain((2..=MAX_NAMES).map(move |n| inbox.join(format!("{stem} ({n}){extension}"))))
}

fn is_same(path: &Path, manifest: &Manifest) -> io::Result<bool> {
    let metadata = std::fs::symlink_metadata(path)?;
    if !metadata.is_file() || metadata.len() != manifest.geometry.size() {
        return Ok(false);
    }
    Ok(hash_of(&File::open(path)?)? == manifest.hash)
}

fn hash_of(file: &File) -> io::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_keep_the_extension() {
        let first = |name| -> Vec<_> { names(Path::new("/i"), name).take(3).collect() };
        assert_eq!(
            first("a.tar.gz"),
            ["/i/a.tar.gz", "/i/a.tar (2).gz", "/i/a.tar (3).gz"].map(PathBuf::from)
        );
        assert_eq!(first("a")[1], Path::new("/i/a (2)"));
    }
}
