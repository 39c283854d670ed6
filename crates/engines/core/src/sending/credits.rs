//! Credits: how many transmissions of a generation remain to be made (CORE, section 6.3).
//!
//! Each packet that is to be forwarded earns C = x / r credits, and each transmission costs one.
//! While the generation is combined with one of another flow, its partner, a packet costs more: the
//! receiver has to eliminate the partner's packets that it does not know, too. For these there is a
//! *surcharge* beside the credit, which combined transmissions use up first. It is kept apart
//! because it is void as soon as the generation goes alone.

use super::Missing;
use crate::frame::GenerationId;
use ncmesh_engine::time::Instant;

/// One transmission. Credits are sums of fractions, which may fall short of one by rounding.
const ONE: f64 = 1.0 - 1e-9;

/// Generation of another flow that this one is combined with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Partner {
    generation: GenerationId,
    /// Surcharge for each credit.
    ratio: f64,
}

/// Credits of one generation at one node.
#[derive(Debug)]
pub(crate) struct Credits {
    /// Transmissions to be made if packets go alone.
    alone: f64,
    /// Transmissions on top of these while packets go combined.
    surcharge: f64,
    partner: Option<Partner>,
    /// When credit was there again, or was last spent: a relay holds packets from then on.
    since: Instant,
}

impl Credits {
    pub(super) fn new(now: Instant) -> Self {
        Self { alone: 0.0, surcharge: 0.0, partner: None, since: now }
    }

    // ---- changes

    /// Adds credit for a packet that is to be forwarded.
    pub(super) fn earn(&mut self, credit: f64, now: Instant) {
        // Packets are held from the moment when there was something to send.
        if !self.has_credit() {
            self.since = now;
        }
        self.alone += credit;
        self.surcharge += self.partner.map_or(0.0, |partner| partner.ratio * credit);
    }

    /// Subtracts one transmission. If it was combined, the surcharge pays for it first.
    pub(super) fn spend(&mut self, combined: bool, now: Instant) {
        let surcharge = if combined { self.surcharge.min(1.0) } else { 0.0 };
        self.surcharge -= surcharge;
        self.alone = (self.alone + surcharge - 1.0).max(0.0);
        self.since = now;
    }

    /// Sets the credit to what the next hop says it lacks.
    pub(super) fn set(&mut self, missing: Missing, now: Instant) {
        self.alone = missing.alone;
        // A next hop that has not received combined packets cannot say what it needs for them.
        self.surcharge = match self.partner {
            Some(partner) => missing.surcharge.unwrap_or(partner.ratio * missing.alone),
            None => 0.0,
        };
        self.since = now;
    }

    /// Drops all credit: the next hop lacks nothing.
    pub(super) fn clear(&mut self) {
        self.alone = 0.0;
        self.surcharge = 0.0;
    }

    /// Combines the generation with `partner` from now on, at a surcharge of `ratio` for each
    /// credit.
    pub(crate) fn pair(&mut self, partner: GenerationId, ratio: f64) {
        // With a new partner the surcharge is due for all the credit that is left. With the same
        // one it was added as credit was earned.
        if self.partner() != Some(partner) {
            self.surcharge = self.alone * ratio;
        }
        self.partner = Some(Partner { generation: partner, ratio });
    }

    /// Ends the combination: the generation goes alone.
    pub(crate) fn unpair(&mut self) {
        self.partner = None;
        self.surcharge = 0.0;
    }

    // ---- state

    /// Returns whether a transmission may be made, alone or combined.
    pub(crate) fn has_credit(&self) -> bool {
        self.alone >= ONE || self.alone + self.surcharge >= ONE
    }

    /// Returns when credit was there again, or was last spent.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// Returns the number of transmissions to be made if packets go alone.
    pub(crate) fn alone(&self) -> f64 {
        self.alone
    }

    /// Returns the number of transmissions to be made if packets go combined with `partner`, at a
    /// surcharge of `ratio` for each credit.
    pub(crate) fn combined(&self, partner: &GenerationId, ratio: f64) -> f64 {
        if self.partner() == Some(*partner) {
            self.alone + self.surcharge
        } else {
            self.alone * (1.0 + ratio)
        }
    }

    /// Returns the generation that this one is combined with.
    pub(crate) fn partner(&self) -> Option<GenerationId> {
        self.partner.map(|partner| partner.generation)
    }
}
