//! What the service does with frames heard.

use super::FileMulticast;
use crate::multicast::acks::Taken;
use crate::multicast::announce::{Heard, SILENT};
use crate::multicast::data::Data;
use crate::multicast::frame::{Ack, Announce, Phase, Report};
use crate::multicast::relay::Relayed;
use crate::multicast::scheme::Scheme;
use crate::multicast::sink::{Sink, SinkPhase, Sunk, make_memory};
use ncmesh_engine::FileEngine;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::ReceiverState;
use ncmesh_engine::file::{Refusal, is_safe_name};
use ncmesh_engine::time::Duration;
use ncmesh_engine::{Context, Event, Frame};
use ncmesh_wire::FlowId;

/// An announcement is answered at most this often.
const ANSWER_PAUSE: Duration = Duration::from_millis(150);

impl<S: Scheme> FileMulticast<S> {
    pub(super) fn hear_announce(&mut self, cx: &mut Context<'_>, heard: &Frame<'_>) {
        let Ok(announce) = Announce::parse(heard.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        let flow = announce.manifest.flow;
        match self.announces.take(&announce, Some(heard.sender), cx.now, cx.rng) {
            Heard::Full => return cx.counters.drop(DropReason::Full),
            Heard::Known => return self.settle_announcements(cx),
            Heard::New => {}
        }
        if announce.phase != Phase::Open {
            self.relays.forget(flow);
            self.acks.forget(flow);
        }
        if flow.source != cx.me {
            self.consider(cx, &announce);
        }
    }

    /// A new announcement: is it for this node, and does the source know how this node stands?
    fn consider(&mut self, cx: &mut Context<'_>, announce: &Announce) {
        let flow = announce.manifest.flow;
        let listed = announce.receivers.iter().find(|(node, _)| *node == cx.me).map(|(_, s)| *s);
        match (self.sinks.get_mut(&flow), announce.phase) {
            (Some(sink), Phase::Withdrawn | Phase::Ended) if sink.lacks_something() => {
                sink.end(SinkPhase::Withdrawn, cx.now);
                cx.events.push_back(Event::Withdrawn(flow));
            }
            (Some(sink), Phase::Open) => {
                sink.heard_at = cx.now;
                let known = listed.unwrap_or(ReceiverState::Invited);
                if sink.phase != SinkPhase::Asking && known != sink.state() {
                    self.answer(cx, flow);
                }
            }
            (None, Phase::Open) if listed.is_some() || announce.open => {
                self.invite(cx, announce, listed);
            }
            _ => {}
        }
    }

    fn invite(&mut self, cx: &mut Context<'_>, announce: &Announce, known: Option<ReceiverState>) {
        let flow = announce.manifest.flow;
        if self.sinks.len() >= self.limits.kept && !self.drop_a_sink(cx) {
            cx.counters.drop(DropReason::Full);
            if known != Some(ReceiverState::Refused(Refusal::Busy)) {
                let version = self.next_ack(cx);
                self.pass_on(cx, Ack::refusal(flow, cx.me, version, Refusal::Busy));
            }
            return;
        }
        self.sinks.insert(flow, Sink::new(announce.manifest.clone(), cx.now));
        if is_safe_name(&announce.manifest.name) {
            cx.events.push_back(Event::Announced(Box::new(announce.manifest.clone())));
        } else {
            self.refuse(cx, flow, Refusal::BadName);
        }
    }

    /// Makes room for another file to receive: one that ended goes, or else one whose source is silent. That
    /// is taken up again when it is announced again.
    fn drop_a_sink(&mut self, cx: &mut Context<'_>) -> bool {
        let silent = |s: &Sink| cx.now.since(s.heard_at) >= SILENT;
        let may_go = self.sinks.iter().filter(|(_, s)| !s.is_open() || silent(s));
        let oldest = may_go.min_by_key(|(_, s)| (s.is_open(), s.finished, s.heard_at));
        let Some((flow, is_open)) = oldest.map(|(flow, s)| (*flow, s.is_open())) else {
            return false;
        };
        self.answered.remove(&flow);
        self.sinks.remove(&flow);
        if is_open {
            cx.events.push_back(Event::Suspended(flow));
        }
        true
    }

    /// The version of this node's next acknowledgment.
    fn next_ack(&mut self, cx: &Context<'_>) -> (u64, u32) {
        self.acks_made += 1;
        (cx.epoch, self.acks_made)
    }

    /// Tells the source how this receiver stands, unless it has just been told.
    fn answer(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        let recently = self.answered.get(&flow).is_some_and(|at| cx.now.since(*at) < ANSWER_PAUSE);
        if !recently {
            self.acknowledge(cx, flow);
        }
    }

    pub(super) fn acknowledge(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        let room = cx.mtu.saturating_sub(Ack::HEADER);
        let version = self.next_ack(cx);
        let Some(sink) = self.sinks.get(&flow) else { return };
        let ack = sink.acknowledge(cx.me, version, room);
        self.answered.insert(flow, cx.now);
        self.pass_on(cx, ack);
    }

    /// An acknowledgment of this node or another is to go on its way to the source. Says whether it is kept.
    fn pass_on(&mut self, cx: &mut Context<'_>, ack: Ack) -> bool {
        let taken = self.acks.push(ack, cx.now);
        if taken == Taken::Full {
            cx.counters.drop(DropReason::Full);
        }
        taken != Taken::Full
    }

    pub(super) fn hear_data(&mut self, cx: &mut Context<'_>, heard: &Frame<'_>) {
        let Ok(data) = Data::parse(heard.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if !data.header.routing.is_for(self.scheme.forwarding()) {
            return cx.counters.drop(DropReason::Malformed);
        }
        let flow = data.header.flow;
        self.acks.overhear(heard.sender, &data.header, cx.now);
        if let Some(source) = self.sources.get_mut(&flow) {
            return source.overhear(heard.sender, &data, cx.now);
        }
        match self.relays.handle_data(cx.me, heard.sender, &data, cx.mtu, cx.now) {
            Relayed::Malformed => cx.counters.drop(DropReason::Malformed),
            Relayed::Stale => cx.counters.drop(DropReason::Stale),
            Relayed::NotOurs | Relayed::Taken => {}
        }
        let needs = self.sinks.get(&flow).map_or(0, |sink| sink.needs(data.header.batch));
        if !make_memory(&mut self.sinks, needs, self.limits.memory) {
            return cx.counters.drop(DropReason::Full);
        }
        let Some(sink) = self.sinks.get_mut(&flow) else { return };
        match sink.handle_data(&data, cx.now, cx.storage) {
            Sunk::Quiet => {}
            Sunk::Malformed | Sunk::BatchBad => cx.counters.drop(DropReason::Malformed),
            Sunk::Failed(why) => {
                self.refuse(cx, flow, why);
                cx.events.push_back(Event::Unwritable(flow));
            }
            Sunk::BatchDone => self.batch_done(cx, flow),
        }
    }

    pub(super) fn batch_done(&mut self, cx: &mut Context<'_>, flow: FlowId) {
        self.acknowledge(cx, flow);
        if self.sinks.get(&flow).is_some_and(|s| s.phase == SinkPhase::Verifying) {
            cx.events.push_back(Event::Assembled(flow));
        }
    }

    pub(super) fn hear_ack(&mut self, cx: &mut Context<'_>, heard: &Frame<'_>) {
        let Ok((next_hop, ack)) = Ack::parse(heard.body) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if next_hop != cx.me {
            return;
        }
        if ack.flow.source != cx.me {
            if self.pass_on(cx, ack.clone()) {
                self.acks.received(&ack);
            }
            return;
        }
        match self.sources.get_mut(&ack.flow) {
            None => cx.counters.drop(DropReason::UnknownFlow),
            Some(source) => {
                self.acks.received(&ack);
                if !source.handle_ack(&ack, cx, &self.scheme) {
                    cx.counters.drop(DropReason::Stale);
                }
            }
        }
    }

    pub(super) fn hear_report(&mut self, cx: &mut Context<'_>, heard: &Frame<'_>) {
        let report = Report::parse(heard.body);
        let is_ours = self.scheme.forwarding().is_hop_by_hop();
        let Some((parent, report)) = report.ok().filter(|_| is_ours) else {
            return cx.counters.drop(DropReason::Malformed);
        };
        if parent != cx.me {
            return;
        }
        let is_news = match self.sources.get_mut(&report.flow) {
            Some(source) => source.hear_report(heard.sender, &report, cx.now),
            None => self.relays.handle_report(heard.sender, &report, cx.now) == Relayed::Taken,
        };
        if !is_news {
            cx.counters.drop(DropReason::Stale);
        }
    }
}
