//! What a node knows of its next hops on a flow's paths, and how it is to go on towards them.

use super::access::Access;
use super::credits::Credits;
use super::frame::{Heard, MAX_ANNOUNCED};
use super::ledger::HopSet;
use super::log::Log;
use super::paths::PathSet;
use ncmesh_engine::rng;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use rand_core::RngCore;

/// What is owed and cannot be sent, since no next hop seems to hear, is tried so often all the same.
const PROBE: Duration = Duration::from_millis(250);
/// After so many frames in a row that hops should have heard, of which none was heard to say so, and after each as many more, a
/// node waits twice as long between frames, at random up to so many frames' time: hidden from each other, two that never wait
/// would spoil all of each other's frames for ever.
const SILENCE: f64 = 8.0;
const LONGEST_WAIT: u32 = 64;
/// A node wants to be answered at once when it sent so many frames without hearing who received them.
const POLL_AFTER: u32 = 4;
/// Of a link on the paths that this node has not measured yet nothing is known but that the source takes it for one.
const UNMEASURED: f64 = 0.5;

/// The next hops of one flow at one node.
#[derive(Debug)]
pub(super) struct Downstream {
    /// DST(n, c), in the order in which credits count them.
    hops: Vec<NodeId>,
    pub credits: Credits,
    log: Log,
    /// How likely any of the hops hears a frame, by the link state: where all goes wrong it is not what is measured.
    likely: f64,
    /// No data is sent before this.
    not_before: Instant,
}

/// What the next data frame says to the hops.
#[derive(Debug)]
pub(super) struct Notice {
    pub serial: u16,
    /// Who received it is to be told.
    pub asks: bool,
    /// And at once.
    pub waits: bool,
    /// By generation, the credits that each hop was given so far.
    pub announced: Vec<(u32, Vec<u16>)>,
    /// Who is told of one credit more than packets back.
    pub nominee: Option<usize>,
}

impl Downstream {
    pub(super) fn new(paths: &PathSet, topology: &Topology, me: NodeId, now: Instant) -> Self {
        let hops = paths.next_hops(me);
        let mut credits = Credits::new(&quality(&hops, topology, me), end(&hops, paths));
        credits.hears(&back(&hops, topology, me));
        let likely = credits.quality_of_all();
        Self { hops, credits, log: Log::default(), likely, not_before: now }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    // ---- handle

    /// Goes on over other paths.
    pub(super) fn follow(&mut self, paths: &PathSet, topology: &Topology, me: NodeId) {
        self.hops = paths.next_hops(me);
        self.credits.follow(&quality(&self.hops, topology, me), end(&self.hops, paths));
        self.credits.hears(&back(&self.hops, topology, me));
        self.likely = self.credits.quality_of_all();
        self.log.clear();
    }

    /// A node says how many credits it holds, and what it has heard of this one. Says whether it is a next hop.
    pub(super) fn stand<'a>(
        &mut self,
        sender: NodeId,
        credits: u16,
        heard: impl Iterator<Item = &'a Heard>,
    ) -> bool {
        let Some(hop) = self.hops.iter().position(|hop| *hop == sender) else { return false };
        for heard in heard {
            self.log.report(hop, *heard, &mut self.credits);
        }
        // Its credits, those of which it has just turned out to have learned among them.
        self.credits.hear(hop, u32::from(credits));
        true
    }

    /// The MAC says who received the latest frame.
    pub(super) fn told(&mut self, receivers: &[NodeId]) {
        let hop = |(i, hop): (usize, &NodeId)| HopSet::from(receivers.contains(hop)) << i;
        let heard = self.hops.iter().enumerate().map(hop).fold(0, |all, one| all | one);
        self.log.told(heard, self.hops.len(), &mut self.credits);
    }

    /// Gives up on what was sent long ago.
    pub(super) fn expire(&mut self, access: Access, now: Instant) {
        self.log.expire(access.patience(), self.hops.len(), now, &mut self.credits);
    }

    /// Transfers what credits it can.
    pub(super) fn transfer(&mut self, rng: &mut impl RngCore) {
        if self.credits.transfer(rng) {
            self.log.expect(&mut self.credits, None);
        }
    }

    // ---- poll

    /// The generation to send from now, and W(n, c).
    pub(super) fn due(&self, access: Access, now: Instant) -> Option<(u32, f64)> {
        if now < self.not_before {
            return None;
        }
        let passed = |pause| self.log.latest_at().is_none_or(|at| at + pause <= now);
        self.credits
            .due()
            .or_else(|| Some((self.credits.untold().filter(|_| passed(access.pause()))?, 0.0)))
            .or_else(|| self.credits.owing().filter(|_| passed(PROBE)))
    }

    /// What a frame of `generation` is to say.
    pub(super) fn notice(&mut self, generation: u32, access: Access) -> Notice {
        // Whether anything would be due once this frame is in the air.
        self.log.expect(&mut self.credits, Some(generation));
        let long = self.log.unanswered() >= POLL_AFTER;
        let asks = !access.tells;
        let waits = asks && (long || self.credits.due().is_none());
        let nominated = self.log.nominated(generation);
        let (announced, nominee) = self.credits.announce(generation, nominated, MAX_ANNOUNCED);
        Notice { serial: self.log.serial(), asks, waits, announced, nominee }
    }

    /// A frame of `generation` was handed to the MAC, which announces so much and tells the nominee.
    pub(super) fn sent(
        &mut self,
        generation: u32,
        (announced, nominee): (Vec<(u32, Vec<u16>)>, Option<usize>),
        access: Access,
        (rng, now): (&mut impl RngCore, Instant),
    ) {
        let taken = self.credits.taken(generation);
        self.log.push(generation, taken, (announced, nominee), now);
        self.log.expect(&mut self.credits, None);
        let missed = f64::from(self.log.silent()) * self.likely;
        let doublings = ((missed / SILENCE) as u32).min(LONGEST_WAIT.ilog2());
        if doublings > 0 {
            let frames = rng::unit(rng) * f64::from(1 << doublings);
            self.not_before = now + access.frame_time().mul_f64(1.0 + frames);
        }
    }

    /// When, later than `after`, something falls due.
    pub(super) fn poll_timeout(&self, access: Access, after: Instant) -> Option<Instant> {
        let latest = self.log.latest_at();
        let times = [
            Some(self.not_before),
            self.credits.untold().and(latest).map(|at| at + access.pause()),
            self.credits.owing().and(latest).map(|at| at + PROBE),
            self.log.expires_at(access.patience()),
        ];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }
}

/// Which of the hops is the destination.
fn end(hops: &[NodeId], paths: &PathSet) -> Option<usize> {
    hops.iter().position(|hop| *hop == paths.destination())
}

/// What of their frames arrives here: of links that go one way nothing.
fn back(hops: &[NodeId], topology: &Topology, me: NodeId) -> Vec<f64> {
    hops.iter().map(|hop| topology.delivery(*hop, me)).collect()
}

fn quality(hops: &[NodeId], topology: &Topology, me: NodeId) -> Vec<f64> {
    let known = |hop: &NodeId| Some(topology.delivery(me, *hop)).filter(|delivery| *delivery > 0.0);
    hops.iter().map(|hop| known(hop).unwrap_or(UNMEASURED)).collect()
}
