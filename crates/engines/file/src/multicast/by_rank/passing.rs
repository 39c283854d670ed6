//! Reports on their way to parents that their children's frames do not reach, and farewells.

use crate::multicast::admission::Admission;
use crate::multicast::frame::RankReport;
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::retry::{Retry, RetryPolicy};
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// How a report is repeated, by unicast. A lost one is made good by the child's next.
const POLICY: RetryPolicy = RetryPolicy {
    attempts: 5,
    unanswered: Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(60) },
    failed: Duration::from_millis(40),
};
/// Most reports that are kept.
const MOST: usize = 256;

/// Name of a report: the latest of each child to each parent is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PassingKey {
    flow: FlowId,
    child: NodeId,
    parent: NodeId,
}

/// Reports that this node passes on.
#[derive(Debug, Default)]
pub(super) struct Passing {
    entries: BTreeMap<PassingKey, (RankReport, Retry)>,
}

impl Passing {
    /// Takes a report, in place of an earlier one of the same child to the same parent.
    pub(super) fn admit(&mut self, report: RankReport, now: Instant) -> Admission {
        let RankReport { flow, child, parent, .. } = report;
        let key = PassingKey { flow, child, parent };
        self.entries.retain(|_, (_, retry)| retry.is_open(&POLICY));
        if self.entries.len() >= MOST && !self.entries.contains_key(&key) {
            return Admission::Full;
        }
        self.entries.insert(key, (report, Retry::new(now)));
        Admission::New
    }

    /// Returns the report to send next, if one is due.
    pub(super) fn due(&self, now: Instant) -> Option<(PassingKey, &RankReport)> {
        let due = self.entries.iter().find(|(_, (_, retry))| retry.is_due(&POLICY, now));
        due.map(|(key, (report, _))| (*key, report))
    }

    /// Notes that a report was handed to the MAC.
    pub(super) fn note_sent(&mut self, key: PassingKey, now: Instant) {
        if let Some((_, retry)) = self.entries.get_mut(&key) {
            retry.sent(&POLICY, now);
        }
    }

    /// Handles the MAC's report on one. Without an acknowledgment there is nothing to wait for.
    pub(super) fn handle_tx_result(&mut self, key: PassingKey, result: TxResult, now: Instant) {
        if let Some((_, retry)) = self.entries.get_mut(&key) {
            match result {
                TxResult::Sent => retry.settle(),
                _ => retry.report(&POLICY, result, now),
            }
        }
    }

    /// Returns the first time later than `after` at which a report falls due.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = self.entries.values().filter_map(|(_, retry)| retry.next(&POLICY));
        times.filter(|at| *at > after).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wants::Wants;
    use super::*;

    const AT: Instant = Instant::from_nanos(0);

    fn report(child: u16, number: u16) -> RankReport {
        let flow = FlowId { source: NodeId(1), serial: 1 };
        let (next_hop, parent, wants) = (NodeId(3), NodeId(2), Wants::nothing());
        RankReport { next_hop, parent, child: NodeId(child), flow, number, wants }
    }

    #[test]
    fn the_latest_of_each_child_is_kept_and_no_more_than_so_many() {
        let mut passing = Passing::default();
        for child in 0..MOST as u16 {
            assert_eq!(passing.admit(report(child, 1), AT), Admission::New);
        }
        assert_eq!(passing.admit(report(0, 2), AT), Admission::New);
        assert_eq!(passing.admit(report(MOST as u16, 1), AT), Admission::Full);
        let (key, due) = passing.due(AT).unwrap();
        assert_eq!(due.number, 2);
        passing.note_sent(key, AT);
        passing.handle_tx_result(key, TxResult::Acked, AT);
        assert_eq!(passing.admit(report(MOST as u16, 1), AT), Admission::New);
    }

    #[test]
    fn a_failed_one_is_sent_a_few_times() {
        let (mut passing, mut now, mut sent) = (Passing::default(), AT, 0);
        passing.admit(report(4, 1), AT);
        while let Some((key, _)) = passing.due(now) {
            passing.note_sent(key, now);
            sent += 1;
            passing.handle_tx_result(key, TxResult::Failed, now);
            now = passing.poll_timeout(now).unwrap_or(now);
        }
        assert_eq!(sent, POLICY.attempts);
    }
}
