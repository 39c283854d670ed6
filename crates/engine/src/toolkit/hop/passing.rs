//! Reports that a node passes on, because the previous hop does not hear their author itself.

use crate::time::{Duration, Instant};
use crate::toolkit::backoff::Backoff;
use crate::toolkit::retry::{Retry, RetryPolicy};
use crate::topology::{Metric, Topology};
use crate::transmission::TxResult;
use ncmesh_wire::NodeId;
use std::collections::BTreeMap;

/// How a report is repeated, by unicast. A lost one is made good by the child's next.
const POLICY: RetryPolicy = RetryPolicy {
    attempts: 5,
    unanswered: Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(60) },
    failed: Duration::from_millis(40),
};
/// Most reports that are kept.
const MAX_REPORTS: usize = 256;

/// Reports that this node passes on, by a key: its flow, its author and the node it is for.
#[derive(Debug)]
pub struct Passing<K, R> {
    entries: BTreeMap<K, (R, Retry)>,
}

impl<K, R> Default for Passing<K, R> {
    fn default() -> Self {
        Self { entries: BTreeMap::new() }
    }
}

impl<K: Copy + Ord, R> Passing<K, R> {
    /// Takes a report in place of an earlier one with the same key. Returns whether there was room.
    pub fn admit(&mut self, key: K, report: R, now: Instant) -> bool {
        // Reports that were given up make room. A newer one of the same key needs none.
        self.entries.retain(|_, (_, retry)| retry.is_open(&POLICY));
        let has_room = self.entries.len() < MAX_REPORTS || self.entries.contains_key(&key);
        if has_room {
            self.entries.insert(key, (report, Retry::new(now)));
        }
        has_room
    }

    /// Returns the report to send next, if one is due.
    pub fn due(&self, now: Instant) -> Option<(K, &R)> {
        let due = self.entries.iter().find(|(_, (_, retry))| retry.is_due(&POLICY, now));
        due.map(|(key, (report, _))| (*key, report))
    }

    /// Notes that a report was handed to the MAC.
    pub fn note_sent(&mut self, key: K, now: Instant) {
        if let Some((_, retry)) = self.entries.get_mut(&key) {
            retry.sent(&POLICY, now);
        }
    }

    /// Handles the MAC's report on one. Without an acknowledgment there is nothing to wait for.
    pub fn handle_tx_result(&mut self, key: K, result: TxResult, now: Instant) {
        if let Some((_, retry)) = self.entries.get_mut(&key) {
            match result {
                // The MAC does not tell whether it arrived, and will not tell later.
                TxResult::Sent => retry.end(),
                _ => retry.report(&POLICY, result, now),
            }
        }
    }

    /// Returns the first time later than `after` at which a report falls due.
    pub fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = self.entries.values().filter_map(|(_, retry)| retry.next(&POLICY));
        times.filter(|at| *at > after).min()
    }
}

/// Returns the neighbour that a report to `to` goes to: the next one on the way there, which may
/// not be the direct one. A node that knows no way sends it to `to` itself.
#[must_use]
pub fn way(topology: &Topology, from: NodeId, to: NodeId, metric: Metric) -> NodeId {
    topology.next_hop(from, to, metric).unwrap_or(to)
}

/// Nodes that a report names.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Node that wrote it.
    pub author: NodeId,
    /// Node that is to take it or to pass it on.
    pub next_hop: NodeId,
    /// Node that it is for.
    pub to: NodeId,
}

/// Returns whether this node passes on a report. A node that is heard by none of those it hears may
/// know no way, and names the node that the report is for as its next hop: then the node that
/// knows to be on the way takes the report.
#[must_use]
pub fn is_passed_on(topology: &Topology, me: NodeId, report: Addresses, metric: Metric) -> bool {
    let Addresses { author, next_hop, to } = report;
    let is_lost = || next_hop == to && topology.delivery(author, to) == 0.0;
    to != me && (next_hop == me || is_lost() && way(topology, author, to, metric) == me)
}

/// Returns what a MAC's result over a link says. Over one that brings nothing back no
/// acknowledgment comes: the frame was sent as often as the MAC may, and there is no more to know.
#[must_use]
pub fn outcome(topology: &Topology, from: NodeId, to: NodeId, result: TxResult) -> TxResult {
    match result {
        TxResult::Failed if topology.delivery(to, from) == 0.0 => TxResult::Sent,
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Instant = Instant::from_nanos(0);

    #[test]
    fn the_latest_of_each_author_is_kept_and_no_more_than_so_many() {
        let mut passing = Passing::default();
        for author in 0..MAX_REPORTS {
            assert!(passing.admit(author, 1, AT));
        }
        assert!(passing.admit(0, 2, AT) && !passing.admit(MAX_REPORTS, 1, AT));
        assert_eq!(passing.due(AT), Some((0, &2)));
        passing.note_sent(0, AT);
        passing.handle_tx_result(0, TxResult::Acked, AT);
        assert!(passing.admit(MAX_REPORTS, 1, AT));
    }

    #[test]
    fn over_a_link_of_one_direction_a_failure_says_nothing() {
        let topology = crate::testing::directed(&[(1, 2, 0.9), (2, 3, 0.9), (3, 2, 0.1)]);
        let of = |from, to, result| outcome(&topology, NodeId(from), NodeId(to), result);
        assert_eq!(of(1, 2, TxResult::Failed), TxResult::Sent);
        assert_eq!(of(2, 3, TxResult::Failed), TxResult::Failed);
        assert_eq!(of(2, 3, TxResult::Acked), TxResult::Acked);
    }

    /// 2 sends to 3, which knows no way back; 1 hears 3, and 2 hears 1.
    #[test]
    fn the_node_on_the_way_passes_on_what_its_author_sent_nowhere() {
        let topology = crate::testing::directed(&[(2, 3, 0.9), (3, 1, 0.9), (1, 2, 0.9)]);
        let metric = Metric::Answered;
        let nobody = crate::testing::directed(&[(2, 3, 0.9)]);
        assert_eq!(way(&nobody, NodeId(3), NodeId(2), metric), NodeId(2));
        assert_eq!(way(&topology, NodeId(3), NodeId(2), metric), NodeId(1));
        let report =
            |next_hop| Addresses { author: NodeId(3), next_hop: NodeId(next_hop), to: NodeId(2) };
        let passes = |me, next_hop| is_passed_on(&topology, NodeId(me), report(next_hop), metric);
        assert_eq!([1, 2, 4].map(|me| passes(me, 1)), [true, false, false]);
        assert_eq!([1, 2, 4].map(|me| passes(me, 2)), [true, false, false]);
        // Whether its addressee hears it is its own affair.
        let topology = crate::testing::directed(&[(3, 1, 0.9), (1, 2, 0.9), (3, 2, 0.1)]);
        assert!(!is_passed_on(&topology, NodeId(1), report(2), metric));
    }

    #[test]
    fn a_failed_one_is_sent_a_few_times() {
        let mut passing = Passing::default();
        let mut now = AT;
        let mut sent = 0;
        passing.admit(4, (), AT);
        while let Some((key, ())) = passing.due(now) {
            passing.note_sent(key, now);
            sent += 1;
            passing.handle_tx_result(key, TxResult::Failed, now);
            now = passing.poll_timeout(now).unwrap_or(now);
        }
        assert_eq!(sent, POLICY.attempts);
    }
}
