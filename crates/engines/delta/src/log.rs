//! Frames that this node sent of a stream, and which of them the state of a neighbour covers.
//!
//! A state was written some time before it is heard, and says nothing of frames that came to its
//! writer afterwards. So it names the last frame that the writer had handled, and how long before
//! that was:
//!
//! ```text
//!   this node    7      8      9               10
//!   next hop         7      x       writes "7, 3 ms ago", sent later
//! ```
//!
//! Frames that followed that one sooner, as 8, were lost. Of the others, 9 and 10, nothing is known
//! yet. Only times of one node are compared, so clocks need not agree.

use crate::frame::State;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::sequence::Serial;
use std::collections::VecDeque;

/// Frames that are remembered at most.
const MAX_FRAMES: usize = 512;

/// Frames up to one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Covered {
    last: Option<u16>,
}

impl Covered {
    /// Returns whether a frame is one of them.
    pub(crate) fn covers(self, number: u16) -> bool {
        self.last.is_some_and(|last| !number.is_newer_than(last))
    }
}

/// The latest frames of a stream that this node sent.
#[derive(Debug, Default)]
pub(crate) struct Log {
    frames: VecDeque<Sent>,
    number: u16,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u16,
    /// When it was sent, to its end.
    ended: Option<Instant>,
}

impl Log {
    /// Numbers a frame that is given to the MAC.
    pub(crate) fn number_frame(&mut self, now: Instant) -> u16 {
        // The MAC takes one frame at a time, so the one before was sent.
        self.note_sent(now);
        if self.frames.len() >= MAX_FRAMES {
            self.frames.pop_front();
        }
        self.number = self.number.wrapping_add(1);
        self.frames.push_back(Sent { number: self.number, ended: None });
        self.number
    }

    /// Returns the number of the last frame.
    #[cfg(test)]
    pub(crate) fn last(&self) -> u16 {
        self.number
    }

    /// Notes that the MAC has sent the last frame.
    pub(crate) fn note_sent(&mut self, now: Instant) {
        if let Some(last) = self.frames.back_mut() {
            last.ended.get_or_insert(now);
        }
    }

    /// Returns the frames that a neighbour's state covers. One that has handled none, or one that
    /// is not known here any more, had time for all that were sent.
    pub(crate) fn covered_by(&self, state: &State) -> Covered {
        let named = self.frames.iter().find(|sent| sent.number == state.handled);
        let until = match (named, state.ago()) {
            (Some(named), Some(ago)) => named.ended.map(|ended| ended + ago),
            _ => Some(Instant::from_nanos(u64::MAX)),
        };

        let is_covered = |sent: &&Sent| match (sent.ended, until) {
            (Some(ended), Some(until)) => ended <= until,
            _ => false,
        };

        let last = self.frames.iter().rev().find(is_covered);
        Covered { last: last.map(|sent| sent.number) }
    }
}
