//! A forwarder's part: one batch at a time, sent on according to credit (Pacifier, III-A, III-C).

use super::data::{Coding, Data, DataHeader};
use super::frame::Piggyback;
use super::routing::Routing;
use crate::time::{Duration, Instant};
use ncmesh_code::{Field, Recoder, Shape};
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
    routing: Routing,
    revision: u8,
    recoder: Recoder,
    /// May go negative: what was sent beyond it is owed (III-A.2).
    credit: f64,
    heard_at: Instant,
    sent_at: Instant,
}

/// All transfers at a forwarder.
#[derive(Debug, Default)]
pub(super) struct Relays {
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
            self.release(header);
            return Relayed::NotOurs;
        }
        let Ok(shape) = Shape::new(Field::Gf256, usize::from(header.packets), data.payload.len())
        else {
            return Relayed::Malformed;
        };
        // What is sent on carries a coding vector and a piggyback, where the source's own may not.
        let routing = &header.routing;
        let overhead = routing.forwarding().overhead(routing.listed(), shape.generation());
        if overhead + shape.symbol_size() > mtu {
            return Relayed::Malformed;
        }
        self.make_room(header.flow);
        let relay = self.flows.entry(header.flow).or_insert_with(|| Relay::new(header, shape, now));
        if relay.is_behind(header) {
            relay.turn_to(header, shape);
        } else if relay.is_ahead_of(header) {
            return Relayed::Stale;
        }
        if relay.batch != header.batch || relay.absorb(data, shape) == Relayed::Malformed {
            return Relayed::Malformed;
        }
        // Only now: a list that goes with longer packets than its own might not fit a frame.
        relay.heard_at = now;
        relay.follow(header);
        relay.credit += relay.routing.credit(me, sender, header.flow.source).unwrap_or(0.0);
        Relayed::Taken
    }

    /// The transfer to send for next, of those with credit the one longest not sent for.
    pub(super) fn ready(&self) -> Option<(FlowId, Instant)> {
        let ready = self.flows.iter().filter(|(_, r)| r.credit > 0.0 && r.recoder.rank() > 0);
        ready.map(|(flow, r)| (*flow, r.sent_at)).min_by_key(|(flow, at)| (*at, *flow))
    }

    /// The header of a packet for `flow`.
    pub(super) fn header(&self, flow: FlowId, piggyback: Option<Piggyback>) -> Option<DataHeader> {
        self.flows.get(&flow).map(|r| DataHeader {
            flow,
            incarnation: r.incarnation,
            visit: r.visit,
            batch: r.batch,
            packets: r.recoder.shape().generation() as u8,
            routing: r.routing.clone(),
            revision: r.revision,
            piggyback,
        })
    }

    /// Appends coding vector and payload of a fresh combination for `flow`, and pays for it.
    pub(super) fn fill(
        &mut self,
        flow: FlowId,
        now: Instant,
        rng: &mut impl RngCore,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(relay) = self.flows.get_mut(&flow) else { return false };
        let shape = relay.recoder.shape();
        let start = out.len();
        out.resize(start + shape.generation() + shape.symbol_size(), 0);
        let (coefficients, payload) = out[start..].split_at_mut(shape.generation());
        let sent = matches!(relay.recoder.recode(rng, coefficients, payload), Ok(true));
        relay.credit -= 1.0;
        relay.sent_at = now;
        sent
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

    /// A packet does not list this node: if its plan is newer than the one known, this node is to stop.
    fn release(&mut self, header: &DataHeader) {
        let Some(relay) = self.flows.get_mut(&header.flow) else { return };
        if relay.is_at(header) && header.revision != relay.revision && relay.follow(header) {
            relay.credit = 0.0;
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
    fn new(header: &DataHeader, shape: Shape, now: Instant) -> Self {
        Self {
            incarnation: header.incarnation,
            visit: header.visit,
            batch: header.batch,
            routing: Routing::default(),
            revision: header.revision,
            recoder: Recoder::new(shape),
            credit: 0.0,
            heard_at: now,
            sent_at: now,
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

    /// Takes the routing of a packet unless its plan is older than the one known. Says whether it did.
    fn follow(&mut self, header: &DataHeader) -> bool {
        let is_old = header.revision.wrapping_sub(self.revision) > u8::MAX / 2;
        if !is_old {
            self.routing.clone_from(&header.routing);
            self.revision = header.revision;
        }
        !is_old
    }

    /// Flushes the buffer and begins the newer visit's batch.
    fn turn_to(&mut self, header: &DataHeader, shape: Shape) {
        self.incarnation = header.incarnation;
        self.visit = header.visit;
        self.batch = header.batch;
        self.revision = header.revision;
        self.credit = 0.0;
        if self.recoder.shape() == shape {
            self.recoder.clear();
        } else {
            self.recoder = Recoder::new(shape);
        }
    }

    fn absorb(&mut self, data: &Data<'_>, shape: Shape) -> Relayed {
        if self.recoder.shape() != shape {
            return Relayed::Malformed;
        }
        let absorbed = match data.coding {
            Coding::Combined(coefficients) => self.recoder.absorb(coefficients, data.payload),
            Coding::Systematic(i) => {
                let mut unit = [0; 255];
                unit[usize::from(i)] = 1;
                self.recoder.absorb(&unit[..shape.generation()], data.payload)
            }
        };
        absorbed.map_or(Relayed::Malformed, |_| Relayed::Taken)
    }
}
