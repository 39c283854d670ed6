//! Delivery, the last step of a reception: the file is verified, forced to disk and renamed.

use super::naming::{name_in, names};
use super::obstacle;
use super::places::{DIR, Places};
use super::placing::finish;
use crate::config::SpaceLimits;
use crate::root::Root;
use ncmesh_engine::file::merkle::Hash;
use ncmesh_engine::file::{Manifest, Refusal};
use ncmesh_host::files::Obstacle;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Verifies the assembled file of `manifest` and gives it its name in `inbox`.
///
/// If another file has the name, it becomes `name (2).ext` and so on. A file of that name with the
/// same contents is taken as this one. A name that the file system refuses becomes
/// [another](super::naming). Of a [tree](crate::tree) the directory gets the name. Blocks on the
/// disk.
///
/// # Errors
/// [`Refusal::Corrupt`] if the whole file's hash is wrong, [`Refusal::Unwritable`], or a temporary
/// obstacle.
pub fn deliver(
    inbox: &Path,
    manifest: &Manifest,
    limits: &SpaceLimits,
) -> Result<PathBuf, Obstacle> {
    match deliver_in(inbox, manifest, limits) {
        Ok(path) => path.ok_or(Obstacle::Refused(Refusal::Corrupt)),
        Err(e) => {
            tracing::warn!("{}: {:?} cannot be completed: {e}", inbox.display(), manifest.name);
            Err(obstacle(&e, true))
        }
    }
}

/// Like [`deliver`]. Returns `None` if the hash is wrong.
fn deliver_in(
    inbox: &Path,
    manifest: &Manifest,
    limits: &SpaceLimits,
) -> io::Result<Option<PathBuf>> {
    let inbox = Root::open_strict(inbox)?;
    let places = Places::new(manifest.flow);
    let part = match inbox.open_to_read(&places.part) {
        // The file was renamed before a restart.
        Err(e) if e.kind() == ErrorKind::NotFound && !manifest.is_tree() => {
            return find_delivered(&inbox, manifest);
        }
        other => other?,
    };

    if hash_of(&part)? != manifest.hash {
        return Ok(None);
    }
    // The part of a tree stays until the transfer is noted as delivered: a crash before that
    // finishes it again.
    if manifest.is_tree() {
        return finish(&inbox, &part, manifest, limits).map(Some);
    }

    // Contents are on disk before the name is: a crash must not leave a name without them.
    part.sync_all()?;
    let name = place(&places.part, &inbox, manifest)?;
    // The name is on disk before the source hears that it may forget the file.
    inbox.sync_parent(&name)?;
    Ok(Some(inbox.join(name)))
}

/// Returns the path of a delivered file, which may have one of several names.
pub(super) fn find_delivered(inbox: &Root, manifest: &Manifest) -> io::Result<Option<PathBuf>> {
    for name in names(&name_in(inbox, DIR, &manifest.name)?) {
        // Names are given in order, so a gap ends the search.
        if !inbox.has(&name)? {
            return Ok(None);
        }
        if is_same(inbox, &name, manifest)? {
            return Ok(Some(inbox.join(name)));
        }
    }

    Ok(None)
}

/// Gives the part file the first of its possible names that is free, and returns the name.
fn place(part: &Path, inbox: &Root, manifest: &Manifest) -> io::Result<PathBuf> {
    // Renamed only to a free name, so that no file of the user is overwritten.
    for name in names(&name_in(inbox, DIR, &manifest.name)?) {
        match inbox.rename_to_free(part, &name) {
            Ok(()) => return Ok(name),
            // The same file may have come before, also by another flow.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                if is_same(inbox, &name, manifest)? {
                    inbox.remove(part)?;
                    return Ok(name);
                }
            }
            Err(e) => return Err(e),
        }
    }

    Err(io::Error::new(ErrorKind::AlreadyExists, "every name is taken"))
}

/// Returns whether a file of the inbox is a plain file with the announced contents.
fn is_same(inbox: &Root, name: &Path, manifest: &Manifest) -> io::Result<bool> {
    let file = match inbox.open_to_read(name) {
        // Somebody else's file, or not a plain file.
        Err(e) if matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => {
            return Ok(false);
        }
        opened => opened?,
    };

    if file.metadata()?.len() != manifest.geometry.size() {
        return Ok(false);
    }
    Ok(hash_of(&file)? == manifest.hash)
}

fn hash_of(file: &File) -> io::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(*hasher.finalize().as_bytes())
}
