//! Streams on the virtual clock.

use super::{Simulation, SimulationError};
use ncmesh_engine::stream::{StreamPacketError, UtilityConfig};
use ncmesh_engine::time::Instant;
use ncmesh_host::streams::{Egress, IngressPacket, Streams};
use ncmesh_stack::Active;
use ncmesh_wire::FlowId;

/// A packet of a stream that arrived at a node which joined its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamArrival {
    /// When.
    pub at: Instant,
    /// At which node.
    pub to: usize,
    /// Of which stream.
    pub flow: FlowId,
    /// Its bytes.
    pub packet: Vec<u8>,
}

impl Simulation {
    /// Begins a stream to `group` at a node by `scheme`, its layers named.
    ///
    /// # Errors
    /// [`SimulationError`].
    pub fn open_stream(
        &mut self,
        scheme: &str,
        node: usize,
        group: &str,
        layers: &[String],
    ) -> Result<FlowId, SimulationError> {
        let open =
            |_: &mut Streams<()>, stack: &mut Active<'_>| stack.open_stream(scheme, group, layers);
        Ok(self.with_streams(node, open)??)
    }

    /// Ends the stream that a node sends to `group`. Says whether there was one.
    pub fn close_stream(&mut self, scheme: &str, node: usize, group: &str) -> bool {
        let close = |_: &mut Streams<()>, stack: &mut Active<'_>| stack.close_stream(scheme, group);
        self.with_streams(node, close).unwrap_or(false)
    }

    /// Offers a packet of a stream's layer at its source. Says whether it was taken.
    ///
    /// # Errors
    /// [`SimulationError`].
    pub fn send_stream_packet(
        &mut self,
        scheme: &str,
        node: usize,
        (flow, layer): (FlowId, usize),
        packet: &[u8],
    ) -> Result<Result<(), StreamPacketError>, SimulationError> {
        let packet = IngressPacket { flow, layer, packet: packet.to_vec() };
        self.with_streams(node, |streams, stack| streams.send(stack, scheme, &packet))
    }

    /// Joins `group` at a node by `scheme`.
    ///
    /// # Errors
    /// [`SimulationError`].
    pub fn join(
        &mut self,
        scheme: &str,
        node: usize,
        group: &str,
        utility: UtilityConfig,
    ) -> Result<(), SimulationError> {
        let egress = (utility, Egress::Every(()));
        self.with_streams(node, |streams, stack| streams.join(stack, scheme, group, egress))??;
        Ok(())
    }

    /// Leaves `group` at a node. Says whether it had joined.
    pub fn leave(&mut self, scheme: &str, node: usize, group: &str) -> bool {
        let leave =
            |streams: &mut Streams<()>, stack: &mut Active<'_>| streams.leave(stack, scheme, group);
        self.with_streams(node, leave).unwrap_or(false)
    }

    /// The packets of streams that arrived since this was last called.
    pub fn take_stream_packets(&mut self) -> Vec<StreamArrival> {
        core::mem::take(&mut self.stream_packets)
    }

    /// Calls a running node's streams and stack, and does what follows.
    fn with_streams<R>(
        &mut self,
        node: usize,
        call: impl FnOnce(&mut Streams<()>, &mut Active<'_>) -> R,
    ) -> Result<R, SimulationError> {
        let host = self.hosts.get_mut(node).ok_or(SimulationError::NotRunning(node))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(node))?;
        let mut active = stack.at(self.now, &mut host.storage);
        let result = call(&mut host.streams, &mut active);
        self.attend(node);
        Ok(result)
    }
}
