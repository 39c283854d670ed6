//! Reports that a node passes on to a neighbour which their author's own frames do not reach.

use super::backoff::Backoff;
use super::retry::{Retry, RetryPolicy};
use crate::time::{Duration, Instant};
use crate::transmission::TxResult;
use std::collections::BTreeMap;

/// How a report is repeated, by unicast. A lost one is made good by the child's next.
const POLICY: RetryPolicy = RetryPolicy {
    attempts: 5,
    unanswered: Backoff { first: Duration::from_secs(60), longest: Duration::from_secs(60) },
    failed: Duration::from_millis(40),
};
/// Most reports that are kept.
const MOST: usize = 256;

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
        self.entries.retain(|_, (_, retry)| retry.is_open(&POLICY));
        let has_room = self.entries.len() < MOST || self.entries.contains_key(&key);
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
                TxResult::Sent => retry.settle(),
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

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Instant = Instant::from_nanos(0);

    #[test]
    fn the_latest_of_each_author_is_kept_and_no_more_than_so_many() {
        let mut passing = Passing::default();
        for author in 0..MOST {
            assert!(passing.admit(author, 1, AT));
        }
        assert!(passing.admit(0, 2, AT) && !passing.admit(MOST, 1, AT));
        assert_eq!(passing.due(AT), Some((0, &2)));
        passing.note_sent(0, AT);
        passing.handle_tx_result(0, TxResult::Acked, AT);
        assert!(passing.admit(MOST, 1, AT));
    }

    #[test]
    fn a_failed_one_is_sent_a_few_times() {
        let (mut passing, mut now, mut sent) = (Passing::default(), AT, 0);
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
