//! Link states that several nodes of one process know, each kept once.

use super::LinkState;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Link states that the nodes of one simulation know. Hundreds of nodes know the same states: kept
/// once, those of a whole mesh fit into the cache of a processor.
///
/// Clones share what they keep.
#[derive(Clone, Debug, Default)]
pub struct SharedStates {
    /// For each node its states that somebody knows, the newest last.
    kept: Arc<Mutex<BTreeMap<NodeId, Vec<Arc<LinkState>>>>>,
}

impl SharedStates {
    /// Returns the state of a node as others have it, if one of them has the same.
    #[must_use]
    pub fn share(&self, node: NodeId, state: LinkState) -> Arc<LinkState> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = kept.entry(node).or_default();

        // Two nodes may believe different things of one version: where one of them was lied to.
        if let Some(same) = versions.iter().rev().find(|known| ***known == state) {
            return Arc::clone(same);
        }
        versions.retain(|known| Arc::strong_count(known) > 1);
        let state = Arc::new(state);
        versions.push(Arc::clone(&state));
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_states_are_one_and_those_that_nobody_has_are_forgotten() {
        let states = SharedStates::default();
        let state = |seq, delivery| LinkState {
            version: (1, seq),
            hears: [(NodeId(2), delivery)].into_iter().collect(),
            ..LinkState::default()
        };
        let first = states.share(NodeId(1), state(1, 0.5));
        assert!(Arc::ptr_eq(&first, &states.clone().share(NodeId(1), state(1, 0.5))));
        let lie = states.share(NodeId(1), state(1, 0.9));
        assert_eq!((first.hears[&NodeId(2)], lie.hears[&NodeId(2)]), (0.5, 0.9));
        drop(first);
        let _second = states.share(NodeId(1), state(2, 0.5));
        assert_eq!(states.kept.lock().unwrap()[&NodeId(1)].len(), 2);
    }
}
