//! A child in a stream's tree: a neighbour that receives the stream from this node.

use crate::dropping::Queues;
use crate::packet_queue::PacketQueue;
use crate::scheduling::{differential_backlog, pressure};
use ncmesh_engine::stream::{LAYERS, StreamQueue};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::live::Branch;
use ncmesh_wire::NodeId;

/// A child in a stream's tree, with the queue towards it.
#[derive(Debug)]
pub(crate) struct Child {
    /// Its latest report.
    pub report: ChildReport,
    /// When it last reported or acknowledged a packet.
    pub heard_at: Instant,
    /// Whether the link to it shares no radio with other links.
    pub is_wired: bool,
    /// Packets for it; `None` before the first one, and after a long time without any.
    pub queue: Option<PacketQueue>,
    pub sent: [u64; LAYERS],
    pub dropped: [u64; LAYERS],
    /// Packets that the MAC gave up.
    pub lost: u64,
}

/// A child's report of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ChildReport {
    /// Receivers reached through it (m).
    pub receivers: u32,
    /// Sum that its parent subtracts in (25), packets: m Q of its own links, plus Y if that is
    /// below 0.
    pub downstream: f64,
    /// The sum of the virtual pressures (Y) that are above 0, packets.
    pub pressure: f64,
}

impl Branch for Child {
    fn receivers(&self) -> u32 {
        self.report.receivers
    }
}

impl Child {
    /// Returns a child that has reported nothing.
    pub(crate) fn new(is_wired: bool, now: Instant) -> Self {
        Self {
            report: ChildReport::default(),
            heard_at: now,
            is_wired,
            queue: None,
            sent: [0; LAYERS],
            dropped: [0; LAYERS],
            lost: 0,
        }
    }

    /// Returns the packets held: Q less its place-holders.
    pub(crate) fn backlog(&self) -> u32 {
        self.queue.as_ref().map_or(0, PacketQueue::len)
    }

    /// Returns the place-holders, the part of Q that holds no packets: the mean virtual pressure of
    /// the receivers behind the child.
    pub(crate) fn place_holders(&self) -> f64 {
        self.report.pressure / f64::from(self.report.receivers.max(1))
    }

    /// Returns the part of m Q that is packets.
    pub(crate) fn packet_pressure(&self) -> f64 {
        pressure(self.report.receivers, self.backlog())
    }

    /// Returns W, the weighted differential backlog of (25). Place-holders are left out, because
    /// they add to m Q exactly what (25) subtracts for virtual pressures.
    pub(crate) fn weight(&self) -> f64 {
        differential_backlog(self.packet_pressure(), self.report.downstream)
    }

    /// Returns the state of the queue; its link carries `rate` packets per slot.
    pub(crate) fn status(&self, to: NodeId, rate: f64) -> StreamQueue {
        let queues = self.queue.as_ref().map(PacketQueue::queues);
        StreamQueue {
            to,
            receivers: self.report.receivers,
            held: queues.map_or([0; LAYERS], |queues| queues.held().0),
            place_holders: self.place_holders(),
            drop_queue: queues.map_or(0.0, Queues::drop_queue),
            downstream: self.report.downstream,
            weight: self.weight(),
            rate,
            sent: self.sent,
            dropped: self.dropped,
            // Packets have no deadline.
            no_room: self.dropped,
            lost: self.lost,
        }
    }
}
