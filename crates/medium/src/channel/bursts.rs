//! Losses in bursts: a Gilbert-Elliott channel in continuous time for each directed link (Gilbert 1960,
//! Elliott 1963), its share of bad time chosen so that the link's mean loss is what the matrix says.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;

use crate::config::Bursts;
use crate::random::{Purpose, stream, unit};

#[derive(Clone, Copy)]
struct State {
    bad: bool,
    at_ns: u64,
}

/// The state of each link when last asked for.
pub(super) struct Burstiness {
    config: Bursts,
    /// By sender, then by receiver.
    states: Vec<BTreeMap<usize, State>>,
    draws: Vec<ChaCha8Rng>,
}

impl Burstiness {
    /// All links in a state drawn when it is first asked for.
    pub(super) fn new(config: Bursts, radios: usize, seed: u64) -> Self {
        Self {
            config,
            states: vec![BTreeMap::new(); radios],
            draws: (0..radios).map(|radio| stream(seed, Purpose::Bursts, radio)).collect(),
        }
    }

    /// The loss probability from `from` to `to` at `now_ns` on a link whose mean loss is `mean`.
    pub(super) fn loss_now(&mut self, now_ns: u64, from: usize, to: usize, mean: f64) -> f64 {
        let Bursts { mean_s, loss_good, loss_bad } = self.config;
        let share = ((mean - loss_good) / (loss_bad - loss_good)).clamp(0.0, 1.0);
        if share == 0.0 || share == 1.0 {
            // Better or worse than the two states can make it: no bursts.
            return mean;
        }
        let before = self.states[from].get(&to).copied();
        let p_bad = before.map_or(share, |state| {
            let elapsed_s = (now_ns - state.at_ns) as f64 * 1e-9;
            let memory = libm::exp(-elapsed_s / (mean_s * (1.0 - share)));
            share + (f64::from(u8::from(state.bad)) - share) * memory
        });
        let bad = unit(&mut self.draws[from]) < p_bad;
        self.states[from].insert(to, State { bad, at_ns: now_ns });
        if bad { loss_bad } else { loss_good }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_loss_and_mean_burst_are_what_was_asked_for() {
        let config = Bursts { mean_s: 0.05, loss_good: 0.1, loss_bad: 0.9 };
        let mut bursts = Burstiness::new(config, 2, 1);
        let losses: Vec<f64> =
            (0..2_000_000).map(|ms| bursts.loss_now(ms * 1_000_000, 0, 1, 0.3)).collect();
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        assert!((mean - 0.3).abs() < 0.01, "{mean}");
        let bad = losses.iter().filter(|loss| **loss > 0.5).count() as f64;
        let begun = losses.windows(2).filter(|pair| pair[0] < 0.5 && pair[1] > 0.5).count() as f64;
        // Sampled each ms, bursts shorter than that are missed: a mean of 50 ms reads about 1 % longer.
        assert!((bad / begun - 50.5).abs() < 2.0, "{} ms", bad / begun);
    }

    #[test]
    fn a_link_out_of_range_of_both_states_has_its_own_loss() {
        let config = Bursts { mean_s: 0.05, loss_good: 0.1, loss_bad: 0.9 };
        let mut bursts = Burstiness::new(config, 2, 1);
        assert_eq!(bursts.loss_now(0, 0, 1, 0.05), 0.05);
        assert_eq!(bursts.loss_now(0, 0, 1, 0.95), 0.95);
    }
}
