//! Ways around next hops that link state promises, and that no packet reaches.
//!
//! Somebody who passes on short frames between distant nodes makes them neighbours by link state.
//! The MAC tells otherwise: it gives up one packet after the other.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::around::around;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::{Context, TxResult};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Paths are shortest by the ETX of unicast. A link that brings nothing back is the last resort:
/// the MAC sends each packet as often as it may, and hears of none that it arrived.
const METRIC: Metric = Metric::Answered;
/// Packets in a row that the MAC gave up, over a link that should deliver at least this share of
/// frames, after which a next hop is avoided, and for how long. By chance that does not happen: the
/// MAC sends each of them several times.
const IN_VAIN: u32 = 8;
const PROMISED: f64 = 0.5;
const AVOIDED: Duration = Duration::from_secs(30);
/// Most next hops that are kept.
const MOST: usize = 64;

/// The MAC's word on a next hop.
#[derive(Clone, Copy, Debug, Default)]
struct Hop {
    /// Packets in a row that it gave up.
    in_vain: u32,
    avoided_until: Instant,
}

/// Next hops to which packets were given up.
#[derive(Debug, Default)]
pub(crate) struct Detour {
    hops: BTreeMap<NodeId, Hop>,
}

impl Detour {
    /// Notes what became of a packet to a next hop.
    pub(crate) fn note_sent(&mut self, cx: &Context<'_>, next: NodeId, result: TxResult) {
        if result != TxResult::Failed || cx.topology.delivery(cx.me, next) < PROMISED {
            self.hops.remove(&next);
            return;
        }
        if self.hops.len() >= MOST && !self.hops.contains_key(&next) {
            self.hops.retain(|_, hop| cx.now < hop.avoided_until);
        }
        if self.hops.len() < MOST || self.hops.contains_key(&next) {
            let hop = self.hops.entry(next).or_default();
            hop.in_vain += 1;
            if hop.in_vain >= IN_VAIN {
                *hop = Hop { in_vain: 0, avoided_until: cx.now + AVOIDED };
            }
        }
    }

    fn is_avoided(&self, node: NodeId, now: Instant) -> bool {
        self.hops.get(&node).is_some_and(|hop| now < hop.avoided_until)
    }

    /// Returns the next hop to `destination`: that of the shortest path or, if it is avoided, the
    /// neighbour with the shortest path that does not lead back here. The first one stays where
    /// there is no other.
    pub(crate) fn next_hop(&self, cx: &Context<'_>, destination: NodeId) -> Option<NodeId> {
        let first = cx.topology.next_hop(cx.me, destination, METRIC)?;
        if !self.is_avoided(first, cx.now) {
            return Some(first);
        }
        let paths = cx.topology.paths_to(destination, METRIC);
        around(cx, &paths, METRIC, |node| self.is_avoided(node, cx.now)).or(Some(first))
    }
}
