//! A forwarder's part: one batch at a time of each transfer, sent on by credit or hop by hop.

use super::coded::Coded;
use super::data::{Data, DataHeader};
use super::frame::{Piggyback, Report};
use super::routing::{Cast, Forwarding, Routing};
use super::stored::Stored;
use ncmesh_code::{Field, Shape};
use ncmesh_engine::TxResult;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::collections::BTreeMap;

/// More transfers than this are not forwarded at once; the one longest unheard makes room.
const MAX_FLOWS: usize = 32;
/// A transfer unheard for so long is forgotten.
const IDLE: Duration = Duration::from_secs(120);

/// One transfer at a forwarder.
#[derive(Debug)]
struct Relay {
    incarnation: u16,
    visit: u32,
    batch: u32,
    shape: Shape,
    routing: Routing,
    revision: u8,
    work: Work,
    heard_at: Instant,
    sent_at: Instant,
}

/// The batch at hand.
#[derive(Debug)]
enum Work {
    Coded(Coded),
    Stored(Stored),
}

/// All transfers at a forwarder.
#[derive(Debug)]
pub(super) struct Relays {
    forwarding: Forwarding,
    flows: BTreeMap<FlowId, Relay>,
}

/// What became of a data packet at a forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relayed {
    /// This node is no forwarder of it.
    NotOurs,
    /// Its batch is not the one at hand any more.
    Stale,
    /// Its fields do not fit the batch, or what is made of it would not fit a frame.
    Malformed,
    /// Taken in.
    Taken,
}

impl Relays {
    /// None yet; packets are sent on as `forwarding` says.
    pub(super) fn new(forwarding: Forwarding) -> Self {
        Self { forwarding, flows: BTreeMap::new() }
    }

    /// A data packet was heard from `sender`; this node's frames have room for `mtu` bytes.
    pub(super) fn handle_data(
        &mut self,
        me: NodeId,
        sender: NodeId,
        data: &Data<'_>,
        mtu: usize,
        now: Instant,
    ) -> Relayed {
        let header = &data.header;
        if !header.routing.lists(me) {
            self.release(me, header, now);
            return Relayed::NotOurs;
        }
        let Ok(shape) = Shape::new(Field::Gf256, usize::from(header.packets), data.payload.len())
        else {
            return Relayed::Malformed;
        };
        // What is sent on may carry a coding vector, a poll or a piggyback, where the packet does not.
        let overhead = self.forwarding.overhead(header.routing.listed(), shape.generation_size());
        if overhead + shape.symbol_size() > mtu {
            return Relayed::Malformed;
        }
        self.make_room(header.flow);
        let forwarding = self.forwarding;
        let relay = self.flows.entry(header.flow).or_insert_with(|| {
            Relay::new(header, shape, Work::begin(forwarding, me, header, shape, now), now)
        });
        if relay.is_behind(header) {
            relay.turn_to(forwarding, me, header, shape, now);
        } else if relay.is_ahead_of(header) {
            return Relayed::Stale;
        }
        if relay.batch != header.batch || relay.shape != shape {
            return Relayed::Malformed;
        }
        relay.take(me, sender, data, now)
    }

    /// A child of this node reports what it has.
    pub(super) fn handle_report(&mut self, from: NodeId, report: &Report, now: Instant) -> Relayed {
        let Some(relay) = self.flows.get_mut(&report.flow) else { return Relayed::NotOurs };
        if (report.incarnation, report.visit) != (relay.incarnation, relay.visit) {
            return Relayed::Stale;
        }
        if let Work::Stored(stored) = &mut relay.work {
            stored.hear_report(from, report.poll, report.has, now);
        }
        Relayed::Taken
    }

    /// The transfer to send for next, of those with something to send the one longest not sent for.
    pub(super) fn ready(&self, now: Instant) -> Option<(FlowId, Instant)> {
        let ready = self.flows.iter().filter(|(_, relay)| match &relay.work {
            Work::Coded(coded) => coded.is_ready(),
            Work::Stored(stored) => stored.next(now).is_some(),
        });
        ready.map(|(flow, r)| (*flow, r.sent_at)).min_by_key(|(flow, at)| (*at, *flow))
    }

    /// When, later than `after`, a transfer may have something to send.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let stored = self.flows.values().filter_map(|relay| match &relay.work {
            Work::Coded(_) => None,
            Work::Stored(stored) => stored.poll_timeout(after),
        });
        stored.min()
    }

    /// Appends a packet for `flow`; says to whom it goes if not to all. `None`: there is none after all.
    pub(super) fn fill(
        &mut self,
        flow: FlowId,
        piggyback: Option<Piggyback>,
        now: Instant,
        rng: &mut impl RngCore,
        out: &mut Vec<u8>,
    ) -> Option<Option<NodeId>> {
        let is_unicast = self.forwarding == Forwarding::HopByHop(Cast::Unicast);
        let relay = self.flows.get_mut(&flow)?;
        relay.sent_at = now;
        let header = relay.header(flow, piggyback);
        match &mut relay.work {
            Work::Coded(coded) => {
                header.write(false, out);
                coded.fill(rng, out).then_some(None)
            }
            Work::Stored(stored) => {
                let next = stored.next(now)?;
                DataHeader { poll: next.poll, ..header }.write(true, out);
                Some(stored.fill(next, is_unicast, out))
            }
        }
    }

    /// The MAC's word on the packet filled last for `flow`, which took `packet_time`.
    pub(super) fn report(
        &mut self,
        flow: FlowId,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        if let Some(Work::Stored(stored)) = self.flows.get_mut(&flow).map(|r| &mut r.work) {
            stored.report(result, packet_time, now);
        }
    }

    /// A report that this node owes its parent, of what it holds itself.
    pub(super) fn owed(&self, now: Instant) -> Option<(NodeId, Report)> {
        self.flows.iter().find_map(|(flow, relay)| {
            let Work::Stored(stored) = &relay.work else { return None };
            let (parent, poll, has) = stored.owed(now)?;
            let (incarnation, visit, batch) = (relay.incarnation, relay.visit, relay.batch);
            Some((parent, Report { flow: *flow, incarnation, visit, batch, poll, has }))
        })
    }

    /// It is handed to the MAC.
    pub(super) fn answer(&mut self, flow: FlowId) {
        if let Some(Work::Stored(stored)) = self.flows.get_mut(&flow).map(|r| &mut r.work) {
            stored.answer();
        }
    }

    /// The MAC's word on the report of `flow` sent last.
    pub(super) fn answered(&mut self, flow: FlowId, result: TxResult, now: Instant) {
        if let Some(Work::Stored(stored)) = self.flows.get_mut(&flow).map(|r| &mut r.work) {
            stored.answered(result, now);
        }
    }

    /// Forgets a transfer.
    pub(super) fn forget(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    /// Forgets what was not heard for long.
    pub(super) fn expire(&mut self, now: Instant) {
        self.flows.retain(|_, r| now.since(r.heard_at) < IDLE);
    }

    /// How many transfers are held.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// The header of what would be sent for `flow`.
    #[cfg(test)]
    pub(super) fn header(&self, flow: FlowId) -> Option<DataHeader> {
        self.flows.get(&flow).map(|relay| relay.header(flow, None))
    }

    /// A packet does not list this node: if its plan is newer than the one known, this node is to stop.
    fn release(&mut self, me: NodeId, header: &DataHeader, now: Instant) {
        let relay = self.flows.get_mut(&header.flow).filter(|r| r.is_at(header));
        if let Some(relay) = relay.filter(|r| r.revision != header.revision) {
            relay.follow(me, header, now);
        }
    }

    fn make_room(&mut self, flow: FlowId) {
        if self.flows.len() < MAX_FLOWS || self.flows.contains_key(&flow) {
            return;
        }
        if let Some(oldest) = self.flows.iter().min_by_key(|(_, r)| r.heard_at).map(|(f, _)| *f) {
            self.flows.remove(&oldest);
        }
    }
}

impl Relay {
    fn new(header: &DataHeader, shape: Shape, work: Work, now: Instant) -> Self {
        Self {
            incarnation: header.incarnation,
            visit: header.visit,
            batch: header.batch,
            shape,
            routing: header.routing.clone(),
            revision: header.revision,
            work,
            heard_at: now,
            sent_at: now,
        }
    }

    fn header(&self, flow: FlowId, piggyback: Option<Piggyback>) -> DataHeader {
        DataHeader {
            flow,
            incarnation: self.incarnation,
            visit: self.visit,
            batch: self.batch,
            packets: self.shape.generation_size() as u8,
            routing: self.routing.clone(),
            revision: self.revision,
            poll: None,
            piggyback,
        }
    }

    fn is_behind(&self, header: &DataHeader) -> bool {
        header.incarnation != self.incarnation
            || (header.visit != self.visit && !self.is_ahead_of(header))
    }

    fn is_ahead_of(&self, header: &DataHeader) -> bool {
        header.incarnation == self.incarnation
            && header.visit.wrapping_sub(self.visit) > u32::MAX / 2
    }

    fn is_at(&self, header: &DataHeader) -> bool {
        header.incarnation == self.incarnation && header.visit == self.visit
    }

    /// A packet of the batch at hand.
    fn take(&mut self, me: NodeId, sender: NodeId, data: &Data<'_>, now: Instant) -> Relayed {
        let taken = match &mut self.work {
            Work::Coded(coded) => coded.absorb(data),
            Work::Stored(stored) => stored.absorb(data, now),
        };
        if taken == Relayed::Malformed {
            return taken;
        }
        // Only now: a list that goes with longer packets than its own might not fit a frame.
        self.heard_at = now;
        self.follow(me, &data.header, now);
        match &mut self.work {
            Work::Coded(coded) => {
                let credit = self.routing.credit(me, sender, data.header.flow.source);
                coded.earn(credit.unwrap_or(0.0));
            }
            Work::Stored(stored) => stored.hear(sender, data, now),
        }
        taken
    }

    /// Takes the routing of a packet unless its plan is older than the one known.
    fn follow(&mut self, me: NodeId, header: &DataHeader, now: Instant) {
        let ahead = header.revision.wrapping_sub(self.revision);
        if ahead > u8::MAX / 2 {
            return;
        }
        self.routing.clone_from(&header.routing);
        if ahead == 0 {
            return;
        }
        self.revision = header.revision;
        match &mut self.work {
            Work::Coded(coded) if !self.routing.lists(me) => coded.stop(),
            Work::Coded(_) => {}
            Work::Stored(stored) => stored.follow(me, &self.routing, now),
        }
    }

    /// Flushes the buffer and begins the newer visit's batch.
    fn turn_to(
        &mut self,
        forwarding: Forwarding,
        me: NodeId,
        header: &DataHeader,
        shape: Shape,
        now: Instant,
    ) {
        match &mut self.work {
            Work::Coded(coded) if self.shape == shape => coded.clear(),
            work => *work = Work::begin(forwarding, me, header, shape, now),
        }
        self.incarnation = header.incarnation;
        self.visit = header.visit;
        self.batch = header.batch;
        self.shape = shape;
        self.routing.clone_from(&header.routing);
        self.revision = header.revision;
    }
}

impl Work {
    fn begin(
        forwarding: Forwarding,
        me: NodeId,
        header: &DataHeader,
        shape: Shape,
        now: Instant,
    ) -> Self {
        match forwarding {
            Forwarding::Ordered | Forwarding::Belts => Self::Coded(Coded::new(shape)),
            Forwarding::HopByHop(_) => Self::Stored(Stored::new(me, &header.routing, shape, now)),
        }
    }
}
