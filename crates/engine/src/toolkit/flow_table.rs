//! Bounds on the flows that a node keeps state for.

use crate::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Most flows that a node takes part in, for schemes that keep state for each.
const MAX_FLOWS: usize = 32;
/// Silence after which such a scheme forgets a flow.
pub const IDLE: Duration = Duration::from_secs(60);
/// Packets of its own that a scheme without windows keeps ready: enough to use a channel that is
/// granted at once.
const READY: usize = 4;

/// Returns whether `own` holds enough packets for the next grants.
pub fn has_enough<T>(mut own: impl Iterator<Item = T>) -> bool {
    own.nth(READY - 1).is_some()
}

/// Makes a place for the flow `key`: evicts the flow that was silent longest, by `last`, if the
/// table is full.
pub fn make_room<F>(
    flows: &mut BTreeMap<(NodeId, NodeId), F>,
    key: (NodeId, NodeId),
    last: impl Fn(&F) -> Instant,
) {
    if flows.len() < MAX_FLOWS || flows.contains_key(&key) {
        return;
    }
    let silent = flows.iter().min_by_key(|(_, flow)| last(flow)).map(|(key, _)| *key);
    silent.and_then(|key| flows.remove(&key));
}
