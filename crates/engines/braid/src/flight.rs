//! Frames on their way to the next hop, and which of them its state covers.
//!
//! The state that a next hop tells was written some time before it is heard, and says nothing of
//! frames that came to it afterwards. So it names the last frame that it had handled, and how long
//! before it wrote that was:
//!
//! ```text
//!   this node   7      8      9               10
//!   next hop      7      x       writes "7, 3 ms ago", sent later
//! ```
//!
//! Frames that followed that one sooner, as 8, were lost. Of the others, 9 and 10, nothing is known
//! yet. Only times of one node are compared, so that clocks need not agree and a node may take long
//! for a frame, if it takes about as long for the next one.

use ncmesh_engine::time::{Duration, Instant};
use std::collections::VecDeque;

/// Frames that are remembered at most, and those among them that a state may name again.
const MAX_FRAMES: usize = 512;
const NAMED: usize = 64;

/// The last frame that a node had handled when it wrote its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handled {
    pub number: u16,
    /// Time from then until it wrote, at most [`LONG_AGO`](Self::LONG_AGO).
    pub ago: Duration,
}

impl Handled {
    /// Unit of times on the air.
    pub(crate) const UNIT: Duration = Duration::from_micros(16);
    /// It was so long ago, or longer, or there was none: all that was sent meanwhile was lost.
    pub(crate) const LONG_AGO: Duration = Self::UNIT.saturating_mul(u16::MAX as u32);
}

impl Default for Handled {
    fn default() -> Self {
        Self { number: 0, ago: Self::LONG_AGO }
    }
}

/// A frame that is about to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Filling {
    pub number: u16,
    /// The packet that it carries as it is.
    pub packet: Option<u32>,
    /// Whether it carries a packet or a combination.
    pub carries: bool,
    /// Whether the last one that asked counts as lost.
    pub repeats: bool,
    /// Whether the next hop is to answer.
    pub asks: bool,
}

/// A frame that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u16,
    /// The packet that it carries as it is.
    packet: Option<u32>,
    /// Packets that it brings if it arrives: 0, 1, or the chance that a pair is separated.
    weight: f64,
    /// When it was sent, to its end.
    ended: Option<Instant>,
}

/// Frames on their way to one next hop.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    frames: VecDeque<Sent>,
    /// How many of them are covered, from the first on.
    covered: usize,
}

impl Flight {
    /// Notes that a frame is given to the MAC.
    pub(crate) fn note_filled(&mut self, filling: &Filling, now: Instant) {
        // The MAC takes one frame at a time, so the one before was sent.
        self.note_sent(now);
        if self.frames.len() >= MAX_FRAMES || self.covered > NAMED {
            self.frames.pop_front();
            self.covered = self.covered.saturating_sub(1);
        }

        let Filling { number, packet, carries, .. } = *filling;
        let weight = f64::from(u8::from(carries));
        self.frames.push_back(Sent { number, packet, weight, ended: None });
    }

    /// Notes that the last frame is one of a pair, which is separated with this chance.
    pub(crate) fn note_paired(&mut self, chance: f64) {
        if let Some(last) = self.frames.back_mut() {
            last.weight = chance;
        }
    }

    /// Notes that the MAC has sent the last frame.
    pub(crate) fn note_sent(&mut self, now: Instant) {
        if let Some(last) = self.frames.back_mut() {
            last.ended.get_or_insert(now);
        }
    }

    /// Takes what the next hop had handled when it wrote its state. A frame that is not known says
    /// nothing, and all that were sent are covered. Returns the packets that are covered now.
    pub(crate) fn cover(&mut self, handled: Handled) -> f64 {
        let named = self.frames.iter().position(|sent| sent.number == handled.number);
        let named = named.filter(|_| handled.ago < Handled::LONG_AGO);
        let is_covered = |(place, sent): (usize, &Sent)| match (named, sent.ended) {
            (Some(named), _) if place <= named => true,
            (_, None) => false,
            (None, Some(_)) => true,
            // It would have been handled before the state was written, had it arrived.
            (Some(named), Some(ended)) => {
                self.frames[named].ended.is_some_and(|first| ended <= first + handled.ago)
            }
        };

        let covered = self.frames.iter().enumerate().take_while(|frame| is_covered(*frame)).count();
        let before = self.pending();
        self.covered = self.covered.max(covered);
        before - self.pending()
    }

    /// Forgets the last frame: the MAC said what became of it.
    pub(crate) fn settle_last(&mut self) {
        self.frames.pop_back();
        self.covered = self.covered.min(self.frames.len());
    }

    fn uncovered(&self) -> impl Iterator<Item = &Sent> {
        self.frames.range(self.covered..)
    }

    /// Returns the packets on their way of which no state says yet whether they arrived.
    pub(crate) fn pending(&self) -> f64 {
        self.uncovered().map(|sent| sent.weight).sum()
    }

    /// Returns whether this packet is on its way as it is.
    pub(crate) fn has(&self, packet: u32) -> bool {
        self.uncovered().any(|sent| sent.packet == Some(packet))
    }
}
