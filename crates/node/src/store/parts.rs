//! Parts of files that an inbox keeps though nothing is received: their sources are gone.
//!
//! A part is kept for when its source returns. It goes when it is older than the limit, when it
//! holds nothing, or when there are too many. A part that is being received is never touched: its
//! journal is locked.

use super::journal::{self, RECORD_LEN};
use super::made::release;
use super::places::{DIR, Places};
use crate::root::Root;
use ncmesh_engine::file::Manifest;
use ncmesh_wire::FlowId;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Most parts that an inbox keeps whose sources are gone. The oldest make room.
const MAX_PARTS: usize = 256;

/// Part of a file that is not being received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The file.
    pub manifest: Manifest,
    /// Bytes of it that are there, as far as its journal claims.
    pub bytes: u64,
    /// When it last grew.
    pub changed: SystemTime,
}

/// Returns the parts that `inbox` keeps, oldest first, after removing those that are not worth it.
/// Ignores the files `open`, which are being received. Blocks on the disk.
///
/// # Errors
/// The directory cannot be read.
pub fn collect(
    inbox: &Path,
    open: &BTreeSet<FlowId>,
    keep: Duration,
    now: SystemTime,
) -> io::Result<Vec<Part>> {
    let inbox = match Root::open_strict(inbox) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened?,
    };

    // The directory of parts is made with the first file.
    if !inbox.has(DIR)? {
        return Ok(Vec::new());
    }

    let mut kept = Vec::new();
    for flow in flows(&inbox)?.difference(open) {
        let Some(part) = read(&inbox, *flow) else {
            // Without a usable journal nothing of it can be used.
            discard(&inbox, *flow);
            continue;
        };

        // A clock that was set back must not remove parts.
        let age = now.duration_since(part.changed).unwrap_or_default();
        if part.bytes > 0 && age <= keep {
            kept.push(part);
        } else if discard(&inbox, *flow) && part.bytes > 0 {
            tracing::info!("{flow}: {:?} was not finished and is removed", part.manifest.name);
        }
    }

    // Beyond the limit the oldest go, whatever their sources do.
    kept.sort_by_key(|part| part.changed);
    let surplus = kept.len().saturating_sub(MAX_PARTS);
    for part in kept.drain(..surplus) {
        discard(&inbox, part.manifest.flow);
    }
    Ok(kept)
}

/// Returns the flows of which an inbox has a part or a journal.
fn flows(inbox: &Root) -> io::Result<BTreeSet<FlowId>> {
    let flow = |name: std::ffi::OsString| {
        let (flow, kind) = name.to_str()?.split_once('.')?;
        matches!(kind, "part" | "journal" | "aside").then(|| flow.parse().ok())?
    };
    Ok(inbox.names(DIR)?.into_iter().filter_map(flow).collect())
}

fn read(inbox: &Root, flow: FlowId) -> Option<Part> {
    let journal = inbox.open_to_read(Places::new(flow).journal).ok()?;
    let found = journal.metadata().ok()?;
    let (manifest, head) = journal::read_head(&journal)?;

    // Guessed from the journal: reading the part itself would take too long.
    let records = found.len().saturating_sub(head) / RECORD_LEN as u64;
    let bytes = records.saturating_mul(manifest.geometry.data_len(0) as u64);
    let bytes = bytes.min(manifest.geometry.size());

    (manifest.flow == flow).then_some(Part { bytes, changed: found.modified().ok()?, manifest })
}

/// Removes part and journal of a flow, unless it is being received. Returns whether they are gone.
fn discard(inbox: &Root, flow: FlowId) -> bool {
    let Places { part, journal, aside } = Places::new(flow);

    // Held until both are gone.
    let lock = inbox.open_to_read(&journal);
    if lock.as_ref().is_ok_and(|journal| journal.try_lock().is_err()) {
        return false;
    }
    let removed = release(inbox, flow).and_then(|()| inbox.remove(&aside));
    let removed = removed.and_then(|()| inbox.remove(&part)).and_then(|()| inbox.remove(&journal));
    if let Err(e) = &removed {
        tracing::warn!("{flow}: what was received of it cannot be removed: {e}");
    }
    removed.is_ok()
}
