//! Frames a node sent lately, and which next hops received them.

use super::credits::Credits;
use super::frame::Heard;
use super::ledger::{HopSet, Reception, Unclear};
use super::paths::MAX_HOPS;
use ncmesh_engine::time::{Duration, Instant};
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
    /// Frames since any hop was heard to say what it heard.
    unanswered: u32,
}

#[derive(Debug)]
struct Sent {
    serial: u16,
    generation: u32,
    /// Credits of it that the sender had taken in.
    taken: u32,
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

    /// Frames since any hop was heard to say what it heard.
    pub(super) fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// How many frames in the air tell each hop of one more credit of a generation.
    pub(super) fn nominated(&self, generation: u32) -> [u16; MAX_HOPS] {
        let mut nominated = [0; MAX_HOPS];
        let own = self.sent.iter().filter(|sent| !sent.settled && sent.generation == generation);
        for hop in own.filter_map(|sent| sent.nominee.filter(|hop| sent.known >> hop & 1 == 0)) {
            nominated[hop] += 1;
        }
        nominated
    }

    /// A frame was handed to the MAC.
    pub(super) fn push(
        &mut self,
        generation: u32,
        taken: u32,
        (announced, nominee): (Vec<(u32, Vec<u16>)>, Option<usize>),
        at: Instant,
    ) {
        let serial = self.serial;
        let (heard, known, settled) = (0, 0, false);
        let sent =
            Sent { serial, generation, taken, announced, nominee, heard, known, at, settled };
        self.sent.push_back(sent);
        self.serial = self.serial.wrapping_add(1);
        self.unanswered += 1;
    }

    /// The MAC says who of `hops` received the latest frame.
    pub(super) fn told(&mut self, heard: HopSet, hops: usize, credits: &mut Credits) {
        if let Some(sent) = self.sent.back_mut() {
            sent.receive(heard, credits);
            (0..hops).for_each(|hop| sent.observe(hop, credits));
            sent.settled = true;
        }
        self.expect(credits, None);
        credits.tell();
    }

    /// A hop reports what it heard.
    pub(super) fn report(&mut self, hop: usize, heard: Heard, credits: &mut Credits) {
        self.unanswered = 0;
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
        self.expect(credits, None);
        credits.tell();
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
        self.expect(credits, None);
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

    /// What is in the air, and perhaps one more frame, of generation `next`.
    pub(super) fn expect(&self, credits: &mut Credits, next: Option<u32>) {
        let next = next.map(|generation| {
            let (serial, nominee, told) = (self.serial, None, &[][..]);
            Unclear { generation, serial, nominee, in_air: true, heard: 0, known: 0, told }
        });
        credits.expect(self.sent.iter().map(Sent::unclear).chain(next));
    }
}

impl Sent {
    fn unclear(&self) -> Unclear<'_> {
        let Self { generation, serial, nominee, heard, known, .. } = *self;
        let told = self.announced.first().map_or(&[][..], |(_, told)| told);
        Unclear { generation, serial, nominee, in_air: !self.settled, heard, known, told }
    }

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
            taken: self.taken,
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
