//! Two flows that cross at a relay, as a slot model.
//!
//! Sources S1 and S2 have a generation of packets each for D1 and D2, which only the relay R reaches both of;
//! D1 overhears S2, D2 overhears S1. Six ways to get them there, all of J. Hansen et al., "Bridging inter-flow
//! and intra-flow network coding in wireless mesh networks" (CORE), Computer Networks 145, 2018, section 5:
//! there as formulas for means, here as trials with packets that are lost one by one and ranks of real
//! coefficients over a finite field. There is neither time nor interference: what is counted is transmissions.
//!
//! ```
//! use ncmesh_cross::{Cross, Field, Scheme, Until};
//! let cross = Cross::new(Scheme::Cope, 0.0, 0.0, 64, Field::Gf256)?;
//! // Two packets to the relay and one from there, for each pair.
//! assert_eq!(cross.transmissions(Until::Both, 1, 0), Some(3 * 64));
//! # Ok::<(), ncmesh_cross::CrossError>(())
//! ```

mod air;
mod coded;
mod span;
#[cfg(test)]
mod tests;
mod uncoded;

use air::Air;
pub use ncmesh_code::Field;

/// The largest generation.
pub const MOST_PACKETS: usize = 256;
/// A trial that has not ended after so many transmissions never ends.
pub const LIMIT: u64 = 1_000_000;

/// How the packets travel; the names are those of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Uncoded; the relay forwards all it gets (5.1).
    ForwardingUnconstrained,
    /// Uncoded; the relay drops every other packet, since it gets the channel as often as each source (5.1).
    ForwardingConstrained,
    /// The relay sends the exclusive or of two packets (5.2).
    Cope,
    /// Random linear codes, of which the relay does the same (5.3).
    CoreNoFeedbackNoRecoding,
    /// The relay sends fresh combinations of all it has, after each packet of the sources (5.4).
    CoreNoFeedback,
    /// The same, and it stops a source of whose packets it has full rank (5.5).
    Core,
}

impl Scheme {
    /// All, in the paper's order.
    pub const ALL: [Self; 6] = [
        Self::ForwardingUnconstrained,
        Self::ForwardingConstrained,
        Self::Cope,
        Self::CoreNoFeedbackNoRecoding,
        Self::CoreNoFeedback,
        Self::Core,
    ];

    /// As it is called in Python.
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

/// Why there can be no such cross.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum CrossError {
    /// A loss that is no probability.
    #[error("{name} = {value}: allowed is 0 to 1")]
    Loss {
        /// Which.
        name: &'static str,
        /// What it is.
        value: f64,
    },
    /// A generation of no packets, or of too many.
    #[error("generation = {0}: allowed is 1 to {MOST_PACKETS} packets")]
    Generation(usize),
}

/// The cross with a scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cross {
    scheme: Scheme,
    e_x: f64,
    e_oh: f64,
    generation: usize,
    field: Field,
}

impl Cross {
    /// With loss `e_x` of the links to and from the relay, `e_oh` of those from a source to the other flow's
    /// destination, and `generation` packets of each flow, coded over `field` where the scheme codes.
    ///
    /// # Errors
    /// [`CrossError`] for losses outside 0 to 1, and generations outside 1 to [`MOST_PACKETS`].
    pub fn new(
        scheme: Scheme,
        e_x: f64,
        e_oh: f64,
        generation: usize,
        field: Field,
    ) -> Result<Self, CrossError> {
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

    /// Transmissions of all nodes in trial number `trial` until it ends; `None` if it has not ended after
    /// [`LIMIT`] of them. The same seed and number give the same losses to every field.
    #[must_use]
    pub fn transmissions(&self, until: Until, seed: u64, trial: u64) -> Option<u64> {
        let mut air = Air::new(self.e_x, self.e_oh, seed, trial);
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
