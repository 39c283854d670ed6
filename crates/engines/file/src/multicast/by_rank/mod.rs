//! Files hop by hop, by rank: a node sends while a child lacks what it has.
//!
//! Each node takes the file from one neighbour, its parent, and tells it what it still wants. A
//! parent counts what it sends and what arrives, and so knows when a child should have enough; then
//! it asks. Nothing is planned, and each report corrects what was expected:
//!
//! ```text
//!             data: rank of the sender, its wants, a combination
//!        parent --------------------------------------------> child
//!               <--------------------------------------------
//!             report: wants, and the rank held of each generation
//! ```
//!
//! - A data packet says what its sender still wants, so a parent that overhears its child forward
//!   learns the child's rank without a report.
//! - A packet serves every child that lacks anything, and every other node that hears it.
//! - A child that forwards gets no more than a few generations ahead of what it has passed on.
//!   Generations follow one another down the tree, and no clock says how fast.
//! - Every node checks a generation once it is whole (`held`).
//!
//! | module | what |
//! | --- | --- |
//! | `flow` | a transfer at this node: what to send next |
//! | `held` | what it holds, and whether that is genuine |
//! | `child` | what a child wants and should have by now |
//! | `slot` | silence for answers that this node may not hear |
//! | `tree` | the parents that a transfer begins with |
//! | `upstream` | which node is the parent, and when to report to it |

mod child;
mod flow;
mod held;
mod slot;
mod tree;
mod upstream;

#[cfg(test)]
mod tests;

use super::frame::{RankReport, Ranked, RankedHeader, Wants};
use flow::Flow;
use held::{Held, Role, Taken};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::{BatchSet, Begun, Manifest};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::toolkit::bounded::MAX_FLOWS;
use ncmesh_engine::toolkit::passing::{Passing, is_passed_on, outcome, way};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::{Context, TxReport};
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use slot::AnswerSlot;
use std::collections::BTreeMap;

/// Data go down a link and reports go up, if need be by another way.
const METRIC: Metric = Metric::Answered;
/// Packet time of a node that has sent none. It bounds nothing: a packet takes 12 us on a cable.
const FIRST_PACKET_TIME: Duration = Duration::from_millis(1);

/// The transfers that this node has a part in, of a scheme that sends by rank.
#[derive(Debug)]
pub(super) struct ByRank {
    flows: BTreeMap<FlowId, Flow>,
    passing: Passing<PassingKey, RankReport>,
    on_air: OnAir,
    /// Mean airtime of a data packet.
    packet_time: DurationAverage,
    answer_slot: AnswerSlot,
    /// Most bytes for generations under way.
    memory: usize,
}

/// Name of a report that is passed on: its flow, the child that wrote it, and the parent.
type PassingKey = (FlowId, NodeId, NodeId);

/// The frame that is at the MAC.
#[derive(Clone, Copy, Debug)]
enum OnAir {
    Nothing,
    Data {
        flow: FlowId,
        /// Whether the packet polls this node's children.
        polls: bool,
    },
    Passing(PassingKey),
}

/// The packet to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NextCoded {
    /// When the transfer was last served: the one that has waited longest is next.
    sent_at: Instant,
    pub flow: FlowId,
    pub generation: u32,
}

/// What became of a data packet that this node heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It was not used, for a reason that is counted.
    Dropped(DropReason),
    /// It was not needed.
    Redundant,
    /// It was needed.
    Innovative,
    /// It made its generation whole; [`ByRank::decode`] returns it.
    Whole,
}

impl ByRank {
    /// Returns an engine without transfers, whose generations take at most `memory` bytes.
    pub(super) fn new(memory: usize) -> Self {
        Self {
            flows: BTreeMap::new(),
            passing: Passing::default(),
            on_air: OnAir::Nothing,
            packet_time: DurationAverage::default(),
            answer_slot: AnswerSlot::default(),
            memory,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    fn packet_time(&self) -> Duration {
        match self.packet_time.value() {
            Duration::ZERO => FIRST_PACKET_TIME,
            known => known,
        }
    }

    // ---- transfers begin and end

    /// Begins to send a file.
    pub(super) fn open(&mut self, cx: &mut Context<'_>, manifest: &Manifest) {
        let next = vec![0; manifest.geometry.batches() as usize];
        let held = Held::new(manifest.clone(), Role::Source(next));
        self.flows.insert(manifest.flow, Flow::new(held, cx.rng, cx.now));
    }

    /// Begins to receive a file, of which `have` is complete.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, manifest: &Manifest, have: &BatchSet) {
        if have.is_full() {
            return;
        }
        let Some(flow) = self.join(cx, manifest) else { return };
        flow.held.role = Role::Receiver(have.clone());
        flow.drop_unwanted();
        flow.upstream.report(cx.now);
        self.review_parent(cx, manifest.flow, false);
    }

    /// Returns the generations that are held whole for children, and that this node lacks itself.
    pub(super) fn whole_but_lacking(&self, flow: FlowId) -> Vec<u32> {
        let Some(flow) = self.flows.get(&flow) else { return Vec::new() };
        let held = &flow.held;
        held.begun(0).filter(|g| held.is_whole(*g) && held.lacks(*g)).collect()
    }

    /// Notes that this node does not want the file any more; it goes on for its children.
    pub(super) fn stop_receiving(&mut self, flow: FlowId) {
        if let Some(flow) = self.flows.get_mut(&flow).filter(|flow| !flow.held.is_source()) {
            flow.held.role = Role::Relay;
            flow.drop_unwanted();
        }
    }

    /// Forgets a transfer that is over.
    pub(super) fn close(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    /// Takes parent and children from the tree to `receivers`: a transfer that was just announced
    /// need not wait for reports.
    pub(super) fn expect(
        &mut self,
        cx: &mut Context<'_>,
        manifest: &Manifest,
        receivers: impl Iterator<Item = NodeId>,
    ) {
        let parents = tree::parents(cx.topology, manifest.flow.source, receivers);
        let planned = parents.get(&cx.me).copied();
        let fed = parents.iter().filter(|(_, parent)| **parent == cx.me);
        let children: Vec<NodeId> = fed.map(|(child, _)| *child).collect();
        if planned.is_none() && children.is_empty() {
            return;
        }
        if let Some(flow) = self.join(cx, manifest) {
            flow.upstream.planned = planned;
            for child in children {
                flow.expect_child(cx, child);
            }
            self.review_parent(cx, manifest.flow, false);
        }
    }

    /// Returns a transfer, as a relay of it if this node had no part in it. If it relays too many,
    /// the one that was silent longest makes room; those that it sends or receives never do.
    fn join(&mut self, cx: &mut Context<'_>, manifest: &Manifest) -> Option<&mut Flow> {
        let id = manifest.flow;
        if !self.flows.contains_key(&id) {
            let relayed = || self.flows.iter().filter(|(_, flow)| flow.held.is_relay());
            if relayed().count() >= MAX_FLOWS {
                let oldest = relayed().min_by_key(|(_, flow)| flow.heard_at).map(|(id, _)| *id)?;
                self.flows.remove(&oldest);
            }
            let held = Held::new(manifest.clone(), Role::Relay);
            self.flows.insert(id, Flow::new(held, cx.rng, cx.now));
        }
        self.flows.get_mut(&id)
    }

    // ---- what is heard

    /// Handles a data packet.
    pub(super) fn handle_data(
        &mut self,
        cx: &Context<'_>,
        sender: NodeId,
        packet: &Ranked<'_>,
    ) -> Heard {
        let (header, packet_time) = (&packet.header, self.packet_time());
        let generation = header.generation;
        let Some(flow) = self.flows.get_mut(&header.flow) else {
            return Heard::Dropped(DropReason::UnknownFlow);
        };
        flow.heard_at = cx.now;
        flow.upstream.count(sender, header.number, cx.topology.delivery(sender, cx.me));

        // A child says what it still wants, or that it has another parent.
        if flow.children.contains_key(&sender) {
            self.answer_slot.hear_child(sender, header.poll, packet_time, cx.now);
            if header.parent == cx.me {
                flow.hear_child(cx, sender, (header.number, &header.wants));
                flow.make_way(sender, packet_time, cx.now);
            } else {
                flow.lose_child(sender, header.number);
            }
        }
        if flow.held.is_source() {
            return Heard::Redundant;
        }

        let is_from_parent = flow.upstream.parent == Some(sender);
        let is_wanted = flow.is_wanted(generation);
        if is_from_parent {
            flow.upstream.hear_parent(header.poll, is_wanted, cx.now);
        }
        if !is_wanted || (flow.held.is_spoiled(generation) && !is_from_parent) {
            return Heard::Redundant;
        }
        if !flow.held.has_begun(generation) && !self.make_room(header.flow, generation) {
            return Heard::Dropped(DropReason::Full);
        }
        let Some(flow) = self.flows.get_mut(&header.flow) else { return Heard::Redundant };
        match flow.held.absorb(packet) {
            Taken::Malformed => Heard::Dropped(DropReason::Malformed),
            Taken::Redundant => Heard::Redundant,
            Taken::Innovative => Heard::Innovative,
            Taken::Whole => Heard::Whole,
        }
    }

    /// Makes room for another generation: what nobody wants goes first, then the transfer that
    /// takes most gives up its last. Returns whether there is room.
    fn make_room(&mut self, id: FlowId, generation: u32) -> bool {
        let Some(needed) = self.flows.get(&id).map(|flow| flow.held.memory_of_generation()) else {
            return false;
        };
        if !self.has_room(needed) {
            self.flows.values_mut().for_each(|flow| flow.drop_unwanted_beyond(0));
        }
        while !self.has_room(needed) {
            // The last generation goes first: it has the fewest packets, and is wanted last. A
            // transfer that would only drop its own later generations gains nothing.
            let largest = self.flows.iter_mut().max_by_key(|(_, flow)| flow.held.memory());
            let Some((largest, flow)) = largest else { return false };
            let last = flow.held.last_begun();
            if last.is_none_or(|last| *largest == id && last <= generation) {
                return false;
            }
            flow.held.drop_last();
        }
        true
    }

    fn has_room(&self, bytes: usize) -> bool {
        let used: usize = self.flows.values().map(|flow| flow.held.memory()).sum();
        used.saturating_add(bytes) <= self.memory
    }

    /// Returns the first generation that is lacking and of which there is a part here.
    pub(super) fn begun(&self, flow: FlowId) -> Option<Begun> {
        let held = &self.flows.get(&flow)?.held;
        let batch = held.begun(held.lowest_lacking()?).find(|batch| !held.is_whole(*batch))?;
        Some(Begun { batch, rank: held.rank(batch).into(), packets: held.packets(batch).into() })
    }

    /// Returns the packets of a generation that is whole, one after the other.
    pub(super) fn decode(&mut self, flow: FlowId, generation: u32) -> Option<&[u8]> {
        self.flows.get_mut(&flow)?.held.decode(generation)
    }

    /// Notes that a generation which was whole is genuine or, if not, begins it anew.
    pub(super) fn record_check(
        &mut self,
        cx: &Context<'_>,
        flow: FlowId,
        generation: u32,
        is_genuine: bool,
    ) {
        let Some(flow) = self.flows.get_mut(&flow) else { return };
        if is_genuine {
            flow.held.complete(generation);
            flow.drop_unwanted();
        } else {
            // What comes from the parent alone and is forged all the same, the parent forged, or
            // does not check.
            let parent = flow.upstream.parent.filter(|_| flow.held.is_spoiled(generation));
            if let Some(parent) = parent {
                flow.upstream.avoid(parent, cx.now);
            }
            flow.held.spoil(generation);
        }
        flow.upstream.report(cx.now);
    }

    /// Handles a report that was heard: passes it on, or takes it if it is for this node.
    /// `manifest` is that of its transfer, if it is known and open.
    pub(super) fn handle_report(
        &mut self,
        cx: &mut Context<'_>,
        report: RankReport,
        manifest: Option<&Manifest>,
    ) -> Result<(), DropReason> {
        let id = report.flow;
        self.answer_slot.hear_report(report.parent);
        if report.parent != cx.me {
            // The child has another parent now.
            if let Some(flow) = self.flows.get_mut(&id) {
                flow.lose_child(report.child, report.number);
            }
            // A report for another node, whose link may bring nothing from this child: whoever lies
            // on a way that exists passes it on.
            let ends = (report.child, report.next_hop, report.parent);
            let has_room =
                !is_passed_on(cx.topology, cx.me, ends, METRIC) || self.pass_on(report, cx.now);
            return if has_room { Ok(()) } else { Err(DropReason::Full) };
        }
        let manifest = manifest.ok_or(DropReason::UnknownFlow)?;
        let wants_nothing = report.wants.lowest().is_none();
        let packet_time = self.packet_time();
        if report.child == cx.me || cx.topology.state(report.child).is_none() {
            return Err(DropReason::Malformed);
        }
        let flow = match self.flows.get_mut(&id) {
            None if wants_nothing || id.source == cx.me => return Err(DropReason::UnknownFlow),
            None => self.join(cx, manifest).ok_or(DropReason::Full)?,
            Some(flow) => flow,
        };
        if flow.children.get(&report.child).is_some_and(|child| child.is_stale(report.number)) {
            return Err(DropReason::Stale);
        }
        flow.heard_at = cx.now;
        flow.hear_child(cx, report.child, (report.number, &report.wants));
        self.answer_slot.hear_answer(id, packet_time, cx.now);
        self.review_parent(cx, id, false);
        Ok(())
    }

    /// Counts a report of a neighbour that was heard from itself.
    pub(super) fn note_report(&mut self, cx: &Context<'_>, report: &RankReport) {
        if let Some(flow) = self.flows.get_mut(&report.flow) {
            let told = cx.topology.delivery(report.child, cx.me);
            flow.upstream.count(report.child, report.number, told);
        }
    }

    // ---- time

    /// Does what has fallen due.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for flow in self.flows.values_mut().filter(|flow| !flow.held.is_source()) {
            if flow.upstream.take_question(now) && flow.lowest_wanted().is_some() {
                flow.upstream.report(now);
            }
        }
    }

    /// Does once a second what need not be done at once.
    pub(super) fn tick(&mut self, cx: &mut Context<'_>) {
        let ids: Vec<FlowId> = self.flows.keys().copied().collect();
        for id in ids {
            self.review_parent(cx, id, true);
            let Some(flow) = self.flows.get_mut(&id) else { continue };
            let is_over = !flow.expire(cx.now);
            if flow.is_idle() {
                // Nobody here or below wants anything, so its parent need not send. What it holds
                // stays for a while.
                if let Some(parent) = flow.upstream.parent.take() {
                    let number = flow.next_number();
                    self.say_farewell(cx, id, parent, number);
                }
                if is_over {
                    self.flows.remove(&id);
                }
            } else if !flow.held.is_source() && flow.lowest_wanted().is_some() {
                flow.upstream.report_if_idle(cx.now);
            }
        }
    }

    /// Looks for a better parent, and tells the old one that this node has left it.
    fn review_parent(&mut self, cx: &Context<'_>, id: FlowId, is_check: bool) {
        let takes = |flow: &&mut Flow| !flow.held.is_source() && !flow.is_idle();
        let Some(flow) = self.flows.get_mut(&id).filter(takes) else { return };
        if let Some(old) = flow.upstream.review(cx, id.source, is_check) {
            let number = flow.next_number();
            self.say_farewell(cx, id, old, number);
        }
    }

    fn say_farewell(&mut self, cx: &Context<'_>, flow: FlowId, parent: NodeId, number: u16) {
        let (next_hop, child, wants) = (parent, cx.me, Wants::nothing());
        // A parent that does not hear it forgets this node in time.
        self.pass_on(RankReport { next_hop, parent, child, flow, number, wants }, cx.now);
    }

    /// Keeps a report to send it on. Returns whether there was room.
    fn pass_on(&mut self, report: RankReport, now: Instant) -> bool {
        self.passing.admit((report.flow, report.child, report.parent), report, now)
    }

    /// Returns the first time later than `after` at which it has something to do.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let flows = self.flows.values().filter_map(|flow| flow.poll_timeout(after));
        let own = [self.passing.poll_timeout(after), Some(self.answer_slot.until())];
        flows.chain(own.into_iter().flatten().filter(|at| *at > after)).min()
    }

    // ---- what is sent

    /// Returns whether a report is due.
    pub(super) fn has_report(&self, now: Instant) -> bool {
        self.passing.due(now).is_some()
            || self.flows.values().any(|flow| flow.upstream.reports_to(now).is_some())
    }

    /// Appends the report that is due, this node's own before others'. Returns where it goes by
    /// unicast; `Some(None)` for a broadcast.
    pub(super) fn fill_report(
        &mut self,
        cx: &Context<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Option<NodeId>> {
        let packet_time = self.packet_time();
        let due = |(id, flow): (&FlowId, &Flow)| Some((*id, flow.upstream.reports_to(cx.now)?));
        if let Some((id, parent)) = self.flows.iter().find_map(due) {
            let flow = self.flows.get_mut(&id)?;
            let next_hop = way_to(cx, parent);
            let (number, wants) = (flow.next_number(), flow.wants(RankReport::LISTED));
            let delivery = cx.topology.delivery(cx.me, next_hop);
            flow.upstream.note_reported(delivery, packet_time, cx.now);
            RankReport { next_hop, parent, child: cx.me, flow: id, number, wants }.write(out);
            self.on_air = OnAir::Nothing;
            return Some(None);
        }
        let (key, report) = self.passing.due(cx.now)?;
        let next_hop = way_to(cx, report.parent);
        RankReport { next_hop, ..report.clone() }.write(out);
        self.passing.note_sent(key, cx.now);
        self.on_air = OnAir::Passing(key);
        Some(Some(next_hop))
    }

    /// Returns the packet to send next, of the transfers that `may_send`.
    pub(super) fn next(
        &self,
        may_send: impl Fn(FlowId) -> bool,
        now: Instant,
    ) -> Option<NextCoded> {
        if now < self.answer_slot.until() {
            return None;
        }
        let ready = self.flows.iter().filter(|(id, _)| may_send(**id)).filter_map(|(id, flow)| {
            let generation = flow.next_generation(now)?;
            Some(NextCoded { sent_at: flow.sent_at, flow: *id, generation })
        });
        ready.min()
    }

    /// Notes that a packet is sent now. Returns its header, and the packet of the generation if one
    /// is to be sent as it is.
    pub(super) fn begin(
        &mut self,
        next: NextCoded,
        me: NodeId,
        now: Instant,
    ) -> Option<(RankedHeader, Option<u8>)> {
        let packet_time = self.packet_time();
        let flow = self.flows.get_mut(&next.flow)?;
        let sent = flow.note_sent(me, next.generation, packet_time, now);
        self.on_air = OnAir::Data { flow: next.flow, polls: sent.0.poll };
        Some(sent)
    }

    /// Appends coding vector and payload of a combination of what is held. Returns whether there
    /// was anything.
    pub(super) fn recode(
        &self,
        next: NextCoded,
        rng: &mut impl RngCore,
        out: &mut Vec<u8>,
    ) -> bool {
        let flow = self.flows.get(&next.flow);
        flow.is_some_and(|flow| flow.held.recode(next.generation, rng, out).unwrap_or(false))
    }

    /// Handles the MAC's report on the last frame.
    pub(super) fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: &TxReport) {
        match core::mem::replace(&mut self.on_air, OnAir::Nothing) {
            OnAir::Nothing => {}
            OnAir::Passing(key) => {
                let result = outcome(cx.topology, (cx.me, way_to(cx, key.2)), report.result);
                self.passing.handle_tx_result(key, result, cx.now);
            }
            OnAir::Data { flow: id, polls } => {
                self.packet_time.add(report.airtime);
                if polls {
                    self.answer_slot.note_polled(id, cx.now);
                }
                let packet_time = self.packet_time();
                if let Some(flow) = self.flows.get_mut(&id) {
                    flow.ease(packet_time, cx.now, cx.rng);
                }
            }
        }
    }
}

/// Returns the next node on the way to a parent, which may not hear this one well.
fn way_to(cx: &Context<'_>, parent: NodeId) -> NodeId {
    way(cx.topology, cx.me, parent, METRIC)
}
