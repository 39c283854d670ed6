//! What becomes of a frame at a radio in its reach.

use rand_chacha::ChaCha8Rng;

use crate::channel::Fate;
use crate::random::unit;
use crate::statistics::RadioStatistics;

/// Fewer expected errors than this are none.
const NONE: f64 = 1e-9;

/// With more than this no frame is read: exp(-40) is below 10^-17.
pub(super) const MANY: f64 = 40.0;

/// Whether a frame with so many errors to be expected is read without any: with probability exp(-`errors`).
/// That lies between 1 - errors and 1 / (1 + errors), which mostly is enough to know.
pub(super) fn is_clean(errors: f64, draws: &mut ChaCha8Rng) -> bool {
    if !(NONE..MANY).contains(&errors) {
        return errors < NONE;
    }
    let draw = unit(draws);
    draw < 1.0 - errors || (draw * (1.0 + errors) < 1.0 && draw < libm::exp(-errors))
}

/// What became of a frame at one radio.
pub(super) struct Outcome {
    /// Whether it was read, if the radio was receiving it to its end; a frame that its link lost was not
    /// recognised as broken, and is left out.
    pub(super) locked: Option<bool>,
    /// Delivered, that is.
    pub(super) read: bool,
    /// Its link lost it.
    lost: bool,
    /// Strong enough, but spoilt.
    pub(super) collided: bool,
}

impl Outcome {
    /// Of a frame that the radio was receiving to its end or not, without an error or not.
    pub(super) fn new(fate: Fate, locked: bool, clean: bool, up: bool) -> Self {
        Self {
            locked: (locked && fate != Fate::Lost).then_some(clean),
            read: fate == Fate::Whole && clean,
            lost: fate == Fate::Lost && clean,
            collided: fate != Fate::Sensed && !clean && up,
        }
    }

    /// Counts it at the radio.
    pub(super) fn count(&self, counters: &mut RadioStatistics) {
        counters.losses += u64::from(self.lost);
        counters.collisions += u64::from(self.collided);
    }
}
