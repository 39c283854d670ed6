//! The engine at one node: its flows, and which of them sends next.
//!
//! Requests of destinations go first, since they are few and repair losses. Reports follow, then
//! data of the flow with the largest W(n, c) (3.4).

use crate::ID;
use crate::channel_access::ChannelAccess;
use crate::choice::PathChoice;
use crate::config::Mc2Config;
use crate::credits::Candidate;
use crate::flow::Flow;
use crate::frame::{Data, GenerationHeader, MAX_ACKS, REPORT, REQUEST, Report, Request};
use crate::generation::GenerationShape;
use crate::share::{FlowKey, RecentFlows, longest_wait};
use ncmesh_engine::counters::{DropReason, Payload};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::bounded::{IDLE, MAX_FLOWS, make_room};
use ncmesh_engine::toolkit::coder::{PREFIX, generation_with_room};
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::tunnel::{DATA, FlowStatus, PacketError, check_packet};
use ncmesh_engine::{Class, Context, Engine, Filled, Frame, Offer, TunnelEngine, TxReport};
use ncmesh_wire::{NodeId, ServiceId};
use std::collections::{BTreeMap, VecDeque};

/// Most requests of other nodes that wait to be forwarded.
const MAX_REQUESTS: usize = 64;
/// Units of an offer's weight for each packet. Finer than whole packets, so that nodes with few
/// packets are told apart.
const WEIGHT_UNITS: f64 = 1024.0;

/// Multipath code casting at one node.
pub struct Mc2 {
    config: Mc2Config,
    flows: BTreeMap<FlowKey, Flow>,
    /// Requests of other nodes, to be forwarded towards the source.
    requests: VecDeque<Request>,
    recent: RecentFlows,
    /// Flow of the data frame that the MAC has.
    on_air: Option<FlowKey>,
    access: ChannelAccess,
    /// Whether the MAC is known not to know who received a frame, so that next hops report it.
    needs_reports: bool,
    /// Flows that have begun at this node in its present epoch.
    flows_begun: u32,
    /// Version of the mesh by which the flows that begin here were routed.
    topology_version: u64,
}

impl Mc2 {
    /// Returns an engine with these settings and no flows.
    #[must_use]
    pub fn new(config: Mc2Config) -> Self {
        Self {
            config,
            flows: BTreeMap::new(),
            requests: VecDeque::new(),
            recent: RecentFlows::default(),
            on_air: None,
            access: ChannelAccess::default(),
            flows_begun: 0,
            needs_reports: false,
            topology_version: 0,
        }
    }

    /// Returns the length of a combination that fits every frame of the flow, bytes.
    fn symbol_size(&self, mtu: usize) -> usize {
        mtu.saturating_sub(GenerationHeader::reserved(self.config.generation))
    }

    /// Returns how this node chooses the paths of the flows that begin here.
    fn path_choice(&self) -> PathChoice {
        PathChoice {
            most: self.config.paths,
            least_gain: self.config.least_gain,
            needs_reports: self.needs_reports,
        }
    }

    // ---- frames

    fn handle_data(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(data) = Data::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let instance = data.header.instance();
        self.recent.note(instance.key(), cx.now);
        if instance.source != cx.me && !self.ensure_flow(&data, cx) {
            return;
        }
        let Some(flow) = self.flows.get_mut(&instance.key()) else { return };
        if flow.instance != instance {
            return cx.counters.drop(DropReason::Stale);
        }
        if let Err(why) = flow.handle_data(frame.sender, frame.start, &data, cx) {
            cx.counters.drop(why);
        }
    }

    /// Adds the flow of a frame, if it is new or has started anew and this node is on its paths.
    /// Returns whether there is state for the flow.
    fn ensure_flow(&mut self, data: &Data<'_>, cx: &mut Context<'_>) -> bool {
        let instance = data.header.instance();
        let key = instance.key();
        if let Some(flow) = self.flows.get_mut(&key) {
            let is_wrong = flow.note_conflict(&data.header, cx.now);
            if !is_wrong && !instance.is_later(flow.instance) {
                return true;
            }
        }

        if !data.header.paths.contains(cx.me) {
            return false;
        }
        make_room(&mut self.flows, &key, MAX_FLOWS, |flow| flow.heard_at);
        self.flows.insert(key, Flow::from_frame(data, cx));
        true
    }

    fn handle_report(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(report) = Report::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        match self.flows.get_mut(&report.flow.key()) {
            Some(flow) if flow.instance == report.flow => {
                flow.handle_state(frame.sender, &report.state, cx.me);
            }

            // It is for this node, which has forgotten the flow. Reports of flows that pass by are
            // not counted as dropped.
            _ if report.state.acks.iter().any(|ack| ack.of == cx.me) => {
                cx.counters.drop(DropReason::UnknownFlow);
            }
            _ => {}
        }
    }

    /// Answers a request, or forwards it one hop towards the source.
    fn handle_request(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        let Ok(request) = Request::parse(frame.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if request.next != cx.me {
            return;
        }

        // The source is the last to ask. What it does not have any more it cannot answer.
        let flow = self.flows.get_mut(&request.flow.key());
        let is_answered =
            flow.is_some_and(|flow| flow.instance == request.flow && flow.answer_request(&request));
        if is_answered || request.flow.source == cx.me {
            return;
        }
        if self.requests.len() >= MAX_REQUESTS {
            return cx.counters.drop(DropReason::Full);
        }
        self.requests.push_back(request);
    }

    // ---- time

    /// Does what is due in all flows. Runs after whatever happened.
    fn handle_due(&mut self, cx: &mut Context<'_>) {
        if self.topology_version != cx.topology.version() {
            self.topology_version = cx.topology.version();
            self.reroute(cx);
        }

        for flow in self.flows.values_mut() {
            let from = flow.instance.source;
            flow.deliver(|packet| cx.hand_up(from, packet));
            if flow.handle_due(&self.config, self.access, cx) {
                // Packets that waited for what was given up are next in order now.
                flow.deliver(|packet| cx.hand_up(from, packet));
            }
        }

        // A flow that is silent for long is forgotten.
        self.flows.retain(|_, flow| cx.now.since(flow.heard_at.max(flow.sent_at)) < IDLE);
    }

    /// Moves the flows that begin here to the best paths of the present mesh. A flow without any
    /// keeps those it has.
    fn reroute(&mut self, cx: &Context<'_>) {
        let choice = self.path_choice();
        for flow in self.flows.values_mut().filter(|flow| flow.ingress.is_some()) {
            let FlowInstance { source, destination, .. } = flow.instance;
            let best = choice.paths(cx.topology, source, destination);
            if let Some(paths) = best {
                flow.reroute(paths, cx.topology, cx.me);
            }
        }
    }

    /// Returns the flow with the largest W(n, c) of those with something to send (3.4). One that
    /// waited too long beside others goes before all, also before other nodes.
    fn heaviest_flow(&self, now: Instant) -> Option<(FlowKey, Candidate)> {
        let candidates = self.flows.iter().filter_map(|(key, flow)| {
            let mut candidate = flow.candidate(self.access, now)?;
            if self.turn_at(*key, flow).is_some_and(|at| at <= now) {
                candidate.weight = f64::INFINITY;
            }
            Some((*key, candidate))
        });

        candidates.max_by(|(_, a), (_, b)| a.weight.total_cmp(&b.weight))
    }

    /// Returns when a flow goes first; `None` if no other flow was heard since it last sent.
    fn turn_at(&self, key: FlowKey, flow: &Flow) -> Option<Instant> {
        let beside = self.recent.beside(key)?;
        let latest = flow.latest_at();
        let had_turn = latest.is_some_and(|latest| beside <= latest);
        let turn_at = latest.map_or(beside, |at| at + longest_wait(self.access.frame_time()));
        (!had_turn).then_some(turn_at)
    }

    // ---- filling

    /// Writes a request of this node, or one that it forwards.
    fn fill_request(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let own = self.flows.values_mut().find_map(|flow| {
            let needed = flow.next_request(&self.config)?;
            flow.note_request(needed.generation, cx.now);
            Some(Request {
                flow: flow.instance,
                next: cx.me,
                generation: needed.generation,
                serial: needed.serial,
                missing: needed.missing,
            })
        });

        // Others' requests follow, one hop towards the source of their flow.
        let mut request = own.or_else(|| self.requests.pop_front())?;
        request.next = cx.topology.next_hop(cx.me, request.flow.source, Metric::Unicast)?;
        request.write(out);
        Some(Filled { kind: REQUEST, to: Some(request.next) })
    }

    fn fill_report(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Filled> {
        let mut flows = self.flows.values_mut();
        let flow = flows.find(|flow| flow.is_report_due(self.access, now))?;
        let state = flow.take_state(MAX_ACKS, now);
        Report { flow: flow.instance, state }.write(out);
        Some(Filled { kind: REPORT, to: None })
    }

    fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (key, candidate) = self.heaviest_flow(cx.now)?;
        let flow = self.flows.get_mut(&key)?;
        flow.fill_data(candidate.generation, self.access, cx, out)?;
        cx.counters.note_filled(Payload::Coded);
        self.on_air = Some(key);
        self.recent.note(key, cx.now);
        Some(Filled { kind: DATA, to: None })
    }
}

impl Engine for Mc2 {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match frame.kind {
            DATA => self.handle_data(cx, frame),
            REPORT => self.handle_report(cx, frame),
            REQUEST => self.handle_request(cx, frame),
            _ => cx.counters.drop(DropReason::Malformed),
        }
        self.handle_due(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.handle_due(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let due = |(key, flow): (&FlowKey, &Flow)| {
            let turn = self.turn_at(*key, flow).filter(|at| *at > after);
            let other = flow.poll_timeout(&self.config, self.access, after);
            [turn, other].into_iter().flatten().min()
        };
        self.flows.iter().filter_map(due).min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let has_control = |flow: &Flow| {
            flow.is_report_due(self.access, now) || flow.next_request(&self.config).is_some()
        };
        if !self.requests.is_empty() || self.flows.values().any(has_control) {
            return Some(Offer::of(Class::Control));
        }
        let (_, candidate) = self.heaviest_flow(now)?;
        let weight = (candidate.weight * WEIGHT_UNITS) as u32;
        Some(Offer { weight, ..Offer::of(Class::Data) })
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.on_air = None;
        let start = out.len();
        let filled = self
            .fill_request(cx, out)
            .or_else(|| self.fill_report(cx.now, out))
            .or_else(|| self.fill_data(cx, out));
        if filled.is_none() {
            out.truncate(start);
        }
        filled
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        self.access.mac_reports = report.heard_by.is_some();
        if self.needs_reports == self.access.mac_reports {
            // Only now it is known how the channel is shared. The best paths may be others.
            self.needs_reports = !self.access.mac_reports;
            self.topology_version = 0;
        }

        let Some(flow) = self.on_air.take().and_then(|key| self.flows.get_mut(&key)) else {
            return;
        };
        self.access.note_data_frame(&report);
        if let Some(receivers) = report.heard_by {
            flow.handle_mac_report(&receivers);
        }
        self.handle_due(cx);
    }
}

impl TunnelEngine for Mc2 {
    fn longest(&self, mtu: usize) -> usize {
        self.symbol_size(mtu).saturating_sub(PREFIX)
    }

    fn make_room(&mut self, mtu: usize, packet: usize) {
        let generation = &mut self.config.generation;
        *generation = generation_with_room(*generation, mtu, packet, GenerationHeader::reserved);
    }

    fn can_send(&self, to: NodeId) -> bool {
        let mut own = self.flows.iter().filter(|((_, destination), _)| *destination == to);
        // Only a flow that begins here has an ingress.
        own.find_map(|(_, flow)| flow.ingress.as_ref())
            .is_none_or(|ingress| ingress.can_push(self.config.queue))
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

        // The first packet begins the flow.
        let key = (cx.me, to);
        if !self.flows.contains_key(&key) {
            let paths = self.path_choice().paths(cx.topology, cx.me, to);
            let paths = paths.ok_or(PacketError::NoPath(to))?;
            make_room(&mut self.flows, &key, MAX_FLOWS, |flow| flow.heard_at);
            self.flows_begun += 1;
            let instance = FlowInstance::new(cx, to, self.flows_begun);
            let shape = GenerationShape {
                generation_size: self.config.generation,
                symbol_size: self.symbol_size(cx.mtu),
            };

            self.flows.insert(key, Flow::outgoing(instance, paths, shape, cx));
        }

        if let Some(flow) = self.flows.get_mut(&key) {
            flow.sent_at = cx.now;
            flow.ingress.iter_mut().for_each(|ingress| ingress.push(packet.to_vec()));
        }

        self.handle_due(cx);
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        let status = |((source, destination), flow): (&FlowKey, &Flow)| FlowStatus {
            source: *source,
            destination: *destination,
            credits: u64::from(flow.credits()),
            heard: flow.heard,
            innovative: flow.innovative,
            delivered: flow.delivered,
            delivered_bytes: flow.delivered_bytes,
            lost: flow.lost,
        };

        self.flows.iter().map(status).collect()
    }
}
