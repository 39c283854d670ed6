//! How well nodes hear each other, by counting data frames (CORE, 6.2).
//!
//! Every data frame has a number, so that who hears some of them knows how many were sent. What a node counts of others it
//! reports with its feedback, at changes of generations foremost; the node that hears the report knows its own links and
//! those over which that neighbour overhears others.

use super::frame::{Heard, MAX_HEARD};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Frames over which a mean is taken: some generations.
const SPAN: u16 = 512;
/// Fewer frames say nothing yet.
const ENOUGH: u16 = 16;
/// A gap in numbers longer than this is another start, not a loss.
const GAP: u16 = 1024;
/// A report is good for so long.
const GOOD: Duration = Duration::from_secs(10);
/// Links kept account of.
const MAX_LINKS: usize = 256;
/// What is taken for the worst link.
const WORST: f64 = 0.05;
/// Over links that deliver less while nobody sends, questions and answers are repeated by this engine and not by the MAC, whose
/// contention window doubles with each try while everybody waits.
const POOR: f64 = 0.75;
/// Where less of that arrives while others send, it is collisions that are to be waited out.
const CLEAR: f64 = 0.5;
/// How probable it is that none of the copies arrives.
const MISSED: f64 = 0.02;
/// Copies at most.
const MOST: u32 = 16;

#[derive(Clone, Copy, Debug)]
struct Counter {
    epoch: u64,
    latest: u16,
    received: u16,
    sent: u16,
    heard_at: Instant,
}

/// Deliveries, as counted here and as reported.
#[derive(Debug, Default)]
pub(super) struct Meter {
    heard: BTreeMap<NodeId, Counter>,
    /// By transmitter and receiver.
    reported: BTreeMap<(NodeId, NodeId), (Heard, Instant)>,
}

impl Meter {
    /// A data frame of a neighbour was heard, with this number, in this epoch of its.
    pub(super) fn hear(&mut self, of: NodeId, epoch: u64, serial: u16, now: Instant) {
        self.note(of, epoch, serial, now);
        if let Some(counter) = self.heard.get_mut(&of) {
            counter.received = (counter.received + 1).min(counter.sent);
        }
    }

    /// A neighbour said that this was its last.
    pub(super) fn note(&mut self, of: NodeId, epoch: u64, serial: u16, now: Instant) {
        if self.heard.len() >= MAX_LINKS && !self.heard.contains_key(&of) {
            return;
        }
        let latest = serial.wrapping_sub(1);
        let fresh = Counter { epoch, latest, received: 0, sent: 0, heard_at: now };
        let counter = self.heard.entry(of).or_insert(fresh);
        let ahead = serial.wrapping_sub(counter.latest);
        if counter.epoch != epoch || (ahead > GAP && ahead < u16::MAX - GAP) {
            *counter = Counter { sent: 1, latest: serial, ..fresh };
        } else if ahead <= GAP {
            (counter.latest, counter.sent) = (serial, counter.sent + ahead);
        }
        counter.heard_at = now;
        if counter.sent > SPAN {
            (counter.sent, counter.received) = (counter.sent / 2, counter.received / 2);
        }
    }

    /// What to report to a neighbour: of it first, then of those heard latest.
    pub(super) fn report(&self, to: NodeId) -> Vec<Heard> {
        let mut counters: Vec<_> = self.heard.iter().filter(|(_, c)| c.sent > 0).collect();
        counters.sort_by_key(|(of, counter)| (**of != to, core::cmp::Reverse(counter.heard_at)));
        let heard =
            |(of, c): (&NodeId, &Counter)| Heard { of: *of, received: c.received, sent: c.sent };
        counters.into_iter().take(MAX_HEARD).map(heard).collect()
    }

    /// A neighbour reports what it heard.
    pub(super) fn learn(&mut self, by: NodeId, heard: &[Heard], now: Instant) {
        for heard in heard {
            let link = (heard.of, by);
            if self.reported.len() < MAX_LINKS || self.reported.contains_key(&link) {
                self.reported.insert(link, (*heard, now));
            }
        }
    }

    /// Forgets what is old.
    pub(super) fn age(&mut self, now: Instant) {
        self.reported.retain(|_, (_, at)| now.since(*at) < GOOD);
        self.heard.retain(|_, counter| now.since(counter.heard_at) < GOOD);
    }

    /// The share of a node's broadcasts that another receives: as counted, or else by the link state.
    pub(super) fn delivery(
        &self,
        topology: &Topology,
        me: NodeId,
        from: NodeId,
        to: NodeId,
    ) -> f64 {
        let counted = if to == me {
            self.heard.get(&from).map(|counter| (counter.received, counter.sent))
        } else {
            self.reported.get(&(from, to)).map(|(heard, _)| (heard.received, heard.sent))
        };
        match counted.filter(|(_, sent)| *sent >= ENOUGH) {
            Some((received, sent)) => f64::from(received) / f64::from(sent),
            None => topology.delivery(from, to),
        }
    }

    /// The same, no worse than credits can make up for.
    pub(super) fn success(&self, topology: &Topology, me: NodeId, from: NodeId, to: NodeId) -> f64 {
        self.delivery(topology, me, from, to).max(WORST)
    }

    /// In how many copies a question or an answer is broadcast for a neighbour; none where the MAC is to see to it that it arrives:
    /// over a good link, and where more is lost to collisions than on the link, for which its longer waits are a remedy.
    pub(super) fn copies(&self, topology: &Topology, me: NodeId, to: NodeId) -> Option<u32> {
        let (link, success) = (topology.delivery(me, to), self.success(topology, me, me, to));
        let pays = link > 0.0 && link < POOR && success >= CLEAR * link;
        let copies = (MISSED.ln() / (1.0 - success).ln()).ceil();
        pays.then_some((copies as u32).clamp(1, MOST))
    }
}
