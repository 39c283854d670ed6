//! XOR coding: relays send two packets of opposite directions in one broadcast.
//!
//! A TCP connection sends data one way and acknowledgments the other way, through the same relays.
//! A relay that has a packet for each direction sends both at once, xored. Each of the two
//! receivers decodes the packet for it with the other one, which it has sent to the relay itself.
//! Three transmissions do the work of four.
//!
//! ```text
//!   frame heard                                      packet of the application
//!       |                                                       |
//!       v                                                       |
//!   decode with the NC cache       (receive.rs, cache.rs)       |
//!       |                                                       |
//!       v                                                       |
//!   reorder buffer of the hop      (numbered)                   |
//!       |                                                       |
//!       +---> at its destination: delivered                     |
//!       v                                                       |
//!   a partner waits: pair them; else hold the packet (send.rs)  |
//!       |                                                       |
//!       v                                                       |
//!   NC buffer, held --> ready      (buffer.rs) <----------------+
//!       |
//!       v
//!   channel granted: number, write, send (send.rs)
//! ```
//!
//! The hold time is configured, measured (`hold.rs`), or given by what a neighbour has announced
//! (`backlog.rs`). Coding stops for neighbours that cannot decode (`feedback.rs`). Packets are
//! numbered over each hop, so that a neighbour can ask for those it missed (`control.rs`): a coded
//! packet is a broadcast that no MAC repeats.
//!
//! Source: Huang, Ghaderi, Towsley, Gong, "TCP performance in coded wireless mesh networks" (SECON
//! 2008), section IV. `ERRATA.md` lists where the code departs from it.

mod backlog;
mod buffer;
mod cache;
mod config;
mod control;
mod feedback;
mod frame;
mod hold;
mod numbered;
mod packet;
mod receive;
mod routes;
mod send;

#[cfg(test)]
mod tests;

use backlog::Backlogs;
use buffer::Buffer;
use cache::Cache;
pub use config::XorConfig;
use feedback::Feedback;
use frame::{Data, REPORT, REQUEST, Report, Request};
use hold::{HoldTimes, NEWEST};
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::Average;
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::toolkit::has_enough;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::tunnel::{
    CodingStatus, DATA, FlowStatus, HoldStatus, PacketError, check_packet, flow_of,
};
use ncmesh_engine::{
    Class, Context, Engine, Filled, Frame, Offer, Summary, TunnelEngine, TxReport, TxResult,
};
use ncmesh_wire::{NodeId, ServiceId};
use numbered::{HopReceiver, HopSender, HopTiming};
use packet::{Header, MAX_HOPS, Packet};
use routes::Routes;
use std::sync::Arc;

/// Name of the scheme.
pub const NAME: &str = "xor";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(21);

/// Row of this scheme in a program's registry.
pub const XOR: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "relays code packets of opposite directions together, \
        such as TCP's data and acknowledgments",
    paper: "Huang, Ghaderi, Towsley, Gong: \
        TCP performance in coded wireless mesh networks (SECON 2008)",
    settings: XorConfig::settings,
    layouts: frame::LAYOUTS,
    read: summary,
    build: Constructor::Tunnel(|settings| {
        let config: XorConfig = settings.parse()?;
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
    backlogs: Backlogs,
    feedback: Feedback,
    sender: HopSender<Packet>,
    receiver: HopReceiver<(Header, Arc<[u8]>)>,
    counters: FlowCounters,
    coding: CodingStatus,
    /// Number of this node's last packet; `None` before the first.
    last_number: Option<u32>,
    /// Header of the frame at the MAC, whose report is still to come; of a pair, the first one's.
    on_air: Option<Header>,
    /// Since when the frame at the head of the queue, or on the air, has been there. Its service
    /// time counts from here to the MAC's report.
    head_since: Instant,
    /// Time for which ready packets wait for the channel, s.
    channel_wait_s: Average,
}

impl Xor {
    /// Returns an engine with these settings.
    #[must_use]
    pub fn new(config: XorConfig) -> Self {
        let metric = if config.unicast { Metric::Unicast } else { Metric::Broadcast };
        Self {
            routes: Routes::new(metric, config.paths()),
            cache: Cache::new(config.cache),
            buffer: Buffer::new(config.queue, config.late),
            holds: HoldTimes::new(config.max_hold_time_s),
            backlogs: Backlogs::default(),
            feedback: Feedback::new(config.min_decoded, config.unicast),
            sender: HopSender::new(HOP),
            receiver: HopReceiver::new(HOP),
            counters: FlowCounters::default(),
            coding: CodingStatus::default(),
            last_number: None,
            on_air: None,
            head_since: Instant::default(),
            channel_wait_s: Average::new(NEWEST),
            config,
        }
    }
}

impl Engine for Xor {
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
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        // A packet whose hold time is over now is at the head of the queue if nothing else waits.
        let is_released = self.buffer.release_at().is_some_and(|at| at <= cx.now);
        if is_released && !self.buffer.has_ready() && self.on_air.is_none() {
            self.head_since = cx.now;
        }
        self.buffer.release(cx.now);

        // The reorder buffers give up missing packets and pass on later ones.
        for (header, bytes) in self.receiver.release(cx.now) {
            self.pass_on(cx, header, bytes);
        }
    }

    fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = [
            self.receiver.release_at(),
            self.receiver.ask_at(),
            self.buffer.release_at(),
            self.feedback.report_at(),
        ];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }

    fn offer(&self, now: Instant) -> Option<Offer> {
        let control = [self.receiver.ask_at(), self.feedback.report_at()];
        if control.into_iter().flatten().any(|at| at <= now) {
            return Some(Offer::of(Class::Control));
        }
        self.buffer.can_transmit(now).then_some(Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        let request = self.fill_request(cx, out);
        let control = request.or_else(|| self.fill_report(cx, out));
        control.or_else(|| self.fill_data(cx, out))
    }

    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport) {
        let Some(header) = self.on_air.take() else { return };
        if report.result == TxResult::Failed {
            self.counters.lost(header.id.source, header.destination());
        }
        self.holds.note_service_time(cx.now - self.head_since);
        self.head_since = cx.now;
    }
}

impl TunnelEngine for Xor {
    /// Leaves enough space that a packet of this length can be coded with any other, if their
    /// routes have no more than 12 hops together.
    fn longest(&self, mtu: usize) -> usize {
        mtu - Data::RESERVED
    }

    fn can_send(&self, _: NodeId) -> bool {
        self.buffer.has_space()
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        let own = self.buffer.packets().filter(|packet| packet.is_own());
        self.can_send(to) && !has_enough(own)
    }

    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError> {
        check_packet(cx.me, to, packet, self.longest(cx.mtu))?;
        if !self.buffer.has_space() {
            return Err(PacketError::Full);
        }

        let route = self.routes.path(cx, to);
        if route.is_empty() || route.len() > MAX_HOPS {
            return Err(PacketError::NoPath(to));
        }

        // Nobody else has a packet of this node, so nothing can be coded with it here: it is not
        // held. The cache keeps it, to decode what the next hop codes with it.
        let (id, bytes): (_, Arc<[u8]>) = (self.next_id(cx), Arc::from(packet));
        self.cache.insert(id, Arc::clone(&bytes));
        self.counters.begin(cx.me, to);
        self.note_head_ready(cx.now);
        let header = Header { id, sequence: 0, hop: 0, route, more: false };
        self.buffer.push_ready(Packet::new(header, bytes, cx.now));
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.counters.statuses(|source, destination| {
            let ends = |packet: &Packet| (packet.header.id.source, packet.header.destination());
            let queued = self.buffer.packets().filter(|p| ends(p) == (source, destination));
            queued.count() as u64
        })
    }

    fn coding(&self, now: Instant) -> Option<CodingStatus> {
        let reason = |share: Option<f64>| match share {
            Some(share) => format!("decoded only {:.0} % of what was coded for it", 100.0 * share),
            None => "did not say what it decoded of what was coded for it".into(),
        };
        let stopped = self.feedback.stopped(now).map(|(node, share)| (node, reason(share)));
        let holds = self.holds.measured().map(|(direction, hold)| HoldStatus {
            previous: direction.previous,
            next: direction.next,
            hold_s: hold.as_secs_f64(),
        });

        Some(CodingStatus {
            stopped: stopped.collect(),
            holds: holds.collect(),
            ..self.coding.clone()
        })
    }
}

/// Summarises a frame of `sender` for traces; `None` if it is malformed.
fn summary(sender: NodeId, kind: u8, body: &[u8]) -> Option<Summary> {
    match kind {
        DATA => {
            let data = Data::parse(body, sender).ok()?;
            let kind = match data {
                Data::Native(..) => "data",
                Data::Coded(..) => "coded",
            };
            let header = data.first();
            let flow = Some(flow_of(header.id.source, header.destination()));
            Some(Summary { flow, ..Summary::new(NAME, kind) })
        }
        REQUEST => Request::parse(body).ok().map(|_| Summary::new(NAME, "request")),
        REPORT => Report::parse(body).ok().map(|_| Summary::new(NAME, "report")),
        _ => None,
    }
}
