//! Hold times that a relay measures by itself. Not in the paper, which tries 0.5 to 2.5 ms by hand.
//!
//! Waiting pays if it saves more time than it takes. A pair saves one transmission. That takes this
//! node the service time S, from being first in the queue to the MAC's report, contention included.
//! For each direction through the relay, eight hold times h are compared by their gain
//!
//! ```text
//! P(paired within h) S - E(time waited with h)
//! ```
//!
//! and the best one is used. To measure them, one packet in 32 is a *trial*: it is held for the
//! longest time. Whether and when it is paired shows what every shorter time would have given, so
//! no other experiment is needed. Where packets are never paired, each trial doubles the number of
//! packets until the next one, up to 256.

use super::packet::Direction;
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::average::Average;
use std::collections::BTreeMap;

/// Hold times that are compared, as shares of the longest.
const SHARES: [f64; 8] = [0.0, 1.0 / 12.0, 1.0 / 6.0, 0.25, 1.0 / 3.0, 0.5, 2.0 / 3.0, 1.0];
/// Packets of a direction that are held for the longest time at first, to learn quickly.
const FIRST_TRIALS: u32 = 8;
/// Packets from one trial to the next where packets are paired.
const TRIAL_PERIOD: u32 = 32;
/// Most packets from one trial to the next.
const LONGEST_TRIAL_PERIOD: u32 = 256;
/// Weight of the newest outcome in an average.
pub(crate) const NEWEST: f64 = 1.0 / 64.0;
/// Gains that differ by less than this share of S count as equal. The shorter time is used then.
const TIE: f64 = 0.01;
/// Most directions that are remembered. Packets of further ones are not held.
const MAX_DIRECTIONS: usize = 1024;

/// Experience with one hold time.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// Share of packets that are paired with it.
    paired: Average,
    /// Time for which packets wait with it, s.
    wait_s: Average,
}

/// Experience with one direction.
#[derive(Debug)]
struct Experience {
    /// One for each of [`SHARES`].
    candidates: [Candidate; SHARES.len()],
    /// Trials that are still to be made at the beginning.
    first_trials: u32,
    /// Packets from one trial to the next.
    period: u32,
    /// Packets since the last trial.
    since_trial: u32,
}

impl Experience {
    fn new() -> Self {
        let unknown = Candidate { paired: Average::new(NEWEST), wait_s: Average::new(NEWEST) };
        Self {
            candidates: [unknown; SHARES.len()],
            first_trials: FIRST_TRIALS,
            period: TRIAL_PERIOD,
            since_trial: 0,
        }
    }

    /// Counts a packet. Returns whether it is a trial.
    fn count_packet(&mut self) -> bool {
        // The first packets of a direction are trials, so that something is known soon.
        if self.first_trials > 0 {
            self.first_trials -= 1;
            return true;
        }

        self.since_trial += 1;
        let is_trial = self.since_trial >= self.period;
        if is_trial {
            // The trial is taken to fail. If the packet is paired, the period becomes short again.
            self.since_trial = 0;
            self.period = (2 * self.period).min(LONGEST_TRIAL_PERIOD);
        }

        is_trial
    }
}

/// Outcome of holding a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    /// Time for which it was to be held.
    pub hold: Duration,
    /// Time after which it was paired; `None` if it was sent alone.
    pub paired_after: Option<Duration>,
    /// Time for which a packet may still be paired after its hold time, on average: while it waits
    /// for the channel.
    pub grace: Duration,
}

/// Measured hold times by direction.
#[derive(Debug)]
pub(crate) struct HoldTimes {
    longest_s: f64,
    directions: BTreeMap<Direction, Experience>,
    /// Service time of a transmission (S), s.
    service_s: Average,
}

impl HoldTimes {
    /// Returns hold times of at most `longest_s` seconds of which nothing is known yet.
    pub(crate) fn new(longest_s: f64) -> Self {
        Self { longest_s, directions: BTreeMap::new(), service_s: Average::new(NEWEST) }
    }

    /// Returns the hold time for a packet that has no partner yet: the best one, or for a trial the
    /// longest.
    pub(crate) fn choose(&mut self, direction: Direction) -> Duration {
        if self.directions.len() >= MAX_DIRECTIONS && !self.directions.contains_key(&direction) {
            return Duration::ZERO;
        }
        if self.directions.entry(direction).or_insert_with(Experience::new).count_packet() {
            return Duration::from_secs_f64(self.longest_s);
        }
        self.best(direction)
    }

    /// Returns the hold time of the largest gain; zero for a direction of which nothing is known.
    pub(crate) fn best(&self, direction: Direction) -> Duration {
        let Some(experience) = self.directions.get(&direction) else { return Duration::ZERO };
        let service_s = self.service_s.value();
        let gain = |known: &Candidate| known.paired.value() * service_s - known.wait_s.value();

        // Gains are noisy. A longer wait must be better by more than the noise.
        let most = experience.candidates.iter().map(gain).fold(f64::NEG_INFINITY, f64::max);
        let enough = most - TIE * service_s;
        let mut candidates = SHARES.iter().zip(&experience.candidates);
        let shortest = candidates.find(|(_, known)| gain(known) >= enough);
        Duration::from_secs_f64(shortest.map_or(0.0, |(share, _)| *share) * self.longest_s)
    }

    /// Returns the best hold time of each direction.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (Direction, Duration)> + '_ {
        self.directions.keys().map(|direction| (*direction, self.best(*direction)))
    }

    /// Learns from what became of a packet.
    pub(crate) fn learn(&mut self, direction: Direction, outcome: Outcome) {
        let Some(experience) = self.directions.get_mut(&direction) else { return };
        if outcome.paired_after.is_some() {
            experience.period = TRIAL_PERIOD;
        }

        // The packet shows what each hold time up to its own would have given, and nothing of
        // longer ones. A shorter time would have sufficed if the partner came within it, or soon
        // enough after it that the packet would still have waited for the channel.
        for (share, candidate) in SHARES.iter().zip(&mut experience.candidates) {
            let hold = Duration::from_secs_f64(share * self.longest_s);
            if hold > outcome.hold {
                break;
            }
            let paired = outcome.paired_after.is_some_and(|after| after <= hold + outcome.grace);
            let wait = outcome.paired_after.map_or(hold, |after| after.min(hold));
            candidate.paired.add(f64::from(u8::from(paired)));
            candidate.wait_s.add(wait.as_secs_f64());
        }
    }

    /// Returns the service time of a transmission (S).
    pub(crate) fn service_time(&self) -> Duration {
        Duration::from_secs_f64(self.service_s.value())
    }

    /// Takes the service time of a transmission.
    pub(crate) fn note_service_time(&mut self, time: Duration) {
        self.service_s.add(time.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::NodeId;

    const DIRECTION: Direction = Direction { previous: NodeId(1), next: NodeId(2) };
    const US: Duration = Duration::from_micros(1);

    fn outcome(hold: Duration, paired_after: Option<Duration>) -> Outcome {
        Outcome { hold, paired_after, grace: Duration::ZERO }
    }

    /// Returns the hold time in us that is found where a partner comes `after` us behind a packet
    /// in `of_ten` cases of ten, and a transmission takes `service` us.
    fn found(after: u32, of_ten: u32, service: u32) -> u128 {
        let mut times = HoldTimes::new(0.003);
        times.note_service_time(service * US);
        for n in 0..3000 {
            let hold = times.choose(DIRECTION);
            let paired_after = (after * US <= hold && n % 10 < of_ten).then_some(after * US);
            times.learn(DIRECTION, outcome(hold, paired_after));
        }
        times.best(DIRECTION).as_micros()
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
    fn it_follows_changes() {
        let mut times = HoldTimes::new(0.003);
        times.note_service_time(2000 * US);
        for round in 0..6000 {
            let hold = times.choose(DIRECTION);
            let after = if round < 3000 { 900 * US } else { 200 * US };
            times.learn(DIRECTION, outcome(hold, (after <= hold).then_some(after)));
            match round {
                2999 => assert_eq!(times.best(DIRECTION).as_micros(), 1000),
                5999 => assert_eq!(times.best(DIRECTION).as_micros(), 250),
                _ => {}
            }
        }
    }

    #[test]
    fn trials_become_rare_where_nothing_is_paired_and_frequent_again_where_something_is() {
        let mut times = HoldTimes::new(0.003);
        times.note_service_time(1500 * US);
        let mut trials = |packets: u32, partner: bool| {
            let is_trial = |_: &u32| {
                let hold = times.choose(DIRECTION);
                times.learn(DIRECTION, outcome(hold, partner.then_some(hold)));
                hold == 3000 * US
            };
            (0..packets).filter(is_trial).count()
        };
        assert_eq!(trials(1000, false), 8 + 6, "after 32, 64, 128 and three times 256 more");
        assert_eq!(trials(1024, false), 4);
        assert!(trials(3200, true) >= 80);
    }

    #[test]
    fn memory_is_bounded() {
        let mut times = HoldTimes::new(0.003);
        for other in 0..3000 {
            times.choose(Direction { previous: NodeId(1), next: NodeId(other) });
        }
        assert_eq!(times.directions.len(), MAX_DIRECTIONS);
        let unknown = Direction { previous: NodeId(9), next: NodeId(9) };
        assert_eq!(times.choose(unknown), Duration::ZERO);
    }
}
