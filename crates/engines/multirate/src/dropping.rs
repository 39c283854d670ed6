//! The two queues of a link and session, and the rules by which packets leave them (eqs. 1, 2, 17,
//! 18).
//!
//! Packets wait in the transmission queue Q. While Q exceeds the drop queue D, up to d_max packets
//! are dropped in each slot and counted in D. D is only a counter. It begins at V theta, and while
//! it exceeds V theta, up to d_max are discarded from it in each slot. So D settles near V theta
//! and Q below it, which bounds both (Lemmas 1 and 2). As many packets are dropped as the link
//! cannot carry.

use crate::parameters::Parameters;
use crate::policy::Policy;
use crate::queue::Packets;

/// Rules for how many packets are dropped and discarded in a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropping {
    /// Most packets in a slot (d_max).
    d_max: u32,
    /// Backlog above which packets leave the network: V theta.
    threshold: f64,
    has_drop_queues: bool,
}

impl Dropping {
    /// Returns the rules of `policy`.
    #[must_use]
    pub fn new(policy: Policy, parameters: &Parameters) -> Self {
        Self {
            d_max: parameters.d_max,
            threshold: parameters.threshold(),
            has_drop_queues: policy.has_drop_queues(),
        }
    }

    /// Returns the packets to drop from a backlog of `q` with a drop queue of `d` (eq. 17; without
    /// drop queues V-E).
    fn drops(&self, q: f64, d: f64) -> u32 {
        // All or nothing: the dropping term of (24) is linear in the number of packets, so its
        // minimum lies at one end of the range 0 to d_max. The same holds for discarding.
        let limit = if self.has_drop_queues { d } else { self.threshold };
        if q > limit { self.d_max } else { 0 }
    }

    /// Returns the packets to discard from a drop queue of `d` (eq. 18).
    fn discards(&self, d: f64) -> f64 {
        if d > self.threshold { f64::from(self.d_max) } else { 0.0 }
    }
}

/// A transmission queue and its drop queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queues {
    held: Packets,
    /// The drop queue (D): packets dropped and not yet discarded. Not whole, since it begins at
    /// V theta.
    dropped: f64,
}

/// Decisions that a queue takes at the beginning of a slot and carries out at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Due {
    /// Packets held when the slot began.
    held: u32,
    /// Packets to drop from those that are not sent.
    drops: u32,
    /// Packets to discard.
    discards: f64,
}

/// Packets that left a transmission queue in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Over the link.
    pub sent: Packets,
    /// Out of the stream.
    pub dropped: Packets,
}

impl Queues {
    /// Returns the queues of a session that begins: nothing to transmit, and the drop queue at its
    /// threshold (IV-C).
    #[must_use]
    pub fn new(rules: &Dropping) -> Self {
        let dropped = if rules.has_drop_queues { rules.threshold } else { 0.0 };
        Self { held: Packets::default(), dropped }
    }

    /// Returns the packets to transmit (Q).
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.held.total()
    }

    /// Returns the packets to transmit, by layer.
    #[must_use]
    pub fn held(&self) -> Packets {
        self.held
    }

    /// Returns the drop queue (D), packets; 0 without drop queues.
    #[must_use]
    pub fn drop_queue(&self) -> f64 {
        self.dropped
    }

    /// Runs a slot in which the link carries at most `rate` packets of this session. Sends first,
    /// then drops from the rest what the backlogs at the slot's beginning decided. Arrivals come
    /// afterwards, by [`receive`](Self::receive).
    pub fn advance(&mut self, rate: u32, rules: &Dropping) -> Moved {
        // The order is that of eq. 1: service, drops, arrivals.
        let due = self.due(rules, 0.0);
        let sent = self.held.lowest(rate);
        self.serve(sent);
        Moved { sent, dropped: self.end_slot(due, sent.total(), rules) }
    }

    /// Returns what is due by the end of a slot that begins now. The backlog (Q) is the packets
    /// held plus `place_holders`, which represent packets that would only wait (Neely, *Stochastic
    /// Network Optimization*, 2010, 4.8).
    #[must_use]
    pub fn due(&self, rules: &Dropping, place_holders: f64) -> Due {
        Due {
            held: self.backlog(),
            drops: rules.drops(f64::from(self.backlog()) + place_holders, self.dropped),
            discards: rules.discards(self.dropped),
        }
    }

    /// Removes packets that went over the link.
    pub fn serve(&mut self, packets: Packets) {
        self.held -= packets;
    }

    /// Ends a slot in which `sent` packets went over the link. Drops what was due, the highest
    /// layer first, but no more than is left of the packets that the slot began with. Returns the
    /// packets dropped.
    pub fn end_slot(&mut self, due: Due, sent: u32, rules: &Dropping) -> Packets {
        // min(Q - served, d), not min(Q, d) as printed: packets that were sent cannot be dropped.
        // Packets that arrived during the slot do not count towards it, since (1) adds arrivals
        // after drops.
        let dropped = self.held.highest(due.drops.min(due.held.saturating_sub(sent)));
        self.held -= dropped;

        // The drop queue first discards what was due, then counts what was dropped. This is the
        // order of (2): packets dropped in this slot are discarded in the next one at the earliest.
        if rules.has_drop_queues {
            let left = (self.dropped - due.discards).max(0.0);
            self.dropped = left + f64::from(dropped.total());
        }

        dropped
    }

    /// Adds packets that arrived from the source or over the parent link.
    pub fn receive(&mut self, packets: Packets) {
        self.held += packets;
    }
}
