//! Frames a node sent lately, and which next hops received them.

use super::credits::{Credits, HopSet};
use super::frame::Heard;
use crate::time::{Duration, Instant};
use std::collections::VecDeque;

/// Frames of which is remembered what they announced.
const KEPT: usize = 64;

/// The frames of one flow.
#[derive(Debug, Default)]
pub(super) struct Log {
    sent: VecDeque<Sent>,
    serial: u16,
}

#[derive(Debug)]
struct Sent {
    serial: u16,
    generation: u32,
    /// Packets the sender had of it: no set of hops can have received more.
    rank: u16,
    announced: Vec<(u32, Vec<u16>)>,
    heard: HopSet,
    at: Instant,
    /// Nothing more is expected to become known of it.
    settled: bool,
}

impl Log {
    /// The number of the next frame.
    pub(super) fn serial(&self) -> u16 {
        self.serial
    }

    /// It was handed to the MAC.
    pub(super) fn push(
        &mut self,
        generation: u32,
        rank: usize,
        announced: Vec<(u32, Vec<u16>)>,
        at: Instant,
    ) {
        let (serial, rank) = (self.serial, rank as u16);
        let (heard, settled) = (0, false);
        self.sent.push_back(Sent { serial, generation, rank, announced, heard, at, settled });
        if self.sent.len() > KEPT {
            self.sent.pop_front();
        }
        self.serial = self.serial.wrapping_add(1);
    }

    /// The MAC says who received the latest frame.
    pub(super) fn told(&mut self, hops: HopSet, credits: &mut Credits) {
        if let Some(sent) = self.sent.back_mut() {
            sent.receive(hops, credits);
            sent.settle(credits);
        }
        self.expect(credits);
    }

    /// A hop reports what it heard.
    pub(super) fn report(&mut self, hop: usize, heard: Heard, credits: &mut Credits) {
        for sent in &mut self.sent {
            let before = heard.latest.wrapping_sub(sent.serial);
            let bit = u32::from(before).checked_sub(1);
            let is_heard = bit.is_none_or(|bit| bit < 32 && heard.before >> bit & 1 == 1);
            if is_heard {
                sent.receive(1 << hop, credits);
            }
        }
        self.expect(credits);
    }

    /// Gives up on what was sent more than `patience` ago.
    pub(super) fn expire(&mut self, patience: Duration, now: Instant, credits: &mut Credits) {
        let old = |sent: &&mut Sent| !sent.settled && sent.at + patience <= now;
        self.sent.iter_mut().filter(old).for_each(|sent| sent.settle(credits));
        self.expect(credits);
    }

    /// The hops are others now: what they report is not of these frames.
    pub(super) fn clear(&mut self) {
        self.sent.clear();
    }

    /// When the oldest frame not settled expires.
    pub(super) fn expires_at(&self, patience: Duration) -> Option<Instant> {
        self.sent.iter().find(|sent| !sent.settled).map(|sent| sent.at + patience)
    }

    pub(super) fn latest_at(&self) -> Option<Instant> {
        self.sent.back().map(|sent| sent.at)
    }

    pub(super) fn expect(&self, credits: &mut Credits) {
        let open = self.sent.iter().filter(|sent| !sent.settled);
        credits.expect(open.map(|sent| (sent.generation, sent.heard)));
    }
}

impl Sent {
    fn receive(&mut self, hops: HopSet, credits: &mut Credits) {
        let new = hops & !self.heard;
        if new == 0 {
            return;
        }
        credits.receive(self.generation, self.serial, self.heard, new, self.rank);
        (0..8)
            .filter(|hop| new >> hop & 1 == 1)
            .for_each(|hop| credits.learn(hop, &self.announced));
        self.heard |= new;
    }

    fn settle(&mut self, credits: &mut Credits) {
        credits.observe(self.heard);
        self.settled = true;
    }
}
