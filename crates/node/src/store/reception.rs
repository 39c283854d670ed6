//! Preparation of a reception: makes the part file, or finds the batches it already has.

use super::delivery::find_delivered;
use super::journal::{Claims, Journal};
use super::{DIR, Incoming, Places, refusal};
use crate::root::Root;
use ncmesh_engine::file::merkle;
use ncmesh_engine::file::{BatchSet, Manifest, Refusal};
use ncmesh_wire::FlowId;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Upper bound of the journal's growth for each batch, bytes.
const JOURNAL_BYTES: u64 = 128;

/// Result of the preparation.
#[derive(Debug)]
pub enum Prepared {
    /// The part file is ready; these batches are already there.
    Receiving(Incoming, BatchSet),
    /// The file was renamed before the daemon stopped. [`deliver`](super::delivery::deliver) finds
    /// it.
    Delivered,
}

/// Prepares the reception of `manifest` in `inbox`: makes or opens its part file and journal.
/// Blocks on the disk.
///
/// Batches count as present only if their bytes on disk have the recorded hash.
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
    let (inbox, places) = (Root::make(inbox)?, Places::new(manifest.flow));
    inbox.make_dir(DIR)?;
    let earlier = Journal::resume(&inbox, &places.journal, manifest)?;
    // The daemon may have stopped after it gave the file its name, and before it recorded that or
    // removed the other name.
    if earlier.is_some() && find_delivered(&inbox, manifest)?.is_some() {
        inbox.remove(&places.part)?;
        return Ok(Prepared::Delivered);
    }
    if let Some((journal, claims)) = earlier {
        let part = open_part(&inbox, &places.part, manifest)?;
        let have = verified(&part, manifest, &claims);
        return Ok(Prepared::Receiving(Incoming { part, journal }, have));
    }
    let begun = open_part(&inbox, &places.part, manifest).and_then(|part| {
        Ok(Incoming { part, journal: Journal::create(&inbox, &places.journal, manifest)? })
    });
    if begun.is_err() {
        // Some file systems would keep preallocated blocks.
        remove(&inbox, &places);
    }
    Ok(Prepared::Receiving(begun?, BatchSet::none(manifest.geometry.batches())))
}

/// Removes what was received of `flow`. Blocks on the disk.
pub fn discard(inbox: &Path, flow: FlowId) {
    match Root::open(inbox) {
        Ok(inbox) => remove(&inbox, &Places::new(flow)),
        Err(e) => tracing::warn!("{} cannot be opened: {e}", inbox.display()),
    }
}

fn remove(inbox: &Root, places: &Places) {
    for path in [&places.journal, &places.part] {
        if let Err(e) = inbox.remove(path) {
            tracing::warn!("{} cannot be removed: {e}", inbox.join(path).display());
        }
    }
}

/// Opens the part file and sets it to its full length, with its space allocated. Keeps its
/// contents.
fn open_part(inbox: &Root, path: &Path, manifest: &Manifest) -> io::Result<File> {
    let size = manifest.geometry.size();
    let part = inbox.open_to_write(path)?;
    if part.metadata()?.len() != size {
        let journal = u64::from(manifest.geometry.batches()) * JOURNAL_BYTES;
        allocate(&part, size, journal)?;
        part.set_len(size)?;
        inbox.sync_parent(path)?;
    }
    Ok(part)
}

/// Allocates `size` bytes for `part`, and checks that `more` bytes are left for the journal.
fn allocate(part: &File, size: u64, more: u64) -> io::Result<()> {
    if size == 0 {
        return Ok(());
    }
    // Check the free space first: fallocate may use all of it before it fails.
    let space = fstatvfs(part)?;
    if space.f_bavail.saturating_mul(space.f_frsize) < size.saturating_add(more) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    match fallocate(part, FallocateFlags::empty(), 0, size) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        other => Ok(other?),
    }
}

/// Returns the claimed batches whose data is really there.
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

/// Checks that files can be put into `inbox`. Makes it if it is absent. Blocks on the disk.
///
/// # Errors
/// The directory cannot be made or written.
pub fn check_inbox(inbox: &Path) -> io::Result<()> {
    let inbox = Root::make(inbox)?;
    inbox.make_dir(DIR)?;
    let probe = Path::new(DIR).join("probe");
    inbox.create(&probe)?;
    inbox.remove(&probe)
}
