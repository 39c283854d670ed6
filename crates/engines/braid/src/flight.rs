//! Packets on their way to the next hop.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::hop::{Handled, SentFrames};
use std::collections::{BTreeMap, VecDeque};

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
    /// Packets that go as they are, and how many uncertain frames carry each. Asked for more often
    /// than it changes, as is the next field.
    packets: BTreeMap<u32, u16>,
    /// Sum of the weights, and how many of them are no whole numbers.
    pending: f64,
    fractions: usize,
}

impl Flight {
    /// Notes that a frame is given to the MAC.
    pub(crate) fn note_filled(&mut self, filling: &Filling, now: Instant) {
        let Filling { number, packet, carries, .. } = *filling;
        self.sent.note_filled(number, now);
        if self.uncertain.len() >= MOST
            && let Some(first) = self.uncertain.pop_front()
        {
            self.discount(first);
        }
        let weight = f64::from(u8::from(carries));
        self.uncertain.push_back(Uncertain { number, packet, weight });
        self.weigh(0.0, weight);
        if let Some(packet) = packet {
            *self.packets.entry(packet).or_insert(0) += 1;
        }
    }

    /// Notes that the last frame is one of a pair, which is separated with this chance.
    pub(crate) fn note_paired(&mut self, chance: f64) {
        if let Some(last) = self.uncertain.back_mut() {
            let before = core::mem::replace(&mut last.weight, chance);
            self.weigh(before, chance);
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
        // Numbers grow from frame to frame, so those that are covered come first.
        while let Some(frame) = self.uncertain.front().copied()
            && covered.covers(frame.number)
        {
            self.uncertain.pop_front();
            self.discount(frame);
        }
        before - self.pending()
    }

    /// Returns how long the last frame that the next hop had handled was on its way there, and the
    /// word of that on its way here, if that is known.
    pub(crate) fn trip(&self, handled: Handled, now: Instant) -> Option<Duration> {
        self.sent.trip(handled, now)
    }

    /// Forgets the last frame: the MAC said what became of it.
    pub(crate) fn settle_last(&mut self) {
        self.sent.forget_last();
        if let Some(last) = self.uncertain.pop_back() {
            self.discount(last);
        }
    }

    /// Takes a frame that is uncertain no more out of the packets on their way.
    fn discount(&mut self, frame: Uncertain) {
        self.weigh(frame.weight, 0.0);
        let Some(packet) = frame.packet else { return };
        if let Some(count) = self.packets.get_mut(&packet) {
            *count -= 1;
            if *count == 0 {
                self.packets.remove(&packet);
            }
        }
    }

    /// Notes that a weight changed. One of the two is 0 where a frame is added or taken out.
    fn weigh(&mut self, before: f64, after: f64) {
        let are_whole = self.fractions == 0;
        self.fractions -= usize::from(before.fract() != 0.0);
        self.fractions += usize::from(after.fract() != 0.0);

        // Sums of whole numbers are exact. Others would drift, so they are summed up anew.
        self.pending = if are_whole && self.fractions == 0 {
            self.pending - before + after
        } else {
            self.uncertain.iter().map(|frame| frame.weight).sum()
        };
    }

    /// Returns the packets on their way of which no state says yet whether they arrived.
    pub(crate) fn pending(&self) -> f64 {
        self.pending
    }

    /// Returns whether this packet is on its way as it is.
    pub(crate) fn has(&self, packet: u32) -> bool {
        self.packets.contains_key(&packet)
    }

    /// Returns the packets from `first` on that are on their way as they are.
    pub(crate) fn packets(&self, first: u32) -> impl Iterator<Item = u32> {
        self.packets.range(first..).map(|(packet, _)| *packet)
    }
}
