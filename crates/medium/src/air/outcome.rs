//! Outcome of a frame at one radio in its reach.

use rand_chacha::ChaCha8Rng;

use crate::channel::LinkOutcome;
use crate::random::unit;
use crate::statistics::{LinkStatistics, RadioStatistics};

/// With fewer expected errors than this, a frame counts as error-free without a draw.
const NEGLIGIBLE_ERRORS: f64 = 1e-9;

/// With this many expected errors or more, a frame is lost without a draw: exp(-40) is below
/// 10^-17.
pub(super) const HOPELESS_ERRORS: f64 = 40.0;

/// Draws whether a frame with this expected number of bit errors has none: with probability
/// exp(-`errors`).
pub(super) fn draw_error_free(errors: f64, draws: &mut ChaCha8Rng) -> bool {
    if !(NEGLIGIBLE_ERRORS..HOPELESS_ERRORS).contains(&errors) {
        return errors < NEGLIGIBLE_ERRORS;
    }

    // The probability is between 1 - errors and 1 / (1 + errors). These bounds decide most draws
    // without the exponential.
    let draw = unit(draws);
    draw < 1.0 - errors || (draw * (1.0 + errors) < 1.0 && draw < libm::exp(-errors))
}

/// Outcome of a frame at one radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The radio decodes the frame.
    Decoded,
    /// The radio could have decoded the frame, but the link's loss erased it. Such a loss hits the
    /// preamble, so the MAC notices nothing.
    Erased,
    /// The frame was strong enough, but interference, noise or the radio's own transmission spoilt
    /// it.
    Corrupted {
        /// Whether the radio received it to its end, so that the MAC notices the error.
        received: bool,
    },
    /// The frame was too weak to be received, or the radio is off.
    Unnoticed,
}

impl Outcome {
    /// Returns the outcome of a frame after `link`. `locked` tells whether the radio received it to
    /// its end, `error_free` whether it did so without a bit error.
    pub(super) fn new(link: LinkOutcome, locked: bool, error_free: bool, up: bool) -> Self {
        match link {
            LinkOutcome::Intact if error_free => Self::Decoded,
            LinkOutcome::Erased if error_free => Self::Erased,
            LinkOutcome::Intact if up => Self::Corrupted { received: locked },
            LinkOutcome::Erased if up => Self::Corrupted { received: false },
            _ => Self::Unnoticed,
        }
    }

    /// Returns what the MAC learns at the end of the frame: whether it was decoded, or `None` if
    /// the radio did not receive it to its end.
    pub(super) fn rx_end(self) -> Option<bool> {
        match self {
            Self::Decoded => Some(true),
            Self::Corrupted { received: true } => Some(false),
            Self::Erased | Self::Corrupted { received: false } | Self::Unnoticed => None,
        }
    }

    /// Counts the outcome at the radio. The MAC counts deliveries.
    pub(super) fn count(self, counters: &mut RadioStatistics) {
        counters.losses += u64::from(self == Self::Erased);
        counters.collisions += u64::from(matches!(self, Self::Corrupted { .. }));
    }
    /// Counts the outcome at the link.
    pub(super) fn count_at_link(self, counters: &mut LinkStatistics) {
        match self {
            Self::Decoded => counters.decoded += 1,
            Self::Erased => counters.erased += 1,
            Self::Corrupted { .. } => counters.corrupted += 1,
            Self::Unnoticed => {}
        }
    }
}
