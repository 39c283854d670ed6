//! Files that are not finished and whose sources are gone: shown, and removed in time.

use super::Node;
use crate::api::types::{Direction, KeptParts, State, Transfer};
use crate::state::to_hex;
use crate::store::parts::{Part, collect};
use crate::store::reception::discard;
use ncmesh_console::schema::{ReceivedValues, SourceValues};
use ncmesh_engine::file::{self, Manifest, Stage, TransferStatus};
use ncmesh_engine::name::harmless;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

/// Time between two looks at the inboxes.
const INTERVAL: Duration = Duration::from_secs(60);

/// What the inboxes hold besides files that are being received.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    /// Parts of files, and the inboxes they are in. `parts::collect` bounds their number.
    kept: BTreeMap<FlowId, (PathBuf, Part)>,
    /// Since when the sources of files that are being received are gone. One for each of these.
    gone: BTreeMap<FlowId, Instant>,
    next_look: Instant,
}

impl Unfinished {
    /// Returns the number of parts.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Looks at the inboxes the next time, because a part is left there.
    pub(super) fn look_soon(&mut self, now: Instant) {
        self.next_look = now;
    }

    /// Removes and returns the inbox and the announcement of a part.
    pub(super) fn take(&mut self, flow: FlowId) -> Option<(PathBuf, Manifest)> {
        self.kept.remove(&flow).map(|(inbox, part)| (inbox, part.manifest))
    }
}

impl Node {
    /// Looks at the inboxes now and then. To be called every few seconds.
    pub(super) fn tidy_parts(&mut self) {
        let now = self.clock.now();
        if now < self.unfinished.next_look {
            return;
        }
        self.unfinished.next_look = now + INTERVAL;
        self.give_up_receptions(now);

        // Looking into a directory may block, so it is done on another thread. A part that is begun
        // meanwhile is safe: its reception holds the lock of its journal.
        let open: BTreeSet<FlowId> = self.files.receiving().collect();
        let elsewhere = self.files.elsewhere().values();
        let inboxes: BTreeSet<PathBuf> = elsewhere.chain(self.files.inboxes()).cloned().collect();
        if inboxes.is_empty() {
            return;
        }
        let keep = self.limits.keep;
        let work = move || {
            let mut kept = BTreeMap::new();
            for inbox in inboxes {
                match collect(&inbox, &open, keep, SystemTime::now()) {
                    Ok(parts) => kept.extend(
                        parts.into_iter().map(|part| (part.manifest.flow, (inbox.clone(), part))),
                    ),
                    Err(e) => tracing::warn!("{} cannot be read: {e}", inbox.display()),
                }
            }
            kept
        };
        self.handle.work(work, |node, kept| node.unfinished.kept = kept);
    }

    /// Ends receptions whose source has been gone for as long as parts are kept. A source that
    /// returns after a restart of this node is taken for a new one.
    fn give_up_receptions(&mut self, now: Instant) {
        let transfers = self.stack.transfers();
        let gone: Vec<FlowId> =
            transfers.iter().filter(|t| self.is_source_gone(t)).map(|t| t.flow).collect();
        self.unfinished.gone.retain(|flow, _| gone.contains(flow));
        for flow in gone {
            let since = *self.unfinished.gone.entry(flow).or_insert(now);
            if now.since(since) >= self.limits.keep {
                tracing::info!("{flow}: its source does not return, it is given up");
                self.stack.at(now, &mut self.storage).cancel(flow);
                self.files.give_up(flow);
            }
        }
        self.do_file_actions();
    }

    /// Returns whether this node receives a file whose source is not in the mesh any more.
    pub(super) fn is_source_gone(&self, t: &TransferStatus) -> bool {
        t.direction == file::Direction::Receiving
            && t.stage == Stage::Open
            && self.stack.topology().state(t.flow.source).is_none()
    }

    /// Removes a part that is kept, as its user wants. Returns whether there was one.
    pub(super) fn cancel_part(&mut self, flow: FlowId) -> bool {
        let Some((inbox, manifest)) = self.unfinished.take(flow) else { return false };
        self.note_cancelled(&manifest);
        self.persist("inbox", move || discard(&inbox, flow));
        true
    }

    /// Returns the parts that are kept, as transfers.
    pub(super) fn kept_transfers<'a>(
        &'a self,
        current: &'a [TransferStatus],
    ) -> impl Iterator<Item = Transfer> + 'a {
        let is_current = |flow: &FlowId| current.iter().any(|t| t.flow == *flow);
        let kept = self.unfinished.kept.iter().filter(move |(flow, _)| !is_current(flow));
        kept.map(|(flow, (_, part))| Transfer {
            id: flow.to_string(),
            name: harmless(&part.manifest.name),
            path: None,
            size: part.manifest.geometry.size(),
            hash: to_hex(&part.manifest.hash),
            source: self.name_of(flow.source),
            scheme: None,
            scheme_reason: None,
            direction: Direction::Receiving,
            state: State::Lost,
            reason: Some(SOURCE_GONE.into()),
            ended: false,
            values: ReceivedValues { bytes: part.bytes, ..ReceivedValues::default() },
            receivers: Vec::new(),
            sent: SourceValues::default(),
            forwarders: Vec::new(),
        })
    }

    /// Returns how much is kept.
    pub(super) fn kept_parts(&self) -> KeptParts {
        let kept = self.unfinished.kept.values();
        KeptParts { files: kept.len(), bytes: kept.map(|(_, part)| part.bytes).sum() }
    }
}

/// Why a file is not received for now.
pub(super) const SOURCE_GONE: &str = "its source is out of reach";
