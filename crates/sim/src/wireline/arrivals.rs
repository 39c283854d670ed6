//! How packets arrive at a source.

use ncmesh_engine::rng::unit;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Poisson};
use serde::Deserialize;

/// Of which kind the arrivals of a stream are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Independent from slot to slot, Poisson distributed.
    #[default]
    Poisson,
    /// The rate rounded down, and one packet more with the probability of the rest.
    Bernoulli,
    /// As even as whole packets allow.
    Constant,
}

/// The arrivals of one layer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// Poisson with a rate above 0.
    Poisson(Poisson<f64>),
    /// So many for certain, and one more with this probability.
    Bernoulli(u32, f64),
    /// Packets per slot, and the part of one that is due.
    Constant {
        /// Packets per slot.
        rate: f64,
        /// What is due of the next packet, below 1.
        due: f64,
    },
}

/// How many standard deviations above its mean a Poisson burst is let in at once, if nothing else is said.
const BURST: f64 = 6.0;

impl Arrivals {
    /// Packets of `rate` per slot, 0 or more.
    pub(super) fn new(kind: Kind, rate: f64) -> Self {
        match kind {
            Kind::Poisson => match Poisson::new(rate) {
                Ok(poisson) => Self::Poisson(poisson),
                // A rate of 0 is none to it.
                Err(_) => Self::Constant { rate: 0.0, due: 0.0 },
            },
            Kind::Bernoulli => Self::Bernoulli(rate as u32, rate.fract()),
            Kind::Constant => Self::Constant { rate, due: 0.0 },
        }
    }

    /// Packets that arrive in a slot.
    pub(super) fn draw(&mut self, random: &mut ChaCha8Rng) -> u32 {
        match self {
            Self::Poisson(poisson) => poisson.sample(random) as u32,
            Self::Bernoulli(sure, more) => *sure + u32::from(unit(random) < *more),
            Self::Constant { rate, due } => {
                let whole = *rate + *due;
                *due = whole.fract();
                whole as u32
            }
        }
    }
}

impl Kind {
    /// How many packets of `rate` per slot are let in at once if nothing else is said, for `layers` layers: all that
    /// can come, of Poisson arrivals all but one in many millions of slots.
    pub(super) fn burst(self, rate: f64, layers: usize) -> u32 {
        match self {
            Self::Poisson => (rate + BURST * rate.sqrt()).ceil() as u32 + BURST as u32,
            Self::Bernoulli | Self::Constant => rate as u32 + layers as u32,
        }
    }

    /// Whether what waits for `a_max` packets a slot to enter stays little.
    pub(super) fn fits(self, rate: f64, a_max: u32) -> bool {
        let a_max = f64::from(a_max);
        if self == Self::Poisson { a_max > rate } else { a_max >= rate }
    }
}
