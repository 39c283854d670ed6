//! Distribution of durations, in constant space.

use crate::time::Duration;

/// Buckets of each octave: a quantile is at most 1/16 off.
const PER_OCTAVE: usize = 8;
const SUB_BITS: u32 = PER_OCTAVE.trailing_zeros();
/// Durations are counted in microseconds up to 2 to this power, 16.8 s. Longer ones count as that.
const OCTAVES: u32 = 24;
const BUCKETS: usize = (OCTAVES - SUB_BITS + 1) as usize * PER_OCTAVE;

/// Distribution of durations.
#[derive(Clone, Debug, PartialEq)]
pub struct DurationHistogram {
    buckets: [u32; BUCKETS],
}

impl Default for DurationHistogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS] }
    }
}

impl DurationHistogram {
    /// Counts a duration.
    pub fn add(&mut self, duration: Duration) {
        let micros = (duration.as_nanos() / 1000).min((1 << OCTAVES) - 1) as u32;
        let bucket = &mut self.buckets[bucket_of(micros)];
        *bucket = bucket.saturating_add(1);
    }

    /// Returns the duration that this share of all, 0 to 1, does not exceed. `None` if there is
    /// none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let all: u64 = self.buckets.iter().map(|count| u64::from(*count)).sum();

        // The bucket that holds the wanted one of all values in order.
        let wanted = (share * all as f64).max(1.0);
        let mut below = 0;
        let bucket = self.buckets.iter().position(|count| {
            below += u64::from(*count);
            below as f64 >= wanted
        })?;

        Some(Duration::from_micros(middle_of(bucket)))
    }
}

/// Returns the bucket of a number of microseconds. Up to `PER_OCTAVE` each number has its own.
fn bucket_of(micros: u32) -> usize {
    let octave = micros.checked_ilog2().unwrap_or(0).max(SUB_BITS) - SUB_BITS;
    octave as usize * PER_OCTAVE + (micros >> octave) as usize
}

/// Returns the middle of a bucket, microseconds.
fn middle_of(bucket: usize) -> u64 {
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    let lowest = (bucket - octave * PER_OCTAVE) as u64;
    (lowest << octave) + (1 << octave) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_nothing_and_of_a_few() {
        let mut all = DurationHistogram::default();
        assert_eq!(all.quantile(0.5), None);
        for ms in 1..=100 {
            all.add(Duration::from_millis(ms));
        }
        let near = |share, ms: f64| {
            let found = 1e3 * all.quantile(share).unwrap().as_secs_f64();
            assert!((found / ms - 1.0).abs() < 0.07, "{found} ms instead of {ms}");
        };
        near(0.5, 50.0);
        near(0.99, 99.0);
        near(0.0, 1.0);
    }

    proptest! {
        #[test]
        fn a_duration_is_in_a_bucket_that_is_near(micros in 0u32..1 << OCTAVES) {
            let bucket = bucket_of(micros);
            prop_assert!(bucket < BUCKETS);
            let middle = middle_of(bucket) as f64;
            prop_assert!((middle - f64::from(micros)).abs() <= f64::from(micros) / 16.0 + 0.5);
        }

        #[test]
        fn durations_of_any_length_are_counted(nanos: u64) {
            let mut all = DurationHistogram::default();
            all.add(Duration::from_nanos(nanos));
            prop_assert!(all.quantile(1.0).is_some());
        }
    }
}
