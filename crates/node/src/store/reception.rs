//! Preparation of a reception: makes the part file, or finds the generations it already has.

use super::delivery::find_delivered;
use super::journal::{Claims, Journal, RECORD_LEN};
use super::made::release;
use super::naming::{self, Naming};
use super::places::{DIR, Places};
use super::placing::Placed;
use super::{Incoming, TreeParts, obstacle, space};
use crate::config::SpaceLimits;
use crate::root::Root;
use ncmesh_engine::file::merkle;
use ncmesh_engine::file::{GenerationSet, Manifest};
use ncmesh_host::files::Obstacle;
use ncmesh_wire::FlowId;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Result of the preparation.
#[derive(Debug)]
pub enum Prepared {
    /// The part file is ready; these generations are already there.
    Receiving(Incoming, GenerationSet),
    /// The file was renamed before the daemon stopped. [`deliver`](super::delivery::deliver) finds
    /// it.
    Delivered,
}

/// Prepares the reception of `manifest` in `inbox`: makes or opens its part file and journal, and
/// checks that what is missing fits and that the file can have its name. Claims no space yet.
/// Blocks on the disk.
///
/// Generations count as present only if their bytes on disk have the recorded hash.
///
/// # Errors
/// `NoSpace` if the file is new and does not fit, `BadName` if the file system refuses its name and
/// `naming` has no other, `Unwritable`, or a temporary obstacle.
pub fn prepare(
    inbox: &Path,
    manifest: &Manifest,
    limits: &SpaceLimits,
    naming: Naming,
) -> Result<Prepared, Obstacle> {
    prepare_in(inbox, manifest, limits, naming).map_err(|e| {
        tracing::warn!("{} cannot take {:?}: {e}", inbox.display(), manifest.name);
        let is_there =
            Root::open_strict(inbox).and_then(|i| i.has(Places::new(manifest.flow).journal));
        obstacle(&e, is_there.unwrap_or(false))
    })
}

fn prepare_in(
    dir: &Path,
    manifest: &Manifest,
    limits: &SpaceLimits,
    naming: Naming,
) -> io::Result<Prepared> {
    // The inbox is made if it is absent, but never through a link.
    let inbox = Root::make_strict(dir)?;
    let places = Places::new(manifest.flow);
    inbox.make_dir(DIR)?;
    let earlier = Journal::resume(&inbox, &places.journal, manifest)?;

    // The daemon may have stopped after it gave the file its name, and before it recorded that or
    // removed the other name.
    let has_name = !manifest.is_tree() && earlier.is_some();
    if has_name && find_delivered(&inbox, manifest)?.is_some() {
        inbox.remove(&places.part)?;
        return Ok(Prepared::Delivered);
    }

    // The journal comes first: its lock keeps the part file.
    let is_new = earlier.is_none();
    let opened = match earlier {
        Some(found) => Ok(found),
        None => Journal::create(&inbox, &places.journal, manifest).map(|new| (new, Claims::none())),
    };

    let prepared = opened.and_then(|(journal, claims)| {
        // Claims of the journal are checked against the data: a power loss may have lost either.
        let part = open_part(&inbox, &places.part, manifest)?;
        let have = verified(&part, manifest, &claims);
        // Only what is missing counts: generations that are there have claimed their space.
        let used = space::used(&inbox, limits)?;
        let missing = missing_bytes(manifest, &have);
        space::check(&part, used, missing, limits)?;
        if naming == Naming::Announced {
            naming::check(&inbox, DIR, manifest.file_name())?;
        }
        let tree = manifest.is_tree().then(|| {
            let placed = Some(Placed::default());
            Box::new(TreeParts { manifest: manifest.clone(), have: have.clone(), seen: 0, placed })
        });
        let incoming = Incoming { part, journal, inbox: dir.to_owned(), used, tree };
        Ok(Prepared::Receiving(incoming, have))
    });

    if prepared.is_err() && is_new {
        // A part that cannot be removed now is collected as a part without contents.
        let _ = remove(&inbox, manifest.flow);
    }

    prepared
}

/// Returns the bytes that are still to be written, journal included.
fn missing_bytes(manifest: &Manifest, have: &GenerationSet) -> u64 {
    let g = &manifest.geometry;
    let there: u64 = have.iter().map(|generation| g.data_len(generation) as u64).sum();
    let records = u64::from(g.generations() - have.count()) * RECORD_LEN as u64;
    g.size() - there + records
}

/// Removes what was received of `flow`. Blocks on the disk.
///
/// # Errors
/// Something of it cannot be removed.
pub fn discard(inbox: &Path, flow: FlowId) -> io::Result<()> {
    match Root::open_strict(inbox) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        opened => remove(&opened?, flow),
    }
}

fn remove(inbox: &Root, flow: FlowId) -> io::Result<()> {
    let places = Places::new(flow);
    match inbox.has(DIR)? {
        true => {
            release(inbox, flow)?;
            inbox.remove(&places.aside)?;
            inbox.remove(&places.journal).and_then(|()| inbox.remove(&places.part))
        }
        false => Ok(()),
    }
}

/// Opens the part file and sets it to its full length, of which nothing is allocated yet. Keeps its
/// contents.
fn open_part(inbox: &Root, path: &Path, manifest: &Manifest) -> io::Result<File> {
    let size = manifest.geometry.size();
    let part = inbox.open_to_write(path)?;
    // The length is set again only if it differs: a part that is resumed keeps its data.
    if part.metadata()?.len() != size {
        part.set_len(size)?;
        inbox.sync_parent(path)?;
    }
    Ok(part)
}

/// Returns the claimed generations whose data is really there.
fn verified(part: &File, manifest: &Manifest, claims: &Claims) -> GenerationSet {
    let g = &manifest.geometry;
    let mut have = GenerationSet::none(g.generations());
    let mut data = Vec::new();
    for (generation, hash) in &claims.generations {
        data.resize(g.data_len(*generation), 0);
        let read = part.read_exact_at(&mut data, g.offset(*generation));
        // A hash of the journal is a claim; the data decides.
        if read.is_ok() && merkle::leaf(&data) == *hash {
            have.insert(*generation);
        }
    }

    have
}

/// Checks that files can be put into `inbox`. Makes it if it is absent. Blocks on the disk.
///
/// # Errors
/// The directory cannot be made or written.
pub fn check_inbox(inbox: &Path) -> io::Result<()> {
    let inbox = Root::make_strict(inbox)?;
    inbox.make_dir(DIR)?;
    let probe = Path::new(DIR).join("probe");
    inbox.create(&probe)?;
    inbox.remove(&probe)
}
