//! Exponentially weighted moving averages.
//!
//! Engines measure times and shares that drift. Each average here gives the newest sample a fixed
//! weight; until there are enough samples it is their plain mean, so that the first does not count
//! for more than it should.

use crate::time::Duration;

/// Moving average of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Average {
    value: f64,
    samples: u32,
    weight: f64,
}

impl Average {
    /// Returns an average without samples, in which the newest one has `weight` (0 to 1). The first
    /// 1 / `weight` samples count alike.
    #[must_use]
    pub const fn new(weight: f64) -> Self {
        Self { value: 0.0, samples: 0, weight }
    }

    /// Returns an average that starts at `value`, an estimate that is trusted like many samples.
    #[must_use]
    pub const fn starting_at(value: f64, weight: f64) -> Self {
        Self { value, samples: u32::MAX, weight }
    }

    /// Takes a sample.
    pub fn add(&mut self, sample: f64) {
        self.samples = self.samples.saturating_add(1);
        self.value += (sample - self.value) * self.weight.max(1.0 / f64::from(self.samples));
    }

    /// Returns the average; 0 before the first sample.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.value
    }
}

/// Share of trials that succeed, from counts that fade: a count halves in `half_life` trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FadingShare {
    successes: f64,
    trials: f64,
    half_life: f64,
}

impl FadingShare {
    /// Returns a share that starts at `value`, an estimate with the weight of `trials` trials.
    #[must_use]
    pub const fn starting_at(value: f64, trials: f64, half_life: f64) -> Self {
        Self { successes: value * trials, trials, half_life }
    }

    /// Counts `trials`, of which `successes` succeeded.
    pub fn add(&mut self, trials: f64, successes: f64) {
        let keep = libm::pow(0.5, trials / self.half_life);
        self.successes = keep * self.successes + successes;
        self.trials = keep * self.trials + trials;
    }

    /// Returns the share.
    #[must_use]
    pub const fn value(&self) -> f64 {
        self.successes / self.trials
    }

    /// Returns the number of trials that it comes from, the faded ones less.
    #[must_use]
    pub const fn trials(&self) -> f64 {
        self.trials
    }
}

/// Moving average of a duration. The first sample counts whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DurationAverage {
    value: Duration,
    weight: f64,
}

impl DurationAverage {
    /// Returns an average without samples, in which the newest one has `weight` (0 to 1).
    #[must_use]
    pub const fn new(weight: f64) -> Self {
        Self { value: Duration::ZERO, weight }
    }

    /// Returns an average that starts at `value`, an estimate that counts like a sample.
    #[must_use]
    pub const fn starting_at(value: Duration, weight: f64) -> Self {
        Self { value, weight }
    }

    /// Takes a sample.
    pub fn add(&mut self, sample: Duration) {
        self.value = if self.value.is_zero() {
            sample
        } else {
            self.value.mul_f64(1.0 - self.weight) + sample.mul_f64(self.weight)
        };
    }

    /// Returns the average; zero before the first sample.
    #[must_use]
    pub const fn value(&self) -> Duration {
        self.value
    }
}

impl Default for DurationAverage {
    /// Returns an average of airtimes: the newest sample weighs a tenth.
    fn default() -> Self {
        Self::new(0.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fading_share_follows_its_latest_trials() {
        let mut share = FadingShare::starting_at(0.5, 16.0, 64.0);
        share.add(64.0, 64.0);
        assert!((share.trials() - 72.0).abs() < 1e-9 && (share.value() - 68.0 / 72.0).abs() < 1e-9);
        (0..20).for_each(|_| share.add(64.0, 0.0));
        assert!(share.value() < 1e-4 && share.trials() < 128.0);
    }

    proptest! {
        #[test]
        fn an_average_stays_between_its_samples(
            samples in prop::collection::vec(-1e6..1e6f64, 1..100),
            weight in 0.001..1.0f64,
        ) {
            let mut average = Average::new(weight);
            samples.iter().for_each(|sample| average.add(*sample));
            let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
            let most = samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((least - 1e-3..=most + 1e-3).contains(&average.value()));
        }

        #[test]
        fn few_samples_count_alike(samples in prop::collection::vec(-1e3..1e3f64, 1..20)) {
            let mut average = Average::new(0.05);
            samples.iter().for_each(|sample| average.add(*sample));
            let mean = samples.iter().sum::<f64>() / samples.len() as f64;
            prop_assert!((average.value() - mean).abs() < 1e-6);
        }

        #[test]
        fn a_step_is_followed(weight in 0.01..0.5f64) {
            let mut average = Average::starting_at(1.0, weight);
            (0..(10.0 / weight) as u32).for_each(|_| average.add(0.0));
            prop_assert!(average.value() < 0.01);
        }

        #[test]
        fn durations_stay_between_their_samples(
            samples in prop::collection::vec(1..10_000_000u64, 1..50),
        ) {
            let mut average = DurationAverage::default();
            samples.iter().for_each(|ns| average.add(Duration::from_nanos(*ns)));
            let least = samples.iter().min().unwrap();
            let most = samples.iter().max().unwrap();
            // Each step may round by a nanosecond.
            let rounding = samples.len() as u64;
            let value = average.value().as_nanos() as u64;
            prop_assert!((least - least.min(&rounding)..=most + rounding).contains(&value));
        }
    }
}
