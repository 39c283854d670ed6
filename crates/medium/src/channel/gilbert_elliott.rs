//! Losses in bursts: a Gilbert-Elliott channel in continuous time for each directed link.
//!
//! A link alternates between a good and a bad state, each with its own loss probability, and stays
//! in each for an exponentially distributed time (E. N. Gilbert, "Capacity of a Burst-Noise
//! Channel", Bell Syst. Tech. J. 39, 1960; E. O. Elliott, "Estimates of Error Rates for Codes on
//! Burst-Noise Channels", 42, 1963). The share of bad time is chosen so that the link's mean loss
//! is that of the loss matrix.
//!
//! The state is sampled only when a frame begins: its distribution then follows from the state at
//! the last sample and the time since.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;

use crate::config::Bursts;
use crate::random::{Purpose, stream, unit};

/// The state of one link when it was last sampled.
#[derive(Clone, Copy)]
struct Sample {
    bad: bool,
    at_ns: u64,
}

/// The Gilbert-Elliott channels of all links.
pub(super) struct GilbertElliott {
    config: Bursts,
    /// The last sample of each link, by sender, then by receiver.
    samples: Vec<BTreeMap<usize, Sample>>,
    draws: Vec<ChaCha8Rng>,
}

impl GilbertElliott {
    /// Creates the channels. The first sample of a link is from the stationary distribution.
    pub(super) fn new(config: Bursts, radios: usize, seed: u64) -> Self {
        Self {
            config,
            samples: vec![BTreeMap::new(); radios],
            draws: (0..radios).map(|radio| stream(seed, Purpose::Bursts, radio)).collect(),
        }
    }

    /// Samples the loss probability from `from` to `to` at `now_ns`, on a link with the mean loss
    /// `mean`.
    pub(super) fn sample_loss(&mut self, now_ns: u64, from: usize, to: usize, mean: f64) -> f64 {
        // The share of bad time that gives the mean loss. A link that is better than the good state
        // or worse than the bad state has no bursts.
        let Bursts { mean_s, loss_good, loss_bad } = self.config;
        let bad_share = ((mean - loss_good) / (loss_bad - loss_good)).clamp(0.0, 1.0);
        if bad_share == 0.0 || bad_share == 1.0 {
            return mean;
        }

        // The probability of the bad state decays from the last sample (0 or 1) to its stationary
        // value. The rates of both transitions add up to 1 / (mean_s (1 - bad_share)).
        let last = self.samples[from].get(&to).copied();
        let p_bad = last.map_or(bad_share, |last| {
            let elapsed_s = (now_ns - last.at_ns) as f64 * 1e-9;
            let memory = libm::exp(-elapsed_s / (mean_s * (1.0 - bad_share)));
            bad_share + (f64::from(u8::from(last.bad)) - bad_share) * memory
        });

        let bad = unit(&mut self.draws[from]) < p_bad;
        self.samples[from].insert(to, Sample { bad, at_ns: now_ns });
        if bad { loss_bad } else { loss_good }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_loss_and_mean_burst_are_what_was_asked_for() {
        let config = Bursts { mean_s: 0.05, loss_good: 0.1, loss_bad: 0.9 };
        let mut bursts = GilbertElliott::new(config, 2, 1);
        let losses: Vec<f64> =
            (0..2_000_000).map(|ms| bursts.sample_loss(ms * 1_000_000, 0, 1, 0.3)).collect();
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        assert!((mean - 0.3).abs() < 0.01, "{mean}");
        let bad = losses.iter().filter(|loss| **loss > 0.5).count() as f64;
        let begun = losses.windows(2).filter(|pair| pair[0] < 0.5 && pair[1] > 0.5).count() as f64;
        // Samples every ms miss shorter bursts, so a mean of 50 ms appears about 1 % longer.
        assert!((bad / begun - 50.5).abs() < 2.0, "{} ms", bad / begun);
    }

    #[test]
    fn a_link_out_of_range_of_both_states_has_its_own_loss() {
        let config = Bursts { mean_s: 0.05, loss_good: 0.1, loss_bad: 0.9 };
        let mut bursts = GilbertElliott::new(config, 2, 1);
        assert_eq!(bursts.sample_loss(0, 0, 1, 0.05), 0.05);
        assert_eq!(bursts.sample_loss(0, 0, 1, 0.95), 0.95);
    }
}
