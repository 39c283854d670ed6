//! Which frames of one start are taken: each once, none that is old, and none from further ahead
//! than its sender can have come.
//!
//! A member can write frames under the id and the present start of another node, with any counter.
//! If a frame could move the window anywhere, everything that the node itself sends would lie below
//! the window from then on. So a counter may run ahead by what a radio can send in the time that
//! has passed, and behind a jump the counters below it stay open for a while. Each counter is still
//! taken only once: those above the jump are not open below it.
//!
//! ```text
//!  taken one by one      open until `TOO_OLD` after the jump      window
//!  ----------------+---------------------------------------+----------------> counter
//!               highest before                         the jump
//! ```
//!
//! Somebody without the key can hold frames back. What had been heard some time ago shows that all
//! counters below it are older, and those are not taken any more.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{ReplayWindow, replay::WIDTH};

/// Frames that a node sends in a second at most. Small frames over Wi-Fi of 54 Mbit/s are fewer
/// than 20,000.
const FASTEST: u64 = 50_000;
/// Frames by which a counter may run ahead of that: frames wait in queues, and are read in bursts.
const BURST: u64 = 1 << 16;
/// Frames by which radios and queues change the order of frames. A longer jump may be forged.
const REORDERED: u32 = 64;
/// Age from which a frame is not taken, at three times that at the latest. Retransmissions and
/// queues delay frames by far less.
const TOO_OLD: Duration = Duration::from_secs(10);
/// Least time between two times that the window of a start without proof moves down.
const LOWERED: Duration = Duration::from_secs(1);

/// Frames taken of one start.
#[derive(Clone, Debug)]
pub(super) struct Window {
    window: ReplayWindow,
    /// When the highest counter was heard.
    raised_at: Instant,
    /// Counters that had been heard at some times, the earlier one first.
    marks: [Mark; 2],
    skipped: Option<Skipped>,
}

/// Counter that had been heard at a time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    counter: u32,
    at: Instant,
}

/// Counters that a jump left out.
#[derive(Clone, Debug)]
struct Skipped {
    /// The window before the jump.
    window: ReplayWindow,
    /// The counter that was jumped to.
    below: u32,
    since: Instant,
}

/// Place of a frame that may be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its counter is the highest of the start.
    Next,
    /// Its counter was left out by a jump, and is the highest of those.
    BelowJump,
    /// A later frame overtook it.
    Late,
}

impl Window {
    /// Returns a window that takes the counters above `counter`.
    pub(super) fn after(counter: u32, now: Instant) -> Self {
        let mark = Mark { counter: 0, at: now };
        Self {
            window: ReplayWindow::after(counter),
            raised_at: now,
            marks: [mark; 2],
            skipped: None,
        }
    }

    /// Returns the highest counter heard.
    pub(super) fn highest(&self) -> u32 {
        self.window.highest()
    }

    /// Returns whether the sender can have sent a frame of this counter by now.
    pub(super) fn reaches(&self, counter: u32, now: Instant) -> bool {
        let millis = u64::try_from(now.since(self.raised_at).as_millis()).unwrap_or(u64::MAX);
        let sent = (millis.saturating_mul(FASTEST) / 1000).saturating_add(BURST);
        u64::from(counter) <= u64::from(self.highest()).saturating_add(sent)
    }

    /// Returns the place of a frame; `None` if it is not to be taken.
    pub(super) fn place(&self, counter: u32, now: Instant) -> Option<Place> {
        if counter > self.highest() {
            return self.reaches(counter, now).then_some(Place::Next);
        }
        let latest = Mark { counter: self.highest(), at: self.raised_at };
        let is_old = |mark: &Mark| counter <= mark.counter && now.since(mark.at) >= TOO_OLD;
        if is_old(&latest) || self.marks.iter().any(is_old) {
            return None;
        }
        match self.skipped(now).filter(|skipped| counter < skipped.below) {
            Some(skipped) if counter > skipped.window.highest() => Some(Place::BelowJump),
            Some(skipped) => skipped.window.is_new(counter).then_some(Place::Late),
            None => self.window.is_new(counter).then_some(Place::Late),
        }
    }

    /// Records an authentic frame, for which [`place`](Self::place) returned a place. Returns it.
    pub(super) fn record(&mut self, counter: u32, now: Instant) -> Place {
        let place = self.place(counter, now).unwrap_or(Place::Late);

        // The window from before a jump closes once frames from there are too old to come.
        if self.skipped(now).is_none() {
            self.skipped = None;
        }

        if counter > self.highest() {
            if counter - self.highest() > REORDERED && self.skipped.is_none() {
                let window = self.window.clone();
                self.skipped = Some(Skipped { window, below: counter, since: now });
            }

            // The earlier mark is old by now, or the new one is.
            let apart = self.raised_at.since(self.marks[1].at).max(now.since(self.raised_at));
            if apart >= TOO_OLD {
                let latest = Mark { counter: self.highest(), at: self.raised_at };
                self.marks = [self.marks[1], latest];
            }

            self.raised_at = now;
            self.window.record(counter);
        } else {
            if let Some(skipped) = self.skipped.as_mut().filter(|s| counter < s.below) {
                skipped.window.record(counter);
            }

            // The window decides alone once the counters before a jump are closed.
            if self.window.is_new(counter) {
                self.window.record(counter);
            }
        }

        place
    }

    /// Returns whether a frame of a start that has proved nothing may be read. Its window means
    /// little: a forged frame may have moved it before its sender was heard at all. So it moves
    /// down again, but not with each of many recordings.
    pub(super) fn is_readable_unproven(&self, counter: u32, now: Instant) -> bool {
        self.window.is_new(counter)
            || (self.is_far_above(counter) && now.since(self.raised_at) >= LOWERED)
    }

    /// Records an authentic frame of a start that has proved nothing. Returns whether it is late.
    pub(super) fn record_unproven(&mut self, counter: u32, now: Instant) -> bool {
        if self.is_far_above(counter) {
            *self = Self::after(counter.saturating_sub(1), now);
        }
        let is_late = counter <= self.highest();
        self.window.record(counter);
        if !is_late {
            self.raised_at = now;
        }
        is_late
    }

    fn is_far_above(&self, counter: u32) -> bool {
        self.highest().saturating_sub(counter) >= WIDTH
    }

    fn skipped(&self, now: Instant) -> Option<&Skipped> {
        self.skipped.as_ref().filter(|skipped| now.since(skipped.since) < TOO_OLD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A window of a sender that was heard up to this counter at 0 s.
    fn heard(counter: u32) -> Window {
        let mut window = Window::after(counter - 1, at(0));
        window.record(counter, at(0));
        window
    }

    #[test]
    fn a_counter_runs_ahead_by_what_a_radio_can_send() {
        let window = heard(100);
        for (counter, seconds, taken) in [
            (u32::MAX, 0, false),
            (u32::MAX, 3600, false),
            (100 + (1 << 16), 0, true),
            (101 + (1 << 16), 0, false),
            (50_000, 0, true),
            (3_000_000, 1, false),
            // Asleep for a minute, and for a day.
            (3_000_000, 60, true),
            (u32::MAX, 86_400, true),
        ] {
            let place = window.place(counter, at(1000 * seconds));
            assert_eq!(place.is_some(), taken, "{counter} after {seconds} s");
        }
    }

    #[test]
    fn a_forged_jump_does_not_shut_out_what_lies_below_it() {
        for jump in [66, 500, 2000, 60_000] {
            let mut window = heard(100);
            assert_eq!(window.record(100 + jump, at(1000)), Place::Next);
            // The true sender goes on, with some losses, and jumps forged later.
            for (step, counter) in [101, 102, 110, 111].into_iter().enumerate() {
                let now = at(2000 + 1000 * step as u64);
                assert_eq!(window.place(counter, now), Some(Place::BelowJump), "{jump}");
                assert_eq!(window.record(counter, now), Place::BelowJump);
                assert_eq!(window.place(counter, now), None, "it was taken");
                window.record(window.highest() + jump, now);
            }
            assert_eq!(window.place(105, at(6000)), Some(Place::Late));
            assert_eq!(window.place(100 + jump, at(6000)), None, "it was taken");
        }
    }

    #[test]
    fn frames_that_radios_reorder_are_late_and_nothing_else() {
        let mut window = heard(100);
        window.record(120, at(10));
        assert_eq!(window.record(110, at(20)), Place::Late);
        assert_eq!(window.place(110, at(20)), None);
    }

    #[test]
    fn a_frame_that_was_held_back_is_not_taken() {
        // A quiet sender of a frame each second, and one that fell silent after the frame.
        for frames in [110, 7] {
            let mut window = heard(1);
            for counter in 3..3 + frames {
                window.record(counter, at(1000 * u64::from(counter)));
            }
            let last = 1000 * u64::from(2 + frames);
            assert_eq!(window.place(2, at(last)).is_some(), frames == 7);
            assert_eq!(window.place(2, at(last + 20_000)), None);
            assert_eq!(window.place(3 + frames, at(last + 1000)), Some(Place::Next));
        }
    }

    #[test]
    fn a_start_without_proof_is_read_again_after_a_forged_frame() {
        let mut window = heard(u32::MAX);
        assert!(!window.is_readable_unproven(5, at(900)));
        assert!(window.is_readable_unproven(5, at(1000)));
        assert!(!window.record_unproven(5, at(1000)));
        assert!(window.is_readable_unproven(6, at(1000)));
        assert!(!window.is_readable_unproven(5, at(9000)));
    }

    /// Found by the property below.
    #[test]
    fn a_counter_before_a_jump_is_not_open_again_when_the_jump_is_long_past() {
        let mut window = Window::after(0, at(0));
        window.record(3269, at(0));
        assert_eq!(window.place(3268, at(8_000)), Some(Place::BelowJump));
        window.record(3268, at(8_000));
        window.record(3270, at(8_500));
        assert_eq!(window.place(3268, at(10_500)), None);
    }

    proptest! {
        /// Whatever comes when: each counter is taken once, and none below another that was heard
        /// long ago.
        #[test]
        fn no_counter_passes_twice(
            frames in prop::collection::vec((0u32..4000, 0u64..800), 0..300),
        ) {
            let mut window = Window::after(0, at(0));
            let mut taken = BTreeSet::new();
            let mut history = vec![(0, 0)];
            let mut now = 0;
            for (counter, pause) in frames {
                now += pause;
                let place = window.place(counter, at(now));
                if place.is_some() {
                    window.record(counter, at(now));
                    prop_assert!(taken.insert(counter), "{counter} twice");
                    let old = history.iter().filter(|(_, at)| at + 30_000 <= now);
                    let old = old.map(|(highest, _)| *highest).max();
                    prop_assert!(old.is_none_or(|old| counter > old), "{counter} is old");
                    history.push((counter.max(history[history.len() - 1].0), now));
                }
            }
        }
    }
}
