//! Commands for live streams: open and close them, send packets, join and leave groups.

use super::{Simulation, SimulationError};
use ncmesh_engine::registry::Scheme;
use ncmesh_engine::stream::{NewStream, StreamPacketError, UtilityConfig};
use ncmesh_engine::time::Instant;
use ncmesh_host::streams::{Egress, IngressPacket, Streams};
use ncmesh_stack::Active;
use ncmesh_wire::FlowId;

/// A stream packet that arrived at a member of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamArrival {
    /// Time of the arrival.
    pub at: Instant,
    /// Node at which it arrived.
    pub to: usize,
    /// Stream that it belongs to.
    pub flow: FlowId,
    /// Bytes of the packet.
    pub packet: Vec<u8>,
}

impl Simulation {
    /// Begins a stream from a node with `scheme`.
    ///
    /// # Errors
    /// [`SimulationError`].
    pub fn open_stream(
        &mut self,
        scheme: Scheme,
        node: usize,
        stream: NewStream<'_>,
    ) -> Result<FlowId, SimulationError> {
        let open = |_: &mut Streams<()>, stack: &mut Active<'_>| stack.open_stream(scheme, stream);
        Ok(self.with_streams(node, open)??)
    }

    /// Ends the stream that a node sends to `group`. Returns whether there was one.
    pub fn close_stream(&mut self, scheme: Scheme, node: usize, group: &str) -> bool {
        let close = |_: &mut Streams<()>, stack: &mut Active<'_>| stack.close_stream(scheme, group);
        self.with_streams(node, close).unwrap_or(false)
    }

    /// Offers a packet of a stream's layer to the source of the stream. The inner result says why
    /// the engine refused the packet, if it did.
    ///
    /// # Errors
    /// [`SimulationError`].
    pub fn send_stream_packet(
        &mut self,
        scheme: Scheme,
        node: usize,
        flow: FlowId,
        layer: usize,
        packet: &[u8],
    ) -> Result<Result<(), StreamPacketError>, SimulationError> {
        let packet = IngressPacket { flow, layer, packet: packet.to_vec() };
        self.with_streams(node, |streams, stack| streams.send(stack, scheme, &packet))
    }

    /// Makes a node join `group` with `scheme`.
    ///
    /// # Errors
    /// [`SimulationError`].
    pub fn join(
        &mut self,
        scheme: Scheme,
        node: usize,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), SimulationError> {
        self.with_streams(node, |streams, stack| {
            streams.join(stack, scheme, group, utility, Egress::Every(()))
        })??;
        Ok(())
    }

    /// Makes a node leave `group`. Returns whether it had joined.
    pub fn leave(&mut self, scheme: Scheme, node: usize, group: &str) -> bool {
        let leave =
            |streams: &mut Streams<()>, stack: &mut Active<'_>| streams.leave(stack, scheme, group);
        self.with_streams(node, leave).unwrap_or(false)
    }

    /// Returns the stream packets that arrived since the last call.
    pub fn take_stream_packets(&mut self) -> Vec<StreamArrival> {
        core::mem::take(&mut self.stream_packets)
    }

    /// Calls the streams and the stack of a running node, and then handles its events, frames and
    /// timers.
    fn with_streams<R>(
        &mut self,
        node: usize,
        call: impl FnOnce(&mut Streams<()>, &mut Active<'_>) -> R,
    ) -> Result<R, SimulationError> {
        let host = self.hosts.get_mut(node).ok_or(SimulationError::NotRunning(node))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(node))?;
        let mut active = stack.at(self.now, &mut host.storage);
        let result = call(&mut host.streams, &mut active);
        self.handle_due(node);
        Ok(result)
    }
}
