//! How long a relay holds a packet, found by itself; not in the paper, which tries 0.5 to 2.5 ms by hand.
//!
//! Waiting pays while it saves more time than it takes. What a pair saves is one transmission, which takes this
//! node the time S from being ready to the MAC's report, contention included; what a wait w costs is w. For each
//! direction through the relay a few hold times h are compared by P(paired within h) S - E(wait), and the best
//! is used. One packet in 32 is held for the longest of them: whether and when it was paired tells what every
//! shorter hold time would have given, so nothing else needs to be tried. Where no packet is ever paired, each try
//! that fails doubles the number of packets until the next, up to 256.

use super::buffer::Turn;
use ncmesh_engine::time::Duration;
use std::collections::BTreeMap;

/// Hold times compared, as shares of the longest.
const SHARES: [f64; 8] = [0.0, 1.0 / 12.0, 1.0 / 6.0, 0.25, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0];
/// One packet in so many is held for the longest time where packets are paired.
const TRIAL: u32 = 32;
/// And at least one in so many elsewhere.
const RARE_TRIAL: u32 = 256;
/// So many first ones are held for the longest time.
const FIRST_TRIALS: u32 = 8;
/// What a new outcome counts at least.
const NEWEST: f64 = 1.0 / 64.0;
/// Gains that differ by less than this share of S are alike: the shorter time is used.
const TIE: f64 = 0.01;
/// Directions remembered; on others nothing is held.
const MAX_TURNS: usize = 1024;

/// A mean in which what is old fades.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    value: f64,
    seen: u32,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.seen = self.seen.saturating_add(1);
        self.value += (value - self.value) * NEWEST.max(1.0 / f64::from(self.seen));
    }

    pub(super) fn value(self) -> f64 {
        self.value
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    paired: Mean,
    wait_s: Mean,
}

#[derive(Debug)]
struct Experience {
    choices: [Choice; SHARES.len()],
    /// First packets that are still to be held.
    first: u32,
    /// Packets from one trial to the next, and those since the last.
    period: u32,
    since: u32,
}

impl Experience {
    fn new() -> Self {
        Self { choices: Default::default(), first: FIRST_TRIALS, period: TRIAL, since: 0 }
    }

    /// Whether the next packet is a trial. That none is paired until the next one is taken for granted; whoever learns of a
    /// pair puts it right.
    fn tries(&mut self) -> bool {
        if self.first > 0 {
            self.first -= 1;
            return true;
        }
        self.since += 1;
        let tries = self.since >= self.period;
        if tries {
            (self.since, self.period) = (0, (2 * self.period).min(RARE_TRIAL));
        }
        tries
    }
}

/// Hold times by direction.
#[derive(Debug)]
pub(super) struct HoldTimes {
    fixed: Option<Duration>,
    longest_s: f64,
    turns: BTreeMap<Turn, Experience>,
    /// What a transmission takes, s.
    service_s: Mean,
}

impl HoldTimes {
    pub(super) fn new(fixed: Option<Duration>, longest_s: f64) -> Self {
        Self { fixed, longest_s, turns: BTreeMap::new(), service_s: Mean::default() }
    }

    /// For the next packet that found no partner.
    pub(super) fn next(&mut self, turn: Turn) -> Duration {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        if self.turns.len() >= MAX_TURNS && !self.turns.contains_key(&turn) {
            return Duration::ZERO;
        }
        if self.turns.entry(turn).or_insert_with(Experience::new).tries() {
            return Duration::from_secs_f64(self.longest_s);
        }
        self.best(turn)
    }

    /// The hold time that pays most as far as known.
    pub(super) fn best(&self, turn: Turn) -> Duration {
        let Some(experience) = self.turns.get(&turn).filter(|_| self.fixed.is_none()) else {
            return self.fixed.unwrap_or_default();
        };
        let service_s = self.service_s.value();
        let gain = |choice: &Choice| choice.paired.value() * service_s - choice.wait_s.value();
        let most = experience.choices.iter().map(gain).fold(f64::NEG_INFINITY, f64::max);
        let enough = most - TIE * service_s;
        let mut choices = SHARES.iter().zip(&experience.choices);
        let best =
            choices.find(|(_, choice)| gain(choice) >= enough).map_or(0.0, |(share, _)| *share);
        Duration::from_secs_f64(best * self.longest_s)
    }

    /// What was found for each direction, where it is not fixed.
    pub(super) fn found(&self) -> impl Iterator<Item = (Turn, Duration)> + '_ {
        self.turns.keys().map(|turn| (*turn, self.best(*turn)))
    }

    /// A packet held for `hold` was paired after `met`, or never. One that was let go may still be paired for
    /// `grace` on average.
    pub(super) fn learn(
        &mut self,
        turn: Turn,
        hold: Duration,
        met: Option<Duration>,
        grace: Duration,
    ) {
        let Some(experience) = self.turns.get_mut(&turn) else { return };
        if met.is_some() {
            experience.period = TRIAL;
        }
        for (share, choice) in SHARES.iter().zip(&mut experience.choices) {
            let shorter = Duration::from_secs_f64(share * self.longest_s);
            if shorter > hold {
                break;
            }
            let paired = met.is_some_and(|met| met <= shorter + grace);
            let wait = met.map_or(shorter, |met| met.min(shorter));
            choice.paired.add(f64::from(u8::from(paired)));
            choice.wait_s.add(wait.as_secs_f64());
        }
    }

    /// What a transmission takes, contention included.
    pub(super) fn service(&self) -> Duration {
        Duration::from_secs_f64(self.service_s.value())
    }

    /// A transmission took so long, from being ready to the MAC's report.
    pub(super) fn served(&mut self, time: Duration) {
        self.service_s.add(time.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    const TURN: Turn = (NodeId(1), NodeId(2));
    const US: Duration = Duration::from_micros(1);

    /// What is found where a partner comes `after` us behind a packet in `of_ten` cases of ten.
    fn found(after: u32, of_ten: u32, service: u32) -> u128 {
        let mut times = HoldTimes::new(None, 0.003);
        times.served(service * US);
        for n in 0..3000 {
            let hold = times.next(TURN);
            let met = (after * US <= hold && n % 10 < of_ten).then_some(after * US);
            times.learn(TURN, hold, met, Duration::ZERO);
        }
        times.best(TURN).as_micros()
    }

    #[test]
    fn it_waits_just_long_enough_where_waiting_pays_and_not_at_all_elsewhere() {
        assert_eq!(found(700, 10, 1500), 750);
        assert_eq!(found(1400, 9, 4000), 1500);
        // A wait of 1 ms for a partner in two of ten cases, to save 1.5 ms in these.
        assert_eq!(found(950, 2, 1500), 0);
        assert_eq!(found(5000, 10, 1500), 0);
        assert_eq!(found(0, 0, 1500), 0);
    }

    #[test]
    fn it_follows_what_changes() {
        let mut times = HoldTimes::new(None, 0.003);
        times.served(2000 * US);
        for round in 0..6000 {
            let hold = times.next(TURN);
            let after = if round < 3000 { 900 * US } else { 200 * US };
            times.learn(TURN, hold, (after <= hold).then_some(after), Duration::ZERO);
            match round {
                2999 => assert_eq!(times.best(TURN).as_micros(), 1000),
                5999 => assert_eq!(times.best(TURN).as_micros(), 250),
                _ => {}
            }
        }
    }

    #[test]
    fn trials_become_rare_where_nothing_is_paired_and_frequent_again_where_something_is() {
        let mut times = HoldTimes::new(None, 0.003);
        times.served(1500 * US);
        let mut trials = |packets: u32, partner: bool| {
            let held = |_: &u32| {
                let hold = times.next(TURN);
                times.learn(TURN, hold, partner.then_some(hold), Duration::ZERO);
                hold == 3000 * US
            };
            (0..packets).filter(held).count()
        };
        assert_eq!(trials(1000, false), 8 + 6, "after 32, 64, 128 and three times 256 more");
        assert_eq!(trials(1024, false), 4);
        assert!(trials(3200, true) >= 80);
    }

    #[test]
    fn a_fixed_time_is_kept_and_memory_is_bounded() {
        let mut fixed = HoldTimes::new(Some(1500 * US), 0.003);
        assert_eq!((fixed.next(TURN), fixed.turns.len()), (1500 * US, 0));
        let mut times = HoldTimes::new(None, 0.003);
        for other in 0..3000 {
            times.next((NodeId(1), NodeId(other)));
        }
        assert_eq!(times.turns.len(), MAX_TURNS);
        assert_eq!(times.next((NodeId(9), NodeId(9))), Duration::ZERO);
    }
}
