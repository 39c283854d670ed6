//! One simulated node: a stack, its files in memory, and a user that accepts every file.

use crate::gateway::HostGateway;
use ncmesh_engine::file::{GenerationSet, Manifest, Outgoing, Refusal};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Instant;
use ncmesh_engine::{Event, PerPort};
use ncmesh_host::files::{Action, Files, Known, Obstacle, Prepared};
use ncmesh_host::streams::Streams;
use ncmesh_stack::Stack;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A simulated node.
pub struct Host {
    /// Protocols of the node; `None` while it is switched off.
    pub(crate) stack: Option<Stack>,
    /// Files of the node. They survive switching off.
    pub(crate) storage: MemoryStorage,
    /// Files that it sends, by scheme. They go on after a restart.
    pub(crate) outgoing: Vec<(&'static str, Outgoing)>,
    /// Transfers that its user cancelled. They are refused after a restart too.
    pub(crate) cancelled: BTreeSet<FlowId>,
    /// Decides about files that it receives. The only inbox is its memory.
    files: Files<()>,
    /// Groups that it joined. All their packets leave by one port, to the experiment.
    pub(crate) streams: Streams<()>,
    /// Gateway between its IP packets and a tunnel, if it has one. It survives switching off.
    pub(crate) gateway: Option<HostGateway>,
    /// Timer that the simulation has armed for it.
    pub(crate) timer: Option<Instant>,
    /// Number of times it was switched on.
    pub(crate) starts: u64,
    /// Whether the medium of each port has a request of it that is not granted yet.
    pub(crate) requested: PerPort<bool>,
}

/// A packet handed up at a node.
pub(crate) enum Received {
    /// Packet of a tunnel, at a node without a gateway.
    Tunnel { from: NodeId, packet: Vec<u8> },
    /// IP packet that the node's gateway permitted.
    Ip(Vec<u8>),
    /// Packet of a stream.
    Stream { flow: FlowId, packet: Vec<u8> },
}

/// Event at a node that experiments observe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A file arrived whole and verified.
    Delivered(FlowId),
    /// The source was told that a receiver is complete or has refused.
    ReceiverDone(FlowId, NodeId),
    /// The source ended a transfer. A receiver may still object.
    SendEnded(FlowId),
    /// The source cannot continue a transfer.
    SendFailed(FlowId),
    /// A file was withdrawn by its source.
    Withdrawn(FlowId),
}

impl Host {
    pub(crate) fn new() -> Self {
        Self {
            stack: None,
            storage: MemoryStorage::default(),
            outgoing: Vec::new(),
            cancelled: BTreeSet::new(),
            files: Files::new(Some(()), BTreeMap::new()),
            streams: Streams::default(),
            gateway: None,
            timer: None,
            starts: 0,
            requested: PerPort::default(),
        }
    }

    /// Returns the node's protocols; `None` while it is switched off.
    #[must_use]
    pub fn stack(&self) -> Option<&Stack> {
        self.stack.as_ref()
    }

    /// Returns the node's files.
    #[must_use]
    pub fn storage(&self) -> &MemoryStorage {
        &self.storage
    }

    /// Handles all events of the stack. `receive` gets packets for applications, `tell` gets
    /// observations.
    pub(crate) fn handle_events(
        &mut self,
        now: Instant,
        mut receive: impl FnMut(Received),
        mut tell: impl FnMut(Observation),
    ) {
        let Some(stack) = &mut self.stack else { return };
        while let Some(event) = stack.poll_event() {
            // Observations, and the record of a file being sent.
            match &event {
                Event::Withdrawn(flow) => tell(Observation::Withdrawn(*flow)),
                Event::ReceiverDone(flow, node) => {
                    note_done(&mut self.outgoing, stack, *flow, *node);
                    tell(Observation::ReceiverDone(*flow, *node));
                }
                Event::ReceiverObjected(flow, node) => {
                    let file = self.outgoing.iter_mut().find(|(_, f)| f.manifest.flow == *flow);
                    file.map(|(_, file)| file.done.remove(node));
                }
                Event::SendEnded(flow) => tell(Observation::SendEnded(*flow)),
                Event::SendFailed(flow, _) => tell(Observation::SendFailed(*flow)),
                _ => {}
            }

            // Events of files go to the logic that daemons have too. It returns all others.
            let cancelled = &self.cancelled;
            let known = |manifest: &Manifest| {
                cancelled.contains(&manifest.flow).then_some(Known::Cancelled)
            };
            match self.files.handle_event(event, now, known) {
                Some(Event::Packet { from, packet }) => match &mut self.gateway {
                    Some(gateway) => {
                        gateway.handle_inbound(from, packet, stack, &mut self.storage, now);
                    }
                    None => receive(Received::Tunnel { from, packet }),
                },
                Some(Event::StreamPacket { flow, group, layer, packet })
                    if self.streams.port(&group, &layer).is_some() =>
                {
                    receive(Received::Stream { flow, packet });
                }
                _ => {}
            }
            do_file_actions(&mut self.files, stack, &mut self.storage, now, &mut tell);
        }

        // Whatever happened may have made room in the scheme, so packets that wait in the gateway
        // can go on.
        if let Some(gateway) = &mut self.gateway {
            gateway.drain(stack, &mut self.storage, now);
            while let Some(packet) = gateway.poll_inbound() {
                receive(Received::Ip(packet));
            }
        }
    }

    /// Returns the complete generations of a file, for assertions.
    #[must_use]
    pub fn written(&self, manifest: &Manifest) -> GenerationSet {
        self.storage.written(manifest.flow, &manifest.geometry)
    }
}

/// Carries out decisions about files. Memory answers at once, is never full and keeps everything,
/// so actions that a daemon needs for its disk do nothing here.
fn do_file_actions(
    files: &mut Files<()>,
    stack: &mut Stack,
    storage: &mut MemoryStorage,
    now: Instant,
    tell: &mut impl FnMut(Observation),
) {
    while let Some(action) = files.poll_action() {
        match action {
            Action::Prepare { attempt, manifest, .. } => {
                let have = storage.written(manifest.flow, &manifest.geometry);
                let answer = Ok(Prepared::Receiving(have));
                files.handle_prepared(manifest.flow, attempt, answer, now);
            }
            Action::Verify { attempt, manifest, .. } => {
                let is_whole = storage.received_hash(manifest.flow) == manifest.hash;
                let corrupt = || Obstacle::Refused(Refusal::Corrupt);
                let answer = is_whole.then_some(()).ok_or_else(corrupt);
                files.handle_verified(manifest.flow, attempt, answer, now);
            }
            Action::Accept(flow, have) => stack.at(now, storage).accept(flow, &have),
            Action::Refuse(flow, why) => stack.at(now, storage).refuse(flow, why),
            Action::Delivered(flow) => {
                stack.at(now, storage).delivered(flow);
                tell(Observation::Delivered(flow));
            }
            Action::Close(_)
            | Action::Discard(..)
            | Action::NoteCancelled(_)
            | Action::ForgetSent(_) => {}
        }
    }
}

/// Records how a receiver ended, as a daemon's journal does.
fn note_done(files: &mut [(&'static str, Outgoing)], stack: &Stack, flow: FlowId, node: NodeId) {
    let transfers = stack.transfers().into_iter().filter(|t| t.flow == flow);
    let state = transfers.flat_map(|t| t.receivers).find(|r| r.node == node).map(|r| r.state);
    let file = files.iter_mut().find(|(_, file)| file.manifest.flow == flow);
    if let (Some(state), Some((_, file))) = (state, file) {
        file.done.insert(node, state);
    }
}
