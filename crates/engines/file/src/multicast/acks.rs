//! End-to-end acknowledgments on their way to the source, hop by hop (Pacifier, V-B.2).
//!
//! Each hop keeps the newest acknowledgment of every receiver. It goes out by unicast, before data. It is
//! settled when the MAC says so, or when the next hop is overheard to piggyback it; it is sent again after
//! [`M`] packets overheard from the next hop that do not, [`N`] from others, or a pause.

use super::data::DataHeader;
use super::frame::{Ack, Piggyback};
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// Packets overheard from the next hop without the acknowledgment before it is sent again.
const M: u32 = 10;
/// Packets overheard from other nodes before it is sent again.
const N: u32 = 20;
/// First pause before it is sent again though nothing is overheard; doubles each time.
const PAUSE: Duration = Duration::from_millis(120);
/// Pause after the MAC gave up on it; grows with every try.
const MAC_PAUSE: Duration = Duration::from_millis(4);
/// How often one acknowledgment is sent at most; then the source's next announcement asks for it anew.
const TRIES: u32 = 12;
/// More (transfer, receiver) pairs than this are not kept.
const MAX_ENTRIES: usize = 4096;
/// So often another node's acknowledgment waits for a way to the source before it is given up.
const MAX_WAITS: u32 = 60;

#[derive(Debug)]
struct Entry {
    ack: Ack,
    tries: u32,
    /// How often there was no way to the source.
    waits: u32,
    status: Status,
}

#[derive(Debug, PartialEq)]
enum Status {
    Queued { from: Instant },
    Sent { to: NodeId, by_next: u32, by_others: u32, again: Instant },
    Settled,
}

/// The acknowledgments a node passes on.
#[derive(Debug, Default)]
pub(super) struct Acks {
    entries: BTreeMap<(FlowId, NodeId), Entry>,
    /// Per transfer the last acknowledgment received, for piggybacking.
    last: BTreeMap<FlowId, Piggyback>,
}

/// What became of an acknowledgment handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    New,
    Known,
    Full,
}

impl Acks {
    /// Queues an acknowledgment, replacing an older one of the same receiver.
    pub(super) fn push(&mut self, ack: Ack, now: Instant) -> Taken {
        let key = (ack.flow, ack.receiver);
        let known = self.entries.get(&key).map(|entry| entry.ack.version);
        if known.is_some_and(|version| version >= ack.version) {
            return Taken::Known;
        }
        if known.is_none() && self.entries.len() >= MAX_ENTRIES && !self.drop_done() {
            return Taken::Full;
        }
        let status = Status::Queued { from: now };
        self.entries.insert(key, Entry { ack, tries: 0, waits: 0, status });
        Taken::New
    }

    /// An acknowledgment reached this node from its previous hop: data sent from here will say so.
    pub(super) fn received(&mut self, ack: &Ack) {
        if self.last.len() >= MAX_ENTRIES && !self.last.contains_key(&ack.flow) {
            self.last.pop_first();
        }
        self.last.insert(ack.flow, ack.piggyback());
    }

    /// What data of `flow` is to piggyback.
    pub(super) fn piggyback(&self, flow: FlowId) -> Option<Piggyback> {
        self.last.get(&flow).copied()
    }

    /// A data packet of a transfer was overheard.
    pub(super) fn overhear(&mut self, sender: NodeId, header: &DataHeader, now: Instant) {
        let range = (header.flow, NodeId(0))..=(header.flow, NodeId(u16::MAX));
        for (_, entry) in self.entries.range_mut(range) {
            let Status::Sent { to, by_next, by_others, .. } = &mut entry.status else { continue };
            if *to != sender {
                *by_others += 1;
            } else if header.piggyback == Some(entry.ack.piggyback()) {
                entry.status = Status::Settled;
                continue;
            } else {
                *by_next += 1;
            }
            if *by_next >= M || *by_others >= N {
                let again = entry.tries < TRIES;
                entry.status = if again { Status::Queued { from: now } } else { Status::Settled };
            }
        }
    }

    /// The acknowledgment to send next, if one is due.
    pub(super) fn due(&self, now: Instant) -> Option<&Ack> {
        let is_due = |e: &&Entry| match e.status {
            Status::Queued { from } => from <= now,
            Status::Sent { again, .. } => again <= now && e.tries < TRIES,
            Status::Settled => false,
        };
        self.entries.values().filter(is_due).map(|e| &e.ack).next()
    }

    /// When, later than `after`, one falls due.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = self.entries.values().filter_map(|e| match e.status {
            Status::Queued { from } => Some(from),
            Status::Sent { again, .. } if e.tries < TRIES => Some(again),
            _ => None,
        });
        times.filter(|t| *t > after).min()
    }

    /// The acknowledgment of `receiver` was handed to the MAC for `to`.
    pub(super) fn sent(&mut self, flow: FlowId, receiver: NodeId, to: NodeId, now: Instant) {
        if let Some(e) = self.entries.get_mut(&(flow, receiver)) {
            e.tries += 1;
            let again = now + PAUSE * (1 << (e.tries - 1).min(9));
            e.status = Status::Sent { to, by_next: 0, by_others: 0, again };
        }
    }

    /// There is no way to the source now; try again later. What is not this node's `own` waits so long only.
    pub(super) fn postpone(&mut self, flow: FlowId, receiver: NodeId, until: Instant, own: bool) {
        if let Some(e) = self.entries.get_mut(&(flow, receiver)) {
            e.waits += 1;
            let again = own || e.waits <= MAX_WAITS;
            e.status = if again { Status::Queued { from: until } } else { Status::Settled };
        }
    }

    /// It cannot be sent.
    pub(super) fn drop(&mut self, flow: FlowId, receiver: NodeId) {
        if let Some(e) = self.entries.get_mut(&(flow, receiver)) {
            e.status = Status::Settled;
        }
    }

    /// The MAC's word on it.
    pub(super) fn report(
        &mut self,
        flow: FlowId,
        receiver: NodeId,
        result: TxResult,
        now: Instant,
    ) {
        let Some(e) = self.entries.get_mut(&(flow, receiver)) else { return };
        if !matches!(e.status, Status::Sent { .. }) {
            return;
        }
        match result {
            TxResult::Acked => e.status = Status::Settled,
            TxResult::Failed if e.tries < TRIES => {
                e.status = Status::Queued { from: now + MAC_PAUSE * e.tries };
            }
            TxResult::Failed => e.status = Status::Settled,
            TxResult::Sent => {}
        }
    }

    /// Forgets a transfer that ended: its source needs no acknowledgment any more.
    pub(super) fn forget(&mut self, flow: FlowId) {
        self.last.remove(&flow);
        self.entries.retain(|(f, _), _| *f != flow);
    }

    /// Drops acknowledgments that are not sent any more; says whether there were any.
    fn drop_done(&mut self) -> bool {
        let before = self.entries.len();
        self.entries.retain(|_, e| match e.status {
            Status::Queued { .. } => true,
            Status::Sent { .. } => e.tries < TRIES,
            Status::Settled => false,
        });
        self.entries.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::super::routing::Routing;
    use super::*;
    use ncmesh_engine::file::ReceiverState;

    const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
    const AT: Instant = Instant::from_nanos(0);

    fn ack(serial: u32) -> Ack {
        let (receiver, version) = (NodeId(9), (1, serial));
        let state = ReceiverState::Active;
        Ack { flow: FLOW, receiver, version, state, first_missing: 0, bits: vec![] }
    }

    fn data(piggyback: Option<Piggyback>) -> DataHeader {
        let routing = Routing::default();
        let (incarnation, visit, batch, packets, revision) = (0, 0, 0, 1, 0);
        DataHeader {
            flow: FLOW,
            incarnation,
            visit,
            batch,
            packets,
            routing,
            revision,
            poll: None,
            piggyback,
        }
    }

    fn sent() -> Acks {
        let mut acks = Acks::default();
        assert_eq!(acks.push(ack(1), AT), Taken::New);
        acks.sent(FLOW, NodeId(9), NodeId(2), AT);
        assert_eq!(acks.due(AT), None);
        acks
    }

    #[test]
    fn overhearing_the_next_hop_settles_or_repeats() {
        let mut acks = sent();
        for _ in 0..M - 1 {
            acks.overhear(NodeId(2), &data(None), AT);
        }
        assert_eq!(acks.due(AT), None);
        acks.overhear(NodeId(2), &data(None), AT);
        assert_eq!(acks.due(AT), Some(&ack(1)));
        acks.sent(FLOW, NodeId(9), NodeId(2), AT);
        acks.overhear(NodeId(2), &data(Some(ack(1).piggyback())), AT);
        assert_eq!(acks.poll_timeout(AT), None);
    }

    #[test]
    fn others_count_up_to_n() {
        let mut acks = sent();
        for _ in 0..N {
            assert_eq!(acks.due(AT), None);
            acks.overhear(NodeId(3), &data(Some(ack(1).piggyback())), AT);
        }
        assert!(acks.due(AT).is_some());
    }

    #[test]
    fn the_mac_settles_silence_repeats_and_newer_replaces() {
        let mut acks = sent();
        assert!(acks.due(acks.poll_timeout(AT).unwrap()).is_some());
        acks.report(FLOW, NodeId(9), TxResult::Acked, AT);
        assert_eq!(acks.poll_timeout(AT), None);
        assert_eq!(acks.push(ack(1), AT), Taken::Known);
        assert_eq!(acks.push(ack(2), AT), Taken::New);
        assert_eq!(acks.due(AT), Some(&ack(2)));
    }

    #[test]
    fn a_full_table_makes_room_by_what_is_done() {
        let mut acks = Acks::default();
        for serial in 0..MAX_ENTRIES as u32 {
            let flow = FlowId { source: NodeId(1), serial };
            assert_eq!(acks.push(Ack { flow, ..ack(1) }, AT), Taken::New);
        }
        assert_eq!(acks.push(ack(1), AT), Taken::Known, "serial 1 is among them");
        let another = Ack { flow: FlowId { source: NodeId(2), serial: 0 }, ..ack(1) };
        assert_eq!(acks.push(another.clone(), AT), Taken::Full);
        for _ in 0..TRIES {
            acks.sent(FLOW, NodeId(9), NodeId(2), AT);
        }
        assert_eq!(acks.push(another, AT), Taken::New);
        acks.forget(FlowId { source: NodeId(2), serial: 0 });
        assert_eq!(acks.entries.len(), MAX_ENTRIES - 1);
    }

    #[test]
    fn it_is_not_repeated_for_ever() {
        let mut acks = sent();
        let mut sent = 1;
        let mut now = AT;
        while let Some(at) = acks.poll_timeout(now) {
            now = at;
            acks.sent(FLOW, NodeId(9), NodeId(2), at);
            sent += 1;
        }
        assert_eq!(sent, TRIES);
    }

    #[test]
    fn overhearing_does_not_repeat_it_for_ever_either() {
        let (mut acks, mut sent) = (sent(), 1);
        for _ in 0..100 * N {
            acks.overhear(NodeId(3), &data(None), AT);
            if acks.due(AT).is_some() {
                acks.sent(FLOW, NodeId(9), NodeId(2), AT);
                sent += 1;
            }
        }
        assert_eq!(sent, TRIES);
    }

    #[test]
    fn what_finds_no_way_is_given_up_unless_it_is_this_nodes_own() {
        for (own, left) in [(false, None), (true, Some(&ack(1)))] {
            let mut acks = Acks::default();
            acks.push(ack(1), AT);
            for _ in 0..=MAX_WAITS {
                acks.postpone(FLOW, NodeId(9), AT, own);
            }
            assert_eq!(acks.due(AT), left);
        }
    }

    #[test]
    fn what_is_piggybacked_is_bounded() {
        let mut acks = Acks::default();
        for serial in 0..2 * MAX_ENTRIES as u32 {
            acks.received(&Ack { flow: FlowId { source: NodeId(1), serial }, ..ack(1) });
        }
        assert_eq!(acks.last.len(), MAX_ENTRIES);
    }
}
