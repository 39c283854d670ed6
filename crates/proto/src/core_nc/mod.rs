//! CORE: packets coded within flows, and between flows where they cross at a relay (Hansen, Krigslund, Lucani, Pahlevani,
//! Fitzek, Computer Networks 145, 2018; DOI 10.1016/j.comnet.2018.07.014), sections 4 and 6.
//!
//! Packets of a flow are combined within generations. A relay sends combinations of two flows in one frame; who overhears the
//! other flow takes them apart, so that beyond the next hop flows are by themselves again. The same engine without
//! coding within flows is the baseline [`cope`](crate::cope). Where this leaves the paper: ERRATA.md.

mod answers;
pub(crate) mod config;
mod flow;
pub(crate) mod frame;
mod generation;
mod meter;
mod mixtures;
mod receive;
pub(crate) mod redundancy;
mod regions;
pub(crate) mod rules;
mod send;
mod sending;
mod settle;

#[cfg(test)]
mod tests;

use crate::counters::DropReason;
use crate::route::NextHops;
use crate::service::{Class, Cx, Filled, Frame, Offer, Service, TxReport, TxResult};
use crate::summary::Summary;
use crate::time::Instant;
use crate::tunnel::coder::PREFIX;
use crate::tunnel::{
    self, CodingStatus, DATA, FlowStatus, Refused, Relaying, Start, Tallies, TunnelService,
};
pub use config::CoreConfig;
use flow::Flow;
use frame::{COUNT, Data, FEEDBACK};
use generation::Generation;
use meter::Meter;
use mixtures::Overheard;
use ncmesh_wire::{NodeId, ServiceId};
use regions::Regions;
pub use rules::Relay;
use rules::Rules;
use std::collections::{BTreeMap, VecDeque};

/// The scheme's name.
pub const NAME: &str = "core_nc";
/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(23);

/// Answers that wait to be sent.
const MAX_OWED: usize = 64;

type Key = (NodeId, NodeId);

/// CORE, or its baseline, at one node.
pub struct Engine {
    id: ServiceId,
    rules: Rules,
    flows: BTreeMap<Key, Flow>,
    overheard: Overheard,
    meter: Meter,
    regions: Regions,
    /// Regions are to be looked at again.
    changed: bool,
    /// Generations of flows for which the node before is to be answered.
    owed: VecDeque<(Start, u32)>,
    /// The answer that is on the air.
    answering: Option<(Start, u32)>,
    /// How many in a row the MAC gave up.
    failures: u32,
    /// Of this node's last data frame.
    serial: u16,
    /// Flows begun here.
    begun: u32,
    next_hops: NextHops,
    /// Next hops are of this version of the mesh.
    topology: u64,
    tallies: Tallies,
    coding: CodingStatus,
}

impl Engine {
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
            owed: VecDeque::new(),
            answering: None,
            failures: 0,
            serial: 0,
            begun: 0,
            next_hops: NextHops::default(),
            topology: 0,
            tallies: Tallies::default(),
            coding: CodingStatus::default(),
        }
    }

    /// The longest symbol of this node's flows, bytes.
    fn symbol(&self, mtu: usize) -> usize {
        mtu.saturating_sub(Data::overhead(self.rules.room)).min(usize::from(u16::MAX))
    }

    fn make_room(&mut self, key: Key) {
        tunnel::make_room(&mut self.flows, key, |flow| flow.heard_at.max(flow.turn_at));
    }

    /// The node before is to be told how a generation stands here.
    fn owe(&mut self, start: Start, generation: u32, cx: &mut Cx<'_>) {
        let owed = (start, generation);
        if self.owed.contains(&owed) {
            return;
        }
        if self.owed.len() >= MAX_OWED {
            cx.counters.drop(DropReason::Full);
            self.owed.pop_front();
        }
        self.owed.push_back(owed);
    }
}

impl Service for Engine {
    fn hears(&self, service: ServiceId) -> bool {
        service == self.id
    }

    fn handle_frame(&mut self, cx: &mut Cx<'_>, frame: &Frame<'_>) {
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

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
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

    fn fill(&mut self, cx: &mut Cx<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.answering = None;
        let begins = out.len();
        let filled = self
            .fill_feedback(out)
            .or_else(|| self.fill_count(cx, out))
            .or_else(|| self.fill_data(cx, out));
        if filled.is_none() {
            out.truncate(begins);
        }
        filled
    }

    fn handle_tx_report(&mut self, cx: &mut Cx<'_>, report: TxReport) {
        let Some((start, generation)) = self.answering.take() else { return };
        if report.result != TxResult::Failed {
            self.failures = 0;
        } else if self.failures < self.rules.requests {
            self.failures += 1;
            self.owe(start, generation, cx);
        }
    }

    fn as_tunnel(&mut self) -> Option<&mut dyn TunnelService> {
        Some(self)
    }

    fn as_tunnel_ref(&self) -> Option<&dyn TunnelService> {
        Some(self)
    }
}

impl TunnelService for Engine {
    fn longest(&self, mtu: usize) -> usize {
        self.symbol(mtu).saturating_sub(PREFIX)
    }

    fn has_room(&self, to: NodeId) -> bool {
        // A flow from here is the only one with an inlet.
        let own = self.flows.iter().find(|((_, d), flow)| *d == to && flow.inlet.is_some());
        own.and_then(|(_, flow)| flow.inlet.as_ref())
            .is_none_or(|inlet| inlet.has_room(&self.rules))
    }

    fn handle_packet(&mut self, cx: &mut Cx<'_>, to: NodeId, packet: &[u8]) -> Result<(), Refused> {
        tunnel::check(cx.me, to, packet, self.longest(cx.mtu))?;
        if !self.has_room(to) {
            return Err(Refused::Full);
        }
        let key = (cx.me, to);
        if !self.flows.contains_key(&key) {
            let next = self.next_hops.towards(cx.topology, cx.me, to);
            let next = next.ok_or(Refused::NoPath(to))?;
            self.make_room(key);
            self.begun += 1;
            let start = Start::new(cx, to, self.begun);
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

    fn relay_as(&mut self, cx: &mut Cx<'_>, change: Relaying) {
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
