//! Arrival processes of a source.

use ncmesh_engine::rng::unit;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Poisson};
use serde::Deserialize;

/// Arrival process of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A Poisson distributed number of packets, independent in each slot.
    #[default]
    Poisson,
    /// The rate rounded down, and one more packet with the probability of the remainder.
    Bernoulli,
    /// As evenly spaced as whole packets allow.
    Constant,
}

/// The arrivals of one layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Arrivals {
    /// Poisson with a rate above 0.
    Poisson(Poisson<f64>),
    /// The certain packets of a slot, and the probability of one more.
    Bernoulli(u32, f64),
    /// A constant stream and the fraction of a packet that it has accumulated.
    Constant {
        /// Packets per slot.
        rate: f64,
        /// Accumulated part of the next packet, below 1.
        due: f64,
    },
}

/// Standard deviations above the mean that a Poisson burst may have by default to enter at once.
const BURST: f64 = 6.0;

impl Arrivals {
    /// Creates arrivals of `rate` packets per slot, 0 or more.
    pub(crate) fn new(kind: Kind, rate: f64) -> Self {
        match kind {
            Kind::Poisson => match Poisson::new(rate) {
                Ok(poisson) => Self::Poisson(poisson),
                // The distribution does not accept a rate of 0.
                Err(_) => Self::Constant { rate: 0.0, due: 0.0 },
            },
            Kind::Bernoulli => Self::Bernoulli(rate as u32, rate.fract()),
            Kind::Constant => Self::Constant { rate, due: 0.0 },
        }
    }

    /// Draws the number of packets that arrive in a slot.
    pub(crate) fn draw(&mut self, random: &mut ChaCha8Rng) -> u32 {
        match self {
            Self::Poisson(poisson) => poisson.sample(random) as u32,
            Self::Bernoulli(sure, more) => *sure + u32::from(unit(random) < *more),
            Self::Constant { rate, due } => {
                // The fraction that is left waits for the next slot.
                let whole = *rate + *due;
                *due = whole.fract();
                whole as u32
            }
        }
    }
}

impl Kind {
    /// Returns the default limit of packets that enter in one slot, for a stream of `rate` packets
    /// per slot in `layers` layers. The limit covers every burst; Poisson arrivals exceed it once
    /// in many millions of slots.
    pub(crate) fn burst(self, rate: f64, layers: usize) -> u32 {
        match self {
            // Six deviations more than the mean, and as much again where the rate is small.
            Self::Poisson => (rate + BURST * rate.sqrt()).ceil() as u32 + BURST as u32,
            Self::Bernoulli | Self::Constant => rate as u32 + layers as u32,
        }
    }

    /// Says whether the queue outside the source stays short when `a_max` packets enter per slot.
    pub(crate) fn fits(self, rate: f64, a_max: u32) -> bool {
        // Random arrivals need more room than their mean; steady ones do not.
        let a_max = f64::from(a_max);
        if self == Self::Poisson { a_max > rate } else { a_max >= rate }
    }
}
