//! One simulated node: a stack, its files in memory, and a user who accepts every file.

use ncmesh_engine::Event;
use ncmesh_engine::file::{BatchSet, Manifest, Outgoing, Refusal};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::Instant;
use ncmesh_stack::Stack;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A simulated node.
pub struct Host {
    /// The node's protocols; none while it is switched off.
    pub(crate) stack: Option<Stack>,
    /// Its files, which survive switching off.
    pub(crate) storage: MemoryStorage,
    /// What it sends, to go on after a restart.
    pub(crate) outgoing: Vec<(&'static str, Outgoing)>,
    /// What its user ended, and does not want after a restart either.
    pub(crate) cancelled: BTreeSet<FlowId>,
    manifests: BTreeMap<FlowId, Manifest>,
    /// The timer armed for it.
    pub(crate) timer: Option<Instant>,
    /// How often it was switched on.
    pub(crate) starts: u64,
    /// It asked the medium for a transmission and has no answer yet.
    pub(crate) requested: bool,
}

/// A packet handed up at a node.
pub(crate) enum Received {
    /// Through a tunnel.
    Tunnel { from: NodeId, packet: Vec<u8> },
    /// Of a stream.
    Stream { flow: FlowId, packet: Vec<u8> },
}

/// What happened at a node that an experiment may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A file arrived whole and verified.
    Delivered(FlowId),
    /// The source learned how a receiver ended.
    ReceiverDone(FlowId, NodeId),
    /// The source ended a transfer.
    SendEnded(FlowId),
    /// The source cannot send on.
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
            manifests: BTreeMap::new(),
            timer: None,
            starts: 0,
            requested: false,
        }
    }

    /// The node's protocols; `None` while it is switched off.
    #[must_use]
    pub fn stack(&self) -> Option<&Stack> {
        self.stack.as_ref()
    }

    /// The node's files.
    #[must_use]
    pub fn storage(&self) -> &MemoryStorage {
        &self.storage
    }

    /// Plays the driver's part in the stack's events.
    pub(crate) fn settle(
        &mut self,
        now: Instant,
        mut receive: impl FnMut(Received),
        mut tell: impl FnMut(Observation),
    ) {
        let Some(stack) = &mut self.stack else { return };
        while let Some(event) = stack.poll_event() {
            match event {
                Event::Announced(manifest) if self.cancelled.contains(&manifest.flow) => {
                    stack.at(now, &mut self.storage).refuse(manifest.flow, Refusal::Cancelled);
                }
                Event::Announced(manifest) => {
                    let have = self.storage.written(manifest.flow, &manifest.geometry);
                    let flow = manifest.flow;
                    self.manifests.insert(flow, *manifest);
                    stack.at(now, &mut self.storage).accept(flow, &have);
                }
                Event::Assembled(flow) => {
                    if self.manifests.get(&flow).map(|m| m.hash)
                        == Some(self.storage.received_hash(flow))
                    {
                        stack.at(now, &mut self.storage).delivered(flow);
                        tell(Observation::Delivered(flow));
                    } else {
                        stack.at(now, &mut self.storage).refuse(flow, Refusal::Corrupt);
                    }
                }
                Event::Withdrawn(flow) => tell(Observation::Withdrawn(flow)),
                // Memory is never full, and stays open.
                Event::Unwritable(_) | Event::Suspended(_) => {}
                Event::ReceiverDone(flow, node) => {
                    note_done(&mut self.outgoing, stack, flow, node);
                    tell(Observation::ReceiverDone(flow, node));
                }
                Event::SendEnded(flow) => tell(Observation::SendEnded(flow)),
                Event::SendFailed(flow, _) => tell(Observation::SendFailed(flow)),
                Event::Packet { from, packet } => receive(Received::Tunnel { from, packet }),
                Event::StreamPacket { flow, packet, .. } => {
                    receive(Received::Stream { flow, packet });
                }
            }
        }
    }

    /// Everything complete of a file, for assertions.
    #[must_use]
    pub fn written(&self, manifest: &Manifest) -> BatchSet {
        self.storage.written(manifest.flow, &manifest.geometry)
    }
}

/// Remembers how a receiver ended, as a daemon's journal does.
fn note_done(files: &mut [(&'static str, Outgoing)], stack: &Stack, flow: FlowId, node: NodeId) {
    let transfers = stack.transfers().into_iter().filter(|t| t.flow == flow);
    let state = transfers.flat_map(|t| t.receivers).find(|r| r.node == node).map(|r| r.state);
    let file = files.iter_mut().find(|(_, file)| file.manifest.flow == flow);
    if let (Some(state), Some((_, file))) = (state, file) {
        file.done.insert(node, state);
    }
}
