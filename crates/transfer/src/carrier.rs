//! The part of a file scheme that differs from others: how data packets get from the source of a
//! file to its receivers.

use crate::frame::{Announcement, Check};
use crate::{FileSource, Transfers};
use ncmesh_engine::file::Begun;
use ncmesh_engine::time::Instant;
use ncmesh_engine::{At, Context, Filled, Frame, TxReport};
use ncmesh_wire::{FlowId, NodeId};

/// Packets as a scheme wants them.
#[derive(Clone, Copy, Debug)]
pub struct PacketConfig {
    /// Packets of a full generation (k).
    pub generation: u8,
    /// Payload of a packet, bytes; `None` to fit the radio.
    pub symbol_size: Option<u16>,
}

/// Carries the data packets of files from hop to hop.
///
/// It keeps what it needs of a transfer by its flow, from [`open`](Self::open),
/// [`expect`](Self::expect) or [`receive`](Self::receive) to [`close`](Self::close). What the node
/// sends and receives is in [`Transfers`], which each frame and timeout comes with.
pub trait Carrier: Send {
    /// Whether a source waits for acknowledgments of progress. If it does not, one that the MAC
    /// could not deliver is not repeated unless it ends the receiver's part.
    const NEEDS_PROGRESS: bool;

    /// Whether reports and data packets are made for one port at a time.
    const SERVES_PORTS: bool = false;

    /// Returns how packets are cut.
    fn packets(&self) -> PacketConfig;

    /// Returns how many nodes a data packet may list in a mesh of `_nodes`.
    fn listed(&self, _nodes: usize) -> usize {
        0
    }

    /// Returns the most bytes of a data packet besides its payload, if it lists `listed` nodes and
    /// its generation has `packets`.
    fn overhead(&self, listed: usize, packets: u8) -> usize;

    // ---- transfers begin and end

    /// Begins to send a file, or goes on after a receiver objected to its end.
    fn open(&mut self, cx: &mut Context<'_>, source: &FileSource);

    /// Checks what is sent for a file after its receivers or, if `_mesh_changed`, the mesh changed.
    fn review(&mut self, _cx: &Context<'_>, _source: &FileSource, _mesh_changed: bool) {}

    /// Ends a transfer: drops what is held of it to pass on, and sends no more for it. An own one
    /// may be opened again until it is forgotten.
    fn close(&mut self, flow: FlowId);

    /// Forgets a file that this node sent.
    fn forget(&mut self, _flow: FlowId) {}

    /// Prepares for a transfer that was just announced for the first time.
    fn expect(&mut self, _cx: &mut Context<'_>, _announcement: &Announcement) {}

    /// Begins to receive a file, which is a sink of the transfers.
    fn receive(&mut self, _cx: &mut Context<'_>, _all: &mut Transfers, _flow: FlowId) {}

    /// Notes that this node does not receive a file any more.
    fn stop_receiving(&mut self, flow: FlowId);

    // ---- frames

    /// Handles a data packet.
    fn handle_data(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, frame: &Frame<'_>);

    /// Handles a report.
    fn handle_report(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers, frame: &Frame<'_>);

    /// Handles a check that this node asked for by [`Checks::ask`](crate::checks::Checks::ask).
    fn handle_check(&mut self, _cx: &mut Context<'_>, _transfers: &mut Transfers, _check: &Check) {}

    /// Returns whether a report is due for a node that is reached by a port.
    fn has_report(&self, now: Instant, at: At<'_>) -> bool;

    /// Appends the report that is due.
    fn fill_report(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &Transfers,
        out: &mut Vec<u8>,
    ) -> Option<Filled>;

    /// Returns the transfer of the data packet to send next by a port, if there is one. Those in
    /// the background come last.
    fn next_data(&self, transfers: &Transfers, now: Instant, at: At<'_>) -> Option<FlowId>;

    /// Appends a data packet. Returns `None` if there is nothing to send after all.
    fn fill_data(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
        out: &mut Vec<u8>,
    ) -> Option<Filled>;

    /// Handles the MAC's report on the report or data packet that was filled last.
    fn handle_tx_report(&mut self, cx: &mut Context<'_>, report: &TxReport);

    // ---- time

    /// Does what has fallen due.
    fn handle_timeout(&mut self, now: Instant);

    /// Returns the first time later than `after` at which it has something to do or to send.
    fn poll_timeout(&self, transfers: &Transfers, after: Instant) -> Option<Instant>;

    /// Does once a second what need not be done at once.
    fn tick(&mut self, cx: &mut Context<'_>);

    /// Returns whether [`tick`](Self::tick) has nothing to do.
    fn is_idle(&self) -> bool;

    // ---- status

    /// Returns the first generation of a file that this node receives of which there is a part
    /// here.
    fn begun(&self, flow: FlowId) -> Option<Begun>;

    /// Returns the nodes that were to forward a file of this node.
    fn forwarders(&self, _flow: FlowId) -> Vec<NodeId> {
        Vec::new()
    }
}
