//! Broadcast or unicast: which of them carries more to a neighbour, as far as the driver shows.
//!
//! A broadcast goes out once, at a rate that many drivers leave at the lowest of the band. A frame
//! by unicast has a rate of its own and the MAC's repeats. What counts is how long a long frame
//! takes to leave the driver, for contention and repeats are in that. Where broadcasts are slow,
//! unicast is tried now and then for some frames. Engines are told the neighbours that unicast
//! serves much faster, and send them by unicast what would else be a broadcast for them alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use ncmesh_stack::Unicast;
use ncmesh_wire::RadioAddress;

/// Broadcasts are slow, and unicast is worth a trial, where a byte of a long frame takes longer:
/// about 3 Mbit/s.
const SLOW_BYTE: Duration = Duration::from_nanos(2_700);
/// Unicast is chosen once a frame takes less than this share of a broadcast's time, and left above
/// the other one. A broadcast can serve several and be overheard, so it must be much slower.
const CHOSEN: f64 = 0.6;
const LEFT: f64 = 0.8;
/// Frames to a neighbour that decide; frames of a trial, which rate control needs to get going; and
/// those after which a trial ends that promises nothing: one after which no neighbour's frames take
/// clearly less than a broadcast.
const LEAST_FRAMES: u32 = 4;
const TRIAL_FRAMES: u32 = 64;
const VAIN_FRAMES: u32 = 8;
const PROMISING: f64 = 0.9;
/// Longest trial. Pause after one that chose nobody, doubled up to the longest.
const TRIAL: Duration = Duration::from_secs(3);
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Time after which a choice is made anew, for the rate of broadcasts may have changed.
const RENEWED: Duration = Duration::from_secs(30);
/// Weight of the newest frame in a mean.
const NEWEST: f64 = 0.25;
/// Most neighbours that are remembered.
const MOST_NEIGHBOURS: usize = 256;

/// Mean time of a byte, ns, and the number of frames that it is of.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    ns: f64,
    frames: u32,
}

impl Pace {
    fn add(&mut self, bytes: usize, took: Duration) {
        let ns = took.as_nanos() as f64 / bytes.max(1) as f64;
        let weight = if self.frames == 0 { 1.0 } else { NEWEST };
        self.ns += (ns - self.ns) * weight;
        self.frames += 1;
    }
}

/// Times of broadcasts and of unicast frames, and the choice that follows from them.
#[derive(Debug)]
pub(super) struct Carrying {
    broadcast: Pace,
    unicast: BTreeMap<RadioAddress, Pace>,
    /// Neighbours for which unicast is chosen.
    chosen: BTreeSet<RadioAddress>,
    chosen_at: Instant,
    /// Unicast frames of the present trial, and when it ends.
    trial: Option<(u32, Instant)>,
    pause: Duration,
    next_trial: Instant,
}

impl Carrying {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            broadcast: Pace::default(),
            unicast: BTreeMap::new(),
            chosen: BTreeSet::new(),
            chosen_at: now,
            trial: None,
            pause: FIRST_PAUSE,
            next_trial: now,
        }
    }

    /// Returns the neighbours that are to be served by unicast.
    pub(super) fn unicast(&self) -> Unicast {
        if self.trial.is_some() {
            Unicast::Everyone
        } else if self.chosen.is_empty() {
            Unicast::Nobody
        } else {
            Unicast::These(self.chosen.clone())
        }
    }

    /// Returns whether broadcasts were seen to be slow.
    pub(super) fn are_broadcasts_slow(&self) -> bool {
        self.broadcast.frames >= LEAST_FRAMES && self.broadcast.ns > SLOW_BYTE.as_nanos() as f64
    }

    /// Returns the share of a broadcast's time that a unicast frame takes, for the neighbour for
    /// which it is chosen and takes longest.
    pub(super) fn share(&self) -> Option<f64> {
        let chosen = self.chosen.iter().filter_map(|to| self.unicast.get(to));
        chosen.map(|pace| pace.ns / self.broadcast.ns).max_by(f64::total_cmp)
    }

    /// Notes how long a long frame took to leave the driver, `to` one neighbour or to all. Returns
    /// whether [`unicast`](Self::unicast) changed.
    pub(super) fn note(
        &mut self,
        to: Option<RadioAddress>,
        bytes: usize,
        took: Duration,
        now: Instant,
    ) -> bool {
        let Some(to) = to else {
            self.broadcast.add(bytes, took);
            return self.try_unicast(now);
        };

        if self.unicast.len() >= MOST_NEIGHBOURS && !self.unicast.contains_key(&to) {
            self.unicast.clear();
        }
        let pace = self.unicast.entry(to).or_default();
        pace.add(bytes, took);

        // A trial decides at its end, a choice at each frame.
        if let Some((frames, _)) = &mut self.trial {
            *frames += 1;
            return false;
        }
        let is_worse = pace.ns > LEFT * self.broadcast.ns;
        is_worse && self.chosen.remove(&to)
    }

    /// Looks at the time. Returns whether [`unicast`](Self::unicast) changed.
    pub(super) fn handle_time(&mut self, now: Instant) -> bool {
        if let Some((frames, until)) = self.trial
            && (frames >= TRIAL_FRAMES || now >= until || self.is_in_vain(frames))
        {
            self.end_trial(now);
            return true;
        }

        if !self.chosen.is_empty() && now >= self.chosen_at + RENEWED {
            // The next long broadcast begins a trial.
            (self.chosen, self.next_trial) = (BTreeSet::new(), now);
            return true;
        }
        false
    }

    /// Begins a trial if broadcasts are slow and it is time.
    fn try_unicast(&mut self, now: Instant) -> bool {
        let begins = self.are_broadcasts_slow() && self.trial.is_none() && now >= self.next_trial;
        if begins {
            self.unicast.clear();
            self.trial = Some((0, now + TRIAL));
        }
        begins
    }

    /// Returns whether a trial promises nothing after this many frames.
    fn is_in_vain(&self, frames: u32) -> bool {
        let enough = PROMISING * self.broadcast.ns;
        frames >= VAIN_FRAMES && self.unicast.values().all(|pace| pace.ns >= enough)
    }

    fn end_trial(&mut self, now: Instant) {
        self.trial = None;
        let most = CHOSEN * self.broadcast.ns;
        let tried = self.unicast.iter();
        let better = tried.filter(|(_, pace)| pace.frames >= LEAST_FRAMES && pace.ns < most);
        self.chosen = better.map(|(to, _)| *to).collect();
        self.chosen_at = now;

        // A trial costs little, but it is of no use where unicast never helps.
        self.pause = match self.chosen.is_empty() {
            true => (2 * self.pause).min(LONGEST_PAUSE),
            false => FIRST_PAUSE,
        };
        self.next_trial = now + self.pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ncmesh_wire::ShortAddress;

    const LONG: usize = 1_500;

    fn neighbour(number: u32) -> RadioAddress {
        RadioAddress::Short(ShortAddress(number.to_be_bytes()))
    }

    /// Sends long frames as engines would, with these times. Returns when unicast was used.
    fn run(seconds: u64, broadcast: Duration, unicast: Duration) -> (Carrying, u32, u32) {
        let start = Instant::now();
        let mut carrying = Carrying::new(start);
        let mut now = start;
        let mut by_unicast = 0;
        let mut by_broadcast = 0;
        while now < start + Duration::from_secs(seconds) {
            let is_unicast = carrying.unicast() != Unicast::Nobody;
            let (to, took) =
                if is_unicast { (Some(neighbour(1)), unicast) } else { (None, broadcast) };
            now += took;
            by_unicast += u32::from(is_unicast);
            by_broadcast += u32::from(!is_unicast);
            carrying.note(to, LONG, took, now);
            carrying.handle_time(now);
        }
        (carrying, by_unicast, by_broadcast)
    }

    #[test]
    fn unicast_serves_where_it_is_much_faster() {
        let (carrying, by_unicast, by_broadcast) =
            run(60, Duration::from_millis(12), Duration::from_millis(2));
        assert!(by_broadcast < 10 && by_unicast > 20_000, "{by_broadcast} {by_unicast}");
        assert!(carrying.share().is_some_and(|share| (share - 1.0 / 6.0).abs() < 0.01));
    }

    #[test]
    fn a_unicast_of_the_same_rate_is_tried_seldom() {
        let (carrying, by_unicast, by_broadcast) =
            run(600, Duration::from_millis(6), Duration::from_millis(7));
        assert!(carrying.share().is_none());
        assert!(by_unicast * 1_000 < by_broadcast, "{by_unicast} {by_broadcast}");
    }

    #[test]
    fn fast_broadcasts_are_left_alone() {
        let (_, by_unicast, _) = run(60, Duration::from_micros(600), Duration::from_micros(200));
        assert_eq!(by_unicast, 0);
    }

    #[test]
    fn a_choice_ends_when_unicast_becomes_slow() {
        let (mut carrying, ..) = run(5, Duration::from_millis(12), Duration::from_millis(2));
        let now = Instant::now();
        let slow = Duration::from_millis(60);
        let changed = (0..8).any(|_| carrying.note(Some(neighbour(1)), LONG, slow, now));
        assert!(changed && carrying.unicast() == Unicast::Nobody);
    }

    #[test]
    fn invented_neighbours_take_no_more_room() {
        let mut carrying = Carrying::new(Instant::now());
        for number in 0..5_000 {
            let took = Duration::from_millis(1);
            carrying.note(Some(neighbour(number)), LONG, took, Instant::now());
        }
        assert!(carrying.unicast.len() <= MOST_NEIGHBOURS);
    }
}
