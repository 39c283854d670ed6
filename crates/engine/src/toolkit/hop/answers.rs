//! Times of answers: how long a node waits for one, and how long others leave the channel to it.

use crate::time::Duration;
use crate::toolkit::average::DurationAverage;

/// How the time of answers is learned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnswerPolicy {
    /// Mean deviations by which an answer may be later than the mean.
    pub deviations: f64,
    /// Whether all of the first answer's time counts as a deviation, as nothing else is known.
    pub first_deviates: bool,
    /// Packet times for which an answer is waited for before one came.
    pub unlearned: f64,
    /// Least packet times, whatever was learned.
    pub least: f64,
    /// Most packet times, if there is such a bound.
    pub most: Option<f64>,
}

/// Time from a question to its answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerTime {
    mean: DurationAverage,
    deviation: DurationAverage,
}

impl AnswerTime {
    /// Takes the time of an answer.
    pub fn add(&mut self, took: Duration, policy: &AnswerPolicy) {
        let mean = self.mean.value();
        if policy.first_deviates || !mean.is_zero() {
            self.deviation.add(took.abs_diff(mean));
        }
        self.mean.add(took);
    }

    /// Returns the mean time; zero if none is known.
    #[must_use]
    pub fn mean(&self) -> Duration {
        self.mean.value()
    }

    /// Returns the time after which an answer is late by what was learned; zero if nothing was.
    #[must_use]
    pub fn late(&self, policy: &AnswerPolicy) -> Duration {
        self.mean.value() + self.deviation.value().mul_f64(policy.deviations)
    }

    /// Returns the time for which an answer is waited for.
    #[must_use]
    pub fn wait(&self, policy: &AnswerPolicy, packet_time: Duration) -> Duration {
        if self.mean().is_zero() {
            return packet_time.mul_f64(policy.unlearned);
        }
        let wait = self.late(policy).max(packet_time.mul_f64(policy.least));
        policy.most.map_or(wait, |most| wait.min(packet_time.mul_f64(most)))
    }
}

/// Time that a node leaves to an answer which it may not hear. Carrier sense does not keep it and
/// the node that answers apart.
///
/// A longer time leaves the channel idle, in a shorter one the answer is not over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnswerSlot {
    /// Packet times before an answer was heard.
    pub unlearned: f64,
    /// Share of the mean time of answers that is left to one.
    pub of_mean: f64,
    /// Least packet times, whatever was learned.
    pub least: f64,
    /// Most packet times: where answers take longer, they wait for the channel.
    pub longest: f64,
}

impl AnswerSlot {
    /// Returns the length of the slot, if answers take this time in the mean; zero if that is
    /// unknown.
    #[must_use]
    pub fn length(&self, mean: Duration, packet_time: Duration) -> Duration {
        if mean.is_zero() {
            return packet_time.mul_f64(self.unlearned);
        }
        let learned = mean.mul_f64(self.of_mean).min(packet_time.mul_f64(self.longest));
        learned.max(packet_time.mul_f64(self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: AnswerPolicy = AnswerPolicy {
        deviations: 4.0,
        first_deviates: false,
        unlearned: 12.0,
        least: 3.0,
        most: Some(20.0),
    };

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_answer_is_late_after_the_mean_and_some_deviations() {
        let policy = POLICY;
        let mut time = AnswerTime::default();
        assert_eq!((time.mean(), time.late(&policy)), (Duration::ZERO, Duration::ZERO));
        time.add(ms(10), &policy);
        assert_eq!(time.late(&policy), ms(10), "one answer deviates from nothing");
        time.add(ms(20), &policy);
        assert_eq!((time.mean(), time.late(&policy)), (ms(11), ms(51)));

        let cautious = AnswerPolicy { first_deviates: true, ..policy };
        let mut time = AnswerTime::default();
        time.add(ms(10), &cautious);
        assert_eq!(time.late(&cautious), ms(50));
    }

    #[test]
    fn an_answer_is_waited_for_as_long_as_they_take_within_bounds() {
        let wait = |took: &[u64], policy: &AnswerPolicy| {
            let mut time = AnswerTime::default();
            took.iter().for_each(|took| time.add(ms(*took), policy));
            time.wait(policy, ms(1)).as_millis()
        };
        assert_eq!(wait(&[], &POLICY), 12);
        assert_eq!(wait(&[1], &POLICY), 3);
        assert_eq!(wait(&[7], &POLICY), 7);
        assert_eq!(wait(&[300], &POLICY), 20);
        assert_eq!(wait(&[300], &AnswerPolicy { most: None, ..POLICY }), 300);
    }

    #[test]
    fn a_slot_is_as_long_as_answers_take_within_its_bounds() {
        let slot = AnswerSlot { unlearned: 0.8, of_mean: 1.3, least: 0.5, longest: 1.2 };
        let length = |mean| slot.length(mean, ms(10));
        assert_eq!(length(Duration::ZERO), ms(8));
        assert_eq!(length(ms(1)), ms(5));
        assert_eq!(length(Duration::from_micros(8_000)).as_micros(), 10_400);
        assert_eq!(length(ms(300)), ms(12));
    }
}
