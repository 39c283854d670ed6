//! Plain forwarding, the baseline of all tunnel schemes: packets as they are, hop by hop.
//!
//! Each node sends a packet to the neighbour on the shortest path to the destination, by unicast.
//! The MAC repeats the frame until the neighbour acknowledges it, or gives the packet up: then it
//! is lost. Paths are shortest by ETX, 1/(d_f d_r) for each hop (De Couto, Aguayo, Bicket, Morris,
//! MobiCom 2003). Each node chooses the next hop by the link state it has at the moment of sending,
//! so a hop limit ends loops between nodes that disagree for a while.

mod config;
mod frame;
mod layout;

#[cfg(test)]
mod tests;

pub use config::ForwardConfig;
use frame::Header;
use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::{Constructor, Entry};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::flow_counters::FlowCounters;
use ncmesh_engine::toolkit::has_enough;
use ncmesh_engine::topology::Metric;
use ncmesh_engine::tunnel::{DATA, FlowStatus, PacketError, check_packet, flow_of};
use ncmesh_engine::{
    Class, Context, Engine, Event, Filled, Frame, Offer, Summary, TunnelEngine, TxReport, TxResult,
};
use ncmesh_wire::{NodeId, ServiceId};
use std::collections::VecDeque;

/// Name of the scheme.
pub const NAME: &str = "forward";
/// Service byte of its frames.
pub const ID: ServiceId = ServiceId(20);

/// Row of this scheme in a program's registry.
pub const FORWARD: Entry = Entry {
    name: NAME,
    id: ID,
    summary: "packets as they are, hop by hop along the shortest path by unicast",
    paper: "none; paths as De Couto, Aguayo, Bicket, Morris (MobiCom 2003)",
    layouts: layout::LAYOUTS,
    read: |_, kind, body| summary(kind, body),
    build: Constructor::Tunnel(|settings| {
        let config: ForwardConfig = settings.parse()?;
        config.check()?;
        Ok(Box::new(Forward::new(config)))
    }),
};

/// Most hops of a packet. Nodes that disagree about paths for a while send packets in circles.
const MAX_HOPS: u8 = 64;

/// A packet in the queue of a node.
#[derive(Debug)]
struct Packet {
    source: NodeId,
    destination: NodeId,
    /// Hops that it may still go.
    hops_left: u8,
    bytes: Vec<u8>,
}

impl Packet {
    /// Returns whether the packet comes from the application at this node. Packets that other nodes
    /// sent have fewer hops left.
    fn is_own(&self) -> bool {
        self.hops_left == MAX_HOPS
    }
}

/// The engine at one node.
pub struct Forward {
    config: ForwardConfig,
    queue: VecDeque<Packet>,
    /// Packet at the MAC, whose report is still to come.
    on_air: Option<Packet>,
    counters: FlowCounters,
}

impl Forward {
    /// Returns an engine with these settings.
    #[must_use]
    pub fn new(config: ForwardConfig) -> Self {
        Self { config, queue: VecDeque::new(), on_air: None, counters: FlowCounters::default() }
    }

    /// Delivers a packet that has arrived, or queues it for its next hop.
    fn handle_data(&mut self, cx: &mut Context<'_>, header: Header, bytes: &[u8]) {
        if header.next != cx.me {
            return;
        }
        let Header { source, destination, .. } = header;
        self.counters.heard(source, destination, true);
        if destination == cx.me {
            self.counters.delivered(source, destination);
            cx.events.push_back(Event::Packet { from: source, packet: bytes.to_vec() });
            return;
        }

        // A queue that is full drops the newest packet (drop-tail).
        let hops_left = header.hops_left - 1;
        let reason = if hops_left == 0 {
            DropReason::Stale
        } else if self.queue.len() >= self.config.queue {
            DropReason::Full
        } else {
            self.queue.push_back(Packet { source, destination, hops_left, bytes: bytes.to_vec() });
            return;
        };
        cx.counters.drop(reason);
        self.counters.lost(source, destination);
    }
}

impl Engine for Forward {
    fn hears(&self, service: ServiceId) -> bool {
        service == ID
    }

    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>) {
        match Header::parse(frame.body) {
            Ok((header, bytes)) if frame.kind == DATA => self.handle_data(cx, header, bytes),
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
            let Packet { source, destination, hops_left, .. } = packet;

            // The path may have vanished while the packet was queued.
            let Some(next) = cx.topology.next_hop(cx.me, destination, Metric::Unicast) else {
                self.counters.lost(source, destination);
                continue;
            };
            Header { next, source, destination, hops_left }.write(out);
            out.extend_from_slice(&packet.bytes);
            self.on_air = Some(packet);
            return Some(Filled { kind: DATA, to: Some(next) });
        }
        None
    }

    fn handle_tx_report(&mut self, _: &mut Context<'_>, report: TxReport) {
        let Some(packet) = self.on_air.take() else { return };
        if report.result == TxResult::Failed {
            self.counters.lost(packet.source, packet.destination);
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
        let own = self.queue.iter().filter(|packet| packet.is_own());
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
        if cx.topology.next_hop(cx.me, to, Metric::Unicast).is_none() {
            return Err(PacketError::NoPath(to));
        }
        let (source, destination, bytes) = (cx.me, to, packet.to_vec());
        self.counters.begin(source, destination);
        self.queue.push_back(Packet { source, destination, hops_left: MAX_HOPS, bytes });
        Ok(())
    }

    fn flows(&self) -> Vec<FlowStatus> {
        self.counters.statuses(|source, destination| {
            let ends = |packet: &Packet| (packet.source, packet.destination);
            let queued = self.queue.iter().filter(|p| ends(p) == (source, destination));
            queued.count() as u64
        })
    }
}

/// Summarises a frame for traces; `None` if it is malformed.
fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let (header, _) = Header::parse(body).ok().filter(|_| kind == DATA)?;
    let flow = Some(flow_of(header.source, header.destination));
    Some(Summary { flow, ..Summary::new(NAME, "data") })
}
