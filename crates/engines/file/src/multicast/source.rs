//! The source's part: which batch to send from, how much, to whom (Pacifier, III).

use super::arq::Arq;
use super::data::{Data, DataHeader};
use super::frame::{Ack, Announce, Phase, Piggyback, Report};
use super::routing::{MAX_LISTED, Routing};
use super::scheme::{Plan, Scheme, Switching};
use super::visit::{Pick, Visit};
use ncmesh_code::{Encoder, draw};
use ncmesh_engine::file::BatchSet;
use ncmesh_engine::file::merkle::{self, MerkleTree};
use ncmesh_engine::file::{Manifest, ReceiverState};
use ncmesh_engine::file::{Outgoing, SendFailure};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::{Metric, Paths, Topology};
use ncmesh_engine::{Context, Event, TxResult};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// The source waits so long for receivers to answer before the first packet.
const GRACE: Duration = Duration::from_millis(1500);
/// Announcements are repeated after this, then after twice as long, and so on up to the longest.
const ANNOUNCE_FIRST: Duration = Duration::from_millis(250);
const ANNOUNCE_LONGEST: Duration = Duration::from_secs(4);
/// A receiver unheard for so long is asked how it stands.
const ASK_AFTER: Duration = Duration::from_secs(5);
/// And is taken for lost after this.
const LOST_AFTER: Duration = Duration::from_secs(20);
/// Batches this far beyond the first missing one are not sent yet, or fewer where an acknowledgment's bits do
/// not reach so far.
const WINDOW: usize = 8192;

/// A receiver as the source sees it.
#[derive(Debug)]
pub(super) struct Receiver {
    pub state: ReceiverState,
    pub have: BatchSet,
    pub finished: Option<Instant>,
    version: (u64, u32),
    heard_at: Instant,
    reachable: bool,
}

/// A file this node sends.
#[derive(Debug)]
pub(super) struct Source {
    pub manifest: Manifest,
    pub open: bool,
    pub phase: Phase,
    pub failure: Option<SendFailure>,
    pub receivers: BTreeMap<NodeId, Receiver>,
    pub started: Instant,
    pub finished: Option<Instant>,
    /// Data packets the source itself sent.
    pub packets_sent: u64,
    /// Every node that was a forwarder in some plan.
    pub forwarders: BTreeSet<NodeId>,
    tree: MerkleTree,
    encoder: Option<Encoder>,
    scratch: Vec<u8>,
    incarnation: u16,
    visits: u32,
    visit: Option<Visit>,
    sent_once: BatchSet,
    last_batch: Option<u32>,
    /// Batches beyond the first missing one that may be sent.
    window: u32,
    paths: Option<Paths>,
    topology_version: Option<u64>,
    /// Nothing is sent before this (III-B).
    hold_until: Instant,
    /// Those whose sending ends the wait for the packet sent last, and what they owe for it.
    children: Vec<NodeId>,
    children_credit: f64,
    pub sent_at: Instant,
    announced: u32,
    announce_at: Instant,
    announce_pause: Duration,
    /// When the end was last announced.
    pub end_told: Option<Instant>,
}

impl Source {
    pub(super) fn new(outgoing: Outgoing, epoch: u64, mtu: usize, now: Instant) -> Self {
        let g = outgoing.manifest.geometry;
        let receiver = |node| Receiver {
            state: outgoing.done.get(node).copied().unwrap_or(ReceiverState::Invited),
            have: match outgoing.done.get(node) {
                Some(ReceiverState::Complete) => BatchSet::all(g.batches()),
                _ => BatchSet::none(g.batches()),
            },
            finished: outgoing.done.get(node).map(|_| now),
            version: (0, 0),
            heard_at: now,
            reachable: false,
        };
        let listed = outgoing.receivers.iter().chain(outgoing.done.keys());
        Self {
            open: outgoing.open,
            phase: Phase::Open,
            failure: None,
            receivers: listed.map(|node| (*node, receiver(node))).collect(),
            started: now,
            finished: None,
            packets_sent: 0,
            forwarders: BTreeSet::new(),
            tree: MerkleTree::new(outgoing.leaves, g.depth()),
            encoder: None,
            scratch: Vec::new(),
            incarnation: (epoch ^ epoch >> 16 ^ epoch >> 32 ^ epoch >> 48) as u16,
            visits: 0,
            visit: None,
            sent_once: BatchSet::none(g.batches()),
            last_batch: None,
            window: WINDOW.min(mtu.saturating_sub(Ack::HEADER) * 8).max(1) as u32,
            paths: None,
            topology_version: None,
            hold_until: now,
            children: Vec::new(),
            children_credit: 0.0,
            sent_at: now,
            announced: 0,
            announce_at: now,
            announce_pause: ANNOUNCE_FIRST,
            end_told: None,
            manifest: outgoing.manifest,
        }
    }

    /// Looks at the mesh again if it changed: who can be reached?
    pub(super) fn refresh(
        &mut self,
        topology: &Topology,
        scheme: &dyn Scheme,
        mtu: usize,
        now: Instant,
    ) {
        if self.topology_version == Some(topology.version()) {
            return;
        }
        self.topology_version = Some(topology.version());
        let paths = topology.paths_from(self.manifest.flow.source, Metric::Broadcast);
        let mut news = false;
        for (node, receiver) in &mut self.receivers {
            let reachable = paths.reaches(*node);
            news |= reachable && !receiver.reachable && !receiver.state.is_final();
            if receiver.reachable && !reachable && receiver.state == ReceiverState::Active {
                receiver.state = ReceiverState::Lost;
            }
            receiver.reachable = reachable;
        }
        self.paths = Some(paths);
        if news {
            self.announce_soon(now);
        }
        self.reconsider_visit(true, topology, scheme, mtu, now);
    }

    /// A receiver's acknowledgment arrived. Says whether it is news.
    pub(super) fn handle_ack(
        &mut self,
        ack: &Ack,
        cx: &mut Context<'_>,
        scheme: &dyn Scheme,
    ) -> bool {
        let batches = self.manifest.geometry.batches();
        let room = Announce::room_for_receivers(&self.manifest, cx.mtu);
        if self.phase != Phase::Open {
            self.tell_end_again(ack, cx.now);
            return false;
        }
        if self.open && !self.receivers.contains_key(&ack.receiver) && self.receivers.len() < room {
            self.admit(ack.receiver, cx.now);
        }
        let Some(receiver) = self.receivers.get_mut(&ack.receiver) else { return false };
        if ack.version <= receiver.version {
            return false;
        }
        receiver.version = ack.version;
        receiver.heard_at = cx.now;
        receiver.have = BatchSet::from_wire(batches, ack.first_missing, &ack.bits);
        if ack.state != receiver.state {
            receiver.state = ack.state;
            if ack.state.is_final() {
                receiver.finished = Some(cx.now);
                cx.events.push_back(Event::ReceiverDone(self.manifest.flow, ack.receiver));
            }
        }
        self.reconsider_visit(false, cx.topology, scheme, cx.mtu, cx.now);
        self.end_if_done(cx);
        true
    }

    /// A data packet of this transfer was overheard.
    pub(super) fn overhear(&mut self, sender: NodeId, data: &Data<'_>, now: Instant) {
        if self.children.contains(&sender) {
            self.hold_until = self.hold_until.min(now);
        }
        if let Some(visit) = &mut self.visit {
            visit.overhear(sender, data, now);
        }
    }

    /// A child reports what it has of a batch. Says whether that is the one at hand.
    pub(super) fn hear_report(&mut self, from: NodeId, report: &Report, now: Instant) -> bool {
        let at_hand = (report.incarnation, report.visit) == (self.incarnation, self.visits);
        let Some(visit) = self.visit.as_mut().filter(|_| at_hand) else { return false };
        visit.hear_report(from, report, now);
        true
    }

    /// Sees to it that a batch neither rests nor is stuck while somebody lacks it.
    pub(super) fn prod(&mut self, now: Instant) {
        let Some(visit) = &mut self.visit else { return };
        visit.prod(now);
        if visit.is_stuck(now) {
            // Of a higher number, it makes forwarders drop what they hold.
            self.visits = self.visits.wrapping_add(1);
            visit.renew(self.manifest.flow.source, now);
        }
    }

    /// Whether a data packet can be sent.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        let has_packet = self.visit.as_ref().is_none_or(|visit| visit.pick(now).is_some());
        now >= self.hold_until && self.may_start(now) && has_packet && self.next_batch().is_some()
    }

    /// When, later than `after`, it may send or announce.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        if self.phase != Phase::Open {
            return None;
        }
        let times = [self.hold_until, self.announce_at, self.started + GRACE];
        let visit = self.visit.as_ref().and_then(|visit| visit.poll_timeout(after));
        times.into_iter().filter(|t| *t > after).chain(visit).min()
    }

    /// Begins a visit if none is under way. `None`: there is nothing to send.
    pub(super) fn prepare(&mut self, cx: &mut Context<'_>, scheme: &dyn Scheme) -> Option<()> {
        if self.visit.is_some() {
            return Some(());
        }
        let (batch, wanted_by, plan) = self.next_visit(cx.topology, scheme, cx.mtu)?;
        if let Err(failure) = self.load(batch, cx) {
            self.fail(failure, cx);
            return None;
        }
        let packets = self.manifest.geometry.packets(batch);
        let is_first = self.sent_once.insert(batch);
        self.visits = self.visits.wrapping_add(1);
        self.last_batch = Some(batch);
        self.forwarders.extend(plan.routing.forwarders());
        let arq = scheme
            .forwarding()
            .is_hop_by_hop()
            .then(|| Arq::new(plan.routing.children(cx.me), packets, cx.now));
        self.visit = Some(Visit::new(batch, packets, is_first, wanted_by, plan, arq, cx.now));
        Some(())
    }

    /// Appends a data packet of the visit under way; says to whom it goes if not to all.
    pub(super) fn fill(
        &mut self,
        cx: &mut Context<'_>,
        piggyback: Option<Piggyback>,
        scheme: &dyn Scheme,
        out: &mut Vec<u8>,
    ) -> Option<Option<NodeId>> {
        let visit = self.visit.as_mut()?;
        let encoder = self.encoder.as_ref()?;
        let pick = visit.pick(cx.now)?;
        self.children.clone_from(&visit.plan.children);
        self.children_credit = visit.plan.children_credit;
        let shape = encoder.shape();
        let packets = shape.generation_size() as u8;
        let header = DataHeader {
            flow: self.manifest.flow,
            incarnation: self.incarnation,
            visit: self.visits,
            batch: visit.batch,
            packets,
            routing: visit.plan.routing.clone(),
            revision: visit.revision,
            poll: if let Pick::Plain(next) = pick { next.poll } else { None },
            piggyback,
        };
        header.write(pick != Pick::Combination, out);
        if let Pick::Plain(next) = pick {
            out.push(next.packet);
            out.extend_from_slice(encoder.symbol(usize::from(next.packet))?);
        } else {
            let start = out.len();
            out.resize(start + shape.generation_size() + shape.symbol_size(), 0);
            let (coefficients, payload) = out[start..].split_at_mut(shape.generation_size());
            draw(shape.field(), cx.rng, coefficients);
            encoder.encode(coefficients, payload).ok()?;
        }
        let to = visit.sent(pick, scheme.forwarding());
        self.packets_sent += 1;
        self.sent_at = cx.now;
        if scheme.switching() == Switching::RoundRobin && visit.remaining <= 0.0 {
            self.visit = None;
        }
        Some(to)
    }

    /// The packet filled last has left; `packet_time` is the mean airtime of one (T_p).
    pub(super) fn sent(
        &mut self,
        scheme: &dyn Scheme,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        if let Some(visit) = &mut self.visit {
            visit.report(result, packet_time, now);
        }
        if let Some(patience) = scheme.patience() {
            self.hold_until = now + packet_time.mul_f64(self.children_credit * patience);
        }
    }

    /// The announcement to flood next, if one is due.
    pub(super) fn announcement(
        &mut self,
        cx: &Context<'_>,
        scheme: &dyn Scheme,
    ) -> Option<Announce> {
        let now = cx.now;
        if self.phase == Phase::Open && now < self.announce_at {
            return None;
        }
        self.mark_lost(now);
        self.reconsider_visit(false, cx.topology, scheme, cx.mtu, cx.now);
        self.announced += 1;
        self.announce_at = now + self.announce_pause;
        self.announce_pause = (self.announce_pause * 2).min(ANNOUNCE_LONGEST);
        let receivers = self.receivers.iter().map(|(node, r)| (*node, r.announced_state(now)));
        Some(Announce {
            version: (cx.epoch, self.announced),
            phase: self.phase,
            open: self.open,
            manifest: self.manifest.clone(),
            receivers: receivers.collect(),
        })
    }

    /// Withdraws the file.
    pub(super) fn withdraw(&mut self, now: Instant) {
        self.close(Phase::Withdrawn, now);
    }

    /// Ends the transfer when no receiver wants anything more.
    pub(super) fn end_if_done(&mut self, cx: &mut Context<'_>) {
        if self.phase == Phase::Open && self.receivers.values().all(|r| r.state.is_final()) {
            self.close(Phase::Ended, cx.now);
            cx.events.push_back(Event::SendEnded(self.manifest.flow));
        }
    }

    /// A receiver shows that it has missed the end.
    fn tell_end_again(&mut self, ack: &Ack, now: Instant) {
        let told_lately = self.end_told.is_some_and(|at| now.since(at) < ANNOUNCE_LONGEST);
        if !ack.state.is_final() && !told_lately {
            self.end_told = None;
        }
    }

    fn admit(&mut self, node: NodeId, now: Instant) {
        let receiver = Receiver {
            state: ReceiverState::Invited,
            have: BatchSet::none(self.manifest.geometry.batches()),
            finished: None,
            version: (0, 0),
            heard_at: now,
            reachable: self.paths.as_ref().is_some_and(|p| p.reaches(node)),
        };
        self.receivers.insert(node, receiver);
    }

    fn close(&mut self, phase: Phase, now: Instant) {
        self.phase = phase;
        self.finished = Some(now);
        self.visit = None;
        self.encoder = None;
    }

    fn fail(&mut self, failure: SendFailure, cx: &mut Context<'_>) {
        self.failure = Some(failure);
        self.close(Phase::Withdrawn, cx.now);
        cx.events.push_back(Event::SendFailed(self.manifest.flow, failure));
    }

    fn announce_soon(&mut self, now: Instant) {
        self.announce_pause = ANNOUNCE_FIRST;
        self.announce_at = self.announce_at.min(now + ANNOUNCE_FIRST);
    }

    fn mark_lost(&mut self, now: Instant) {
        for r in self.receivers.values_mut().filter(|r| r.state == ReceiverState::Active) {
            if now.since(r.heard_at) > LOST_AFTER {
                r.state = ReceiverState::Lost;
            }
        }
    }

    /// Sending begins when every receiver in reach has answered, or some have and the others had time to.
    fn may_start(&self, now: Instant) -> bool {
        now >= self.started + GRACE
            || !self.receivers.values().any(|r| r.reachable && r.state == ReceiverState::Invited)
    }

    fn wanted_by(&self, batch: u32) -> impl Iterator<Item = NodeId> + '_ {
        let wants = move |r: &Receiver| r.is_served() && !r.have.contains(batch);
        self.receivers.iter().filter(move |(_, r)| wants(r)).map(|(node, _)| *node)
    }

    /// The next batch in turn that somebody in reach still lacks.
    fn next_batch(&self) -> Option<u32> {
        if self.phase != Phase::Open {
            return None;
        }
        if let Some(visit) = &self.visit {
            return Some(visit.batch);
        }
        let served = || self.receivers.values().filter(|r| r.is_served());
        let lowest = served().map(|r| r.have.first_missing()).min()?;
        let end = self.manifest.geometry.batches().min(lowest.saturating_add(self.window));
        let after = self.last_batch.map_or(0, |b| b + 1);
        let turn = (after..end).chain(lowest..after.min(end));
        turn.into_iter().find(|b| served().any(|r| !r.have.contains(*b)))
    }

    /// Leaves the visit when those it was for have it, or cannot be reached any more; replans it where fewer
    /// want it or the mesh has changed.
    fn reconsider_visit(
        &mut self,
        mesh_changed: bool,
        topology: &Topology,
        scheme: &dyn Scheme,
        mtu: usize,
        now: Instant,
    ) {
        let Some(mut visit) = self.visit.take() else { return };
        let still: BTreeSet<NodeId> =
            self.wanted_by(visit.batch).filter(|node| visit.wanted_by.contains(node)).collect();
        if still.len() == visit.wanted_by.len() && !mesh_changed {
            self.visit = Some(visit);
            return;
        }
        let has_it =
            |node: &NodeId| self.receivers.get(node).is_some_and(|r| r.have.contains(visit.batch));
        let acknowledged = visit.wanted_by.iter().any(has_it);
        if still.is_empty() || (acknowledged && scheme.switching() == Switching::RoundRobin) {
            return;
        }
        if let Some(plan) = self.fitting_plan(&still, topology, scheme, mtu) {
            visit.adopt(still, plan, self.manifest.flow.source, now);
            self.visit = Some(visit);
        }
    }

    /// The next batch in turn, who wants it and the plan for it. Receivers whose way is so long that its
    /// forwarders do not fit into a frame are out of reach.
    fn next_visit(
        &mut self,
        topology: &Topology,
        scheme: &dyn Scheme,
        mtu: usize,
    ) -> Option<(u32, BTreeSet<NodeId>, Plan)> {
        loop {
            let batch = self.next_batch()?;
            let mut wanted_by: BTreeSet<NodeId> = self.wanted_by(batch).collect();
            if scheme.switching() == Switching::OneByOne {
                let nearest = wanted_by.iter().min_by_key(|node| (self.distance(**node), **node));
                wanted_by = nearest.copied().into_iter().collect();
            }
            if let Some(plan) = self.fitting_plan(&wanted_by, topology, scheme, mtu) {
                return Some((batch, wanted_by, plan));
            }
            for node in &wanted_by {
                if let Some(receiver) = self.receivers.get_mut(node) {
                    receiver.reachable = false;
                    receiver.state = ReceiverState::Lost;
                }
            }
        }
    }

    /// A plan whose forwarder list fits into a frame: receivers too many for that wait for another visit.
    /// `None` where none fits even for the nearest alone, or there is no way by the links that it takes.
    fn fitting_plan(
        &self,
        wanted_by: &BTreeSet<NodeId>,
        topology: &Topology,
        scheme: &dyn Scheme,
        mtu: usize,
    ) -> Option<Plan> {
        let g = &self.manifest.geometry;
        let (packets, symbol) = (usize::from(g.generation()), usize::from(g.symbol_size()));
        let mut wanted: Vec<NodeId> = wanted_by.iter().copied().collect();
        wanted.sort_by_key(|node| self.distance(*node));
        while !wanted.is_empty() {
            let plan = scheme.plan(topology, self.manifest.flow.source, &wanted);
            let listed = plan.routing.listed();
            let overhead = scheme.forwarding().overhead(listed, packets);
            let leads_nowhere = matches!(&plan.routing, Routing::Tree(hops) if hops.is_empty());
            if listed <= MAX_LISTED && overhead + symbol <= mtu && !leads_nowhere {
                return Some(plan);
            }
            wanted.pop();
        }
        None
    }

    fn distance(&self, node: NodeId) -> u128 {
        self.paths.as_ref().map_or(0, |paths| paths.distance(node))
    }

    /// Reads a batch, checks that it is what was announced, and readies it for coding.
    fn load(&mut self, batch: u32, cx: &mut Context<'_>) -> Result<(), SendFailure> {
        let g = self.manifest.geometry;
        self.scratch.resize(g.data_len(batch), 0);
        cx.storage
            .read(self.manifest.flow, g.offset(batch), &mut self.scratch)
            .map_err(|_| SendFailure::Unreadable)?;
        if self.tree.leaf(batch) != Some(&merkle::leaf(&self.scratch)) {
            return Err(SendFailure::Changed);
        }
        self.tree.write_branch(batch, &mut self.scratch);
        let shape = g.shape(batch);
        if self.encoder.as_ref().is_none_or(|e| e.shape() != shape) {
            self.encoder = Some(Encoder::new(shape));
        }
        let encoder = self.encoder.as_mut().ok_or(SendFailure::Unreadable)?;
        encoder.load(&self.scratch).map_err(|_| SendFailure::Changed)
    }
}

impl Receiver {
    /// Whether data is sent for it.
    fn is_served(&self) -> bool {
        self.reachable && self.state == ReceiverState::Active
    }

    /// What an announcement says of it. One that has been silent is shown as lost, so that it answers.
    fn announced_state(&self, now: Instant) -> ReceiverState {
        if self.state == ReceiverState::Active && now.since(self.heard_at) > ASK_AFTER {
            return ReceiverState::Lost;
        }
        self.state
    }
}
