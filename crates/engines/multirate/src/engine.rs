//! The engine at one node: streams, virtual slots (V-A), what the stack asks of it.
//!
//! A source floods what it sends; who joined its group, and every node on the way, reports to its parent in the
//! shortest-path tree. Reports carry membership (m) and backlog alike, so that a tree is there as long as it is
//! reported and goes with silence.

use super::frame::{ANNOUNCEMENT, Announcement, DATA, Entry, Header, REPORT};
use super::rate::LinkRate;
use super::session::Session;
use super::{Dropping, MultirateConfig, Parameters, Utility};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::rng::unit;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::flood::Flood;
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_engine::{Class, Context, Engine, Filled, Frame, Offer, TxReport, TxResult};
use ncmesh_wire::{FlowId, NodeId, ServiceId};
use std::collections::{BTreeMap, BTreeSet};

/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(24);

/// Streams that a node knows at most.
pub(super) const MAX_SESSIONS: usize = 32;
/// Next hops that a stream has here at most.
pub(super) const MAX_CHILDREN: usize = 64;
/// Packets that all queues of a node hold together at most, a packet in two queues counted twice.
const MAX_PACKETS: u32 = 65_536;
/// A source announces its stream so often.
const ANNOUNCE: Duration = Duration::from_secs(5);
/// A stream not announced for so long is forgotten.
const FORGET: Duration = Duration::from_secs(22);
/// A next hop that has missed so many reports has gone.
const MISSED: u32 = 5;
/// News of a tree waits at most so long, so that several go together and neighbours do not all speak at once.
const NEWS: Duration = Duration::from_millis(20);
/// A node that was away for so many slots goes on as if they had not been.
const MAX_CATCH_UP: u32 = 20;

/// Multirate multicast at one node.
pub struct Multirate {
    pub(super) config: MultirateConfig,
    pub(super) parameters: Parameters,
    pub(super) rules: Dropping,
    pub(super) sessions: BTreeMap<FlowId, Session>,
    /// Groups this node joined.
    pub(super) wishes: BTreeMap<String, Utility>,
    pub(super) links: BTreeMap<NodeId, LinkRate>,
    /// Announcements under way.
    pub(super) flood: Flood<FlowId, u32>,
    /// The queue that each medium serves in this slot.
    pub(super) chosen: BTreeMap<super::serving::Medium, (NodeId, FlowId)>,
    /// The medium served last.
    pub(super) turn: super::serving::Medium,
    /// To whom and of which stream the packet at the MAC is.
    pub(super) on_air: Option<(NodeId, FlowId)>,
    /// While there is a stream that this node has a part in.
    next_slot: Option<Instant>,
    pub(super) report_at: Option<Instant>,
    reported_at: Instant,
    /// The stream after which the next report begins, where one does not take all.
    report_from: Option<FlowId>,
    /// Parents are of this version of the mesh.
    topology: u64,
}

impl Multirate {
    /// The engine with these settings.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn new(config: MultirateConfig) -> Result<Self, String> {
        config.check()?;
        let parameters = config.parameters()?;
        Ok(Self {
            rules: Dropping::new(config.policy, &parameters),
            parameters,
            config,
            sessions: BTreeMap::new(),
            wishes: BTreeMap::new(),
            links: BTreeMap::new(),
            flood: Flood::new(),
            chosen: BTreeMap::new(),
            turn: super::serving::Medium::Radio,
            on_air: None,
            next_slot: None,
            report_at: None,
            reported_at: Instant::default(),
            report_from: None,
            topology: 0,
        })
    }

    /// What a queue takes at most, and all of them together more than they hold.
    pub(super) fn room(&self) -> (u32, u32) {
        let children = self.sessions.values().flat_map(|session| session.children.values());
        let held: u32 = children.map(super::session::Child::backlog).sum();
        (self.parameters.q_bound() as u32, MAX_PACKETS.saturating_sub(held))
    }

    // ---- trees

    /// To be called after whatever happened: parents follow the mesh, slots run while there is something to decide.
    pub(super) fn settle(&mut self, cx: &mut Context<'_>) {
        if self.topology != cx.topology.version() {
            self.topology = cx.topology.version();
            self.reroute(cx);
        }
        let active = self.sessions.values().any(Session::is_active);
        match (active, self.next_slot) {
            (true, None) => self.next_slot = Some(cx.now + self.config.slot()),
            (false, Some(_)) => {
                self.next_slot = None;
                self.chosen.clear();
            }
            _ => {}
        }
    }

    fn reroute(&mut self, cx: &mut Context<'_>) {
        let mut news = false;
        for (flow, session) in &mut self.sessions {
            let parent = parent(cx.topology, flow.source, cx.me);
            news |= parent != session.parent && session.receivers() > 0;
            session.parent = parent;
        }
        if news {
            self.report_soon(cx);
        }
    }

    /// This node's place in its trees has changed: its parents are to know.
    pub(super) fn report_soon(&mut self, cx: &mut Context<'_>) {
        let soon = cx.now + NEWS.mul_f64(unit(cx.rng));
        let at = soon.max(self.reported_at + self.config.slot());
        self.report_at = Some(self.report_at.map_or(at, |planned| planned.min(at)));
    }

    fn has_reports(&self) -> bool {
        self.sessions.values().any(|session| session.receivers() > 0 || session.farewells > 0)
    }

    // ---- time

    fn run_slots(&mut self, cx: &mut Context<'_>) {
        let slot = self.config.slot();
        let mut run = 0;
        while let Some(at) = self.next_slot.filter(|at| *at <= cx.now) {
            self.next_slot = Some(if run < MAX_CATCH_UP { at + slot } else { cx.now + slot });
            run += 1;
            let times = (slot, self.config.idle());
            for session in self.sessions.values_mut() {
                session.next_slot(&self.rules, &self.parameters, times, cx.now);
            }
            let own: Vec<FlowId> = self
                .sessions
                .iter()
                .filter(|(_, s)| s.own.is_some())
                .map(|(flow, _)| *flow)
                .collect();
            own.into_iter().for_each(|flow| self.enter(cx, flow));
        }
        if run > 0 {
            self.choose(cx);
        }
    }

    /// Packets of this node's own stream enter it, as many as may in this slot.
    pub(super) fn enter(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        loop {
            let own = self.sessions.get_mut(&flow).and_then(|session| session.own.as_mut());
            let Some(packet) = own.and_then(|own| own.next(self.parameters.a_max)) else { return };
            self.replicate(cx, flow, &packet);
        }
    }

    /// Forgets what was not heard of for long.
    fn forget(&mut self, cx: &mut Context<'_>) {
        let limit = self.config.report_period() * MISSED;
        let mut parted = false;
        for session in self.sessions.values_mut() {
            let before = session.children.len();
            session.children.retain(|_, child| cx.now.since(child.heard_at) < limit);
            if session.children.len() < before {
                session.part();
                parted = true;
            }
        }
        let flood = &mut self.flood;
        self.sessions.retain(|flow, session| {
            let keep = session.own.is_some() || cx.now.since(session.announced_at) < FORGET;
            if !keep {
                flood.withdraw(flow);
            }
            keep
        });
        if parted {
            self.report_soon(cx);
        }
        let neighbors: BTreeSet<NodeId> = cx.topology.links_from(cx.me).map(|(to, _)| to).collect();
        self.flood.settle(&neighbors);
        let sessions = &self.sessions;
        self.links.retain(|to, _| sessions.values().any(|s| s.children.contains_key(to)));
    }

    fn announce_again(&mut self, cx: &mut Context<'_>) {
        for (flow, session) in self.sessions.iter_mut().filter(|(_, s)| s.own.is_some()) {
            if cx.now.since(session.announced_at) >= ANNOUNCE {
                session.announce(session.announcement.version, cx.now);
                self.flood.publish(*flow, session.announcement.version, cx.now, cx.rng);
            }
        }
    }

    /// When a session of a node without slots is to be announced or forgotten.
    fn housekeeping(&self) -> Option<Instant> {
        let due = |session: &Session| {
            session.announced_at + if session.own.is_some() { ANNOUNCE } else { FORGET }
        };
        self.sessions.values().map(due).min()
    }

    // ---- filling

    fn fill_announcement(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let flow = *self.flood.due(cx.now).next()?;
        let Some(session) = self.sessions.get(&flow).filter(|s| s.announcement.len() <= cx.mtu)
        else {
            self.flood.withdraw(&flow);
            return None;
        };
        session.announcement.write(out);
        self.flood.sent(&flow, cx.now, cx.rng);
        Some(Filled { kind: ANNOUNCEMENT, to: None })
    }

    fn fill_report(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.report_at.take_if(|at| *at <= cx.now)?;
        let most = cx.mtu / Entry::LEN;
        let after = self.report_from.take();
        let begun = out.len();
        let mut entries = 0;
        let (first, second): (Vec<FlowId>, Vec<FlowId>) =
            self.sessions.keys().partition(|flow| after.is_none_or(|after| **flow > after));
        for flow in first.into_iter().chain(second) {
            let Some(session) = self.sessions.get_mut(&flow) else { continue };
            let (Some(parent), receivers) = (session.parent, session.receivers()) else { continue };
            if receivers == 0 && session.farewells == 0 {
                continue;
            }
            if entries == most {
                break;
            }
            session.farewells = session.farewells.saturating_sub(u8::from(receivers == 0));
            let receivers = u16::try_from(receivers).unwrap_or(u16::MAX);
            let (backlog, pressure) = session.pressures();
            let (backlog, pressure) = (backlog as f32, pressure as f32);
            Entry { flow, parent, receivers, backlog, pressure }.write(out);
            entries += 1;
            self.report_from = Some(flow);
        }
        self.reported_at = cx.now;
        if entries < most {
            self.report_from = None;
        }
        let parted = self.sessions.values().any(|session| session.farewells > 0);
        let all = if entries < most && !parted {
            self.config.report_period()
        } else {
            self.config.slot()
        };
        self.report_at = self.has_reports().then_some(cx.now + all);
        (out.len() > begun).then_some(Filled { kind: REPORT, to: None })
    }

    fn fill_data(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let (medium, next, flow) = self.pick()?;
        let child = self.sessions.get_mut(&flow)?.children.get_mut(&next)?;
        let packet = child.queue.as_mut()?.pop()?;
        let seq = packet.seq;
        Header { next, flow, layer: packet.layer as u8, seq, hops: packet.hops }.write(out);
        out.extend_from_slice(&packet.bytes);
        child.sent[packet.layer] += 1;
        self.turn = medium;
        self.chosen.insert(medium, (next, flow));
        self.on_air = Some((next, flow));
        debug_assert!(out.len() <= cx.mtu + ncmesh_wire::frame::OVERHEAD);
        Some(Filled { kind: DATA, to: Some(next) })
    }
}

/// The neighbour of `me` towards `source` in the shortest-ETX tree from it.
pub(super) fn parent(topology: &Topology, source: NodeId, me: NodeId) -> Option<NodeId> {
    topology.paths_from(source, Metric::Unicast).parent(me)
}

impl Engine for Multirate {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        // Slots that are over are not this frame's.
        self.run_slots(cx);
        match frame.kind {
            DATA => match Header::parse(frame.body) {
                Ok((header, bytes)) => self.hear_data(cx, frame.sender, header, bytes),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            REPORT => match Entry::parse_all(frame.body) {
                Ok(entries) => self.hear_report(cx, frame.sender, &entries),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            ANNOUNCEMENT => match Announcement::parse(frame.body) {
                Ok(announcement) => self.hear_announcement(cx, frame.sender, announcement),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            _ => cx.counters.drop(DropReason::Malformed),
        }
        self.settle(cx);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.run_slots(cx);
        self.forget(cx);
        self.announce_again(cx);
        self.settle(cx);
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let own = [self.next_slot, self.report_at, self.housekeeping()];
        let due = own.into_iter().flatten().filter(|at| *at > after).min();
        [due, self.flood.poll_timeout(after)].into_iter().flatten().min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let speaks = self.report_at.is_some_and(|at| at <= now) && self.has_news();
        if speaks || self.flood.due(now).next().is_some() {
            return Some(Offer::of(Class::Control));
        }
        self.pick().map(|_| Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        self.on_air = None;
        self.fill_announcement(cx, out)
            .or_else(|| self.fill_report(cx, out))
            .or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let Some((to, flow)) = self.on_air.take() else { return };
        if let Some(link) = self.links.get_mut(&to) {
            link.sent(&report);
        }
        let child = self.sessions.get_mut(&flow).and_then(|s| s.children.get_mut(&to));
        match (child, report.result) {
            // Its reports may be lost where others drown them; it is there all the same.
            (Some(child), TxResult::Acked) => child.heard_at = cx.now,
            (Some(child), TxResult::Failed) => child.lost += 1,
            _ => {}
        }
        self.settle(cx);
    }
}

impl Multirate {
    /// Whether a report would have something in it.
    fn has_news(&self) -> bool {
        let says = |session: &Session| {
            session.parent.is_some() && (session.receivers() > 0 || session.farewells > 0)
        };
        self.sessions.values().any(says)
    }
}
