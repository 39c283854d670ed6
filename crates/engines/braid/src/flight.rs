//! Packets on their way to the next hop.

use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::hop::{Handled, SentFrames};
use std::collections::VecDeque;

/// Packets that are remembered at most.
const MOST: usize = 512;

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

/// A frame of which no state says yet whether it arrived.
#[derive(Clone, Copy, Debug)]
struct Uncertain {
    number: u16,
    /// The packet that it carries as it is.
    packet: Option<u32>,
    /// Packets that it brings if it arrives: 0, 1, or the chance that a pair is separated.
    weight: f64,
}

/// Frames on their way to one next hop.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    sent: SentFrames,
    uncertain: VecDeque<Uncertain>,
}

impl Flight {
    /// Notes that a frame is given to the MAC.
    pub(crate) fn note_filled(&mut self, filling: &Filling, now: Instant) {
        let Filling { number, packet, carries, .. } = *filling;
        self.sent.note_filled(number, now);
        if self.uncertain.len() >= MOST {
            self.uncertain.pop_front();
        }
        let weight = f64::from(u8::from(carries));
        self.uncertain.push_back(Uncertain { number, packet, weight });
    }

    /// Notes that the last frame is one of a pair, which is separated with this chance.
    pub(crate) fn note_paired(&mut self, chance: f64) {
        if let Some(last) = self.uncertain.back_mut() {
            last.weight = chance;
        }
    }

    /// Notes that the MAC has sent the last frame.
    pub(crate) fn note_sent(&mut self, now: Instant) {
        self.sent.note_sent(now);
    }

    /// Takes what the next hop had handled when it wrote its state. Returns the packets that are
    /// covered now.
    pub(crate) fn cover(&mut self, handled: Handled) -> f64 {
        let covered = self.sent.covered_by(handled);
        let before = self.pending();
        self.uncertain.retain(|frame| !covered.covers(frame.number));
        before - self.pending()
    }

    /// Forgets the last frame: the MAC said what became of it.
    pub(crate) fn settle_last(&mut self) {
        self.sent.forget_last();
        self.uncertain.pop_back();
    }

    /// Returns the packets on their way of which no state says yet whether they arrived.
    pub(crate) fn pending(&self) -> f64 {
        self.uncertain.iter().map(|frame| frame.weight).sum()
    }

    /// Returns whether this packet is on its way as it is.
    pub(crate) fn has(&self, packet: u32) -> bool {
        self.uncertain.iter().any(|frame| frame.packet == Some(packet))
    }
}
