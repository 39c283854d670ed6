//! The two queues of a link and session, and what is dropped and discarded (eqs. 1, 2, 17, 18).

use super::{Packets, Parameters, Policy};

/// What is dropped in a slot and what is discarded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropping {
    /// Packets at most in a slot (d_max).
    d_max: u32,
    /// Backlog from which on packets leave the network: V theta.
    threshold: f64,
    has_drop_queues: bool,
}

impl Dropping {
    /// The rules of `policy`.
    #[must_use]
    pub fn new(policy: Policy, parameters: &Parameters) -> Self {
        Self {
            d_max: parameters.d_max,
            threshold: parameters.threshold(),
            has_drop_queues: policy.has_drop_queues(),
        }
    }

    /// Packets to drop of a backlog of `q`, with `d` in the drop queue (eq. 17; without drop queues V-E).
    fn drops(&self, q: f64, d: f64) -> u32 {
        let limit = if self.has_drop_queues { d } else { self.threshold };
        if q > limit { self.d_max } else { 0 }
    }

    /// Packets to discard from a drop queue of `d` (eq. 18).
    fn discards(&self, d: f64) -> f64 {
        if d > self.threshold { f64::from(self.d_max) } else { 0.0 }
    }
}

/// A transmission queue and its drop queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queues {
    held: Packets,
    /// Dropped and not yet discarded (D), packets; need not be whole, for it begins at V theta.
    dropped: f64,
}

/// What a queue decides at the beginning of a slot, by its backlogs there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Due {
    /// Packets held.
    held: u32,
    /// Packets to drop, of those that are not sent.
    drops: u32,
    /// Packets to discard.
    discards: f64,
}

/// What left a transmission queue in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Over the link.
    pub sent: Packets,
    /// Out of the stream.
    pub dropped: Packets,
}

impl Queues {
    /// As a session begins: nothing to transmit, the drop queue at its threshold (IV-C).
    #[must_use]
    pub fn new(rules: &Dropping) -> Self {
        let dropped = if rules.has_drop_queues { rules.threshold } else { 0.0 };
        Self { held: Packets::default(), dropped }
    }

    /// Packets to transmit (Q).
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.held.total()
    }

    /// The same by layer.
    #[must_use]
    pub fn held(&self) -> Packets {
        self.held
    }

    /// The drop queue (D), packets; 0 without drop queues.
    #[must_use]
    pub fn drop_queue(&self) -> f64 {
        self.dropped
    }

    /// A slot in which the link carries at most `rate` packets of this session: what is sent, then what is dropped
    /// of the rest, as decided by the backlogs at the slot's beginning. Arrivals come after: [`receive`](Self::receive).
    pub fn advance(&mut self, rate: u32, rules: &Dropping) -> Moved {
        let due = self.due(rules, 0.0);
        let sent = self.held.lowest(rate);
        self.serve(sent);
        Moved { sent, dropped: self.end_slot(due, sent.total(), rules) }
    }

    /// A slot begins: what is due by its end. The backlog (Q) is of the packets held and of `place_holders`, which are
    /// none (Neely, Stochastic Network Optimization, 2010, 4.8).
    #[must_use]
    pub fn due(&self, rules: &Dropping, place_holders: f64) -> Due {
        Due {
            held: self.backlog(),
            drops: rules.drops(f64::from(self.backlog()) + place_holders, self.dropped),
            discards: rules.discards(self.dropped),
        }
    }

    /// Packets go over the link.
    pub fn serve(&mut self, packets: Packets) {
        self.held -= packets;
    }

    /// A slot ends in which `sent` packets went over the link: drops what was due, the highest layer first, but no
    /// more than is left of what was there at the slot's beginning.
    pub fn end_slot(&mut self, due: Due, sent: u32, rules: &Dropping) -> Packets {
        let dropped = self.held.highest(due.drops.min(due.held.saturating_sub(sent)));
        self.held -= dropped;
        if rules.has_drop_queues {
            let left = (self.dropped - due.discards).max(0.0);
            self.dropped = left + f64::from(dropped.total());
        }
        dropped
    }

    /// Packets arrive, from the source or over the parent link.
    pub fn receive(&mut self, packets: Packets) {
        self.held += packets;
    }
}
