//! Feedback on decoding: whether neighbours make use of what is coded for them. Not in the paper.
//!
//! Whether a neighbour can decode depends on what it sent and still has; that is measured, never
//! assumed. A node that hears coded packets for itself broadcasts reports: of each neighbour, how
//! many coded packets it heard and how many it could decode, counted since its start. A coder
//! compares two reports with what it sent in between.
//!
//! ```text
//!            32 packets coded since the last judgment, and a report:
//!            enough of them decoded
//!               +-----------+
//!               v           |
//!  new ----> Coding --------+
//!               ^    \
//!               |     \ too few decoded, or no report for 5 s
//!               |      v
//!               +--- Stopped for 10 s, 20 s, ... 320 s
//! ```
//!
//! The first report after a start or a stop is a baseline only: it may count packets from before.

use super::frame::{DecodeCount, MAX_ENTRIES, ReportEntry};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// Least time between two reports.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Coded packets after which a neighbour is judged.
const SAMPLE: u32 = 32;
/// Time without a report after which a neighbour is judged to decode nothing.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// Times for which coding stops; each stop in a row is twice as long as the one before.
const STOPS: Backoff =
    Backoff { first: Duration::from_secs(10), longest: Duration::from_secs(320) };
/// Most neighbours for which accounts are kept. Nothing is coded for further ones.
const MAX_NEIGHBOURS: usize = 1024;

/// A neighbour as the coder sees it.
#[derive(Clone, Copy, Debug)]
struct Decoder {
    /// Packets coded for it; wraps around.
    coded: u32,
    /// Value of `coded` at the last judgment.
    coded_before: u32,
    /// When it was last judged.
    judged_at: Instant,
    /// Its report at the last judgment. `None` until the first report after a start or a stop.
    baseline: Option<DecodeCount>,
    /// End of the stop, if coding is stopped or was until nothing was coded since.
    stopped_until: Option<Instant>,
    /// Stops in a row.
    stops: u32,
    /// Share that it decoded by the last judgment; `None` if it did not report.
    share: Option<f64>,
}

/// Accounts of coded packets, as coder and as decoder.
#[derive(Debug)]
pub(crate) struct Feedback {
    /// Share that a neighbour must decode.
    min_decoded: f64,
    /// Whether decoded packets are compared with all that were sent, else with those heard. Where
    /// native packets are repeated by the MAC, a coded packet that is not heard is a loss, too.
    count_unheard: bool,
    decoders: BTreeMap<NodeId, Decoder>,
    /// Coded packets that this node heard, by their sender.
    heard: BTreeMap<NodeId, DecodeCount>,
    report_at: Option<Instant>,
    reported_at: Option<Instant>,
}

impl Feedback {
    /// Returns accounts without entries.
    pub(crate) fn new(min_decoded: f64, count_unheard: bool) -> Self {
        Self {
            min_decoded,
            count_unheard,
            decoders: BTreeMap::new(),
            heard: BTreeMap::new(),
            report_at: None,
            reported_at: None,
        }
    }

    // ---- as the coder

    /// Returns whether packets may be coded for `neighbour`.
    pub(crate) fn allows(&self, neighbour: NodeId, now: Instant) -> bool {
        match self.decoders.get(&neighbour) {
            Some(decoder) => decoder.stopped_until.is_none_or(|until| until <= now),
            None => self.decoders.len() < MAX_NEIGHBOURS,
        }
    }

    /// Notes that a packet was coded for `neighbour`.
    pub(crate) fn note_coded(&mut self, neighbour: NodeId, now: Instant) {
        let min_decoded = self.min_decoded;
        let decoder = self.decoders.entry(neighbour).or_insert_with(|| Decoder::new(now));

        // The stop is over. Only packets from here on count.
        if decoder.stopped_until.take().is_some() {
            decoder.begin_sample(now);
        }

        decoder.coded = decoder.coded.wrapping_add(1);
        let is_silent = now - decoder.judged_at >= REPORT_TIMEOUT;
        if is_silent && decoder.sample() >= 2 * SAMPLE && min_decoded > 0.0 {
            decoder.judge(None, min_decoded, now);
        }
    }

    /// Handles the report of `neighbour` on this node's coded packets.
    pub(crate) fn handle_report(&mut self, neighbour: NodeId, report: DecodeCount, now: Instant) {
        let Some(decoder) = self.decoders.get_mut(&neighbour) else { return };

        // Without a baseline, or if the neighbour has restarted, the counts cannot be compared.
        let Some(before) = decoder.baseline.filter(|before| before.coded <= report.coded) else {
            decoder.baseline = Some(report);
            decoder.begin_sample(now);
            return;
        };

        // Few packets say little, and while coding is stopped there are none to judge.
        if decoder.sample() < SAMPLE || decoder.stopped_until.is_some() {
            return;
        }

        let heard = report.coded - before.coded;
        let decoded = report.decoded.saturating_sub(before.decoded);

        // Beside native packets that the MAC repeats, a coded one that was not heard is a loss,
        // too.
        let of = if self.count_unheard { decoder.sample() } else { heard };
        let share = (f64::from(decoded) / f64::from(of.max(1))).min(1.0);
        decoder.baseline = Some(report);
        decoder.judge(Some(share), self.min_decoded, now);
    }

    /// Returns the neighbours for which coding is stopped, each with the share of coded packets
    /// that it decoded, or `None` if it did not report.
    pub(crate) fn stopped(&self, now: Instant) -> impl Iterator<Item = (NodeId, Option<f64>)> + '_ {
        let is_stopped = move |decoder: &Decoder| decoder.stopped_until.is_some_and(|t| t > now);
        let stopped = self.decoders.iter().filter(move |(_, decoder)| is_stopped(decoder));
        stopped.map(|(node, decoder)| (*node, decoder.share))
    }

    // ---- as the decoder

    /// Notes that a coded packet of `neighbour` for this node was heard.
    pub(crate) fn note_heard(&mut self, neighbour: NodeId, decoded: bool, now: Instant) {
        if self.heard.len() >= MAX_NEIGHBOURS && !self.heard.contains_key(&neighbour) {
            return;
        }
        let count = self.heard.entry(neighbour).or_default();
        count.coded = count.coded.wrapping_add(1);
        count.decoded = count.decoded.wrapping_add(u32::from(decoded));
        let report_at = self.reported_at.map_or(now, |last| now.max(last + REPORT_INTERVAL));
        self.report_at.get_or_insert(report_at);
    }

    /// Returns when a report is due; `None` if there is no news, or if nobody asks for reports.
    pub(crate) fn report_at(&self) -> Option<Instant> {
        self.report_at.filter(|_| self.min_decoded > 0.0)
    }

    /// Returns the report that is due at `now`.
    pub(crate) fn take_report(&mut self, now: Instant) -> Option<Vec<ReportEntry>> {
        self.report_at().filter(|at| *at <= now)?;
        self.report_at = None;
        self.reported_at = Some(now);
        let entry = |(node, count): (&NodeId, &DecodeCount)| ReportEntry {
            neighbour: *node,
            count: *count,
        };

        Some(self.heard.iter().take(MAX_ENTRIES).map(entry).collect())
    }
}

impl Decoder {
    fn new(now: Instant) -> Self {
        Self {
            coded: 0,
            coded_before: 0,
            judged_at: now,
            baseline: None,
            stopped_until: None,
            stops: 0,
            share: None,
        }
    }

    /// Returns the packets coded for it since the last judgment.
    fn sample(&self) -> u32 {
        self.coded.wrapping_sub(self.coded_before)
    }

    fn begin_sample(&mut self, now: Instant) {
        self.coded_before = self.coded;
        self.judged_at = now;
    }

    /// Judges the neighbour by the share that it decoded, and stops coding if that is too little.
    fn judge(&mut self, share: Option<f64>, min_decoded: f64, now: Instant) {
        self.share = share;
        self.begin_sample(now);
        if share.unwrap_or(0.0) < min_decoded {
            self.stopped_until = Some(now + STOPS.pause(self.stops));
            self.stops = self.stops.saturating_add(1);
            self.baseline = None;
        } else {
            self.stops = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: NodeId = NodeId(2);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Returns the share of 100 s, with 20 packets a second, in which packets are coded for a
    /// neighbour that hears all of them and decodes `of_ten` of ten. `None`: it does not report.
    fn share_coded(of_ten: Option<u32>, count_unheard: bool) -> f64 {
        let new = || Feedback::new(0.9, count_unheard);
        let mut coder = new();
        let mut decoder = new();
        let mut sent = 0;
        for tick in 0..2000 {
            let now = at(tick * 50);
            if coder.allows(PEER, now) {
                coder.note_coded(PEER, now);
                sent += 1;
                decoder.note_heard(PEER, sent % 10 < of_ten.unwrap_or(10), now);
            }
            if let Some(report) = decoder.take_report(now).filter(|_| of_ten.is_some()) {
                coder.handle_report(PEER, report[0].count, now);
            }
        }
        f64::from(sent) / 2000.0
    }

    #[test]
    fn coding_goes_on_only_for_a_neighbour_that_decodes() {
        assert_eq!(share_coded(Some(10), true), 1.0);
        assert!(share_coded(Some(5), true) < 0.15);
        assert!(share_coded(Some(5), false) < 0.15);
        assert!(share_coded(None, true) < 0.3);
    }

    #[test]
    fn stops_double_up_to_the_longest_and_are_short_again_after_success() {
        let mut decoder = Decoder::new(at(0));
        let mut stop = |share| {
            decoder.judge(Some(share), 0.9, at(0));
            decoder.stopped_until.take().map(|until| (until - at(0)).as_secs())
        };
        let stops = [0.5; 7].map(&mut stop);
        assert_eq!(stops, [10, 20, 40, 80, 160, 320, 320].map(Some));
        assert_eq!((stop(1.0), stop(0.5)), (None, Some(10)));
    }

    #[test]
    fn reports_are_a_second_apart_and_come_only_after_news() {
        let mut node = Feedback::new(0.9, true);
        assert_eq!(node.report_at(), None);
        node.note_heard(PEER, true, at(100));
        let first = DecodeCount { coded: 1, decoded: 1 };
        assert_eq!(
            node.take_report(at(100)),
            Some(vec![ReportEntry { neighbour: PEER, count: first }])
        );
        assert_eq!(node.report_at(), None);
        node.note_heard(PEER, false, at(200));
        assert_eq!((node.report_at(), node.take_report(at(1099))), (Some(at(1100)), None));
        let second = DecodeCount { coded: 2, decoded: 1 };
        assert_eq!(
            node.take_report(at(1100)),
            Some(vec![ReportEntry { neighbour: PEER, count: second }])
        );
        let mut mute = Feedback::new(0.0, true);
        mute.note_heard(PEER, true, at(100));
        assert_eq!(mute.report_at(), None);
    }

    #[test]
    fn a_neighbour_that_restarts_is_not_judged_by_its_new_counts() {
        let mut coder = Feedback::new(0.9, true);
        for sent in 1..=40 {
            coder.note_coded(PEER, at(sent));
        }
        coder.handle_report(PEER, DecodeCount { coded: 40, decoded: 40 }, at(50));
        for sent in 51..=90 {
            coder.note_coded(PEER, at(sent));
        }
        coder.handle_report(PEER, DecodeCount { coded: 5, decoded: 5 }, at(100));
        assert!(coder.allows(PEER, at(100)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut node = Feedback::new(0.9, true);
        for other in 1..=3000 {
            node.note_heard(NodeId(other), false, at(0));
            if node.allows(NodeId(other), at(0)) {
                node.note_coded(NodeId(other), at(0));
            }
        }
        assert_eq!((node.heard.len(), node.decoders.len()), (MAX_NEIGHBOURS, MAX_NEIGHBOURS));
        assert_eq!(node.take_report(at(0)).unwrap().len(), MAX_ENTRIES);
    }
}
