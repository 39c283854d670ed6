//! Giving an announced file its place, and finding out what of it is already there.

use super::delivery::find_delivered;
use super::journal::{Claims, Journal};
use super::{Incoming, Places, refusal};
use crate::durable;
use ncmesh_proto::file::merkle;
use ncmesh_proto::file::{BatchSet, Manifest, Refusal};
use ncmesh_wire::FlowId;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What there is of an announced file.
#[derive(Debug)]
pub enum Prepared {
    /// Its place, and the batches already there.
    Receiving(Incoming, BatchSet),
    /// It was given its name before the daemon was stopped; [`deliver`](super::delivery::deliver) finds it.
    Delivered,
}

/// Makes or finds the place of `manifest` in `inbox`. Blocks on the disk.
///
/// Batches are only claimed whose bytes on disk have the hash that was noted for them.
///
/// # Errors
/// [`Refusal::NoSpace`] or [`Refusal::Unwritable`].
pub fn prepare(inbox: &Path, manifest: &Manifest) -> Result<Prepared, Refusal> {
    prepare_in(inbox, manifest).map_err(|e| {
        tracing::warn!("{} cannot take {:?}: {e}", inbox.display(), manifest.name);
        refusal(&e)
    })
}

fn prepare_in(inbox: &Path, manifest: &Manifest) -> io::Result<Prepared> {
    let places = Places::new(inbox, manifest.flow);
    std::fs::create_dir_all(&places.dir)?;
    let earlier = Journal::resume(&places.journal, manifest)?;
    // Stopped between giving the file its name and noting that: then the file is there.
    if earlier.is_some() && !places.part.exists() && find_delivered(inbox, manifest)?.is_some() {
        return Ok(Prepared::Delivered);
    }
    let part = open_part(&places.part, manifest.geometry.size())?;
    Ok(match earlier {
        Some((journal, claims)) => {
            let have = verified(&part, manifest, &claims);
            Prepared::Receiving(Incoming { part, journal }, have)
        }
        None => {
            let journal = Journal::create(&places.journal, manifest)?;
            let none = BatchSet::none(manifest.geometry.batches());
            Prepared::Receiving(Incoming { part, journal }, none)
        }
    })
}

/// Throws away what was received of `flow`. Blocks on the disk.
pub fn discard(inbox: &Path, flow: FlowId) {
    let places = Places::new(inbox, flow);
    for path in [places.journal, places.part] {
        if let Err(e) = durable::remove(&path) {
            tracing::warn!("{} cannot be removed: {e}", path.display());
        }
    }
}

/// The part file at its full length, its space set aside; what is in it stays.
fn open_part(path: &Path, size: u64) -> io::Result<File> {
    let part = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    if part.metadata()?.len() != size {
        set_aside(&part, path, size)?;
        part.set_len(size)?;
        durable::sync_parent(path)?;
    }
    Ok(part)
}

fn set_aside(part: &File, path: &Path, size: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    match fallocate(part, FallocateFlags::empty(), 0, size) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let space = statvfs(path)?;
            if space.f_bavail.saturating_mul(space.f_frsize) < size {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(())
        }
        other => Ok(other?),
    }
}

/// Those of the claimed batches that are really there.
fn verified(part: &File, manifest: &Manifest, claims: &Claims) -> BatchSet {
    let g = &manifest.geometry;
    let mut have = BatchSet::none(g.batches());
    let mut data = Vec::new();
    for (batch, hash) in &claims.batches {
        data.resize(g.data_len(*batch), 0);
        let read = part.read_exact_at(&mut data, g.offset(*batch));
        if read.is_ok() && merkle::leaf(&data) == *hash {
            have.insert(*batch);
        }
    }
    have
}

/// Whether files can be put into `inbox`; it is made if it is not there. Blocks on the disk.
///
/// # Errors
/// Why not.
pub fn check_inbox(inbox: &Path) -> io::Result<()> {
    let hidden = inbox.join(".ncmesh");
    std::fs::create_dir_all(&hidden)?;
    let probe = hidden.join("probe");
    File::create(&probe)?;
    durable::remove(&probe)
}
