//! Files that this node receives: which ones it takes, those that it has received, and parts whose
//! sources are gone, which are shown, and removed in time.

use super::Handle;
use super::chores::Chores;
use super::names::name_of;
use crate::api::types::{Direction, KeptParts, State, Transfer};
use crate::config::InboxLimits;
use crate::state::{Delivered, Delivery, append_delivery, to_hex};
use crate::store::parts::{Part, collect};
use crate::store::reception::discard;
use ncmesh_console::schema::{ReceivedValues, SourceValues};
use ncmesh_engine::file::{self, Manifest, Stage, TransferStatus};
use ncmesh_engine::name::harmless_file_name;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_host::files::{Files, Known};
use ncmesh_stack::Stack;
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::SystemTime;

/// Time between two looks at the inboxes.
const INTERVAL: Duration = Duration::from_secs(60);

/// Files that this node receives.
pub(super) struct Inbox {
    /// Limits on received files.
    pub limits: InboxLimits,
    /// Files that were received, or cancelled here.
    pub delivered: Delivered,
    /// Parts of files that are not being received, and the inboxes they are in. `parts::collect`
    /// bounds their number.
    kept: BTreeMap<FlowId, (PathBuf, Part)>,
    /// Since when the sources of files that are being received are gone. One for each of these.
    gone: BTreeMap<FlowId, Instant>,
    next_look: Instant,
}

impl Inbox {
    pub(super) fn new(limits: InboxLimits, delivered: Delivered) -> Self {
        let (kept, gone) = Default::default();
        Self { limits, delivered, kept, gone, next_look: Instant::default() }
    }

    /// Returns the number of parts.
    #[cfg(test)]
    pub(super) fn parts(&self) -> usize {
        self.kept.len()
    }

    /// Returns why an announced file is not received: it was delivered or cancelled here before, or
    /// its source may not send to this node.
    pub(super) fn known(&self, stack: &Stack, manifest: &Manifest) -> Option<Known> {
        match self.delivered.find(manifest) {
            Some(delivery) if delivery.path.is_some() => Some(Known::Delivered),
            Some(_) => Some(Known::Cancelled),
            None if !self.is_welcome(stack, manifest) => Some(Known::Unwelcome),
            None => None,
        }
    }

    /// Returns whether an announced file was delivered here before.
    pub(super) fn was_delivered(&self, manifest: &Manifest) -> bool {
        self.delivered.find(manifest).is_some_and(|delivery| delivery.path.is_some())
    }

    /// Returns whether files of this source are taken.
    fn is_welcome(&self, stack: &Stack, manifest: &Manifest) -> bool {
        let source = manifest.flow.source;
        let name = stack.topology().state(source).map(|state| state.name.as_str());
        let allowed = self.limits.allow_from.as_ref();
        allowed.is_none_or(|allowed| allowed.iter().any(|sender| sender.is(source, name)))
    }

    /// Remembers that a file was cancelled here, so that a restart does not receive it either.
    pub(super) fn note_cancelled(&mut self, manifest: &Manifest, chores: &Chores, handle: &Handle) {
        let flow = manifest.flow;
        let delivery = Delivery { hash: manifest.hash, path: None };
        self.delivered.learn(flow, delivery.clone());
        let list = self.delivered.file();
        chores.persist("delivered", handle, move || append_delivery(&list, flow, &delivery));
    }

    // ---- parts

    /// Looks at the inboxes the next time, because a part is left there.
    pub(super) fn look_soon(&mut self, now: Instant) {
        self.next_look = now;
    }

    /// Returns whether it is time to look at the inboxes.
    pub(super) fn takes_look(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next_look;
        if is_due {
            self.next_look = now + INTERVAL;
        }
        is_due
    }

    /// Looks for parts that are kept, and removes those that were kept for long enough. Looking
    /// into a directory may block, so it is done on another thread. A part that is begun meanwhile
    /// is safe: its reception holds the lock of its journal.
    pub(super) fn look(&self, files: &Files<PathBuf>, handle: &Handle) {
        let open: BTreeSet<FlowId> = files.receiving().collect();
        // Inboxes of an earlier configuration may still hold parts.
        let elsewhere = files.elsewhere().values();
        let inboxes: BTreeSet<PathBuf> = elsewhere.chain(files.inboxes()).cloned().collect();
        if inboxes.is_empty() {
            return;
        }

        // The thread cannot look at the node, so it takes along what it needs.
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

        handle.work(work, |node, kept| node.inbox.kept = kept);
    }

    /// Returns the receptions to give up: their sources have been gone for as long as parts are
    /// kept. A source that returns after a restart of this node is taken for a new one.
    pub(super) fn given_up(&mut self, stack: &Stack, now: Instant) -> Vec<FlowId> {
        let transfers = stack.transfers();
        let gone: Vec<FlowId> =
            transfers.iter().filter(|t| is_source_gone(stack, t)).map(|t| t.flow).collect();
        // A source that came back begins from zero when it goes again.
        self.gone.retain(|flow, _| gone.contains(flow));

        let mut given_up = Vec::new();
        for flow in gone {
            let since = *self.gone.entry(flow).or_insert(now);
            if now.since(since) >= self.limits.keep {
                given_up.push(flow);
            }
        }

        given_up
    }

    /// Removes a part that is kept, as its user wants. Returns whether there was one.
    pub(super) fn cancel_part(&mut self, flow: FlowId, chores: &Chores, handle: &Handle) -> bool {
        let Some((inbox, part)) = self.kept.remove(&flow) else { return false };
        self.note_cancelled(&part.manifest, chores, handle);
        chores.persist("inbox", handle, move || discard(&inbox, flow));
        true
    }

    /// Returns the parts that are kept, as transfers.
    pub(super) fn kept_transfers<'a>(
        &'a self,
        stack: &'a Stack,
        current: &'a [TransferStatus],
    ) -> impl Iterator<Item = Transfer> + 'a {
        let is_current = |flow: &FlowId| current.iter().any(|t| t.flow == *flow);
        let kept = self.kept.iter().filter(move |(flow, _)| !is_current(flow));

        kept.map(|(flow, (_, part))| Transfer {
            id: flow.to_string(),
            name: harmless_file_name(&part.manifest.name),
            path: None,
            size: part.manifest.geometry.size(),
            hash: to_hex(&part.manifest.hash),
            source: name_of(stack, flow.source),
            scheme: None,
            scheme_reason: None,
            background: None,
            limit_bps: None,
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
        let kept = self.kept.values();
        KeptParts { files: kept.len(), bytes: kept.map(|(_, part)| part.bytes).sum() }
    }
}

/// Why a file is not received for now.
pub(super) const SOURCE_GONE: &str = "its source is out of reach";

/// Returns whether this node receives a file whose source is not in the mesh any more.
pub(super) fn is_source_gone(stack: &Stack, t: &TransferStatus) -> bool {
    t.direction == file::Direction::Receiving
        && t.stage == Stage::Open
        && stack.topology().state(t.flow.source).is_none()
}
