//! Status of the engine, for people.

use super::Braid;
use super::child::Child;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::CodingStatus;
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

/// Time for which something counts as happening now.
const RECENT: Duration = Duration::from_secs(5);
/// Delivery above which a link loses almost nothing.
const LOSSLESS: f64 = 0.95;

impl Braid {
    /// Returns what this node codes.
    pub(crate) fn status(&self, now: Instant) -> CodingStatus {
        let children = self.flows.values().filter_map(|flow| flow.child.as_ref());
        let unpaired = children.filter(|child| child.is_unpaired(now)).map(|child| child.node);
        let unpaired: BTreeSet<NodeId> = unpaired.collect();
        let why = "could not separate half of the pairs that it should have";
        CodingStatus {
            stopped: unpaired.into_iter().map(|node| (node, why.into())).collect(),
            forwarding: Some(self.forwarding),
            why_not: self.why_not(now),
            ..self.coding.clone()
        }
    }

    /// Returns why the packets that this node sends now are not coded, in words.
    fn why_not(&self, now: Instant) -> Vec<String> {
        let is_recent = |at: Instant| now.since(at) < RECENT;
        let flows = self.flows.values().filter(|flow| is_recent(flow.sent_at));
        let children: Vec<&Child> = flows.filter_map(|flow| flow.child.as_ref()).collect();
        let Some(least) = children.iter().map(|child| child.delivery()).reduce(f64::min) else {
            return Vec::new();
        };
        let combinations = match self.combined_at {
            Some(at) if is_recent(at) => None,
            _ if least > LOSSLESS => Some("no combinations: the next hops miss almost nothing"),
            _ => Some("no combinations: the next hops say in time what they miss"),
        };

        let pairs = match self.paired_at {
            Some(at) if is_recent(at) => None,
            _ if children.len() < 2 => Some("no pairs: one flow alone is sent from here"),
            _ => Some("no pairs: the next hops should not have each other's packets"),
        };

        combinations.into_iter().chain(pairs).map(Into::into).collect()
    }
}
