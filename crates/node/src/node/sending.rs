//! Files that this node sends, as they are kept on disk until they have ended.
//!
//! [`MAX_OPEN`] of them are announced at a time, fewer than the transfers that a receiver keeps.
//! The others wait, by priority and then in the order in which they came.

use super::Handle;
use super::names::name_of;
use crate::api::types::{Direction, State, Transfer};
use crate::state::{OutgoingFile, OutgoingJournal, to_hex};
use ncmesh_console::schema::{ReceivedValues, SourceValues};
use ncmesh_engine::Background;
use ncmesh_engine::file::{Stage, TransferStatus};
use ncmesh_engine::name::harmless_file_name;
use ncmesh_stack::Stack;
use ncmesh_wire::FlowId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

/// Most files that are announced at a time. A receiver keeps 64 transfers of all sources.
const MAX_OPEN: usize = 32;
/// Most files that wait.
pub(super) const MAX_WAITING: usize = 1024;

/// Files that this node sends.
#[derive(Default)]
pub(super) struct Sending {
    /// Files that are sent, and ended ones that the stack still shows.
    files: BTreeMap<FlowId, OutgoingFile>,
    /// Files that wait for their turn, by priority, the highest first.
    waiting: VecDeque<OutgoingFile>,
    /// Files whose turn has come, and that are being opened.
    opening: BTreeSet<FlowId>,
    /// Damaged entries of the journal, which were moved aside when the daemon started.
    pub damaged: BTreeSet<PathBuf>,
}

impl Sending {
    /// Returns whether a file must wait, while `open` are announced.
    pub(super) fn must_wait(&self, flow: FlowId, open: usize) -> bool {
        !self.opening.contains(&flow) && open + self.opening.len() >= MAX_OPEN
    }

    /// Lets a file wait behind those of its priority. Returns false if too many wait.
    pub(super) fn wait(&mut self, file: OutgoingFile) -> bool {
        if self.waiting.len() >= MAX_WAITING {
            return false;
        }
        let behind = self.waiting.partition_point(|other| other.priority >= file.priority);
        self.waiting.insert(behind, file);
        true
    }

    /// Returns the next file whose turn has come, while `open` are announced.
    pub(super) fn next(&mut self, open: usize) -> Option<OutgoingFile> {
        if open + self.opening.len() >= MAX_OPEN {
            return None;
        }
        let file = self.waiting.pop_front()?;
        self.opening.insert(file.manifest.flow);
        Some(file)
    }

    /// Notes that a file is announced, or cannot be.
    pub(super) fn opened(&mut self, flow: FlowId) {
        self.opening.remove(&flow);
    }

    /// Removes a file that waits, as its user wants.
    pub(super) fn cancel_waiting(&mut self, flow: FlowId) -> Option<OutgoingFile> {
        let place = self.waiting.iter().position(|file| file.manifest.flow == flow)?;
        self.waiting.remove(place)
    }

    /// Returns the files that wait, as transfers.
    pub(super) fn waiting_transfers<'a>(
        &'a self,
        stack: &'a Stack,
    ) -> impl Iterator<Item = Transfer> + 'a {
        self.waiting.iter().enumerate().map(|(before, file)| Transfer {
            id: file.manifest.flow.to_string(),
            name: harmless_file_name(&file.manifest.name),
            path: Some(file.path.clone()),
            size: file.manifest.geometry.size(),
            hash: to_hex(&file.manifest.hash),
            source: name_of(stack, file.manifest.flow.source),
            scheme: Some(file.scheme.clone()),
            scheme_reason: file.scheme_reason.clone(),
            background: file.allowance.background.map(Background::percent),
            limit_bps: file.allowance.limit_bps,
            direction: Direction::Sending,
            state: State::Invited,
            reason: Some(format!("waits for its turn, {before} before it")),
            ended: false,
            values: ReceivedValues::default(),
            receivers: Vec::new(),
            sent: SourceValues::default(),
            forwarders: Vec::new(),
        })
    }

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

    /// Returns the paths of the files.
    pub(super) fn paths(&self) -> BTreeSet<PathBuf> {
        self.files.values().chain(&self.waiting).map(|file| file.path.clone()).collect()
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
        // Receivers that may still change are left out: a restart asks them again.
        let done = receivers.filter(|r| r.state.is_final()).map(|r| (r.node, r.state));
        file.done = done.collect();

        let file = file.clone();
        handle.work(
            move || journal.update(&file),
            move |node, written| {
                // The news is due again, or the next restart would not know of it.
                if written.is_err() {
                    node.files.restore_receiver_news(flow);
                }
                node.chores.note("outgoing", &written);
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_engine::file::{Allowance, Geometry, Manifest};
    use ncmesh_wire::NodeId;

    fn file(serial: u32, priority: u8) -> OutgoingFile {
        let flow = FlowId { source: NodeId(1), serial };
        let geometry = Geometry::new(1, 32, 1400).unwrap();
        let manifest = Manifest { flow, name: "a".into(), geometry, root: [0; 32], hash: [0; 32] };
        OutgoingFile {
            path: PathBuf::from(format!("/{serial}")),
            manifest,
            scheme: "cascade".into(),
            scheme_reason: None,
            receivers: Vec::new(),
            done: BTreeMap::new(),
            open: true,
            allowance: Allowance::default(),
            priority,
        }
    }

    #[test]
    fn files_wait_by_priority_and_then_in_order() {
        let mut sending = Sending::default();
        let flow = |serial| FlowId { source: NodeId(1), serial };
        assert!(!sending.must_wait(flow(1), MAX_OPEN - 1));
        assert!(sending.must_wait(flow(1), MAX_OPEN));
        for (serial, priority) in [(1, 5), (2, 5), (3, 9), (4, 0), (5, 9)] {
            assert!(sending.wait(file(serial, priority)));
        }
        assert!(
            sending.cancel_waiting(flow(2)).is_some() && sending.cancel_waiting(flow(2)).is_none()
        );
        assert!(sending.next(MAX_OPEN).is_none(), "there is no slot");
        let mut order = Vec::new();
        while let Some(next) = sending.next(0) {
            order.push(next.manifest.flow.serial);
        }
        assert_eq!(order, [3, 5, 1, 4]);

        // A file whose turn has come takes its slot while it is opened.
        assert!(!sending.must_wait(flow(3), MAX_OPEN) && sending.must_wait(flow(9), MAX_OPEN - 4));
        sending.opened(flow(3));
        assert!(!sending.must_wait(flow(9), MAX_OPEN - 4));
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut sending = Sending::default();
        assert!((0..MAX_WAITING as u32).all(|serial| sending.wait(file(serial, 5))));
        assert!(!sending.wait(file(9999, 9)));
    }
}
