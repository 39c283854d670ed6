//! A forwarder's part: holds one generation of each transfer and sends it on.
//!
//! A forwarder keeps no configuration. Each data packet lists the forwarders; a node that finds
//! itself there takes part. It works on the turn that the source is at: the first packet of a newer
//! turn empties its buffer (Pacifier, III-C), a packet of an older one is dropped. Within a turn
//! the source may change its plan; packets carry a revision, and the forwarder follows the newest.
//!
//! The kind of buffer depends on the scheme: [`CodedBuffer`] sends combinations by credit,
//! [`StoredBuffer`] sends packets as they are until the next hops have them.

mod coded;
mod stored;

#[cfg(test)]
mod coded_tests;
#[cfg(test)]
mod stored_tests;

use super::frame::{Data, DataHeader, Piggyback, Report, TurnId};
use super::ready::ReadyTransfer;
use super::routing::{Cast, Forwarding, Routing};
use coded::CodedBuffer;
use ncmesh_code::{Field, Shape};
use ncmesh_engine::blame::Given;
use ncmesh_engine::file::Manifest;
use ncmesh_engine::file::check::{GenerationId, Nonce};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_engine::toolkit::dispute::Origin;
use ncmesh_engine::{Filled, TxResult};
use ncmesh_transfer::frame::{Check, DATA};
use ncmesh_transfer::sink::is_genuine;
use ncmesh_transfer::transfers::Transfers;
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::collections::BTreeMap;
use stored::StoredBuffer;

/// Most transfers that are forwarded at once. The one that was silent longest makes room.
const MAX_FLOWS: usize = 32;
/// Silence after which a transfer is forgotten.
const IDLE: Duration = Duration::from_secs(120);

/// Transfers that this node forwards.
#[derive(Debug)]
pub(super) struct Relays {
    forwarding: Forwarding,
    flows: BTreeMap<FlowId, Relay>,
}

/// One transfer at a forwarder: the turn it works on.
#[derive(Debug)]
struct Relay {
    turn: TurnId,
    generation: u32,
    shape: Shape,
    routing: Routing,
    revision: u8,
    buffer: Buffer,
    heard_at: Instant,
    sent_at: Instant,
}

/// The generation at hand.
#[derive(Debug)]
enum Buffer {
    Coded(CodedBuffer),
    Stored(StoredBuffer),
}

/// A data packet as this node heard it.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeardData<'a> {
    /// This node.
    pub me: NodeId,
    /// The neighbour that transmitted it.
    pub sender: NodeId,
    pub data: &'a Data<'a>,
    /// Whether this node knows the announcement of its transfer.
    pub is_announced: bool,
    /// Longest frame body that this node can send, bytes.
    pub mtu: usize,
    pub now: Instant,
}

/// Outcome of a frame at a forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayOutcome {
    /// This node is no forwarder of the generation.
    NotListed,
    /// Its transfer was not announced, so that this node does not forward it.
    Unannounced,
    /// It belongs to another turn than the one at hand.
    Stale,
    /// Its fields do not fit the generation, or what is made of it would not fit a frame.
    Malformed,
    /// A data packet that is taken in.
    Data {
        /// Whether it says something new.
        is_innovative: bool,
    },
    /// A report that is taken in.
    Taken,
}

impl HeardData<'_> {
    /// Returns its sender. One that no plan names has no part in the transfer.
    pub(super) fn origin(&self) -> Origin {
        let sender = self.sender;
        Origin { sender, is_vouched: !self.data.header.routing.lists(sender) }
    }
}

impl Relays {
    pub(super) fn new(forwarding: Forwarding) -> Self {
        Self { forwarding, flows: BTreeMap::new() }
    }

    /// Handles a data packet.
    pub(super) fn handle_data(&mut self, heard: HeardData<'_>) -> RelayOutcome {
        let HeardData { me, sender, data, is_announced, mtu, now } = heard;
        let header = &data.header;

        // A packet that does not list this node concerns it only if the source has dropped it from
        // the plan of the turn at hand: then it stops.
        if !header.routing.lists(me) {
            let relay = self.flows.get_mut(&header.flow).filter(|r| r.turn == header.turn);
            if let Some(relay) = relay.filter(|r| r.revision != header.revision) {
                relay.adopt_routing(&heard);
            }
            return RelayOutcome::NotListed;
        }

        // The packets that are sent on may carry a coding vector, a poll or a piggyback that this
        // one does not have. If they would not fit a frame, the packet is useless.
        let Ok(shape) = Shape::new(Field::Gf256, usize::from(header.packets), data.payload.len())
        else {
            return RelayOutcome::Malformed;
        };
        let overhead = self.forwarding.overhead(header.routing.listed(), shape.generation_size());
        if overhead + shape.symbol_size() > mtu {
            return RelayOutcome::Malformed;
        }

        // Without the announcement nothing bounds what a stranger could have this node hold.
        if !is_announced {
            return RelayOutcome::Unannounced;
        }

        // Find the transfer, and move to the packet's turn if that is newer.
        make_room(&mut self.flows, &header.flow, MAX_FLOWS, |relay| relay.heard_at);
        let forwarding = self.forwarding;
        let new = || Relay::new(forwarding, &heard, shape);
        let relay = self.flows.entry(header.flow).or_insert_with(new);
        if relay.turn.is_superseded_by(header.turn) {
            relay.begin_turn(forwarding, &heard, shape);
        } else if relay.turn != header.turn {
            return RelayOutcome::Stale;
        }
        // A turn is on one generation. A packet that says otherwise is forged.
        if relay.generation != header.generation || relay.shape != shape {
            return RelayOutcome::Malformed;
        }

        // Take the packet in. Only a packet that fits may change the routing: a longer list that
        // came with shorter payload might not fit a frame.
        let absorbed = match &mut relay.buffer {
            Buffer::Coded(coded) => coded.absorb(heard.origin(), data),
            Buffer::Stored(stored) => stored.absorb(data, now),
        };

        let Ok(is_innovative) = absorbed else {
            return RelayOutcome::Malformed;
        };
        relay.heard_at = now;
        relay.adopt_routing(&heard);

        // Decide what to send for it. By credit, every packet from upstream counts, innovative or
        // not: the credit is an expectation over all of them.
        match &mut relay.buffer {
            Buffer::Coded(coded) => {
                let credit = relay.routing.credit(me, sender, header.flow.source);
                coded.add_credit(credit.unwrap_or(0.0), now);
            }
            Buffer::Stored(stored) => stored.handle_data(sender, data, now),
        }

        RelayOutcome::Data { is_innovative }
    }

    /// Checks the generation of a transfer that this node forwards coded, once it is whole. Returns
    /// what each sender gave of it if that settled a dispute.
    pub(super) fn check(
        &mut self,
        manifest: &Manifest,
        rng: &mut impl RngCore,
    ) -> Option<BTreeMap<NodeId, Given>> {
        let relay = self.flows.get_mut(&manifest.flow)?;
        let g = &manifest.geometry;
        let generation = relay.generation;
        let Buffer::Coded(coded) = &mut relay.buffer else { return None };

        // The header is not trusted: it must agree with the geometry that was announced.
        if generation >= g.generations() || g.shape(generation) != relay.shape {
            return None;
        }
        coded
            .check(rng, |symbols| is_genuine(manifest, generation, symbols))
            .map(|found| found.given)
    }

    /// Returns the buffer of a generation that this node forwards coded.
    fn coded(&mut self, of: GenerationId) -> Option<&mut CodedBuffer> {
        let relay =
            self.flows.get_mut(&of.flow).filter(|relay| relay.generation == of.generation)?;
        match &mut relay.buffer {
            Buffer::Coded(coded) => Some(coded),
            Buffer::Stored(_) => None,
        }
    }

    /// Returns whether a check of a generation would help.
    pub(super) fn wants_check(&mut self, of: GenerationId) -> bool {
        self.coded(of).is_some_and(CodedBuffer::wants_check)
    }

    /// Begins a question for a check of a generation, with a nonce that was drawn just now.
    pub(super) fn ask(&mut self, of: GenerationId, nonce: Nonce) {
        if let Some(coded) = self.coded(of) {
            coded.ask(nonce);
        }
    }

    /// Judges the packets of a generation by a check. Returns whether any were judged.
    pub(super) fn judge(&mut self, check: &Check) -> bool {
        self.coded(check.of).is_some_and(|coded| coded.judge(check))
    }

    /// Returns whether a check of a generation has misled this node since the last call.
    pub(super) fn take_misled(&mut self, of: GenerationId) -> bool {
        self.coded(of).is_some_and(CodedBuffer::take_misled)
    }

    /// Handles the report of a child of this node.
    pub(super) fn handle_report(
        &mut self,
        from: NodeId,
        report: &Report,
        now: Instant,
    ) -> RelayOutcome {
        let Some(relay) = self.flows.get_mut(&report.flow) else {
            return RelayOutcome::NotListed;
        };

        // The child may be a turn behind, or ahead if this node missed the packets that began it.
        if report.turn != relay.turn {
            return RelayOutcome::Stale;
        }
        if let Buffer::Stored(stored) = &mut relay.buffer {
            stored.handle_report(from, report.poll, report.has, now);
        }
        RelayOutcome::Taken
    }

    /// Returns the transfer to send for next.
    pub(super) fn ready(&self, transfers: &Transfers, now: Instant) -> Option<ReadyTransfer> {
        let ready = self.flows.iter().filter(|(_, relay)| match &relay.buffer {
            Buffer::Coded(coded) => coded.is_ready(),
            Buffer::Stored(stored) => stored.next(now).is_some(),
        });

        let ready = ready.filter(|(flow, _)| transfers.is_within_bound(**flow, now));
        let ready = ready.map(|(flow, relay)| ReadyTransfer {
            is_background: transfers.background(*flow).is_some(),
            sent_at: relay.sent_at,
            flow: *flow,
        });

        ready.min()
    }

    /// Returns the first time later than `after` at which a transfer may have something to send.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let timeouts = self.flows.values().filter_map(|relay| match &relay.buffer {
            // Credit comes with packets that are heard, not with time.
            Buffer::Coded(_) => None,
            Buffer::Stored(stored) => stored.poll_timeout(after),
        });

        timeouts.min()
    }

    /// Appends a data packet for `flow`. Returns `None` if there is nothing to send after all.
    pub(super) fn fill(
        &mut self,
        flow: FlowId,
        piggyback: Option<Piggyback>,
        now: Instant,
        rng: &mut impl RngCore,
        out: &mut Vec<u8>,
    ) -> Option<Filled> {
        let is_unicast = self.forwarding == Forwarding::HopByHop(Cast::Unicast);
        let relay = self.flows.get_mut(&flow)?;
        relay.sent_at = now;
        let header = relay.header(flow, piggyback);

        match &mut relay.buffer {
            // Coded at the moment of transmission, from everything heard so far.
            Buffer::Coded(coded) => {
                header.write(false, out);
                coded.fill(rng, out).then_some(Filled { kind: DATA, to: None })
            }
            Buffer::Stored(stored) => {
                let next = stored.next(now)?;
                DataHeader { poll: next.poll, ..header }.write(true, out);
                Some(Filled { kind: DATA, to: stored.fill(next, is_unicast, out) })
            }
        }
    }

    /// Handles the MAC's report on the data packet filled last for `flow`, which took
    /// `packet_time`.
    pub(super) fn handle_tx_result(
        &mut self,
        flow: FlowId,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        if let Some(stored) = self.stored(flow) {
            stored.handle_tx_result(result, packet_time, now);
        }
    }

    /// Returns a report that this node owes a parent, with what its forwarder holds.
    pub(super) fn due_report(&self, now: Instant) -> Option<Report> {
        self.flows.iter().find_map(|(flow, relay)| {
            let Buffer::Stored(stored) = &relay.buffer else { return None };
            let (parent, poll, has) = stored.due_report(now)?;
            let Relay { turn, generation, .. } = *relay;
            Some(Report { parent, flow: *flow, turn, generation, poll, has })
        })
    }

    /// Notes that the report on `flow` was handed to the MAC.
    pub(super) fn note_report_sent(&mut self, flow: FlowId) {
        if let Some(stored) = self.stored(flow) {
            stored.note_report_sent();
        }
    }

    /// Handles the MAC's report on the report sent last for `flow`.
    pub(super) fn handle_report_result(&mut self, flow: FlowId, result: TxResult, now: Instant) {
        if let Some(stored) = self.stored(flow) {
            stored.handle_report_result(result, now);
        }
    }

    /// Forgets a transfer.
    pub(super) fn forget(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    /// Forgets transfers that were silent for [`IDLE`].
    pub(super) fn expire(&mut self, now: Instant) {
        self.flows.retain(|_, relay| now.since(relay.heard_at) < IDLE);
    }

    /// Returns whether this node forwards no transfer.
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    fn stored(&mut self, flow: FlowId) -> Option<&mut StoredBuffer> {
        match self.flows.get_mut(&flow)?.buffer {
            Buffer::Coded(_) => None,
            Buffer::Stored(ref mut stored) => Some(stored),
        }
    }
}

impl Relay {
    fn new(forwarding: Forwarding, heard: &HeardData<'_>, shape: Shape) -> Self {
        let header = &heard.data.header;
        Self {
            turn: header.turn,
            generation: header.generation,
            shape,
            routing: header.routing.clone(),
            revision: header.revision,
            buffer: Buffer::new(forwarding, heard, shape),
            heard_at: heard.now,
            sent_at: heard.now,
        }
    }

    /// Empties the buffer and begins the packet's turn. The time of the last transmission stays: it
    /// orders the transfers, and this is the same transfer.
    fn begin_turn(&mut self, forwarding: Forwarding, heard: &HeardData<'_>, shape: Shape) {
        let header = &heard.data.header;
        match &mut self.buffer {
            // Keeps the memory. Generations but the last have all the same shape.
            Buffer::Coded(coded) if self.shape == shape => coded.clear(heard.now),
            buffer => *buffer = Buffer::new(forwarding, heard, shape),
        }

        self.turn = header.turn;
        self.generation = header.generation;
        self.shape = shape;
        self.routing.clone_from(&header.routing);
        self.revision = header.revision;
    }

    /// Adopts a packet's routing, unless it belongs to an older plan than the one known. Revisions
    /// are compared as serial numbers (RFC 1982).
    fn adopt_routing(&mut self, heard: &HeardData<'_>) {
        let header = &heard.data.header;
        let ahead = header.revision.wrapping_sub(self.revision);
        if ahead > u8::MAX / 2 {
            return;
        }

        // Credits may differ even within a revision: ordered forwarders have no revisions.
        self.routing.clone_from(&header.routing);
        if ahead == 0 {
            return;
        }

        // By a new plan this node may have other tasks, or none.
        self.revision = header.revision;
        match &mut self.buffer {
            Buffer::Coded(coded) if !self.routing.lists(heard.me) => coded.stop(),
            Buffer::Coded(_) => {}
            Buffer::Stored(stored) => stored.set_routing(heard.me, &self.routing, heard.now),
        }
    }

    /// Returns the header of the data packets that this node sends.
    fn header(&self, flow: FlowId, piggyback: Option<Piggyback>) -> DataHeader {
        DataHeader {
            flow,
            turn: self.turn,
            generation: self.generation,
            packets: self.shape.generation_size() as u8,
            routing: self.routing.clone(),
            revision: self.revision,
            poll: None,
            piggyback,
        }
    }
}

impl Buffer {
    fn new(forwarding: Forwarding, heard: &HeardData<'_>, shape: Shape) -> Self {
        let routing = &heard.data.header.routing;
        match forwarding {
            Forwarding::Ordered | Forwarding::Belts => {
                Self::Coded(CodedBuffer::new(shape, heard.now))
            }
            Forwarding::HopByHop(_) => {
                Self::Stored(StoredBuffer::new(heard.me, routing, shape, heard.now))
            }
        }
    }
}
