//! How well nodes hear each other, measured by counting data frames (CORE, section 6.2).
//!
//! Every data frame carries a serial number, so a receiver that hears some of them knows how many
//! were sent. A node reports what it counted with its feedback. From these reports a relay knows
//! the success ratios of its own links, and those of the links over which its receivers overhear
//! each other's flows. Until enough frames are counted, the link state's delivery is used.

use crate::frame::{LinkReport, MAX_LINK_REPORTS};
use core::cmp::Reverse;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Topology;
use ncmesh_wire::{NodeId, StartId};
use std::collections::BTreeMap;

/// Frames after which older ones count half: a mean over some generations, as the paper advises.
const SPAN: u16 = 512;
/// Least number of frames that a success ratio is computed from.
const MIN_FRAMES: u16 = 16;
/// Longest gap between serials that is taken for loss. Beyond it the transmitter has restarted, or
/// was out of reach.
const MAX_GAP: u16 = 1024;
/// Time for which counts and reports stay valid.
const VALIDITY: Duration = Duration::from_secs(10);
/// Most links that are counted, and most that are reported by others.
const MAX_LINKS: usize = 256;
/// Success ratio that is assumed of the worst links, so that credits stay bounded.
const MIN_SUCCESS: f64 = 0.05;

/// Delivery in quiet times below which counts and feedback go in copies. Such links fail often
/// because the link itself loses frames, and for that 802.11's repetitions are a poor remedy: its
/// contention window doubles with every try, while the whole crossing may wait for the answer.
const COPIES_BELOW: f64 = 0.75;
/// Share of that delivery which has to arrive while others send. Where it is less, frames are lost
/// to collisions, and waiting them out as 802.11 does is the right remedy.
const MIN_CLEAR: f64 = 0.5;
/// Probability with which all copies may be lost.
const COPIES_LOST: f64 = 0.02;
/// Most copies.
const MAX_COPIES: u32 = 16;

/// Data frames of one neighbour.
#[derive(Clone, Copy, Debug)]
struct Counter {
    start: StartId,
    latest_serial: u16,
    received: u16,
    sent: u16,
    heard_at: Instant,
}

/// Success ratios of links, as counted here and as reported by neighbours.
#[derive(Debug, Default)]
pub(crate) struct LinkMeter {
    counters: BTreeMap<NodeId, Counter>,
    /// Reports by transmitter and receiver, with their time.
    reports: BTreeMap<(NodeId, NodeId), (LinkReport, Instant)>,
}

impl LinkMeter {
    // ---- measuring

    /// Counts a data frame of a neighbour in its present start.
    pub(crate) fn count_frame(
        &mut self,
        transmitter: NodeId,
        start: StartId,
        serial: u16,
        now: Instant,
    ) {
        self.note_serial(transmitter, start, serial, now);
        if let Some(counter) = self.counters.get_mut(&transmitter) {
            counter.received = (counter.received + 1).min(counter.sent);
        }
    }

    /// Notes that a neighbour has sent data frames up to `serial`, heard here or not.
    pub(crate) fn note_serial(
        &mut self,
        transmitter: NodeId,
        start: StartId,
        serial: u16,
        now: Instant,
    ) {
        if self.counters.len() >= MAX_LINKS && !self.counters.contains_key(&transmitter) {
            return;
        }
        let before = serial.wrapping_sub(1);
        let fresh = Counter { start, latest_serial: before, received: 0, sent: 0, heard_at: now };
        let counter = self.counters.entry(transmitter).or_insert(fresh);

        // A small step forward counts, a small step back is a late or repeated frame, and anything
        // else is another start.
        let ahead = serial.wrapping_sub(counter.latest_serial);
        if counter.start != start || (ahead > MAX_GAP && ahead < u16::MAX - MAX_GAP) {
            *counter = Counter { sent: 1, latest_serial: serial, ..fresh };
        } else if ahead <= MAX_GAP {
            counter.latest_serial = serial;
            counter.sent += ahead;
        }
        counter.heard_at = now;

        // Halving keeps the ratio, and lets older frames count less.
        if counter.sent > SPAN {
            counter.sent /= 2;
            counter.received /= 2;
        }
    }

    /// Returns what to report to a neighbour: its own link first, then the transmitters that were
    /// heard most recently.
    pub(crate) fn report(&self, to: NodeId) -> Vec<LinkReport> {
        let mut counters: Vec<_> = self.counters.iter().filter(|(_, c)| c.sent > 0).collect();
        counters.sort_by_key(|(node, counter)| (**node != to, Reverse(counter.heard_at)));
        let report = |(node, c): (&NodeId, &Counter)| LinkReport {
            transmitter: *node,
            received: c.received,
            sent: c.sent,
        };

        counters.into_iter().take(MAX_LINK_REPORTS).map(report).collect()
    }

    /// Records what a neighbour reports.
    pub(crate) fn record_reports(&mut self, by: NodeId, reports: &[LinkReport], now: Instant) {
        for report in reports {
            let link = (report.transmitter, by);
            if self.reports.len() < MAX_LINKS || self.reports.contains_key(&link) {
                self.reports.insert(link, (*report, now));
            }
        }
    }

    /// Forgets counts and reports that are no longer valid.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.reports.retain(|_, (_, at)| now.since(*at) < VALIDITY);
        self.counters.retain(|_, counter| now.since(counter.heard_at) < VALIDITY);
    }

    // ---- results

    /// Returns the share of `from`'s broadcasts that `to` receives: as counted, or by the link
    /// state while too few are counted.
    pub(crate) fn delivery(
        &self,
        topology: &Topology,
        me: NodeId,
        from: NodeId,
        to: NodeId,
    ) -> f64 {
        // Links to this node are counted here; of others there are reports.
        let counted = if to == me {
            self.counters.get(&from).map(|counter| (counter.received, counter.sent))
        } else {
            self.reports.get(&(from, to)).map(|(report, _)| (report.received, report.sent))
        };
        match counted.filter(|(_, sent)| *sent >= MIN_FRAMES) {
            Some((received, sent)) => f64::from(received) / f64::from(sent),
            None => topology.delivery(from, to),
        }
    }

    /// Returns the success ratio r that credits are computed with: [`delivery`](Self::delivery),
    /// but at least 0.05.
    pub(crate) fn success(&self, topology: &Topology, me: NodeId, from: NodeId, to: NodeId) -> f64 {
        self.delivery(topology, me, from, to).max(MIN_SUCCESS)
    }

    /// Returns in how many broadcast copies a count or feedback goes to a neighbour. `None` where
    /// unicast is better: over a good link, and where frames are lost to collisions. Over one that
    /// brings no acknowledgment back, the MAC would send as often as it may.
    pub(crate) fn copies(&self, topology: &Topology, me: NodeId, to: NodeId) -> Option<u32> {
        let quiet = topology.delivery(me, to);
        let busy = self.success(topology, me, me, to);
        let is_poor = quiet < COPIES_BELOW && busy >= MIN_CLEAR * quiet;
        let pays = quiet > 0.0 && (is_poor || topology.delivery(to, me) == 0.0);
        // All n copies are lost with (1 - r)^n.
        let copies = (libm::log(COPIES_LOST) / libm::log(1.0 - busy)).ceil();
        pays.then_some((copies as u32).clamp(1, MAX_COPIES))
    }
}
