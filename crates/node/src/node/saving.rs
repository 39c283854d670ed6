//! What the daemon remembers beyond a restart, written by other threads when it changed: its epoch,
//! the epochs of its peers, inboxes other than the configured one, and receivers of sent files.
//!
//! A write that fails is tried again with a backoff ([`Saver`]). The daemon goes on meanwhile,
//! except that it sends nothing under an epoch that is not on disk.

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
    peers: Saver<BTreeMap<NodeId, u64>>,
    inboxes: Saver<BTreeMap<FlowId, PathBuf>>,
}

impl Savers {
    /// Returns savers of what was read from the disk at the start.
    pub(super) fn new(
        epoch: u64,
        peers: BTreeMap<NodeId, u64>,
        inboxes: BTreeMap<FlowId, PathBuf>,
    ) -> Self {
        let (peers, inboxes) = (Saver::new(peers), Saver::new(inboxes));
        Self { epoch: Saver::new(epoch), peers, inboxes }
    }

    /// When [`Node::save`] is to be called again though nothing happened.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let Self { epoch, peers, inboxes } = self;
        [epoch.poll_timeout(), peers.poll_timeout(), inboxes.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }
}

impl Node {
    /// Writes what changed and must be on disk soon, and what is due again after a failure.
    pub(super) fn save(&mut self) {
        let now = self.clock.now();

        // The stack raises its epoch if others remember a higher one than the state directory did.
        if let Some(epoch) = self.savers.epoch.begin(&self.stack.epoch(), now) {
            let state = self.state.clone();
            self.handle.work(
                move || state.save_epoch(epoch),
                |node, written| {
                    if written.is_err() {
                        tracing::error!("nothing is sent until the epoch is saved");
                    }
                    let now = node.clock.now();
                    node.chores.note("epoch", &written);
                    node.savers.epoch.handle_written(written.is_ok(), now);
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

        // Peers are written by `tidy`; here only again after a failure.
        if self.savers.peers.poll_timeout().is_some_and(|at| at <= now) {
            self.save_peer_epochs(now);
        }
    }

    /// Writes what may be a few seconds old on disk. To be called every few seconds.
    pub fn tidy(&mut self) {
        self.save_receivers();
        self.note_coding();
        self.tidy_parts();
        self.save_peer_epochs(self.clock.now());
    }

    fn save_peer_epochs(&mut self, now: Instant) {
        let epochs = self.stack.epochs().collect();
        if let Some(epochs) = self.savers.peers.begin(&epochs, now) {
            let state = self.state.clone();
            self.handle.work(
                move || state.save_peer_epochs(&epochs),
                |node, written| {
                    let now = node.clock.now();
                    node.savers.peers.handle_written(written.is_ok(), now);
                    node.chores.note("peers", &written);
                },
            );
        }
    }

    /// Remembers how receivers of files under way ended.
    fn save_receivers(&mut self) {
        for flow in self.files.take_receiver_news() {
            let ended = |t: &TransferStatus| t.flow == flow && t.stage != Stage::Open;
            let transfers = self.stack.transfers();
            let Some(file) = self.sources.get_mut(&flow) else { continue };
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

    /// Remembers the peers' epochs at the end, when waiting does no harm.
    pub fn save_peers(&mut self) {
        let saved = self.state.save_peer_epochs(&self.stack.epochs().collect());
        self.chores.note("peers", &saved);
    }
}
