//! Files that this node sends, as they are kept on disk until they have ended.

use super::Handle;
use crate::state::{OutgoingFile, OutgoingJournal};
use ncmesh_engine::file::{Stage, TransferStatus};
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Files that this node sends.
#[derive(Default)]
pub(super) struct Sending {
    /// Files that are sent, and ended ones that the stack still shows.
    files: BTreeMap<FlowId, OutgoingFile>,
    /// Damaged entries of the journal, which were moved aside when the daemon started.
    pub damaged: BTreeSet<PathBuf>,
}

impl Sending {
    /// Keeps a file that is sent.
    pub(super) fn insert(&mut self, file: OutgoingFile) {
        self.files.insert(file.manifest.flow, file);
    }

    /// Returns a file that is sent.
    pub(super) fn get(&self, flow: FlowId) -> Option<&OutgoingFile> {
        self.files.get(&flow)
    }

    /// Returns the number of files.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Forgets files that the stack shows no more.
    pub(super) fn keep(&mut self, shown: &[TransferStatus]) {
        self.files.retain(|flow, _| shown.iter().any(|t| t.flow == *flow));
    }

    /// Remembers how receivers of a file under way ended.
    pub(super) fn save_receivers(
        &mut self,
        flow: FlowId,
        shown: &[TransferStatus],
        journal: OutgoingJournal,
        handle: &Handle,
    ) {
        let Some(file) = self.files.get_mut(&flow) else { return };
        // The entry of an ended transfer is removed elsewhere.
        if shown.iter().any(|t| t.flow == flow && t.stage != Stage::Open) {
            return;
        }
        let receivers = shown.iter().filter(|t| t.flow == flow).flat_map(|t| &t.receivers);
        let done = receivers.filter(|r| r.state.is_final()).map(|r| (r.node, r.state));
        file.done = done.collect();
        let file = file.clone();
        handle.work(
            move || journal.update(&file),
            move |node, written| {
                if written.is_err() {
                    node.files.restore_receiver_news(flow);
                }
                node.chores.note("outgoing", &written);
            },
        );
    }
}
