//! The last step of a reception: the whole file is verified, made durable and given its name.

use super::{Places, refusal};
use crate::durable;
use ncmesh_engine::file::merkle::Hash;
use ncmesh_engine::file::{Manifest, Refusal};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// So many names are tried beside one that is taken.
const MAX_NAMES: u32 = 1000;

/// Verifies the assembled file of `manifest` and gives it its name in `inbox`: its own, or where another file
/// has that one, `name (2).ext` and so on. A file of that name with the same contents is taken for it. Blocks
/// on the disk.
///
/// # Errors
/// [`Refusal::Corrupt`] where the whole file's hash is wrong, [`Refusal::NoSpace`], [`Refusal::Unwritable`].
pub fn deliver(inbox: &Path, manifest: &Manifest) -> Result<PathBuf, Refusal> {
    match deliver_in(inbox, manifest) {
        Ok(path) => path.ok_or(Refusal::Corrupt),
        Err(e) => {
            tracing::warn!("{}: {:?} cannot be completed: {e}", inbox.display(), manifest.name);
            Err(refusal(&e))
        }
    }
}

/// `None`: the hash is wrong.
fn deliver_in(inbox: &Path, manifest: &Manifest) -> io::Result<Option<PathBuf>> {
    let places = Places::new(inbox, manifest.flow);
    let part = match File::open(&places.part) {
        // Given its name before a restart.
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

/// The file of `manifest` under one of the names it may have been given.
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

/// Renames, never over another file.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system cannot (NFS, for one): a second name, then the first one's removal.
        Err(Errno::INVAL | Errno::NOSYS) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        other => Ok(other?),
    }
}

/// `a.txt`, `a (2).txt`, `a (3).txt`, ...
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
