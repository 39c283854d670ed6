//! One layer of a stream at one node: a window over its packets, and the time left to each.
//!
//! ```text
//!   given up | oldest ... needs ... the newest known
//!            |  live packets: has, lacks, leads    |
//! ```
//!
//! Every packet has a time at which it is given up. A packet that is missing here has one, too: it
//! is no younger than the packets behind it. So a node moves on without being told, and so do its
//! neighbours, at nearly the same time.

use crate::frame::{Have, LAST, MAX_MAP, WIDTH};
use ncmesh_code::{Coded, Window};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::coder::unpack;
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

/// Most live packets of a layer at a node. It bounds memory at 3 MB for packets of 1,400 bytes; a
/// source that sends more within its deadline loses the oldest.
pub(crate) const CAPACITY: u32 = 2048;
/// Packets behind the oldest live one that are kept, to take them out of combinations.
const KEPT: u32 = WIDTH;

/// When the first and the last packet of a combination are given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub first: Instant,
    pub last: Instant,
}

/// A packet that became known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub number: u32,
    /// Empty if its check is wrong.
    pub packet: Vec<u8>,
}

/// A layer at one node.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    window: Window,
    /// Whether any packet is known, so that the numbers below mean something.
    has_begun: bool,
    oldest: u32,
    /// Packets before it are given up because there was no room for more, or earlier.
    crowded: u32,
    needs: u32,
    /// When the packets that lead rows are given up.
    until: BTreeMap<u32, Instant>,
    /// Packets that were sent from here, as they are or in combinations.
    sent: BTreeSet<u32>,
    /// Packets that lead rows and are not decoded yet.
    undecoded: BTreeSet<u32>,
    longest: usize,
}

impl Lane {
    /// Begins with this packet, if nothing is known yet.
    pub(crate) fn begin(&mut self, first: u32) {
        if !self.has_begun {
            self.has_begun = true;
            self.oldest = first;
            self.needs = first;
        }
    }

    /// Returns whether a combination of these packets is so far from what is kept that numbers must
    /// have moved on while nothing was heard.
    pub(crate) fn is_far_from(&self, coded: &Coded) -> bool {
        let width = coded.coefficients.len() as u32;
        let last = coded.first.saturating_add(width.saturating_sub(1));
        let is_behind = last.saturating_add(CAPACITY) < self.oldest;
        self.has_begun && (is_behind || last > self.oldest.saturating_add(CAPACITY))
    }

    /// Returns whether any packet is known.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns the oldest packet that is still of use.
    pub(crate) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Returns the number behind the newest packet that was given up because there was no room.
    pub(crate) fn crowded(&self) -> u32 {
        self.crowded
    }

    /// Returns the number behind the newest packet that is known of.
    pub(crate) fn end(&self) -> u32 {
        let newest = self.until.last_key_value().map_or(0, |(newest, _)| newest + 1);
        newest.max(self.needs)
    }

    /// Returns whether no more packets can be numbered.
    pub(crate) fn is_used_up(&self) -> bool {
        self.end() >= LAST
    }

    /// Takes a packet of this node's own stream.
    pub(crate) fn push(&mut self, symbol: Vec<u8>, until: Instant) {
        self.begin(0);
        let number = self.end();
        self.longest = self.longest.max(symbol.len());
        self.window.absorb(Coded { first: number, coefficients: vec![1], symbol });
        self.until.insert(number, until);
        self.needs = number + 1;
        self.make_room();
    }

    /// Takes a combination. Returns whether it was innovative; `None` if it lies outside what is
    /// kept.
    pub(crate) fn absorb(&mut self, coded: Coded, times: Times) -> Option<bool> {
        let first = coded.first;
        let width = coded.coefficients.len() as u32;
        self.begin(first);
        let last = first + width.saturating_sub(1);

        // Packets that are given up teach nothing, and a window is bounded.
        if last < self.oldest {
            return Some(false);
        }
        if first.saturating_add(KEPT) < self.oldest || last > self.oldest.saturating_add(CAPACITY) {
            return None;
        }

        self.longest = self.longest.max(coded.symbol.len());
        if !self.window.absorb(coded) {
            return Some(false);
        }

        // The row is led by some packet of the combination, whose time lies between the two.
        let leads: Vec<u32> = self.window.leads(first).take_while(|lead| *lead <= last).collect();
        for lead in leads {
            // Time and place of a packet are set once, by the first combination that leads with it.
            if lead < self.oldest || self.until.contains_key(&lead) {
                continue;
            }
            let part = f64::from(lead - first) / f64::from((last - first).max(1));
            let span = times.last.since(times.first);
            self.until.insert(lead, times.first + span.mul_f64(part));
            self.undecoded.insert(lead);
        }

        self.follow_needs();
        Some(true)
    }

    /// Returns the packets that became known, in ascending order.
    pub(crate) fn take_decoded(&mut self) -> Vec<Decoded> {
        let window = &self.window;
        let known: Vec<u32> =
            self.undecoded.iter().copied().filter(|n| window.packet(*n).is_some()).collect();
        let mut packets = Vec::new();
        for number in known {
            self.undecoded.remove(&number);
            let unpacked = self.window.packet(number).and_then(unpack);
            let packet = unpacked.and_then(|unpacked| unpacked.packet).unwrap_or_default();
            packets.push(Decoded { number, packet: packet.to_vec() });
        }

        packets
    }

    /// Gives up the packets whose time is over at `now`. Returns whether there were any.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let late = self.until.iter().take_while(|(_, until)| **until <= now).last();
        let Some(last) = late.map(|(last, _)| *last) else { return false };
        self.follow(last + 1);
        true
    }

    /// Gives up the packets before `oldest`.
    pub(crate) fn follow(&mut self, oldest: u32) {
        if !self.has_begun || oldest <= self.oldest {
            return;
        }
        self.oldest = oldest;
        self.needs = self.needs.max(oldest);
        self.until = self.until.split_off(&oldest);
        self.sent = self.sent.split_off(&oldest);
        self.undecoded = self.undecoded.split_off(&oldest);
        self.window.forget_before(oldest.saturating_sub(KEPT));
        self.follow_needs();
    }

    fn follow_needs(&mut self) {
        while self.until.contains_key(&self.needs) {
            self.needs += 1;
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        let end = self.end();
        if end - self.oldest > CAPACITY {
            self.crowded = end - CAPACITY;
            self.follow(self.crowded);
        }
    }

    // ---- for next hops

    /// Returns the live packets from `first` on that lead what it has, in ascending order, and when
    /// each is given up.
    pub(crate) fn live_from(&self, first: u32) -> impl Iterator<Item = (u32, Instant)> + '_ {
        self.until.range(first..).map(|(number, until)| (*number, *until))
    }

    /// Returns whether a packet is known as it is.
    pub(crate) fn is_known(&self, number: u32) -> bool {
        self.window.packet(number).is_some()
    }

    /// Returns the length of the longest symbol so far, bytes.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Returns when a live packet is given up.
    pub(crate) fn until(&self, number: u32) -> Option<Instant> {
        self.until.get(&number).copied()
    }

    /// Returns whether a packet was sent, or cannot go as it is.
    pub(crate) fn is_sent(&self, number: u32) -> bool {
        self.sent.contains(&number) || !self.is_known(number)
    }

    /// Returns a packet as it is, and notes that it is sent.
    pub(crate) fn send(&mut self, number: u32) -> Option<Coded> {
        let symbol = self.window.packet(number)?.to_vec();
        self.sent.insert(number);
        Some(Coded { first: number, coefficients: vec![1], symbol })
    }

    /// Returns a combination of these packets, which are ascending, as far as it may span. They
    /// count as sent then: a packet that is decoded later need not go as it is.
    pub(crate) fn combine(
        &mut self,
        packets: &[u32],
        width: u32,
        random: &mut impl RngCore,
    ) -> Option<Coded> {
        let first = *packets.first()?;
        let wanted = |lead: u32| packets.binary_search(&lead).is_ok();
        let coded = self.window.combine(first..first.saturating_add(width), wanted, random)?;
        let end = first + coded.coefficients.len() as u32;
        self.sent.extend(packets.iter().take_while(|packet| **packet < end));
        Some(coded)
    }

    /// Returns what this node says of the layer, with a map of up to `room` bytes.
    pub(crate) fn have(&self, room: usize) -> Have {
        if !self.has_begun {
            return Have { oldest: 0, needs: Have::NEW, map: Vec::new() };
        }
        let mut map = vec![0; room.min(MAX_MAP)];
        for number in self.until.range(self.needs + 1..).map(|(number, _)| *number) {
            let bit = (number - self.needs - 1) as usize;
            let Some(byte) = map.get_mut(bit / 8) else { break };
            *byte |= 1 << (bit % 8);
        }

        map.truncate(map.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        Have { oldest: self.oldest, needs: self.needs, map }
    }
}
