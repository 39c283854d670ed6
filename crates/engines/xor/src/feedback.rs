//! Whether neighbours decode what is coded for them. Not in the paper: overhearing is measured, never assumed, and
//! coding stops towards who cannot make use of it.
//!
//! A node that hears coded packets for itself reports at times how many it heard of each neighbour, and how many it
//! could decode. A coder compares that with what it sent.

use super::frame::{Heard, MAX_ENTRIES};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// The least time between two reports.
const EVERY: Duration = Duration::from_secs(1);
/// Coded packets over which a neighbour is judged.
const ENOUGH: u32 = 32;
/// After so long without a report a neighbour is judged without one.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long coding stops, and how long at most: the double each time.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(320);
/// Neighbours kept account of; with others nothing is coded.
const MAX_NEIGHBOURS: usize = 1024;

/// A neighbour as a coder sees it.
#[derive(Clone, Copy, Debug)]
struct Decoder {
    /// Packets coded for it, at its last judgment and now.
    judged: u32,
    sent: u32,
    since: Instant,
    /// What it had reported at its last judgment.
    heard: Option<Heard>,
    stopped: Option<Instant>,
    pause: Duration,
    /// What it decoded as last judged; none if it did not say.
    share: Option<f64>,
}

/// What coding is worth towards neighbours, and what this node decodes of theirs.
#[derive(Debug)]
pub(super) struct Feedback {
    /// Share that must be decoded.
    least: f64,
    /// Of packets sent, where those that are not coded arrive for sure; otherwise of those heard.
    of_sent: bool,
    decoders: BTreeMap<NodeId, Decoder>,
    heard: BTreeMap<NodeId, Heard>,
    /// When a report is due.
    due: Option<Instant>,
    reported: Option<Instant>,
}

impl Feedback {
    pub(super) fn new(least: f64, of_sent: bool) -> Self {
        let (decoders, heard) = (BTreeMap::new(), BTreeMap::new());
        Self { least, of_sent, decoders, heard, due: None, reported: None }
    }

    // ---- as the coder

    /// Whether packets may be coded for `neighbour`.
    pub(super) fn allows(&self, neighbour: NodeId, now: Instant) -> bool {
        match self.decoders.get(&neighbour) {
            Some(decoder) => decoder.stopped.is_none_or(|until| until <= now),
            None => self.decoders.len() < MAX_NEIGHBOURS,
        }
    }

    /// A packet was coded for `neighbour`.
    pub(super) fn sent(&mut self, neighbour: NodeId, now: Instant) {
        let least = self.least;
        let decoder = self.decoders.entry(neighbour).or_insert_with(|| Decoder::new(now));
        if decoder.stopped.take().is_some() {
            decoder.begin(now);
        }
        decoder.sent = decoder.sent.wrapping_add(1);
        let silent = now - decoder.since >= PATIENCE && decoder.unjudged() >= 2 * ENOUGH;
        if silent && least > 0.0 {
            decoder.judge(None, least, now);
        }
    }

    /// `neighbour` reports what it heard of this node's coded packets.
    pub(super) fn learn(&mut self, neighbour: NodeId, heard: Heard, now: Instant) {
        let (least, of_sent) = (self.least, self.of_sent);
        let Some(decoder) = self.decoders.get_mut(&neighbour) else { return };
        let Some(before) = decoder.heard.filter(|before| before.coded <= heard.coded) else {
            // Its first word since its start: what it counts from here on is ours.
            decoder.heard = Some(heard);
            decoder.begin(now);
            return;
        };
        if decoder.unjudged() < ENOUGH || decoder.stopped.is_some() {
            return;
        }
        let coded = heard.coded - before.coded;
        let of = if of_sent { decoder.unjudged() } else { coded };
        let share = f64::from(heard.decoded.saturating_sub(before.decoded)) / f64::from(of.max(1));
        decoder.heard = Some(heard);
        decoder.judge(Some(share.min(1.0)), least, now);
    }

    /// Neighbours for whom nothing is coded now, with the share of coded packets that they decoded; none of those
    /// that did not say.
    pub(super) fn stopped(&self, now: Instant) -> impl Iterator<Item = (NodeId, Option<f64>)> + '_ {
        let stopped = move |(node, decoder): (&NodeId, &Decoder)| {
            decoder.stopped.filter(|until| *until > now).map(|_| (*node, decoder.share))
        };
        self.decoders.iter().filter_map(stopped)
    }

    // ---- as the decoder

    /// A coded packet of `neighbour` for this node was heard.
    pub(super) fn heard(&mut self, neighbour: NodeId, decoded: bool, now: Instant) {
        if self.heard.len() >= MAX_NEIGHBOURS && !self.heard.contains_key(&neighbour) {
            return;
        }
        let heard = self.heard.entry(neighbour).or_default();
        heard.coded = heard.coded.wrapping_add(1);
        heard.decoded = heard.decoded.wrapping_add(u32::from(decoded));
        let due = self.reported.map_or(now, |last| now.max(last + EVERY));
        self.due.get_or_insert(due);
    }

    /// When a report is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| self.least > 0.0)
    }

    /// The report that is due.
    pub(super) fn report(&mut self, now: Instant) -> Option<Vec<(NodeId, Heard)>> {
        self.due().filter(|due| *due <= now)?;
        self.due = None;
        self.reported = Some(now);
        Some(self.heard.iter().take(MAX_ENTRIES).map(|(node, heard)| (*node, *heard)).collect())
    }
}

impl Decoder {
    fn new(now: Instant) -> Self {
        let (heard, stopped) = (None, None);
        Self { judged: 0, sent: 0, since: now, heard, stopped, pause: FIRST_PAUSE, share: None }
    }

    fn unjudged(&self) -> u32 {
        self.sent.wrapping_sub(self.judged)
    }

    /// Counts from here on.
    fn begin(&mut self, now: Instant) {
        self.judged = self.sent;
        self.since = now;
    }

    fn judge(&mut self, share: Option<f64>, least: f64, now: Instant) {
        self.share = share;
        self.begin(now);
        if share.unwrap_or(0.0) < least {
            self.stopped = Some(now + self.pause);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            self.heard = None;
        } else {
            self.pause = FIRST_PAUSE;
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

    /// The share of 100 s in which is coded, 20 packets a second, for a neighbour that hears each of these and
    /// decodes so many of ten.
    fn coded(of_ten: Option<u32>, of_sent: bool) -> f64 {
        let (mut coder, mut decoder) = (Feedback::new(0.9, of_sent), Feedback::new(0.9, of_sent));
        let mut sent = 0;
        for tick in 0..2000 {
            let now = at(tick * 50);
            if coder.allows(PEER, now) {
                coder.sent(PEER, now);
                sent += 1;
                decoder.heard(PEER, sent % 10 < of_ten.unwrap_or(10), now);
            }
            if let Some(report) = decoder.report(now).filter(|_| of_ten.is_some()) {
                coder.learn(PEER, report[0].1, now);
            }
        }
        f64::from(sent) / 2000.0
    }

    #[test]
    fn coding_goes_on_only_towards_who_decodes() {
        assert_eq!(coded(Some(10), true), 1.0);
        assert!(coded(Some(5), true) < 0.15);
        assert!(coded(Some(5), false) < 0.15);
        // One that never says a word.
        assert!(coded(None, true) < 0.3);
    }

    #[test]
    fn reports_are_a_second_apart_and_come_only_after_news() {
        let mut node = Feedback::new(0.9, true);
        assert_eq!(node.due(), None);
        node.heard(PEER, true, at(100));
        assert_eq!(node.report(at(100)), Some(vec![(PEER, Heard { coded: 1, decoded: 1 })]));
        assert_eq!(node.due(), None);
        node.heard(PEER, false, at(200));
        assert_eq!((node.due(), node.report(at(1099))), (Some(at(1100)), None));
        assert_eq!(node.report(at(1100)), Some(vec![(PEER, Heard { coded: 2, decoded: 1 })]));
        let mut mute = Feedback::new(0.0, true);
        mute.heard(PEER, true, at(100));
        assert_eq!(mute.due(), None);
    }

    #[test]
    fn a_peer_that_starts_anew_is_not_blamed_for_it() {
        let mut coder = Feedback::new(0.9, true);
        for sent in 1..=40 {
            coder.sent(PEER, at(sent));
        }
        coder.learn(PEER, Heard { coded: 40, decoded: 40 }, at(50));
        for sent in 51..=90 {
            coder.sent(PEER, at(sent));
        }
        coder.learn(PEER, Heard { coded: 5, decoded: 5 }, at(100));
        assert!(coder.allows(PEER, at(100)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut node = Feedback::new(0.9, true);
        for other in 1..=3000 {
            node.heard(NodeId(other), false, at(0));
            if node.allows(NodeId(other), at(0)) {
                node.sent(NodeId(other), at(0));
            }
        }
        assert_eq!((node.heard.len(), node.decoders.len()), (MAX_NEIGHBOURS, MAX_NEIGHBOURS));
        assert_eq!(node.report(at(0)).unwrap().len(), MAX_ENTRIES);
    }
}
