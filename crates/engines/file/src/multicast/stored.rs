//! A node's batch where packets travel hop by hop as they are: kept until the next hops have them.

use super::arq::{Arq, MAC_PAUSE, Next};
use super::data::{Coding, Data};
use super::packets::PacketSet;
use super::relay::Relayed;
use super::routing::Routing;
use ncmesh_code::Shape;
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;

/// A report that the MAC gives up on is sent so often; then the parent asks again.
const REPORT_TRIES: u32 = 12;

/// What a node holds of a batch, and what its children have of it.
#[derive(Debug)]
pub(super) struct Stored {
    payloads: Vec<Option<Box<[u8]>>>,
    held: PacketSet,
    arq: Arq,
    parent: Option<NodeId>,
    /// The report that the parent is to get.
    owes: Option<Owed>,
    /// The one at the MAC.
    answering: Option<Owed>,
    /// The packet at the MAC, and to whom.
    on_air: Option<(u8, Option<NodeId>)>,
}

/// A report to a parent.
#[derive(Clone, Copy, Debug)]
struct Owed {
    /// The poll it answers; 0 where the parent did not ask.
    poll: u32,
    tries: u32,
    from: Instant,
}

impl Stored {
    pub(super) fn new(me: NodeId, routing: &Routing, shape: Shape, now: Instant) -> Self {
        let packets = shape.generation_size() as u8;
        Self {
            payloads: vec![None; shape.generation_size()],
            held: PacketSet::default(),
            arq: Arq::new(routing.children(me), packets, now),
            parent: routing.parent(me),
            owes: None,
            answering: None,
            on_air: None,
        }
    }

    /// Goes on at another place in the tree. A new parent is told what is here already.
    pub(super) fn follow(&mut self, me: NodeId, routing: &Routing, now: Instant) {
        let parent = routing.parent(me);
        if parent != self.parent {
            self.owes = Some(Owed { poll: 0, tries: 0, from: now });
            self.parent = parent;
        }
        self.arq.follow(routing.children(me), now);
    }

    pub(super) fn absorb(&mut self, data: &Data<'_>, now: Instant) -> Relayed {
        let Coding::Systematic(packet) = data.coding else { return Relayed::Malformed };
        if !self.held.contains(packet) {
            self.payloads[usize::from(packet)] = Some(data.payload.into());
            self.held.insert(packet);
            self.arq.gain(now);
        }
        Relayed::Taken
    }

    /// A packet of `sender` was absorbed.
    pub(super) fn hear(&mut self, sender: NodeId, data: &Data<'_>, now: Instant) {
        if let Coding::Systematic(packet) = data.coding {
            self.arq.overhear(sender, packet, now);
        }
        if let Some(poll) = data.header.poll.filter(|_| self.parent == Some(sender)) {
            self.owes = Some(Owed { poll, tries: 0, from: now });
            self.arq.prod(self.held, now);
        }
    }

    pub(super) fn hear_report(&mut self, from: NodeId, poll: u32, has: PacketSet, now: Instant) {
        self.arq.hear_report(from, poll, has, now);
    }

    /// The poll that is to be answered now, whose it was, and what is held.
    pub(super) fn owed(&self, now: Instant) -> Option<(NodeId, u32, PacketSet)> {
        let owed = self.owes.filter(|owed| owed.from <= now)?;
        Some((self.parent?, owed.poll, self.held))
    }

    /// It is handed to the MAC.
    pub(super) fn answer(&mut self) {
        self.answering = self.owes.take();
    }

    /// The MAC's word on the report; one that did not arrive is sent again unless there is a newer one.
    pub(super) fn answered(&mut self, result: TxResult, now: Instant) {
        let Some(owed) = self.answering.take() else { return };
        let tries = owed.tries + 1;
        if result == TxResult::Failed && tries < REPORT_TRIES && self.owes.is_none() {
            self.owes = Some(Owed { tries, from: now + MAC_PAUSE * tries, ..owed });
        }
    }

    pub(super) fn next(&self, now: Instant) -> Option<Next> {
        self.arq.next(self.held, now)
    }

    /// Appends packet number and payload; says to whom it goes if not to all.
    pub(super) fn fill(
        &mut self,
        next: Next,
        is_unicast: bool,
        out: &mut Vec<u8>,
    ) -> Option<NodeId> {
        out.push(next.packet);
        out.extend_from_slice(self.payloads[usize::from(next.packet)].as_deref().unwrap_or(&[]));
        let to = self.arq.only_child().filter(|_| is_unicast);
        self.arq.sent(next, self.held);
        self.on_air = Some((next.packet, to));
        to
    }

    /// The MAC's word on the packet filled last, which took `packet_time`.
    pub(super) fn report(&mut self, result: TxResult, packet_time: Duration, now: Instant) {
        if let Some((packet, to)) = self.on_air.take() {
            self.arq.report(packet, to, result, packet_time, now);
        }
    }

    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let owed = self.owes.map(|owed| owed.from).filter(|at| *at > after);
        [owed, self.arq.poll_timeout(after)].into_iter().flatten().min()
    }
}
