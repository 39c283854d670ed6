//! Files, at their source and at each receiver.

use crate::host::Host;
use crate::observe::Snapshot;
use crate::simulation::node_id;
use ncmesh_console::schema::{
    Count, EventKind, Meta, Rank, ReceiverState, Stage, Transfer, TransferState,
};
use ncmesh_engine::file::{self, Direction, TransferStatus};
use ncmesh_host::console::{received_values, source_values, stage};
use ncmesh_stack::Stack;
use ncmesh_wire::FlowId;
use std::collections::BTreeMap;

/// The transfers of a run, in the order of their beginning.
pub(super) struct Transfers {
    places: BTreeMap<FlowId, usize>,
    flows: Vec<FlowId>,
    states: Vec<TransferState>,
}

impl Transfers {
    pub(super) fn new() -> Self {
        Self { places: BTreeMap::new(), flows: Vec::new(), states: Vec::new() }
    }

    /// Returns the place of a transfer in the list.
    pub(super) fn place(&self, flow: FlowId) -> Option<u32> {
        self.places.get(&flow).and_then(|place| u32::try_from(*place).ok())
    }

    /// Returns the state of all transfers. Adds those that have begun to `meta`, and stages that
    /// were reached to `events`.
    pub(super) fn look(
        &mut self,
        snapshot: &Snapshot<'_>,
        meta: &mut Meta,
        events: &mut Vec<(usize, EventKind)>,
    ) -> Vec<TransferState> {
        for (node, host) in snapshot.hosts.iter().enumerate() {
            for (scheme, outgoing) in &host.outgoing {
                self.add(node, scheme, outgoing, meta);
            }
        }
        for place in 0..self.flows.len() {
            self.look_at(place, snapshot, events);
        }
        self.states.clone()
    }

    /// Adds a transfer that is seen for the first time.
    fn add(&mut self, from: usize, scheme: &str, outgoing: &file::Outgoing, meta: &mut Meta) {
        let manifest = &outgoing.manifest;
        if self.places.contains_key(&manifest.flow) {
            return;
        }
        self.places.insert(manifest.flow, self.flows.len());
        self.flows.push(manifest.flow);

        let receivers = outgoing.receivers.iter().map(|node| node.0);
        meta.transfers.push(Transfer {
            id: manifest.flow.to_string(),
            name: manifest.name.clone(),
            scheme: scheme.to_owned(),
            from: node_id(from).0,
            to: receivers.clone().collect(),
            bytes: manifest.geometry.size().into(),
            generations: Some(manifest.geometry.generations()),
        });

        // Counts are 0 at the start. All other values are unknown until a receiver tells.
        let receiver = |node| ReceiverState {
            node,
            innovative: Some(Count(0)),
            redundant: Some(Count(0)),
            ..ReceiverState::default()
        };

        self.states.push(TransferState {
            stage: Some(Stage::Waiting),
            packets: Some(Count(0)),
            forwarders: Some(Vec::new()),
            receivers: receivers.map(receiver).collect(),
        });
    }

    /// Brings the state of a transfer up to date.
    fn look_at(
        &mut self,
        place: usize,
        snapshot: &Snapshot<'_>,
        events: &mut Vec<(usize, EventKind)>,
    ) {
        let flow = self.flows[place];
        let state = &mut self.states[place];
        let transfer = u32::try_from(place).unwrap_or(u32::MAX);

        // Node ids count from 1, places of hosts from 0.
        let source = usize::from(flow.source.0.saturating_sub(1));
        let status = |node: usize, direction| {
            let stack = snapshot.hosts.get(node).and_then(Host::stack);
            let all = stack.map(Stack::transfers).into_iter().flatten();
            all.into_iter().find(|t: &TransferStatus| t.flow == flow && t.direction == direction)
        };

        if let Some(mut sending) = status(source, Direction::Sending) {
            // A run ends with its transfer, before receivers had time to object.
            let is_said_done = sending.receivers.iter().all(|r| r.state.is_final());
            if sending.stage == file::Stage::Open && is_said_done {
                sending.stage = file::Stage::Complete;
            }
            source_values(&sending).tell(state);
            state.forwarders = Some(sending.forwarders.iter().map(|node| node.0).collect());
            enter(state.stage.get_or_insert_default(), &sending, transfer, source, events);
        }

        for receiver in &mut state.receivers {
            // A node that is off, or has forgotten a transfer that ended, changes nothing.
            let node = usize::from(receiver.node.saturating_sub(1));
            let Some(status) = status(node, Direction::Receiving) else { continue };
            if receiver.bytes.0 != status.bytes {
                let written = snapshot.hosts[node].storage().written_generations(flow);
                receiver.complete = written.collect();
            }

            received_values(&status).tell(receiver);
            let begun = status.begun.map(|file::Begun { generation, rank, packets }| Rank {
                generation: generation,
                rank,
                size: packets,
            });
            receiver.rank = begun.or(receiver.rank);
            enter(&mut receiver.stage, &status, transfer, node, events);
        }
    }
}

/// Takes the stage of a transfer at a node. Ends are events of their own, at their own time, as far
/// as hosts observe them.
fn enter(
    known: &mut Stage,
    status: &TransferStatus,
    transfer: u32,
    node: usize,
    events: &mut Vec<(usize, EventKind)>,
) {
    let stage = stage(status.stage);
    if *known != stage && matches!(stage, Stage::Open | Stage::Verifying | Stage::Refused) {
        events.push((node, EventKind::Transfer { transfer, stage }));
    }
    *known = stage;
}
