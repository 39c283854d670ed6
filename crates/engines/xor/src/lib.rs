//! Pairwise coding of packets in opposite directions, for TCP: Huang, Ghaderi, Towsley, Gong, "TCP performance in
//! coded wireless mesh networks" (SECON 2008), section IV. A relay holds a packet for a moment; where one for the
//! opposite direction comes, both go in one broadcast, and each receiver takes its own out with the other, which it
//! has sent itself. Departures: `ERRATA.md`.

mod buffer;
mod cache;
mod config;
mod control;
mod feedback;
mod frame;
mod hold;
mod promise;
mod routes;
mod send;

#[cfg(test)]
mod tests;

use buffer::{Buffer, Packet};
use cache::Cache;
pub use config::XorConfig;
use feedback::Feedback;
use frame::{Data, MAX_HOPS, PacketId, Part, REPORT, REQUEST, Tag, check_of};
use hold::{HoldTimes, Mean};
use ncmesh_engine::Summary;
use ncmesh_engine::TunnelEngine;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::toolkit::has_enough;
use ncmesh_engine::toolkit::hop::{HopReceiver, HopSender, HopTiming};
use ncmesh_engine::topology::Metric;
use ncmesh_engine::tunnel::check_packet;
use ncmesh_engine::tunnel::{CodingStatus, DATA, FlowStatus, HoldStatus, PacketError, flow_of};
use ncmesh_engine::{Class, Context, Engine, Event, Filled, Frame, Offer, TxReport, TxResult};
use ncmesh_wire::{NodeId, ServiceId};
use promise::Promises;
use routes::Routes;
use std::sync::Arc;

/// The scheme's name.
pub const NAME: &str = "xor";
/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(21);

/// Row of this scheme in a program's registry.
pub const XOR: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "relays code packets of opposite directions together, such as TCP's data and acknowledgments",
    paper: "Huang, Ghaderi, Towsley, Gong: TCP performance in coded wireless mesh networks (SECON 2008)",
    read: summary,
    build: Constructor::Tunnel(|settings| {
        let config: XorConfig = settings.parse()?;
        config.check()?;
        Ok(Box::new(Xor::new(config)))
    }),
};

/// Times of a hop: a request and its answer travel through a busy channel.
const HOP: HopTiming = HopTiming {
    timeout: Duration::from_millis(60),
    ask_again: Duration::from_millis(25),
    answer_again: Duration::from_millis(10),
};

/// The engine at one node.
pub struct Xor {
    config: XorConfig,
    routes: Routes,
    cache: Cache,
    buffer: Buffer,
    holds: HoldTimes,
    promises: Promises,
    feedback: Feedback,
    sender: HopSender<Packet>,
    receiver: HopReceiver<(Tag, Arc<[u8]>)>,
    tallies: FlowCounters,
    coding: CodingStatus,
    /// The number of this node's last packet; none before the first.
    number: Option<u32>,
    /// At the MAC, where the MAC will tell whether it arrived.
    on_air: Option<Tag>,
    /// Since when the frame that goes next, or is on the air, has been first in line.
    first_since: Instant,
    /// How long packets wait for the channel, s.
    channel_wait_s: Mean,
}

impl Xor {
    /// The engine with these settings.
    #[must_use]
    pub fn new(config: XorConfig) -> Self {
        let metric = if config.unicast { Metric::Unicast } else { Metric::Broadcast };
        Self {
            routes: Routes::new(metric, config.paths()),
            cache: Cache::new(config.cache),
            buffer: Buffer::new(config.queue, config.late),
            holds: HoldTimes::new(config.hold_time(), config.max_hold_time_s),
            promises: Promises::default(),
            feedback: Feedback::new(config.min_decoded, config.unicast),
            sender: HopSender::new(HOP),
            receiver: HopReceiver::new(HOP),
            tallies: FlowCounters::default(),
            coding: CodingStatus::default(),
            number: None,
            on_air: None,
            first_since: Instant::default(),
            channel_wait_s: Mean::default(),
            config,
        }
    }

    // ---- receiving (Fig. 4, right)

    fn hear_data(&mut self, cx: &mut Context<'_>, data: Data<'_>, frame: &Frame<'_>) {
        if data.first().sender() != frame.sender {
            cx.counters.drop(DropReason::Malformed);
            return;
        }
        match data {
            Data::One(tag, packet) if tag.next() == cx.me => {
                self.promises.heard(frame.sender, tag.more, cx.now);
                self.receive(cx, tag, packet, frame.epoch);
            }
            Data::Two([one, other], payload) if other.tag.next() == cx.me => {
                self.decode(cx, other, one.tag.id, payload, frame.epoch);
            }
            Data::Two([one, other], payload) if one.tag.next() == cx.me => {
                self.decode(cx, one, other.tag.id, payload, frame.epoch);
            }
            _ => {}
        }
    }

    fn decode(
        &mut self,
        cx: &mut Context<'_>,
        own: Part,
        other: PacketId,
        payload: &[u8],
        epoch: u64,
    ) {
        let Part { tag, length, check } = own;
        let sender = tag.sender();
        self.promises.heard(sender, tag.more, cx.now);
        let decoded = self.cache.packet(other).and_then(|other| {
            let mut packet = payload.to_vec();
            frame::xor(&mut packet, other);
            packet.truncate(usize::from(length));
            (check_of(&packet) == check).then_some(packet)
        });
        self.feedback.heard(sender, decoded.is_some(), cx.now);
        match decoded {
            Some(packet) => {
                self.coding.decoded += 1;
                self.receive(cx, tag, &packet, epoch);
            }
            None => {
                self.coding.undecodable += 1;
                self.tallies.heard(tag.id.source, tag.destination(), false);
                cx.counters.drop(DropReason::Undecodable);
            }
        }
    }

    fn receive(&mut self, cx: &mut Context<'_>, tag: Tag, packet: &[u8], epoch: u64) {
        let (source, destination) = (tag.id.source, tag.destination());
        let bytes: Arc<[u8]> = Arc::from(packet);
        let new = self.cache.keep(tag.id, Arc::clone(&bytes));
        self.tallies.heard(source, destination, new);
        if !new {
            cx.counters.drop(DropReason::Stale);
            return;
        }
        if tag.order == 0 || !self.config.recover {
            self.hand_on(cx, tag, bytes);
            return;
        }
        let from = (tag.sender(), epoch);
        for (tag, bytes) in self.receiver.receive(from, tag.order, (tag, bytes), cx.now) {
            self.hand_on(cx, tag, bytes);
        }
    }

    fn hand_on(&mut self, cx: &mut Context<'_>, tag: Tag, bytes: Arc<[u8]>) {
        let (source, destination) = (tag.id.source, tag.destination());
        match tag.onward() {
            Some(tag) => self.relay(cx, Packet { tag, bytes, since: cx.now, hold: Duration::ZERO }),
            None => {
                self.tallies.delivered(source, destination);
                cx.events.push_back(Event::Packet { from: source, packet: bytes.to_vec() });
            }
        }
    }
}

impl Engine for Xor {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match frame.kind {
            REPORT => self.hear_report(cx, frame),
            REQUEST => self.hear_request(cx, frame),
            DATA => match Data::parse(frame.body, frame.sender) {
                Ok(data) => self.hear_data(cx, data, frame),
                Err(_) => cx.counters.drop(DropReason::Malformed),
            },
            _ => cx.counters.drop(DropReason::Malformed),
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        let due = self.buffer.due().filter(|due| *due <= cx.now);
        if due.is_some() && !self.buffer.has_ready() && self.on_air.is_none() {
            self.first_since = cx.now;
        }
        self.buffer.release(cx.now);
        for (tag, bytes) in self.receiver.release(cx.now) {
            self.hand_on(cx, tag, bytes);
        }
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let order = [self.receiver.release_at(), self.receiver.ask_at()];
        let times = order.into_iter().chain([self.buffer.due(), self.feedback.due()]);
        times.flatten().filter(|at| *at > after).min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let control = [self.receiver.ask_at(), self.feedback.due()];
        if control.into_iter().flatten().any(|due| due <= now) {
            return Some(Offer::of(Class::Control));
        }
        self.buffer.is_ready(now).then_some(Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let request = self.fill_request(cx, out);
        let control = request.or_else(|| self.fill_report(cx, out));
        control.or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let Some(tag) = self.on_air.take() else { return };
        if report.result == TxResult::Failed {
            self.tallies.lost(tag.id.source, tag.destination());
        }
        self.holds.served(cx.now - self.first_since);
        self.first_since = cx.now;
    }
}

impl TunnelEngine for Xor {
    /// A packet of this length can be coded with any other where their routes have no more than 12 hops together.
    fn longest(&self, mtu: usize) -> usize {
        mtu - Data::RESERVED
    }

    fn can_send(&self, _: NodeId) -> bool {
        self.buffer.has_room()
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        let own = self.buffer.packets().filter(|packet| packet.tag.at == 0);
        self.can_send(to) && !has_enough(own)
    }

    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError> {
        check_packet(cx.me, to, packet, self.longest(cx.mtu))?;
        if !self.buffer.has_room() {
            return Err(PacketError::Full);
        }
        let route = self.routes.path(cx, to);
        if route.is_empty() || route.len() > MAX_HOPS {
            return Err(PacketError::NoPath(to));
        }
        let (id, bytes): (_, Arc<[u8]>) = (self.next_id(cx), Arc::from(packet));
        self.cache.keep(id, Arc::clone(&bytes));
        self.tallies.begin(cx.me, to);
        self.note_first(cx.now);
        let tag = Tag { id, order: 0, at: 0, route, more: false };
        self.buffer.send(Packet { tag, bytes, since: cx.now, hold: Duration::ZERO });
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.tallies.statuses(|source, destination| {
            let own = |p: &&Packet| (p.tag.id.source, p.tag.destination()) == (source, destination);
            self.buffer.packets().filter(own).count() as u64
        })
    }

    fn coding(&self, now: Instant) -> Option<CodingStatus> {
        let why = |share: Option<f64>| match share {
            Some(share) => format!("decoded only {:.0} % of what was coded for it", 100.0 * share),
            None => "did not say what it decoded of what was coded for it".into(),
        };
        let stopped = self.feedback.stopped(now).map(|(node, share)| (node, why(share)));
        let holds = self.holds.found().map(|((previous, next), hold)| HoldStatus {
            previous,
            next,
            hold_s: hold.as_secs_f64(),
        });
        Some(CodingStatus {
            stopped: stopped.collect(),
            holds: holds.collect(),
            ..self.coding.clone()
        })
    }
}

/// What a frame of (kind, fields) by this sender says of itself.
pub(crate) fn summary(sender: NodeId, kind: u8, body: &[u8]) -> Option<Summary> {
    match kind {
        DATA => {
            let data = Data::parse(body, sender).ok()?;
            let (kind, tag) = match &data {
                Data::One(tag, _) => ("data", tag),
                Data::Two([one, _], _) => ("coded", &one.tag),
            };
            let flow = Some(flow_of(tag.id.source, tag.destination()));
            Some(Summary { flow, ..Summary::new(NAME, kind) })
        }
        REQUEST => frame::parse_request(body).ok().map(|_| Summary::new(NAME, "request")),
        REPORT => frame::parse_report(body).ok().map(|_| Summary::new(NAME, "report")),
        _ => None,
    }
}
