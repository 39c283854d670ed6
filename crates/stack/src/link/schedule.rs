//! Schedule of probes: when a node sends which.

use ncmesh_engine::time::Duration;

/// Quick probes after a start, then slower ones. Times count from the first probe, without jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Number of probes that are followed by the next after `quick_period`.
    pub quick: u16,
    pub quick_period: Duration,
    pub period: Duration,
}

impl Schedule {
    /// Returns the time from probe `seq` to the next.
    pub(super) fn gap(&self, seq: u32) -> Duration {
        if seq < u32::from(self.quick) { self.quick_period } else { self.period }
    }

    /// Returns when probe `seq` is sent.
    pub(super) fn at(&self, seq: u32) -> Duration {
        let quick = seq.min(self.quick.into());
        self.quick_period * quick + self.period * (seq - quick)
    }

    /// Returns the last probe that is sent by `time`.
    pub(super) fn last_by(&self, time: Duration) -> u32 {
        let quick = u32::from(self.quick);
        match time.checked_sub(self.at(quick)) {
            None => whole(time, self.quick_period),
            Some(later) => quick.saturating_add(whole(later, self.period)),
        }
    }
}

fn whole(time: Duration, period: Duration) -> u32 {
    u32::try_from(time.as_nanos() / period.as_nanos().max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quick_probes_come_first() {
        let ms = Duration::from_millis;
        let s = Schedule { quick: 4, quick_period: ms(100), period: ms(1000) };
        assert_eq!([0, 3, 4, 5].map(|seq| s.at(seq)), [0, 300, 400, 1400].map(ms));
        assert_eq!([3, 4].map(|seq| s.gap(seq)), [100, 1000].map(ms));
        assert_eq!([99, 399, 400, 1399, 1400].map(|t| s.last_by(ms(t))), [0, 3, 4, 4, 5]);
    }

    proptest! {
        #[test]
        fn a_probe_is_the_last_from_its_time_to_the_next(
            quick: u16, quick_ms in 1u64..=65_535, ms in 1u64..=65_535, seq in 0u32..u32::MAX,
        ) {
            let quick_period = Duration::from_millis(quick_ms);
            let s = Schedule { quick, quick_period, period: Duration::from_millis(ms) };
            prop_assert_eq!(s.last_by(s.at(seq)), seq);
            prop_assert_eq!(s.at(seq) + s.gap(seq), s.at(seq + 1));
            prop_assert_eq!(s.last_by(s.at(seq + 1) - Duration::from_nanos(1)), seq);
        }
    }
}
