//! Source rate limiting (Pacifier, III-B).
//!
//! A source that sends whenever the MAC is ready crowds out its own children. So it waits, after
//! each packet, until it overhears one of its children send, or until a timeout. The timeout is the
//! time that the children need in the worst case: one packet sent by the source triggers, on
//! average, as many transmissions as the sum of their credits, and these may go out one after the
//! other.

use crate::multicast::scheme::Plan;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;

/// Pace of a source.
#[derive(Debug)]
pub(super) struct RateLimiter {
    /// Nothing is sent before this.
    hold_until: Instant,
    /// Children that forward the packet sent last. Kept apart from the plan: the packet may have
    /// been the last of its turn.
    children: Vec<NodeId>,
    /// Sum of the children's credits.
    children_credit: f64,
}

impl RateLimiter {
    pub(super) fn new(now: Instant) -> Self {
        Self { hold_until: now, children: Vec::new(), children_credit: 0.0 }
    }

    /// Returns when the next packet may be sent.
    pub(super) fn hold_until(&self) -> Instant {
        self.hold_until
    }

    /// Notes by which plan a packet is sent.
    pub(super) fn note_filled(&mut self, plan: &Plan) {
        self.children.clone_from(&plan.children);
        self.children_credit = plan.children_credit;
    }

    /// Begins to wait for a child, after the packet has left. `overhear_timeout` is the wait for
    /// each transmission of a child, in packet times.
    pub(super) fn wait_for_child(
        &mut self,
        overhear_timeout: f64,
        packet_time: Duration,
        now: Instant,
    ) {
        self.hold_until = now + packet_time.mul_f64(self.children_credit * overhear_timeout);
    }

    /// Ends the wait if `sender`, which was overheard, is a child.
    pub(super) fn handle_overheard(&mut self, sender: NodeId, now: Instant) {
        if self.children.contains(&sender) {
            self.hold_until = self.hold_until.min(now);
        }
    }
}
