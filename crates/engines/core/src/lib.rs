//! CORE: packets coded within flows, and between flows where they cross at a relay (Hansen, Krigslund, Lucani, Pahlevani,
//! Fitzek, Computer Networks 145, 2018; DOI 10.1016/j.comnet.2018.07.014), sections 4 and 6.
//!
//! Packets of a flow are combined within generations. A relay sends combinations of two flows in one frame; who overhears the
//! other flow takes them apart, so that beyond the next hop flows are by themselves again. The same engine without
//! coding within flows is the baseline [`cope`](crate::cope). Where this leaves the paper: ERRATA.md.

mod answers;
mod config;
pub mod cope;
mod flow;
mod frame;
mod generation;
mod meter;
mod mixtures;
mod owed;
mod receive;
mod redundancy;
mod regions;
mod rules;
mod send;
mod sending;
mod settle;

#[cfg(test)]
mod tests;

pub use config::CoreConfig;
use flow::Flow;
use frame::{COUNT, Data, FEEDBACK, Name};
use generation::Generation;
use meter::Meter;
use mixtures::Overheard;
use ncmesh_engine::Summary;
use ncmesh_engine::TunnelEngine;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::bounded::{MAX_FLOWS, make_room};
use ncmesh_engine::toolkit::coder::PREFIX;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::topology::NextHops;
use ncmesh_engine::tunnel::check_packet;
use ncmesh_engine::tunnel::{CodingStatus, DATA, FlowStatus, PacketError, Relaying};
use ncmesh_engine::{Class, Context, Engine, Filled, Frame, Offer, TxReport, TxResult};
use ncmesh_wire::{NodeId, ServiceId};
use owed::Owed;
use regions::Regions;

use rules::Rules;
use std::collections::BTreeMap;

/// The scheme's name.
pub const NAME: &str = "core_nc";
/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(23);

/// Row of this scheme in a program's registry.
pub const CORE: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "packets coded within flows, and between flows that cross at a relay",
    paper: "Hansen, Krigslund, Lucani, Pahlevani, Fitzek: CORE (Computer Networks 2018)",
    read: |_, kind, body| summary(kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: CoreConfig = settings.parse()?;
        config.check()?;
        Ok(Box::new(Core::new(&config)))
    }),
};

pub use cope::COPE;

type Key = (NodeId, NodeId);

/// CORE, or its baseline, at one node.
pub struct Core {
    id: ServiceId,
    rules: Rules,
    flows: BTreeMap<Key, Flow>,
    overheard: Overheard,
    meter: Meter,
    regions: Regions,
    /// Regions are to be looked at again.
    changed: bool,
    /// Generations of flows for which the node before is to be answered.
    owed: Owed,
    /// Of this node's last question or answer.
    number: u16,
    /// The MAC does not know who hears a broadcast, as that of slots does.
    blind: bool,
    /// Of this node's last data frame.
    serial: u16,
    /// Flows begun here.
    begun: u32,
    next_hops: NextHops,
    /// Next hops are of this version of the mesh.
    topology: u64,
    tallies: FlowCounters,
    coding: CodingStatus,
}

impl Core {
    /// CORE with these settings.
    #[must_use]
    pub fn new(config: &CoreConfig) -> Self {
        Self::with_rules(ID, config.rules())
    }

    pub(crate) fn with_rules(id: ServiceId, rules: Rules) -> Self {
        Self {
            id,
            rules,
            flows: BTreeMap::new(),
            overheard: Overheard::default(),
            meter: Meter::default(),
            regions: Regions::default(),
            changed: false,
            owed: Owed::default(),
            number: 0,
            blind: false,
            serial: 0,
            begun: 0,
            next_hops: NextHops::default(),
            topology: 0,
            tallies: FlowCounters::default(),
            coding: CodingStatus::default(),
        }
    }

    /// The longest symbol of this node's flows, bytes.
    fn symbol(&self, mtu: usize) -> usize {
        mtu.saturating_sub(Data::overhead(self.rules.room)).min(usize::from(u16::MAX))
    }

    fn make_room(&mut self, key: Key) {
        make_room(&mut self.flows, &key, MAX_FLOWS, |flow| flow.heard_at.max(flow.turn_at));
    }

    /// The node before is to be told how a generation stands here; `again` if it asked before and heard nothing.
    fn owe(&mut self, name: Name, again: bool, cx: &mut Context<'_>) {
        let number = self.number();
        if !self.owed.owe(name, number, again) {
            cx.counters.drop(DropReason::Full);
        }
    }

    fn number(&mut self) -> u16 {
        self.number = self.number.wrapping_add(1);
        self.number
    }
}

impl Engine for Core {
    fn hears(&self, service: ServiceId) -> bool {
        service == self.id
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let heard = match frame.kind {
            DATA => self.hear_data(cx, frame),
            COUNT => self.hear_count(cx, frame),
            FEEDBACK => self.hear_feedback(cx, frame),
            _ => Err(DropReason::Malformed),
        };
        if let Err(why) = heard {
            cx.counters.drop(why);
        }
        self.settle(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.settle(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        self.next_timeout(after)
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        if !self.owed.is_empty() || self.poll_due(now).is_some() {
            return Some(Offer::of(Class::Control));
        }
        self.choose(now).map(|_| Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.owed.rests();
        let begins = out.len();
        let filled = self
            .fill_feedback(cx, out)
            .or_else(|| self.fill_count(cx, out))
            .or_else(|| self.fill_data(cx, out));
        if filled.is_none() {
            out.truncate(begins);
        }
        filled
    }

    fn handle_tx_report(&mut self, _: &mut Context<'_>, report: TxReport) {
        self.blind = report.heard_by.is_none();
        self.owed.reported(report.result == TxResult::Failed, self.rules.requests);
    }
}

impl TunnelEngine for Core {
    fn longest(&self, mtu: usize) -> usize {
        self.symbol(mtu).saturating_sub(PREFIX)
    }

    fn can_send(&self, to: NodeId) -> bool {
        // A flow from here is the only one with an inlet.
        let own = self.flows.iter().find(|((_, d), flow)| *d == to && flow.inlet.is_some());
        own.and_then(|(_, flow)| flow.inlet.as_ref())
            .is_none_or(|inlet| inlet.has_room(&self.rules))
    }

    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError> {
        check_packet(cx.me, to, packet, self.longest(cx.mtu))?;
        if !self.can_send(to) {
            return Err(PacketError::Full);
        }
        let key = (cx.me, to);
        if !self.flows.contains_key(&key) {
            let next = self.next_hops.towards(cx.topology, cx.me, to);
            let next = next.ok_or(PacketError::NoPath(to))?;
            self.make_room(key);
            self.begun += 1;
            let start = FlowInstance::new(cx, to, self.begun);
            let mut flow = Flow::outgoing(start, self.symbol(cx.mtu) as u16, cx.now);
            flow.next = Some(next);
            self.flows.insert(key, flow);
            self.tallies.begin(cx.me, to);
        }
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.turn_at = cx.now;
            flow.inlet.iter_mut().for_each(|inlet| inlet.push(packet.to_vec()));
        }
        self.settle(cx);
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.tallies.statuses(|source, destination| {
            let Some(flow) = self.flows.get(&(source, destination)) else { return 0 };
            let queued = flow.inlet.as_ref().map_or(0, |inlet| inlet.waiting() as u64);
            queued + flow.generations.values().map(Generation::waiting).sum::<u64>()
        })
    }

    fn coding(&self, _: Instant) -> Option<CodingStatus> {
        let relay = self.rules.coded.then_some(self.rules.relay);
        let relaying = Relaying { relay, coding: Some(self.rules.combines) };
        Some(CodingStatus { stopped: self.regions.declined(), relaying, ..self.coding.clone() })
    }

    fn relay_as(&mut self, cx: &mut Context<'_>, change: Relaying) {
        if self.rules.coded {
            self.rules.relay = change.relay.unwrap_or(self.rules.relay);
        }
        self.rules.combines = change.coding.unwrap_or(self.rules.combines);
        self.changed = true;
        self.settle(cx);
    }
}

/// What a frame of (kind, fields) says of itself.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    frame::summary(NAME, kind, body)
}
