//! Table of the flows that a node takes part in.
//!
//! There is one instance of each flow, the latest that was heard of. The table is bounded: the flow
//! that was silent longest makes room for a new one.

use crate::flow::{Flow, FlowKey};
use crate::frame::GenerationId;
use crate::generation::Generation;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::bounded::{IDLE, MAX_FLOWS, make_room};
use ncmesh_engine::toolkit::flow::FlowInstance;
use std::collections::BTreeMap;

/// Flows by source and destination.
#[derive(Debug, Default)]
pub(crate) struct FlowTable {
    flows: BTreeMap<FlowKey, Flow>,
}

impl FlowTable {
    /// Adds a flow in the place of an earlier instance.
    pub(crate) fn insert(&mut self, flow: Flow) {
        let key = flow.instance.key();
        make_room(&mut self.flows, &key, MAX_FLOWS, Flow::last_active);
        self.flows.insert(key, flow);
    }

    /// Forgets a flow whose state contradicts for long what the previous hop sends of it.
    pub(crate) fn forget_contradicted(&mut self, id: GenerationId, now: Instant) {
        let key = id.flow.key();
        if self.flows.get_mut(&key).is_some_and(|flow| flow.note_conflict(id, now)) {
            self.flows.remove(&key);
        }
    }

    /// Forgets the flows that have been silent for long.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.flows.retain(|_, flow| now.since(flow.last_active()) < IDLE);
    }

    /// Returns the latest instance of the flow between two nodes.
    pub(crate) fn between(&self, key: &FlowKey) -> Option<&Flow> {
        self.flows.get(key)
    }

    /// Returns the latest instance of the flow between two nodes.
    pub(crate) fn between_mut(&mut self, key: &FlowKey) -> Option<&mut Flow> {
        self.flows.get_mut(key)
    }

    /// Returns a flow if this instance of it is the latest.
    pub(crate) fn get(&self, instance: &FlowInstance) -> Option<&Flow> {
        self.flows.get(&instance.key()).filter(|flow| flow.instance == *instance)
    }

    /// Returns a flow if this instance of it is the latest.
    pub(crate) fn get_mut(&mut self, instance: &FlowInstance) -> Option<&mut Flow> {
        self.flows.get_mut(&instance.key()).filter(|flow| flow.instance == *instance)
    }

    /// Returns a generation.
    pub(crate) fn generation(&self, id: &GenerationId) -> Option<&Generation> {
        self.get(&id.flow)?.generations.get(&id.number)
    }

    /// Returns a generation.
    pub(crate) fn generation_mut(&mut self, id: &GenerationId) -> Option<&mut Generation> {
        self.get_mut(&id.flow)?.generations.get_mut(&id.number)
    }

    /// Returns all flows, by source and destination.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values()
    }

    /// Returns all flows, by source and destination.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.flows.values_mut()
    }

    /// Returns the generations of all flows.
    pub(crate) fn generations(&self) -> impl Iterator<Item = &Generation> {
        self.iter().flat_map(|flow| flow.generations.values())
    }

    /// Returns the generations of all flows.
    pub(crate) fn generations_mut(&mut self) -> impl Iterator<Item = &mut Generation> {
        self.iter_mut().flat_map(|flow| flow.generations.values_mut())
    }
}
