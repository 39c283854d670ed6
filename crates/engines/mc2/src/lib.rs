//! MC2, multipath code casting: unicast over all good paths at once (Gkantsidis, Hu, Key, Radunovic, Rodriguez and
//! Gheorghiu, CoNEXT 2007; DOI 10.1145/1364654.1364667).
//!
//! Packets are combined within generations; relays combine anew, so that they need not agree on who forwards what.
//! How much each forwards is settled by credits that flow where there are few (3.4). Where this leaves the paper:
//! ERRATA.md.

mod access;
mod config;
mod credits;
mod downstream;
mod flow;
mod frame;
mod generation;
mod ledger;
mod log;
mod paths;
mod sink;
mod source;
mod upstream;

#[cfg(test)]
mod tests;

use access::Access;
pub use config::Mc2Config;
use flow::Flow;
use frame::{Data, Header, REPORT, REQUEST, Report, Request};
use ncmesh_engine::TunnelEngine;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::bounded::{IDLE, MAX_FLOWS, make_room};
use ncmesh_engine::toolkit::coder::PREFIX;
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::topology::{Metric, NextHops};
use ncmesh_engine::tunnel::check_packet;
use ncmesh_engine::tunnel::{DATA, FlowStatus, PacketError};
use ncmesh_engine::{Class, Context, Engine, Event, Filled, Frame, Offer, TxReport};
use ncmesh_wire::{NodeId, ServiceId};
use paths::{MAX_NODES, PathSet};
use std::collections::{BTreeMap, VecDeque};

/// The scheme's name.
pub const NAME: &str = "mc2";
/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(22);

/// Row of this scheme in a program's registry.
pub const MC2: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "packets over all good paths at once, coded; fair among flows",
    paper: "Gkantsidis et al.: Multipath Code Casting (CoNEXT 2007)",
    read: |_, kind, body| frame::summary(kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: Mc2Config = settings.parse()?;
        config.check()?;
        Ok(Box::new(Mc2::new(config)))
    }),
};

/// Requests of others that wait to be sent on.
const MAX_REQUESTS: usize = 64;

type Key = (NodeId, NodeId);

/// The engine at one node.
pub struct Mc2 {
    config: Mc2Config,
    flows: BTreeMap<Key, Flow>,
    /// Of others, to be sent on.
    requests: VecDeque<Request>,
    /// Whose data frame is in the air.
    on_air: Option<Key>,
    access: Access,
    /// Flows begun here.
    begun: u32,
    /// Paths of flows that begin here are of this version of the mesh.
    topology: u64,
    next_hops: NextHops,
}

impl Mc2 {
    /// The engine with these settings.
    #[must_use]
    pub fn new(config: Mc2Config) -> Self {
        Self {
            config,
            flows: BTreeMap::new(),
            requests: VecDeque::new(),
            on_air: None,
            access: Access::default(),
            begun: 0,
            topology: 0,
            next_hops: NextHops::new(Metric::Unicast),
        }
    }

    fn symbol(&self, mtu: usize) -> usize {
        mtu.saturating_sub(Header::longest(MAX_NODES, self.config.generation))
    }

    // ---- frames

    fn hear_data(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(data) = Data::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let start = data.header.start();
        if start.source != cx.me && !self.admit(&data, cx) {
            return;
        }
        let Some(flow) = self.flows.get_mut(&(start.source, start.destination)) else { return };
        if flow.start != start {
            return cx.counters.drop(DropReason::Stale);
        }
        if let Err(why) = flow.hear((frame.sender, frame.epoch), &data, cx) {
            cx.counters.drop(why);
        }
    }

    /// Sees to it that a flow on whose paths this node is is known, in its latest start. Says whether it is.
    fn admit(&mut self, data: &Data<'_>, cx: &mut Context<'_>) -> bool {
        let start = data.header.start();
        let key = (start.source, start.destination);
        if !self.flows.get(&key).is_none_or(|flow| start.is_later(flow.start)) {
            return true;
        }
        if !data.header.paths.contains(cx.me) {
            return false;
        }
        make_room(&mut self.flows, &key, MAX_FLOWS, |flow| flow.heard_at);
        self.flows.insert(key, Flow::heard(data, cx));
        true
    }

    fn hear_report(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(Report { start, standing }) = Report::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        match self.flows.get_mut(&(start.source, start.destination)) {
            Some(flow) if flow.start == start => flow.stand(frame.sender, &standing, cx.me),
            _ if standing.heard.iter().any(|heard| heard.of == cx.me) => {
                cx.counters.drop(DropReason::UnknownFlow);
            }
            // Of a flow that passes by.
            _ => {}
        }
    }

    fn hear_request(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(request) = Request::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if request.next != cx.me {
            return;
        }
        let start = request.start;
        let flow = self.flows.get_mut(&(start.source, start.destination));
        let answered = flow.is_some_and(|flow| flow.start == start && flow.answer(&request));
        if answered || start.source == cx.me {
            return;
        }
        if self.requests.len() >= MAX_REQUESTS {
            return cx.counters.drop(DropReason::Full);
        }
        self.requests.push_back(request);
    }

    // ---- time

    /// To be called after whatever happened.
    fn settle(&mut self, cx: &mut Context<'_>) {
        if self.topology != cx.topology.version() {
            self.topology = cx.topology.version();
            self.reroute(cx);
        }
        for flow in self.flows.values_mut() {
            let source = flow.start.source;
            // Before anything is given up, and what stood behind that.
            for gives_up in [true, false] {
                flow.deliver(|packet| cx.events.push_back(Event::Packet { from: source, packet }));
                if !gives_up || !flow.settle(&self.config, self.access, cx) {
                    break;
                }
            }
        }
        self.flows.retain(|_, flow| cx.now.since(flow.heard_at.max(flow.sent_at)) < IDLE);
    }

    /// Flows that begin here go on over the best paths as the mesh is now, if there are any.
    fn reroute(&mut self, cx: &Context<'_>) {
        for flow in self.flows.values_mut().filter(|flow| flow.inlet.is_some()) {
            let FlowInstance { source, destination, .. } = flow.start;
            if let Some(paths) = PathSet::best(cx.topology, source, destination, self.config.paths)
            {
                flow.reroute(paths, cx.topology, cx.me);
            }
        }
    }

    /// Of flows with something to send the one with the largest W(n, c), and from which generation (3.4).
    fn heaviest(&self, now: Instant) -> Option<(Key, u32, f64)> {
        let due = self.flows.iter().filter_map(|(key, flow)| {
            let (generation, weight) = flow.due(self.access, now)?;
            Some((*key, generation, weight))
        });
        due.max_by(|(.., a), (.., b)| a.total_cmp(b))
    }

    // ---- filling

    fn fill_request(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let own = self.flows.values_mut().find_map(|flow| {
            let lack = flow.lack(&self.config)?;
            flow.outlet.as_mut()?.asked(lack.generation, cx.now);
            let (generation, serial, missing) = (lack.generation, lack.serial, lack.missing);
            let next = cx.me;
            Some(Request { start: flow.start, next, generation, serial, missing })
        });
        let mut request = own.or_else(|| self.requests.pop_front())?;
        request.next = self.next_hops.towards(cx.topology, cx.me, request.start.source)?;
        request.write(out);
        Some(Filled { kind: REQUEST, to: Some(request.next) })
    }

    fn fill_report(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Filled> {
        let flow = self.flows.values_mut().find(|flow| flow.owes_report(self.access, now))?;
        let standing = flow.standing(now);
        Report { start: flow.start, standing }.write(out);
        Some(Filled { kind: REPORT, to: None })
    }

    fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (key, generation, _) = self.heaviest(cx.now)?;
        let flow = self.flows.get_mut(&key)?;
        flow.fill(generation, self.access, (cx.rng, cx.now), out)?;
        self.on_air = Some(key);
        Some(Filled { kind: DATA, to: None })
    }
}

impl Engine for Mc2 {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match frame.kind {
            DATA => self.hear_data(cx, frame),
            REPORT => self.hear_report(cx, frame),
            REQUEST => self.hear_request(cx, frame),
            _ => cx.counters.drop(DropReason::Malformed),
        }
        self.settle(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.settle(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let flows = self.flows.values();
        flows.filter_map(|flow| flow.poll_timeout(&self.config, self.access, after)).min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let asks =
            |flow: &Flow| flow.owes_report(self.access, now) || flow.lack(&self.config).is_some();
        if !self.requests.is_empty() || self.flows.values().any(asks) {
            return Some(Offer::of(Class::Control));
        }
        let (.., weight) = self.heaviest(now)?;
        // Finer than whole packets, so that nodes with a few each are told apart.
        Some(Offer { class: Class::Data, weight: (weight * 1024.0) as u32 })
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.on_air = None;
        let begins = out.len();
        let filled = self
            .fill_request(cx, out)
            .or_else(|| self.fill_report(cx.now, out))
            .or_else(|| self.fill_data(cx, out));
        if filled.is_none() {
            out.truncate(begins);
        }
        filled
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        self.access.tells = report.heard_by.is_some();
        let Some(flow) = self.on_air.take().and_then(|key| self.flows.get_mut(&key)) else {
            return;
        };
        self.access.note(&report);
        if let Some(receivers) = report.heard_by {
            flow.told(&receivers);
        }
        self.settle(cx);
    }
}

impl TunnelEngine for Mc2 {
    fn longest(&self, mtu: usize) -> usize {
        self.symbol(mtu).saturating_sub(PREFIX)
    }

    fn can_send(&self, to: NodeId) -> bool {
        // A flow from here is the only one with an inlet.
        let own = self.flows.iter().find(|((_, d), flow)| *d == to && flow.inlet.is_some());
        own.and_then(|(_, flow)| flow.inlet.as_ref())
            .is_none_or(|inlet| inlet.has_room(self.config.queue))
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
            let paths = PathSet::best(cx.topology, cx.me, to, self.config.paths);
            let paths = paths.ok_or(PacketError::NoPath(to))?;
            make_room(&mut self.flows, &key, MAX_FLOWS, |flow| flow.heard_at);
            self.begun += 1;
            let start = FlowInstance::new(cx, to, self.begun);
            let symbol = self.symbol(cx.mtu);
            self.flows
                .insert(key, Flow::outgoing(start, paths, symbol, self.config.generation, cx));
        }
        if let Some(flow) = self.flows.get_mut(&key) {
            flow.sent_at = cx.now;
            flow.inlet.iter_mut().for_each(|inlet| inlet.push(packet.to_vec()));
        }
        self.settle(cx);
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        let status = |((source, destination), flow): (&Key, &Flow)| FlowStatus {
            source: *source,
            destination: *destination,
            credits: u64::from(flow.held()),
            heard: flow.heard,
            innovative: flow.innovative,
            delivered: flow.delivered,
            lost: flow.lost,
        };
        self.flows.iter().map(status).collect()
    }
}
