//! Ways around next hops that link state promises, and that no packet reaches.
//!
//! Somebody who passes on short frames between distant nodes makes them neighbours by link state.
//! The MAC tells otherwise: it gives up one packet after the other.

use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_engine::toolkit::hop::{Avoided, around};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::{Context, TxResult};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Paths are shortest by the ETX of unicast. A link that brings nothing back is the last resort:
/// the MAC sends each packet as often as it may, and hears of none that it arrived.
const METRIC: Metric = Metric::Answered;
/// Packets in a row that the MAC gave up, over a link that should deliver at least this share of
/// frames, after which a next hop is avoided. By chance that does not happen: the MAC sends each of
/// them several times.
const IN_VAIN: u32 = 8;
const PROMISED: f64 = 0.5;
/// Most next hops whose packets are counted.
const MAX_COUNTED: usize = 64;

/// Next hops to which packets were given up.
#[derive(Debug, Default)]
pub(crate) struct Detour {
    /// Packets in a row that the MAC gave up.
    in_vain: BTreeMap<NodeId, u32>,
    avoided: Avoided,
}

impl Detour {
    /// Notes what became of a packet to a next hop.
    pub(crate) fn note_sent(&mut self, cx: &Context<'_>, next: NodeId, result: TxResult) {
        if result != TxResult::Failed || cx.topology.delivery(cx.me, next) < PROMISED {
            self.in_vain.remove(&next);
            self.avoided.forgive(next);
            return;
        }

        // Packets in a row are counted for each next hop apart.
        make_room(&mut self.in_vain, &next, MAX_COUNTED, |in_vain| *in_vain);
        let in_vain = self.in_vain.entry(next).or_default();
        *in_vain += 1;

        if *in_vain >= IN_VAIN {
            self.in_vain.remove(&next);
            self.avoided.avoid(next, cx.now);
        }
    }

    /// Returns the next hop to `destination`: that of the shortest path or, if it is avoided, the
    /// neighbour with the shortest path that does not lead back here. The first one stays where
    /// there is no other.
    pub(crate) fn next_hop(&self, cx: &Context<'_>, destination: NodeId) -> Option<NodeId> {
        let first = cx.topology.next_hop(cx.me, destination, METRIC)?;
        if !self.avoided.contains(first, cx.now) {
            return Some(first);
        }

        // It may be the only way. Then it is tried on.
        let paths = cx.topology.paths_to(destination, METRIC);
        around(cx, &paths, METRIC, |node| self.avoided.contains(node, cx.now)).or(Some(first))
    }
}
