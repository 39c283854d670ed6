//! What the daemon remembers beyond a restart, written by other threads when it changed: its epoch,
//! inboxes other than the configured one, and receivers of sent files.
//!
//! A write that fails is tried again with a backoff ([`Saver`]). The daemon goes on meanwhile.

use super::Node;
use ncmesh_engine::file::{Stage, TransferStatus};
use ncmesh_engine::time::Instant;
use ncmesh_host::saving::Saver;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Values that are kept on disk.
pub(super) struct Savers {
    pub(super) epoch: Saver<u64>,
    inboxes: Saver<BTreeMap<FlowId, PathBuf>>,
}

impl Savers {
    /// Returns savers of the inboxes that were read from the disk, and of an epoch that is new.
    pub(super) fn new(inboxes: BTreeMap<FlowId, PathBuf>) -> Self {
        Self { epoch: Saver::new(0), inboxes: Saver::new(inboxes) }
    }

    /// When [`Node::save`] is to be called again though nothing happened.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.epoch.poll_timeout(), self.inboxes.poll_timeout()].into_iter().flatten().min()
    }
}

impl Node {
    /// Writes what changed and must be on disk soon, and what is due again after a failure.
    pub(super) fn save(&mut self) {
        let now = self.clock.now();

        // The stack raises its epoch if others remember a higher one.
        if let Some(epoch) = self.savers.epoch.begin(&self.stack.epoch(), now) {
            let state = self.state.clone();
            self.handle.work(
                move || state.save_epoch(epoch),
                |node, written| {
                    let now = node.clock.now();
                    node.savers.epoch.handle_written(written.is_ok(), now);
                    node.chores.note("epoch", &written);
                },
            );
        }

        // Where files are received that do not go to the configured inbox: a restart goes on there.
        if let Some(inboxes) = self.savers.inboxes.begin(self.files.elsewhere(), now) {
            let state = self.state.clone();
            self.handle.work(
                move || state.save_inboxes(&inboxes),
                |node, written| {
                    let now = node.clock.now();
                    node.savers.inboxes.handle_written(written.is_ok(), now);
                    node.chores.note("inboxes", &written);
                },
            );
        }
    }

    /// Writes what may be a few seconds old on disk. To be called every few seconds.
    pub fn tidy(&mut self) {
        self.save_receivers();
        self.note_coding();
        self.note_neighbors();
        self.forget_idle();
        self.tidy_parts();
        self.measurements.forget_idle(self.clock.now());
    }

    /// Forgets what belongs to transfers and nodes that the stack has forgotten.
    fn forget_idle(&mut self) {
        let transfers = self.stack.transfers();
        self.sources.retain(|flow, _| transfers.iter().any(|t| t.flow == *flow));
        let (topology, inbound) = (self.stack.topology(), self.stack.inbound());
        let inbound: BTreeMap<NodeId, f64> = inbound.collect();
        let is_known = |node| topology.state(node).is_some() || inbound.contains_key(&node);
        self.last_heard.retain(|node, _| is_known(*node));
    }

    /// Remembers how receivers of files under way ended.
    fn save_receivers(&mut self) {
        for flow in self.files.take_receiver_news() {
            let ended = |t: &TransferStatus| t.flow == flow && t.stage != Stage::Open;
            let transfers = self.stack.transfers();
            let Some(file) = self.sources.get_mut(&flow) else { continue };
            // The entry of an ended transfer is removed elsewhere.
            if transfers.iter().any(ended) {
                continue;
            }
            let receivers = transfers.iter().filter(|t| t.flow == flow).flat_map(|t| &t.receivers);
            let done = receivers.filter(|r| r.state.is_final()).map(|r| (r.node, r.state));
            file.done = done.collect();
            let (journal, file) = (self.state.outgoing(), file.clone());
            self.handle.work(
                move || journal.update(&file),
                move |node: &mut Self, written: io::Result<()>| {
                    if written.is_err() {
                        node.files.restore_receiver_news(flow);
                    }
                    node.chores.note("outgoing", &written);
                },
            );
        }
    }
}
