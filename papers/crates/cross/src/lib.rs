//! Two flows that cross at a relay, in slots.
//!
//! Source S1 has a generation of packets for D1 and S2 one for D2. Only the relay R reaches both
//! destinations; D1 overhears S2 and D2 overhears S1. A trial draws the loss of every transmission,
//! keeps the coefficients of every packet over a finite field, and counts transmissions until the
//! destinations have full rank. There is neither time nor interference.
//!
//! The six schemes are those of J. Hansen, J. Krigslund, D. E. Lucani, P. Pahlevani and F. H. P.
//! Fitzek, "Bridging inter-flow and intra-flow network coding in wireless mesh networks" (CORE),
//! Computer Networks 145, 2018, section 5. The paper has formulas for their means.
//!
//! ```
//! use ncmesh_papers_cross::{Cross, Field, Scheme, Until};
//! let cross = Cross::new(Scheme::Cope, 0.0, 0.0, 64, Field::Gf256)?;
//! // Each pair takes two packets to the relay and one from there.
//! assert_eq!(cross.transmissions(Until::Both, 1, 0), Some(3 * 64));
//! # Ok::<(), ncmesh_papers_cross::CrossError>(())
//! ```

mod air;
mod coded;
mod span;
#[cfg(test)]
mod tests;
mod uncoded;

use air::Air;
pub use ncmesh_code::Field;

/// Largest generation, in packets.
pub const MOST_PACKETS: usize = 256;
/// Transmissions after which a trial is given up.
pub const LIMIT: u64 = 1_000_000;

/// Scheme that delivers the packets, with the paper's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Uncoded. The relay forwards every packet (5.1).
    ForwardingUnconstrained,
    /// Uncoded. The relay drops every other packet, since it gets the channel as often as each
    /// source (5.1).
    ForwardingConstrained,
    /// The relay sends the exclusive or of two packets (5.2).
    Cope,
    /// The same with packets of random linear codes (5.3).
    CoreNoFeedbackNoRecoding,
    /// The relay recodes: it sends a fresh combination of everything it has in each round (5.4).
    CoreNoFeedback,
    /// The same, and the relay stops a source when it has full rank of its generation (5.5).
    Core,
}

impl Scheme {
    /// All schemes, in the paper's order.
    pub const ALL: [Self; 6] = [
        Self::ForwardingUnconstrained,
        Self::ForwardingConstrained,
        Self::Cope,
        Self::CoreNoFeedbackNoRecoding,
        Self::CoreNoFeedback,
        Self::Core,
    ];

    /// Returns the name of the scheme in Python.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ForwardingUnconstrained => "forwarding_unconstrained",
            Self::ForwardingConstrained => "forwarding_constrained",
            Self::Cope => "cope",
            Self::CoreNoFeedbackNoRecoding => "core_no_feedback_no_recoding",
            Self::CoreNoFeedback => "core_no_feedback",
            Self::Core => "core",
        }
    }
}

/// When a trial ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Both destinations have their flow: the paper's simulations (5.7).
    Both,
    /// D1 has its flow, and D2's flow goes on until then: the view of the paper's analysis (5).
    One,
}

/// Reason why a cross is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CrossError {
    /// A loss that is not a probability.
    #[error("{name} = {value}: allowed is 0 to 1")]
    Loss {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A generation without packets, or with too many.
    #[error("generation = {0}: allowed is 1 to {MOST_PACKETS} packets")]
    Generation(usize),
}

/// A cross with its scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cross {
    scheme: Scheme,
    e_x: f64,
    e_oh: f64,
    generation: usize,
    field: Field,
}

impl Cross {
    /// Creates a cross with loss `e_x` on the links of the relay, loss `e_oh` on the links over
    /// which destinations overhear, and `generation` packets in each flow. Schemes that code use
    /// `field`.
    ///
    /// # Errors
    /// [`CrossError`] for a loss outside 0 to 1 or a generation outside 1 to [`MOST_PACKETS`].
    pub fn new(
        scheme: Scheme,
        e_x: f64,
        e_oh: f64,
        generation: usize,
        field: Field,
    ) -> Result<Self, CrossError> {
        // A loss of 1 is allowed: such a trial is given up.
        for (name, value) in [("e_x", e_x), ("e_oh", e_oh)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(CrossError::Loss { name, value });
            }
        }

        if !(1..=MOST_PACKETS).contains(&generation) {
            return Err(CrossError::Generation(generation));
        }

        Ok(Self { scheme, e_x, e_oh, generation, field })
    }

    /// Returns the transmissions of all nodes in trial number `trial`; `None` if the trial has not
    /// ended after [`LIMIT`] of them. The same seed and number give the same losses for every
    /// field.
    #[must_use]
    pub fn transmissions(&self, until: Until, seed: u64, trial: u64) -> Option<u64> {
        let mut air = Air::new(self.e_x, self.e_oh, seed, trial);

        // The MAC repeats packets of the first four schemes; the last two only broadcast.
        match self.scheme {
            Scheme::ForwardingUnconstrained => uncoded::forward(self.generation, 0.0, &mut air),
            Scheme::ForwardingConstrained => {
                uncoded::forward(self.generation, uncoded::DROPPED, &mut air);
            }
            Scheme::Cope => uncoded::cope(self.generation, until, &mut air),
            Scheme::CoreNoFeedbackNoRecoding => {
                coded::without_recoding(self.generation, self.field, until, &mut air);
            }
            Scheme::CoreNoFeedback => {
                coded::with_recoding(self.generation, self.field, false, until, &mut air);
            }
            Scheme::Core => {
                coded::with_recoding(self.generation, self.field, true, until, &mut air);
            }
        }

        air.sent()
    }
}
