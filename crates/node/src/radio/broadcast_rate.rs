//! The rate of a radio's broadcasts, chosen where the driver leaves it low.
//!
//! Drivers send broadcasts at the lowest rate of the band unless they are told otherwise, up to 24
//! times as slowly as every neighbour could hear them. The choice goes by what the radio tells of
//! the neighbours: the weakest one that it hears decides. What arrives there, as link state has it,
//! has the last word: if less does than before, the rate goes back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ncmesh_wire::RadioAddress;

/// A rate, and the strength at which a receiver must decode it (IEEE 802.11-2016, table 17-18).
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The rate in units of 100 kbit/s.
    units: u32,
    dbm: i32,
}

/// Rates to choose from: those that each station of 802.11a or g must be able to receive.
const STEPS: [Step; 3] =
    [Step { units: 60, dbm: -82 }, Step { units: 120, dbm: -79 }, Step { units: 240, dbm: -74 }];
/// Strength beyond that for fading, dB: to choose a rate, and to keep it.
const MARGIN_DB: i32 = 10;
const LEAST_MARGIN_DB: i32 = 5;
/// Time between two looks, and the time for which a rate that served badly is not chosen again.
const LOOK: Duration = Duration::from_secs(5);
const AVOIDED: Duration = Duration::from_secs(300);
/// A neighbour that got more than the first share of the frames and gets less than the second one
/// now lost them to the rate.
const GOOD: f64 = 0.8;
const BAD: f64 = 0.6;

/// The choice, and what speaks for it.
#[derive(Debug)]
pub(super) struct RateChoice {
    /// Place of the chosen rate. Without one, the driver's own is in use.
    chosen: Option<usize>,
    next_look: Instant,
    /// Deliveries to the neighbours before the rate was chosen.
    before: BTreeMap<RadioAddress, f64>,
    /// Places from this one on are avoided until then.
    avoided: Option<(usize, Instant)>,
}

/// Facts by which a rate is chosen.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Strength of the weakest neighbour, dBm. `None` if the radio tells of none.
    pub weakest_dbm: Option<i32>,
    /// Whether broadcasts were seen to be slow.
    pub are_slow: bool,
    /// Shares of this node's frames that arrive at neighbours.
    pub deliveries: BTreeMap<RadioAddress, f64>,
}

/// Change of the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Set this rate, in units of 100 kbit/s.
    Set(u32),
    /// Set the lowest one of the band.
    Lowest,
}

impl RateChoice {
    pub(super) fn new(now: Instant) -> Self {
        Self { chosen: None, next_look: now, before: BTreeMap::new(), avoided: None }
    }

    /// Returns whether it is time to look.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.next_look
    }

    /// Returns the change that a look asks for.
    pub(super) fn decide(&mut self, look: Look, now: Instant) -> Option<Change> {
        self.next_look = now + LOOK;
        let Some(present) = self.chosen else {
            // The driver's rate is left alone where it is not slow: somebody has chosen it.
            let best = self.best(look.weakest_dbm?, MARGIN_DB, now).filter(|_| look.are_slow)?;
            self.before = look.deliveries;
            return Some(self.choose(best));
        };

        // A rate that loses a neighbour is too high, whatever the radio tells.
        let was_good = self.before.iter().filter(|(_, delivery)| **delivery >= GOOD);
        let is_bad = |to| look.deliveries.get(to).is_some_and(|delivery| *delivery < BAD);
        if was_good.clone().any(|(to, _)| is_bad(to)) {
            self.avoided = Some((present, now + AVOIDED));
        }

        let keeps = self.best(look.weakest_dbm?, LEAST_MARGIN_DB, now);
        let rises = self.best(look.weakest_dbm?, MARGIN_DB, now);
        match keeps {
            None => {
                self.chosen = None;
                Some(Change::Lowest)
            }
            Some(most) if most < present => Some(self.choose(most)),
            _ => {
                let higher = rises.filter(|best| *best > present)?;
                self.before = look.deliveries;
                Some(self.choose(higher))
            }
        }
    }

    fn choose(&mut self, place: usize) -> Change {
        self.chosen = Some(place);
        Change::Set(STEPS[place].units)
    }

    /// Returns the highest rate that the weakest neighbour decodes with a margin.
    fn best(&self, weakest_dbm: i32, margin_db: i32, now: Instant) -> Option<usize> {
        let avoided = self.avoided.filter(|(_, until)| now < *until).map(|(place, _)| place);
        let allowed = &STEPS[..avoided.unwrap_or(STEPS.len())];
        allowed.iter().rposition(|step| weakest_dbm >= step.dbm + margin_db)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::ShortAddress;

    fn look(weakest_dbm: i32, delivery: f64) -> Look {
        let to = RadioAddress::Short(ShortAddress([1; 4]));
        Look {
            weakest_dbm: Some(weakest_dbm),
            are_slow: true,
            deliveries: BTreeMap::from([(to, delivery)]),
        }
    }

    #[test]
    fn the_weakest_neighbour_decides() {
        let now = Instant::now();
        let decide = |dbm| RateChoice::new(now).decide(look(dbm, 1.0), now);
        assert_eq!(decide(-50), Some(Change::Set(240)));
        assert_eq!(decide(-64), Some(Change::Set(240)));
        assert_eq!(decide(-65), Some(Change::Set(120)));
        assert_eq!(decide(-72), Some(Change::Set(60)));
        assert_eq!(decide(-73), None);
    }

    #[test]
    fn a_rate_that_is_not_slow_or_a_radio_without_neighbours_is_left_alone() {
        let now = Instant::now();
        let fast = Look { are_slow: false, ..look(-50, 1.0) };
        assert_eq!(RateChoice::new(now).decide(fast, now), None);
        let alone = Look { weakest_dbm: None, ..look(-50, 1.0) };
        assert_eq!(RateChoice::new(now).decide(alone, now), None);
    }

    #[test]
    fn it_follows_a_neighbour_that_becomes_weak_and_strong_again() {
        let now = Instant::now();
        let mut choice = RateChoice::new(now);
        assert_eq!(choice.decide(look(-60, 1.0), now), Some(Change::Set(240)));
        assert!(!choice.is_due(now) && choice.is_due(now + LOOK));
        // Within the margins nothing changes.
        assert_eq!(choice.decide(look(-68, 1.0), now), None);
        assert_eq!(choice.decide(look(-72, 1.0), now), Some(Change::Set(120)));
        assert_eq!(choice.decide(look(-66, 1.0), now), None);
        assert_eq!(choice.decide(look(-90, 1.0), now), Some(Change::Lowest));
        assert_eq!(choice.decide(look(-50, 1.0), now), Some(Change::Set(240)));
    }

    #[test]
    fn a_rate_at_which_frames_are_lost_is_left_and_avoided() {
        let now = Instant::now();
        let mut choice = RateChoice::new(now);
        assert_eq!(choice.decide(look(-50, 0.95), now), Some(Change::Set(240)));
        assert_eq!(choice.decide(look(-50, 0.9), now), None);
        assert_eq!(choice.decide(look(-50, 0.3), now), Some(Change::Set(120)));
        // The share from before is the measure still.
        assert_eq!(choice.decide(look(-50, 0.3), now), Some(Change::Set(60)));
        assert_eq!(choice.decide(look(-50, 0.3), now), Some(Change::Lowest));
        assert_eq!(choice.decide(look(-50, 0.9), now + AVOIDED / 2), None);
        assert_eq!(choice.decide(look(-50, 0.9), now + AVOIDED), Some(Change::Set(240)));
    }

    #[test]
    fn a_neighbour_that_was_lossy_before_says_nothing() {
        let now = Instant::now();
        let mut choice = RateChoice::new(now);
        choice.decide(look(-50, 0.5), now);
        assert_eq!(choice.decide(look(-50, 0.2), now), None);
    }
}
