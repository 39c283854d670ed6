//! Frames on their way to next hops, and which of them a next hop's state covers.
//!
//! A state was written some time before it is heard, and says nothing of frames that came to its
//! writer afterwards. So it names the last frame that the writer had handled, and how much time had
//! passed since then:
//!
//! ```text
//!   this node   7      8      9               10
//!   next hop      7      x       writes "7, 3 ms ago", sent later
//! ```
//!
//! Frame 8 was sent less than 3 ms after frame 7. Had it arrived, the writer would have handled it,
//! so it was lost. Of 9 and 10 nothing is known yet. Only times of one node are compared, so clocks
//! need not agree. A node may take long to handle a frame, as long as it takes about as long for
//! each.

use crate::time::{Duration, Instant};
use crate::toolkit::sequence::Serial;
use ncmesh_wire::record;
use ncmesh_wire::record::field;
use std::collections::VecDeque;

/// Frames that are remembered at most: as many as a cable may have on its way between two busy
/// processors.
const MAX_FRAMES: usize = 2048;

/// The last frame that a node had handled when it wrote its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handled {
    /// Its number.
    pub number: u16,
    /// Time from then until the node wrote, at most [`LONG_AGO`](Self::LONG_AGO).
    pub ago: Duration,
}

impl Handled {
    /// Unit of times on the air.
    const UNIT: Duration = Duration::from_micros(16);
    /// It was so long ago, or longer, or there was none: all that was sent meanwhile was lost.
    pub const LONG_AGO: Duration = Self::UNIT.saturating_mul(u16::MAX as u32);
}

impl Default for Handled {
    fn default() -> Self {
        Self { number: 0, ago: Self::LONG_AGO }
    }
}

record! {
    impl Handled as Handled { number, ago } => Handled { number, ago: Handled::UNIT * units.into() }
    {
        /// last frame of the previous hop that the node had handled
        number: u16 = field("handled", "Handled"),
        /// time from then until it wrote this, in 16 microseconds; 65535: longer, or there was none
        units: u16 = field("ago", "Ago") => {
            ago.as_nanos().div_ceil(Handled::UNIT.as_nanos()).min(u16::MAX.into()) as u16
        },
    }
}

/// Frames up to one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Covered {
    last: Option<u16>,
}

impl Covered {
    /// Returns whether a frame is one of them.
    #[must_use]
    pub fn covers(self, number: u16) -> bool {
        self.last.is_some_and(|last| !number.is_newer_than(last))
    }
}

/// The latest frames that a node sent, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct SentFrames {
    frames: VecDeque<Sent>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u16,
    /// When it was sent, to its end.
    ended: Option<Instant>,
}

impl SentFrames {
    /// Notes that a frame is given to the MAC.
    pub fn note_filled(&mut self, number: u16, now: Instant) {
        // The MAC takes one frame at a time, so the one before was sent.
        self.note_sent(now);
        if self.frames.len() >= MAX_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back(Sent { number, ended: None });
    }

    /// Notes that the MAC has sent the last frame.
    pub fn note_sent(&mut self, now: Instant) {
        if let Some(last) = self.frames.back_mut() {
            last.ended.get_or_insert(now);
        }
    }

    /// Forgets the last frame: the MAC said what became of it.
    pub fn forget_last(&mut self) {
        self.frames.pop_back();
    }

    /// Returns the place of the last frame that a node had handled; `None` if it is not known here.
    fn place(&self, handled: Handled) -> Option<usize> {
        // It is one of the latest, so the search begins with those.
        let named = self.frames.iter().rposition(|sent| sent.number == handled.number);
        named.filter(|_| handled.ago < Handled::LONG_AGO)
    }

    /// Returns the time that the last frame which a node had handled took to it, and the node's
    /// state took back; `None` if that frame is not known here.
    #[must_use]
    pub fn trip(&self, handled: Handled, now: Instant) -> Option<Duration> {
        let named = self.frames[self.place(handled)?];
        let ended = named.ended?;
        Some(now.since(ended).saturating_sub(handled.ago))
    }

    /// Returns the frames that a next hop's state covers. One that has handled none, or one that is
    /// not known here any more, had time for all that were sent.
    #[must_use]
    pub fn covered_by(&self, handled: Handled) -> Covered {
        let named = self.place(handled);

        // A frame that the MAC still holds is not covered. One that followed the named one would
        // have been handled before the state was written, had it arrived.
        let is_covered = |sent: &Sent| {
            let first = named.map(|named| self.frames[named].ended);
            match (first, sent.ended) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(first), Some(ended)) => {
                    first.is_some_and(|first| ended <= first + handled.ago)
                }
            }
        };

        // Frames up to the named one are covered, whether they arrived or were lost. They are sent
        // one after the other, so the first behind it that is not covered ends the list.
        let known = named.map_or(0, |named| named + 1);
        let behind = self.frames.range(known..).take_while(|sent| is_covered(sent)).count();
        let last = (known + behind).checked_sub(1).map(|place| self.frames[place].number);
        Covered { last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    /// One frame each millisecond, across the wrap of numbers. The last one is at the MAC.
    fn six_frames() -> SentFrames {
        let mut frames = SentFrames::default();
        for time in 0..6 {
            frames.note_filled(number(time), at(time));
        }
        frames
    }

    fn number(place: u64) -> u16 {
        (u16::MAX - 2).wrapping_add(place as u16)
    }

    fn covered(frames: &SentFrames, place: u64, ms: u64) -> usize {
        let handled = Handled { number: number(place), ago: Duration::from_millis(ms) };
        let covered = frames.covered_by(handled);
        (0..6).filter(|place| covered.covers(number(*place))).count()
    }

    #[test]
    fn a_state_covers_what_was_sent_before_it_was_written() {
        let frames = six_frames();
        // Frame 1 was sent until 2. Two more were within 2 ms of it, and lost.
        assert_eq!(covered(&frames, 1, 2), 4);
        assert_eq!(covered(&frames, 1, 1), 3);
        // A frame at the MAC is not covered by time, and a frame that was never sent names none.
        assert_eq!(covered(&frames, 4, 500), 5);
        assert_eq!(covered(&frames, 900, 0), 5);
        assert_eq!(covered(&frames, 5, 0), 6, "it came before the MAC told that it was sent");
    }

    #[test]
    fn a_next_hop_that_handled_nothing_covers_all_that_was_sent() {
        let mut frames = six_frames();
        let covers = |frames: &SentFrames| frames.covered_by(Handled::default()).covers(number(5));
        assert!(!covers(&frames));
        frames.note_sent(at(6));
        assert!(covers(&frames));
        frames.forget_last();
        assert!(!covers(&frames) && covered(&frames, 5, 0) == 5);
    }

    #[test]
    fn a_trip_leaves_out_how_long_the_next_hop_waited() {
        let frames = six_frames();
        let trip = |place, ago| frames.trip(Handled { number: number(place), ago }, at(10));
        // Frame 1 was sent until 2.
        assert_eq!(trip(1, Duration::from_millis(3)), Some(Duration::from_millis(5)));
        assert_eq!(trip(1, Duration::from_millis(20)), Some(Duration::ZERO), "clocks differ");
        // The last one is at the MAC, and none has the number 900.
        assert_eq!((trip(5, Duration::ZERO), trip(900, Duration::ZERO)), (None, None));
        assert_eq!(trip(1, Handled::LONG_AGO), None);
    }

    #[test]
    fn frames_that_are_long_ago_are_forgotten() {
        let mut frames = SentFrames::default();
        (0..2 * MAX_FRAMES as u16).for_each(|number| frames.note_filled(number, at(1)));
        assert_eq!(frames.frames.len(), MAX_FRAMES);
        assert!(
            frames
                .covered_by(Handled { number: 0, ago: Duration::ZERO })
                .covers(2 * MAX_FRAMES as u16 - 2)
        );
    }
}
