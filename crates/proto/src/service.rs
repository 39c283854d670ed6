//! The shape every engine has: what it is told, what it is asked, and what it may touch meanwhile.

use crate::counters::Counters;
use crate::file::FileService;
use crate::file::storage::Storage;
use crate::route::Topology;
use crate::stream::StreamService;
use crate::time::{Duration, Instant};
use crate::tunnel::TunnelService;
use ncmesh_wire::{FlowId, NodeId, ServiceId, Truncated};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;
use std::sync::Arc;

/// What a service may see and use while it is called.
pub struct Cx<'a> {
    /// Now.
    pub now: Instant,
    /// This node.
    pub me: NodeId,
    /// Which start of this node it is; grows from start to start.
    pub epoch: u64,
    /// How many bytes a frame body of a service may have.
    pub mtu: usize,
    /// The mesh as the link state shows it.
    pub topology: &'a Topology,
    /// The service's own stream of randomness.
    pub rng: &'a mut ChaCha8Rng,
    /// This node's counters.
    pub counters: &'a mut Counters,
    /// What the driver is to do or to know.
    pub events: &'a mut VecDeque<Event>,
    /// Where files lie.
    pub storage: &'a mut dyn Storage,
}

/// What an engine tells its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A file is offered to this node. Prepare its place, then call
    /// [`FileService::accept`] or [`FileService::refuse`].
    Announced(Box<crate::file::Manifest>),
    /// All batches of a file are written. Verify the whole, make it durable, give it its name, then call
    /// [`FileService::delivered`].
    Assembled(FlowId),
    /// The source withdrew the file: throw away what was received of it.
    Withdrawn(FlowId),
    /// A batch could not be written and the source was told: throw away what was received of the file.
    Unwritable(FlowId),
    /// A file whose source is silent made room for another: close it, and keep what was received for when it
    /// is announced again.
    Parked(FlowId),
    /// A receiver of a file this node sends has all of it.
    ReceiverDone(FlowId, NodeId),
    /// A file this node sends needs nothing more: every receiver has it or will never have it.
    SendEnded(FlowId),
    /// A file this node sends cannot be sent on: it cannot be read, or is not what was announced.
    SendFailed(FlowId, crate::file::SendFailure),
    /// A packet for this node arrived through a tunnel.
    Packet {
        /// From whom.
        from: NodeId,
        /// Its bytes.
        packet: Vec<u8>,
    },
    /// A packet of a stream whose group this node joined.
    StreamPacket {
        /// The stream.
        flow: FlowId,
        /// The group it is sent to.
        group: Arc<str>,
        /// Its layer.
        layer: Arc<str>,
        /// Its bytes.
        packet: Vec<u8>,
    },
}

/// A received frame that belongs to a service.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The neighbour that transmitted it.
    pub sender: NodeId,
    /// The neighbour's epoch.
    pub epoch: u64,
    /// The service that wrote it.
    pub service: ServiceId,
    /// Which of the service's frames.
    pub kind: u8,
    /// The service's fields.
    pub body: &'a [u8],
}

/// A frame that cannot be one of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self
    }
}

/// How urgent an offer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Small frames that everything else waits for: acknowledgments, probes, link state.
    Control,
    /// Data; services share the channel by airtime.
    Data,
}

/// A service would transmit now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// How urgent.
    pub class: Class,
    /// What it would gain, for a medium that gives way to who gains most: of MC2's data W(n), of other data 1; control
    /// goes before all.
    pub weight: u32,
}

impl Offer {
    /// Of a service that does not weigh.
    #[must_use]
    pub fn of(class: Class) -> Self {
        let weight = if class == Class::Control { u32::MAX } else { 1 };
        Self { class, weight }
    }
}

/// A service wrote a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Which of the service's frames it is.
    pub kind: u8,
    /// `None`: broadcast. Otherwise unicast with the MAC's acknowledgment to this neighbour.
    pub to: Option<NodeId>,
}

/// What became of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxResult {
    /// Sent, without anybody's acknowledgment.
    Sent,
    /// Acknowledged by the neighbour's MAC.
    Acked,
    /// Given up by the MAC.
    Failed,
}

/// The MAC's report on a transmission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxReport {
    /// What became of it.
    pub result: TxResult,
    /// How long it used the channel.
    pub airtime: Duration,
    /// Who received it, where the MAC knows: Wi-Fi's does not.
    pub heard_by: Option<Vec<NodeId>>,
}

/// A protocol engine at one node.
pub trait Service {
    /// Whether this service wants to see the frames of `service`, addressed to it or not.
    fn hears(&self, service: ServiceId) -> bool;

    /// A frame was heard.
    fn handle_frame(&mut self, cx: &mut Cx<'_>, frame: &Frame<'_>);

    /// A time [`poll_timeout`](Self::poll_timeout) named has come.
    fn handle_timeout(&mut self, cx: &mut Cx<'_>);

    /// The first time later than `after` at which something falls due: a timeout to handle, or an offer
    /// that was not there before.
    fn poll_timeout(&self, after: Instant) -> Option<Instant>;

    /// Would it transmit if granted the channel? Has no effects and draws nothing.
    fn offer(&self, now: Instant) -> Option<Offer>;

    /// The medium grants a transmission now: append the best body there is at this moment to `out`.
    /// `None` if there is nothing to send after all.
    fn fill(&mut self, cx: &mut Cx<'_>, out: &mut Vec<u8>) -> Option<Filled>;

    /// What became of the frame filled last.
    fn handle_tx_report(&mut self, cx: &mut Cx<'_>, report: TxReport);

    /// The service as one that multicasts files, if it is one.
    fn as_file(&mut self) -> Option<&mut dyn FileService> {
        None
    }

    /// The same, to look at.
    fn as_file_ref(&self) -> Option<&dyn FileService> {
        None
    }

    /// The service as one that carries packets, if it is one.
    fn as_tunnel(&mut self) -> Option<&mut dyn TunnelService> {
        None
    }

    /// The same, to look at.
    fn as_tunnel_ref(&self) -> Option<&dyn TunnelService> {
        None
    }
    /// The service as one that carries live streams, if it is one.
    fn as_stream(&mut self) -> Option<&mut dyn StreamService> {
        None
    }

    /// The same, to look at.
    fn as_stream_ref(&self) -> Option<&dyn StreamService> {
        None
    }
}
