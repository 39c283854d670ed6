//! How a node sends one generation to the next hop (CORE, section 6.3).
//!
//! [`Credits`] say how many transmissions the next hop still needs on average. When they are used
//! up, [`Polling`] asks the next hop what it lacks, and its answer sets the credits again. Both
//! change together, so changes go through [`Sending`].

mod credits;
mod polling;

pub(crate) use credits::Credits;
pub(crate) use polling::Polling;

use ncmesh_engine::time::Instant;

/// Packets that the next hop lacks by its own account, in transmissions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Missing {
    /// Transmissions that suffice if packets go alone.
    pub alone: f64,
    /// Transmissions on top of these if packets go combined; `None` if the next hop does not know.
    pub surcharge: Option<f64>,
}

/// State of sending one generation to the next hop.
#[derive(Debug)]
pub(crate) struct Sending {
    pub credits: Credits,
    pub polling: Polling,
}

impl Sending {
    /// Returns the state of a generation of which nothing was sent.
    pub(crate) fn new(now: Instant) -> Self {
        Self { credits: Credits::new(now), polling: Polling::new(now) }
    }

    /// Adds the credit for a packet that is to be forwarded.
    pub(crate) fn earn(&mut self, credit: f64, now: Instant) {
        self.credits.earn(credit, now);
        self.polling.note_earned(now);
    }

    /// Subtracts the credit for a packet that is transmitted.
    pub(crate) fn spend(&mut self, combined: bool, now: Instant) {
        self.credits.spend(combined, now);
        self.polling.note_sent(now);
    }

    /// Handles the next hop's request to stop: it has full rank.
    pub(crate) fn handle_stop(&mut self, progress: u16, now: Instant) {
        self.credits.clear();
        self.polling.handle_stop(progress, now);
    }

    /// Handles the next hop's request for more packets.
    pub(crate) fn handle_more(&mut self, missing: Missing, progress: u16, now: Instant) {
        self.credits.set(missing, now);
        self.polling.handle_more(progress, now);
    }
}
