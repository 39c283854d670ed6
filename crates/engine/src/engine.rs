//! The traits of an engine: the part that every one has, and the three kinds.

use crate::context::Context;
use crate::file::{GenerationSet, Geometry, Outgoing, Refusal, SendError, TransferStatus};
use crate::port::At;
use crate::stream::{NewStream, StreamError, StreamPacketError, StreamStatus, UtilityConfig};
use crate::time::Instant;
use crate::transmission::{Filled, Frame, Offer, Statement, TxReport};
use crate::tunnel::{CodingStatus, FlowStatus, PacketError, Relaying};
use ncmesh_wire::{FlowId, NodeId, ServiceId};

/// A protocol engine at one node, as the node's scheduler sees it.
pub trait Engine {
    /// Returns whether this engine wants the frames of `service`, addressed to this node or not.
    fn hears(&self, service: ServiceId) -> bool;

    /// Returns the statement that a frame with this body passes on, if it does. Nodes with
    /// identities sign their own statements, and engines see none in their names that they have not
    /// signed.
    fn statement<'a>(&self, kind: u8, body: &'a [u8]) -> Option<Statement<'a>> {
        let _ = (kind, body);
        None
    }

    /// Handles a frame that was heard.
    fn handle_frame(&mut self, cx: &mut Context<'_>, frame: &Frame<'_>);

    /// Does what falls due at `cx.now`, a time that [`poll_timeout`](Self::poll_timeout) named.
    fn handle_timeout(&mut self, cx: &mut Context<'_>);

    /// Returns the first time later than `after` at which something falls due: a timeout to handle,
    /// or an offer that was not there before.
    fn poll_timeout(&self, after: Instant) -> Option<Instant>;

    /// Returns what the engine would transmit if it were granted the channel. Has no effects and
    /// draws no random number.
    fn offer(&self, now: Instant) -> Option<Offer>;

    /// Returns whether the engine makes frames for one port at a time, so that each port may have a
    /// frame of it at its MAC. Of another engine one frame is sent at a time; a broadcast goes out
    /// on every port, and a unicast frame on that of its destination.
    fn serves_ports(&self) -> bool {
        false
    }

    /// Returns what the engine would transmit if it were granted the channel of one port of
    /// several. Has no effects and draws no random number.
    fn offer_at(&self, now: Instant, at: At<'_>) -> Option<Offer> {
        let _ = at;
        self.offer(now)
    }

    /// Returns until when the engine leaves the channel to frames that it awaits from others. Files
    /// of the same node wait as well.
    fn silent_until(&self) -> Instant {
        Instant::default()
    }

    /// Appends to `out` the best frame body there is at this moment for the port that was granted,
    /// at most `cx.mtu` bytes. Returns `None` if there is nothing to send after all; the same offer
    /// must not be made again then.
    fn fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Option<Filled>;

    /// Handles the report on the frame that was filled last.
    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: TxReport);
}

/// An engine that multicasts files.
pub trait FileEngine: Engine {
    /// Returns how a file of `size` bytes would be cut into generations here and now.
    ///
    /// # Errors
    /// [`SendError`] if it cannot be cut.
    fn geometry_for(&self, cx: &Context<'_>, size: u64) -> Result<Geometry, SendError>;

    /// Offers a file to its receivers.
    ///
    /// # Errors
    /// [`SendError`] if it cannot be offered.
    fn send(&mut self, cx: &mut Context<'_>, outgoing: Outgoing) -> Result<(), SendError>;

    /// Answers [`Event::Announced`](crate::Event::Announced): the file has a place, and the
    /// generations `have` are already there.
    fn accept(&mut self, cx: &mut Context<'_>, flow: FlowId, have: GenerationSet);

    /// Answers [`Event::Announced`](crate::Event::Announced) with a refusal, or ends a reception.
    fn refuse(&mut self, cx: &mut Context<'_>, flow: FlowId, why: Refusal);

    /// Answers [`Event::Assembled`](crate::Event::Assembled): the file is whole and has its name.
    fn delivered(&mut self, cx: &mut Context<'_>, flow: FlowId);

    /// Forgets a reception without a word to its source. It begins again when it is announced.
    fn forget(&mut self, flow: FlowId);

    /// Ends a transfer: its source withdraws it, or a receiver refuses it for good (the driver
    /// remembers that across a restart). Returns whether it was under way.
    fn cancel(&mut self, cx: &mut Context<'_>, flow: FlowId) -> bool;

    /// Returns the state of every transfer that this node sends or receives.
    fn transfers(&self) -> Vec<TransferStatus>;
}

/// An engine that carries packets of other protocols, IP foremost, between two nodes.
pub trait TunnelEngine: Engine {
    /// Returns the longest packet it carries where frame bodies have up to `mtu` bytes, bytes.
    fn longest(&self, mtu: usize) -> usize;

    /// Arranges, as far as it can be, that packets of `packet` bytes fit into frames with bodies of
    /// `mtu` bytes. A host calls it before the first packet.
    fn make_room(&mut self, mtu: usize, packet: usize) {
        let _ = (mtu, packet);
    }

    /// Returns whether a packet for `to` would be taken now, if a path leads there and it is not
    /// too long.
    fn can_send(&self, to: NodeId) -> bool;

    /// Returns whether a packet for `to` would be sent soon. Above this mark packets are better
    /// kept outside, in queues that know connections and bound delay.
    fn below_low_watermark(&self, to: NodeId) -> bool {
        self.can_send(to)
    }

    /// Takes a packet for `to` from the application. A refusal is the back-pressure: the driver
    /// waits for room or drops the packet.
    ///
    /// # Errors
    /// [`PacketError`] says why the packet is not taken.
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        to: NodeId,
        packet: &[u8],
    ) -> Result<(), PacketError>;

    /// Returns the state of every flow through this node.
    fn flows(&self) -> Vec<FlowStatus>;

    /// Returns what the engine codes of packets that cross; `None` for a scheme that does not.
    fn coding(&self, _now: Instant) -> Option<CodingStatus> {
        None
    }

    /// Changes how this node relays, as far as the scheme leaves a choice. Its neighbours need not
    /// know.
    fn relay_as(&mut self, _cx: &mut Context<'_>, _change: Relaying) {}
}

/// An engine that carries live streams in layers, from one node to all that join their group.
pub trait StreamEngine: Engine {
    /// Returns the longest packet it carries where frame bodies have up to `mtu` bytes, bytes.
    fn longest(&self, mtu: usize) -> usize;

    /// Begins a stream.
    ///
    /// # Errors
    /// [`StreamError`] says why there can be no such stream.
    fn open(&mut self, cx: &mut Context<'_>, stream: NewStream<'_>) -> Result<FlowId, StreamError>;

    /// Ends the stream that this node sends to `group`. Returns whether there was one.
    fn close(&mut self, cx: &mut Context<'_>, group: &str) -> bool;

    /// Takes a packet of `layer` from the application; layer 0 is the base.
    ///
    /// # Errors
    /// [`StreamPacketError`] says why the packet is not taken.
    fn send(
        &mut self,
        cx: &mut Context<'_>,
        flow: FlowId,
        layer: usize,
        packet: &[u8],
    ) -> Result<(), StreamPacketError>;

    /// Joins `group`: all streams that are or will be sent to it, each at the rate that suits
    /// `utility`, whose rates are in Mbit/s. A node that has joined already changes its utility.
    ///
    /// # Errors
    /// [`StreamError`] says why this node cannot join so.
    fn join(
        &mut self,
        cx: &mut Context<'_>,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), StreamError>;

    /// Leaves `group`. Returns whether this node had joined.
    fn leave(&mut self, cx: &mut Context<'_>, group: &str) -> bool;

    /// Returns the groups that this node joined, whether or not anybody sends to them.
    fn groups(&self) -> Vec<String>;

    /// Returns the state of every stream known here.
    fn streams(&self) -> Vec<StreamStatus>;
}

/// An engine of one of the three kinds.
pub enum AnyEngine {
    /// Multicasts files.
    File(Box<dyn FileEngine>),
    /// Carries packets between two nodes.
    Tunnel(Box<dyn TunnelEngine>),
    /// Carries live streams.
    Stream(Box<dyn StreamEngine>),
}

impl AnyEngine {
    /// Returns the part that every engine has.
    #[must_use]
    pub fn common(&self) -> &dyn Engine {
        match self {
            Self::File(engine) => engine.as_ref(),
            Self::Tunnel(engine) => engine.as_ref(),
            Self::Stream(engine) => engine.as_ref(),
        }
    }

    /// Returns the part that every engine has, to call it.
    pub fn common_mut(&mut self) -> &mut dyn Engine {
        match self {
            Self::File(engine) => engine.as_mut(),
            Self::Tunnel(engine) => engine.as_mut(),
            Self::Stream(engine) => engine.as_mut(),
        }
    }
}
