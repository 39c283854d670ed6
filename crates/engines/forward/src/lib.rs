//! Plain forwarding, the baseline of all tunnels: packets as they are, along the shortest path by 1/(d_f d_r)
//! (De Couto et al., MobiCom 2003), each hop a unicast that the MAC repeats until it is acknowledged. Each node
//! chooses the next hop by the mesh as it knows it; a packet that the MAC gives up on is lost.

mod config;
mod frame;

#[cfg(test)]
mod tests;

pub use config::ForwardConfig;
use frame::Header;
use ncmesh_engine::Summary;
use ncmesh_engine::TunnelEngine;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::toolkit::has_enough;
use ncmesh_engine::topology::{Metric, NextHops};
use ncmesh_engine::tunnel::check_packet;
use ncmesh_engine::tunnel::{DATA, FlowStatus, PacketError, flow_of};
use ncmesh_engine::{Class, Context, Engine, Event, Filled, Frame, Offer, TxReport, TxResult};
use ncmesh_wire::{NodeId, ServiceId};
use std::collections::VecDeque;

/// The scheme's name.
pub const NAME: &str = "forward";
/// Under which its frames travel.
pub const ID: ServiceId = ServiceId(20);

/// Row of this scheme in a program's registry.
pub const FORWARD: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "packets as they are, hop by hop along the shortest path by unicast",
    paper: "none; paths as De Couto, Aguayo, Bicket, Morris (MobiCom 2003)",
    read: |_, kind, body| summary(kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: ForwardConfig = settings.parse()?;
        config.check()?;
        Ok(Box::new(Forward::new(config)))
    }),
};

/// Hops a packet goes at most: routes that disagree for a while lead in circles.
const MAX_HOPS: u8 = 64;

/// A packet on its way.
#[derive(Debug)]
struct Packet {
    source: NodeId,
    destination: NodeId,
    hops: u8,
    bytes: Vec<u8>,
}

/// The engine at one node.
pub struct Forward {
    config: ForwardConfig,
    queue: VecDeque<Packet>,
    /// At the MAC.
    on_air: Option<Packet>,
    tallies: FlowCounters,
    next_hops: NextHops,
}

impl Forward {
    /// The engine with these settings.
    #[must_use]
    pub fn new(config: ForwardConfig) -> Self {
        let (queue, tallies) = (VecDeque::new(), FlowCounters::default());
        Self { config, queue, on_air: None, tallies, next_hops: NextHops::new(Metric::Unicast) }
    }

    fn lose(&mut self, packet: &Packet) {
        self.tallies.lost(packet.source, packet.destination);
    }

    fn hear_data(&mut self, cx: &mut Context<'_>, header: Header, bytes: &[u8]) {
        if header.next != cx.me {
            return;
        }
        let Header { source, destination, .. } = header;
        self.tallies.heard(source, destination, true);
        if destination == cx.me {
            self.tallies.delivered(source, destination);
            cx.events.push_back(Event::Packet { from: source, packet: bytes.to_vec() });
            return;
        }
        let packet = Packet { source, destination, hops: header.hops - 1, bytes: bytes.to_vec() };
        if packet.hops == 0 || self.queue.len() >= self.config.queue {
            let why = if packet.hops == 0 { DropReason::Stale } else { DropReason::Full };
            cx.counters.drop(why);
            self.lose(&packet);
        } else {
            self.queue.push_back(packet);
        }
    }
}

impl Engine for Forward {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match Header::parse(frame.body) {
            Ok((header, bytes)) if frame.kind == DATA => self.hear_data(cx, header, bytes),
            _ => cx.counters.drop(DropReason::Malformed),
        }
    }

    fn handle_timeout(&mut self, _: &mut Context<'_>) {}

    fn poll_timeout(&self, _: Instant) -> Option<Instant> {
        None
    }

    fn offer(&self, _: Instant) -> Option<Offer> {
        (!self.queue.is_empty()).then_some(Offer::of(Class::Data))
    }

    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled> {
        while let Some(packet) = self.queue.pop_front() {
            let Some(next) = self.next_hops.towards(cx.topology, cx.me, packet.destination) else {
                self.lose(&packet);
                continue;
            };
            let Packet { source, destination, hops, .. } = packet;
            Header { next, source, destination, hops }.write(out);
            out.extend_from_slice(&packet.bytes);
            self.on_air = Some(packet);
            return Some(Filled { kind: DATA, to: Some(next) });
        }
        None
    }

    fn handle_tx_report(&mut self, _: &mut Context<'_>, report: TxReport) {
        if let Some(packet) = self.on_air.take().filter(|_| report.result == TxResult::Failed) {
            self.lose(&packet);
        }
    }
}

impl TunnelEngine for Forward {
    fn longest(&self, mtu: usize) -> usize {
        mtu - Header::LEN
    }

    fn can_send(&self, _: NodeId) -> bool {
        self.queue.len() < self.config.queue
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        let own = self.queue.iter().filter(|packet| packet.hops == MAX_HOPS);
        self.can_send(to) && !has_enough(own)
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
        if self.next_hops.towards(cx.topology, cx.me, to).is_none() {
            return Err(PacketError::NoPath(to));
        }
        let (source, destination, bytes) = (cx.me, to, packet.to_vec());
        self.tallies.begin(source, destination);
        self.queue.push_back(Packet { source, destination, hops: MAX_HOPS, bytes });
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.tallies.statuses(|source, destination| {
            let own = |p: &&Packet| (p.source, p.destination) == (source, destination);
            self.queue.iter().filter(own).count() as u64
        })
    }
}

/// What a frame of (kind, fields) says of itself.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let (header, _) = Header::parse(body).ok().filter(|_| kind == DATA)?;
    let flow = Some(flow_of(header.source, header.destination));
    Some(Summary { flow, ..Summary::new(NAME, "data") })
}
