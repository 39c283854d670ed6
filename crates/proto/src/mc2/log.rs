//! Frames a node sent lately, and which next hops received them.

use super::credits::{Credits, HopSet, Reception};
use super::frame::Heard;
use super::paths::MAX_HOPS;
use crate::time::{Duration, Instant};
use std::collections::VecDeque;

/// Frames of which is remembered what they announced.
const KEPT: usize = 64;

/// The frames of one flow.
#[derive(Debug, Default)]
pub(super) struct Log {
    sent: VecDeque<Sent>,
    serial: u16,
    /// Frames in a row of which nothing was heard in time.
    silent: u32,
}

#[derive(Debug)]
struct Sent {
    serial: u16,
    generation: u32,
    /// Packets the sender had of it: no set of hops can have received more.
    rank: u16,
    announced: Vec<(u32, Vec<u16>)>,
    nominee: Option<usize>,
    heard: HopSet,
    /// Of which hops it is known whether they heard it.
    known: HopSet,
    at: Instant,
    /// Nothing more is expected to become known of it.
    settled: bool,
}

impl Log {
    /// The number of the next frame.
    pub(super) fn serial(&self) -> u16 {
        self.serial
    }

    /// Frames in a row of which it was not heard in time that any hop heard them.
    pub(super) fn silent(&self) -> u32 {
        self.silent
    }

    /// How many frames in the air tell each hop of one more credit of a generation.
    pub(super) fn nominated(&self, generation: u32) -> [u16; MAX_HOPS] {
        let mut nominated = [0; MAX_HOPS];
        let open = self.sent.iter().filter(|sent| !sent.settled && sent.generation == generation);
        for hop in open.filter_map(|sent| sent.nominee.filter(|hop| sent.heard >> hop & 1 == 0)) {
            nominated[hop] += 1;
        }
        nominated
    }

    /// A frame was handed to the MAC.
    pub(super) fn push(
        &mut self,
        generation: u32,
        rank: usize,
        (announced, nominee): (Vec<(u32, Vec<u16>)>, Option<usize>),
        at: Instant,
    ) {
        let (serial, rank) = (self.serial, rank as u16);
        let (heard, known, settled) = (0, 0, false);
        let sent = Sent { serial, generation, rank, announced, nominee, heard, known, at, settled };
        self.sent.push_back(sent);
        self.serial = self.serial.wrapping_add(1);
    }

    /// The MAC says who of `hops` received the latest frame.
    pub(super) fn told(&mut self, heard: HopSet, hops: usize, credits: &mut Credits) {
        if let Some(sent) = self.sent.back_mut() {
            sent.receive(heard, credits);
            (0..hops).for_each(|hop| sent.observe(hop, credits));
            sent.settled = true;
        }
        self.expect(credits);
    }

    /// A hop reports what it heard.
    pub(super) fn report(&mut self, hop: usize, heard: Heard, credits: &mut Credits) {
        for sent in &mut self.sent {
            let before = u32::from(heard.latest.wrapping_sub(sent.serial));
            // Later frames than the latest, and those long before it, it says nothing of.
            if before > 32 {
                continue;
            }
            if before == 0 || heard.before >> (before - 1) & 1 == 1 {
                sent.receive(1 << hop, credits);
                self.silent = 0;
            }
            sent.observe(hop, credits);
        }
        self.expect(credits);
    }

    /// Gives up on what was sent more than `patience` ago; of what is forgotten, hops that said nothing heard nothing.
    pub(super) fn expire(
        &mut self,
        patience: Duration,
        hops: usize,
        now: Instant,
        credits: &mut Credits,
    ) {
        let old = |sent: &&mut Sent| !sent.settled && sent.at + patience <= now;
        for sent in self.sent.iter_mut().filter(old) {
            sent.settled = true;
            self.silent += u32::from(sent.heard == 0);
        }
        while self.sent.len() > KEPT {
            let forgotten = self.sent.pop_front();
            forgotten.into_iter().for_each(|mut sent| {
                (0..hops).for_each(|hop| sent.observe(hop, credits));
            });
        }
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
        credits.receive(&Reception {
            generation: self.generation,
            serial: self.serial,
            before: self.heard,
            new,
            rank: self.rank,
            nominee: self.nominee,
        });
        (0..8)
            .filter(|hop| new >> hop & 1 == 1)
            .for_each(|hop| credits.learn(hop, &self.announced));
        self.heard |= new;
    }

    /// Whether a hop heard it is known now.
    fn observe(&mut self, hop: usize, credits: &mut Credits) {
        if self.known >> hop & 1 == 0 {
            self.known |= 1 << hop;
            credits.observe(hop, self.heard >> hop & 1 == 1);
        }
    }
}
