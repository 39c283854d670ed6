//! ACK cache: end-to-end acknowledgments on their way to the source, hop by hop (Pacifier, V-B.2).
//!
//! Every hop keeps the newest acknowledgment of each receiver and is responsible for bringing it to
//! the next hop, by unicast and before any data. An acknowledgment that is lost would keep the
//! source sending a generation that nobody needs, so each hop repeats it until it knows that it
//! arrived:
//!
//! ```text
//!                 handed to the MAC
//!  admit --> Queued ---------> Sent ----> Settled
//!              ^                |  the MAC reports success, or the next hop piggybacks it,
//!              |                |  or it has been sent often enough
//!              +----------------+
//!               M packets overheard from the next hop without it, or N from other nodes,
//!               or the MAC reports failure
//! ```
//!
//! Where nothing is overheard, a timeout repeats it: one in state `Sent` falls due again by itself.
//! A newer acknowledgment of the same receiver takes its place and begins anew. The states are the
//! toolkit's ([`Retry`]); overhearing is this module's.

use crate::admission::Admission;
use crate::frame::{Ack, Piggyback};
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::retry::{Retry, RetryPolicy, RetryState};
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// Packets overheard from the next hop without the acknowledgment before it is sent again.
const M: u32 = 10;
/// Packets overheard from other nodes before it is sent again.
const N: u32 = 20;
/// How an acknowledgment is repeated. After the last attempt it is left to the source's next
/// announcement, which makes the receiver write a new one.
const POLICY: RetryPolicy = RetryPolicy {
    attempts: 12,
    unanswered: Backoff {
        first: Duration::from_millis(120),
        longest: Duration::from_millis(120 << 9),
    },
    failed: Duration::from_millis(4),
};
/// Time for which an acknowledgment keeps out those with lower versions. They may be late copies;
/// after that time it must have been a lie.
const RECENT: Duration = Duration::from_secs(5);
/// Most (transfer, receiver) pairs that are kept.
const MAX_ENTRIES: usize = 4096;
/// Most times that another node's acknowledgment waits for a route to the source.
const MAX_WAITS: u32 = 60;

/// Name of an entry: the cache keeps one acknowledgment of each receiver of each transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AckKey {
    pub flow: FlowId,
    pub receiver: NodeId,
}

#[derive(Debug)]
struct Entry {
    ack: Ack,
    /// When it came.
    since: Instant,
    retry: Retry,
    /// Data packets overheard since it was last sent.
    overheard: Overheard,
    /// Times that there was no route to the source.
    waits: u32,
}

/// Data packets of the transfer that were overheard after an acknowledgment was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Overheard {
    /// The next hop that it was sent to last.
    next_hop: Option<NodeId>,
    /// Packets of the next hop that did not piggyback it.
    from_next_hop: u32,
    /// Packets of other nodes.
    from_others: u32,
}

/// Acknowledgments that this node passes on, its own included.
#[derive(Debug, Default)]
pub struct AckCache {
    entries: BTreeMap<AckKey, Entry>,
    /// The acknowledgment received last for each transfer, to piggyback on its data.
    received: BTreeMap<FlowId, Piggyback>,
}

impl AckKey {
    pub(crate) fn of(ack: &Ack) -> Self {
        Self { flow: ack.flow, receiver: ack.receiver }
    }
}

impl AckCache {
    /// Queues an acknowledgment in place of an older one of the same receiver.
    pub(crate) fn admit(&mut self, ack: Ack, now: Instant) -> Admission {
        // A newer acknowledgment replaces an older one. One that claims a later version is believed
        // against it after a while: it may be forged.
        let key = AckKey::of(&ack);
        let known = self.entries.get(&key);
        let is_known = |known: &Entry| {
            let is_recent = now.since(known.since) < RECENT;
            known.ack.version == ack.version || (known.ack.version > ack.version && is_recent)
        };

        if known.is_some_and(is_known) {
            return Admission::Known;
        }
        // A finished entry is the only one that can be spared: the others are still on their way.
        if known.is_none() && self.entries.len() >= MAX_ENTRIES && !self.evict_finished() {
            return Admission::Full;
        }

        let retry = Retry::new(now);
        let overheard = Overheard::default();
        self.entries.insert(key, Entry { ack, since: now, retry, overheard, waits: 0 });
        Admission::New
    }

    /// Notes that an acknowledgment arrived from its previous hop. Data packets of the transfer
    /// piggyback its name from now on, which tells the previous hop.
    pub(crate) fn note_received(&mut self, ack: &Ack) {
        // Bounded: any transfer will do, since its next acknowledgment brings it back.
        if self.received.len() >= MAX_ENTRIES && !self.received.contains_key(&ack.flow) {
            self.received.pop_first();
        }
        self.received.insert(ack.flow, ack.piggyback());
    }

    /// Returns what data packets of `flow` are to piggyback.
    #[must_use]
    pub fn piggyback(&self, flow: FlowId) -> Option<Piggyback> {
        self.received.get(&flow).copied()
    }

    /// Handles an overheard data packet: it shows whether the next hop received an acknowledgment,
    /// or counts as a hint that it did not.
    pub fn handle_overheard(
        &mut self,
        flow: FlowId,
        sender: NodeId,
        piggyback: Option<Piggyback>,
        now: Instant,
    ) {
        let key = |receiver| AckKey { flow, receiver };
        for (_, entry) in self.entries.range_mut(key(NodeId(0))..=key(NodeId(u16::MAX))) {
            if !matches!(entry.retry.state(), RetryState::Sent { .. }) {
                continue;
            }

            let overheard = &mut entry.overheard;
            if overheard.next_hop != Some(sender) {
                overheard.from_others += 1;
            } else if piggyback == Some(entry.ack.piggyback()) {
                entry.retry.end();
                continue;
            } else {
                overheard.from_next_hop += 1;
            }

            // Rules (i) and (ii) of V-B.2: by now the next hop would have piggybacked it.
            if overheard.from_next_hop >= M || overheard.from_others >= N {
                entry.retry.repeat(&POLICY, now);
            }
        }
    }

    /// Returns the acknowledgment to send next, if one is due.
    pub(crate) fn due(&self, now: Instant) -> Option<&Ack> {
        let due = self.entries.values().find(|entry| entry.retry.is_due(&POLICY, now));
        due.map(|entry| &entry.ack)
    }

    /// Returns the first time later than `after` at which an acknowledgment falls due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = self.entries.values().filter_map(|entry| entry.retry.next(&POLICY));
        times.filter(|at| *at > after).min()
    }

    /// Notes that an acknowledgment was handed to the MAC for `next_hop`.
    pub(crate) fn note_sent(&mut self, key: AckKey, next_hop: NodeId, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.retry.sent(&POLICY, now);
            entry.overheard = Overheard { next_hop: Some(next_hop), ..Overheard::default() };
        }
    }

    /// Holds an acknowledgment back until `until`, because there is no route to the source. This
    /// node's own (`is_own`) waits as long as it takes, others at most [`MAX_WAITS`] times.
    pub(crate) fn postpone(&mut self, key: AckKey, until: Instant, is_own: bool) {
        if let Some(entry) = self.entries.get_mut(&key) {
            // A path may come back. Meanwhile those of other nodes wait in their caches, too.
            entry.waits += 1;
            if is_own || entry.waits <= MAX_WAITS {
                entry.retry.postpone(until);
            } else {
                entry.retry.end();
            }
        }
    }

    /// Gives up an acknowledgment that does not fit this node's frames.
    pub(crate) fn give_up(&mut self, key: AckKey) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.retry.end();
        }
    }

    /// Handles the MAC's report on an acknowledgment that was sent.
    pub(crate) fn handle_tx_result(&mut self, key: AckKey, result: TxResult, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.retry.report(&POLICY, result, now);
        }
    }

    /// Handles the MAC's failure to deliver an acknowledgment for which only one that ends a
    /// receiver's part is worth another attempt. Where the receiver is hidden from the node before
    /// its next hop, each attempt destroys a data packet.
    pub(crate) fn give_up_progress(&mut self, key: AckKey, now: Instant) {
        if self.entries.get(&key).is_some_and(|entry| entry.ack.state.is_final()) {
            self.handle_tx_result(key, TxResult::Failed, now);
        } else {
            self.give_up(key);
        }
    }

    /// Forgets a transfer that ended: its source needs no acknowledgment any more.
    pub(crate) fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
        self.entries.retain(|key, _| key.flow != flow);
    }

    /// Drops every entry that will not be sent again. Returns whether there was any.
    fn evict_finished(&mut self) -> bool {
        let before = self.entries.len();
        self.entries.retain(|_, entry| entry.retry.is_open(&POLICY));
        self.entries.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Version;
    use ncmesh_engine::file::ReceiverState;

    const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
    const KEY: AckKey = AckKey { flow: FLOW, receiver: NodeId(9) };
    const NEXT_HOP: NodeId = NodeId(2);
    const OTHER: NodeId = NodeId(3);
    const AT: Instant = Instant::from_nanos(0);

    fn ack(number: u32) -> Ack {
        Ack {
            flow: FLOW,
            receiver: NodeId(9),
            version: Version { epoch: 1, number },
            state: ReceiverState::Active,
            first_missing: 0,
            bits: vec![],
        }
    }

    fn overhear(cache: &mut AckCache, sender: NodeId, piggyback: Option<Piggyback>) {
        cache.handle_overheard(FLOW, sender, piggyback, AT);
    }

    /// A cache whose one acknowledgment has been sent once.
    fn cache() -> AckCache {
        let mut cache = AckCache::default();
        assert_eq!(cache.admit(ack(1), AT), Admission::New);
        cache.note_sent(KEY, NEXT_HOP, AT);
        assert_eq!(cache.due(AT), None);
        cache
    }

    #[test]
    fn m_packets_of_the_next_hop_repeat_it_and_a_piggyback_settles_it() {
        let mut cache = cache();
        for _ in 0..M - 1 {
            overhear(&mut cache, NEXT_HOP, None);
        }
        assert_eq!(cache.due(AT), None);
        overhear(&mut cache, NEXT_HOP, None);
        assert_eq!(cache.due(AT), Some(&ack(1)));
        cache.note_sent(KEY, NEXT_HOP, AT);
        overhear(&mut cache, NEXT_HOP, Some(ack(1).piggyback()));
        assert_eq!(cache.poll_timeout(AT), None);
    }

    #[test]
    fn n_packets_of_other_nodes_repeat_it_even_if_they_piggyback_it() {
        let mut cache = cache();
        for _ in 0..N {
            assert_eq!(cache.due(AT), None);
            overhear(&mut cache, OTHER, Some(ack(1).piggyback()));
        }
        assert!(cache.due(AT).is_some());
    }

    #[test]
    fn silence_repeats_it_the_mac_settles_it_and_a_newer_one_replaces_it() {
        let mut cache = cache();
        assert!(cache.due(cache.poll_timeout(AT).unwrap()).is_some());
        cache.handle_tx_result(KEY, TxResult::Acked, AT);
        assert_eq!(cache.poll_timeout(AT), None);
        assert_eq!(cache.admit(ack(1), AT), Admission::Known);
        assert_eq!(cache.admit(ack(2), AT), Admission::New);
        assert_eq!(cache.due(AT), Some(&ack(2)));
    }

    #[test]
    fn a_full_cache_makes_room_only_by_what_is_not_sent_any_more() {
        let mut cache = AckCache::default();
        for serial in 0..MAX_ENTRIES as u32 {
            let flow = FlowId { source: NodeId(1), serial };
            assert_eq!(cache.admit(Ack { flow, ..ack(1) }, AT), Admission::New);
        }
        assert_eq!(cache.admit(ack(1), AT), Admission::Known, "serial 1 is among them");
        let another = Ack { flow: FlowId { source: NodeId(2), serial: 0 }, ..ack(1) };
        assert_eq!(cache.admit(another.clone(), AT), Admission::Full);
        for _ in 0..POLICY.attempts {
            cache.note_sent(KEY, NEXT_HOP, AT);
        }
        assert_eq!(cache.admit(another, AT), Admission::New);
        cache.forget(FlowId { source: NodeId(2), serial: 0 });
        assert_eq!(cache.entries.len(), MAX_ENTRIES - 1);
    }

    #[test]
    fn timeouts_send_it_a_bounded_number_of_times() {
        let mut cache = cache();
        let mut sent = 1;
        let mut now = AT;
        while let Some(at) = cache.poll_timeout(now) {
            now = at;
            cache.note_sent(KEY, NEXT_HOP, at);
            sent += 1;
        }
        assert_eq!(sent, POLICY.attempts);
    }

    #[test]
    fn overheard_packets_send_it_a_bounded_number_of_times() {
        let mut cache = cache();
        let mut sent = 1;
        for _ in 0..100 * N {
            overhear(&mut cache, OTHER, None);
            if cache.due(AT).is_some() {
                cache.note_sent(KEY, NEXT_HOP, AT);
                sent += 1;
            }
        }
        assert_eq!(sent, POLICY.attempts);
    }

    #[test]
    fn without_a_route_only_this_nodes_own_is_kept() {
        for (is_own, left) in [(false, None), (true, Some(&ack(1)))] {
            let mut cache = AckCache::default();
            cache.admit(ack(1), AT);
            for _ in 0..=MAX_WAITS {
                cache.postpone(KEY, AT, is_own);
            }
            assert_eq!(cache.due(AT), left);
        }
    }

    #[test]
    fn piggybacks_are_bounded() {
        let mut cache = AckCache::default();
        for serial in 0..2 * MAX_ENTRIES as u32 {
            cache.note_received(&Ack { flow: FlowId { source: NodeId(1), serial }, ..ack(1) });
        }
        assert_eq!(cache.received.len(), MAX_ENTRIES);
    }
}
