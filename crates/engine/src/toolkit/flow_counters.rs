//! Counters for each flow through a node.

use crate::tunnel::FlowStatus;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Most flows that are counted; others are carried all the same.
const MAX_FLOWS: usize = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    heard: u64,
    innovative: u64,
    delivered: u64,
    delivered_bytes: u64,
    lost: u64,
}

/// Counters of flows, by source and destination.
#[derive(Debug, Default)]
pub struct FlowCounters {
    flows: BTreeMap<(NodeId, NodeId), Counts>,
}

impl FlowCounters {
    /// Lists a flow from now on.
    pub fn begin(&mut self, source: NodeId, destination: NodeId) {
        self.count(source, destination, |_| ());
    }

    /// Counts a frame of the flow that was sent to this node.
    pub fn heard(&mut self, source: NodeId, destination: NodeId, innovative: bool) {
        self.count(source, destination, |counts| {
            counts.heard += 1;
            counts.innovative += u64::from(innovative);
        });
    }

    /// Counts a packet of this many bytes of the flow that was handed up.
    pub fn delivered(&mut self, source: NodeId, destination: NodeId, bytes: usize) {
        self.count(source, destination, |counts| {
            counts.delivered += 1;
            counts.delivered_bytes += bytes as u64;
        });
    }

    /// Counts a packet of the flow that was given up.
    pub fn lost(&mut self, source: NodeId, destination: NodeId) {
        self.count(source, destination, |counts| counts.lost += 1);
    }

    fn count(&mut self, source: NodeId, destination: NodeId, change: impl FnOnce(&mut Counts)) {
        let key = (source, destination);
        if self.flows.len() < MAX_FLOWS || self.flows.contains_key(&key) {
            change(self.flows.entry(key).or_default());
        }
    }

    /// Returns the state of every flow; `credits` gives what of a flow is yet to be transferred.
    pub fn statuses(&self, credits: impl Fn(NodeId, NodeId) -> u64) -> Vec<FlowStatus> {
        let status = |((source, destination), counts): (&(NodeId, NodeId), &Counts)| FlowStatus {
            source: *source,
            destination: *destination,
            credits: credits(*source, *destination),
            heard: counts.heard,
            innovative: counts.innovative,
            delivered: counts.delivered,
            delivered_bytes: counts.delivered_bytes,
            lost: counts.lost,
        };

        self.flows.iter().map(status).collect()
    }
}
