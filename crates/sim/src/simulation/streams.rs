//! Streams of a simulation: open and close them, send packets, join and leave groups.

use super::{Simulation, SimulationError};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::stream::StreamPacketError;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::time::Instant;
use ncmesh_stack::Stack;
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
    /// Begins a stream from a node to `group` with `scheme`. `layers` are the names of the layers.
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
        let flow = self.with_stack(node, |stack, storage, now| {
            stack.at(now, storage).open_stream(scheme, group, layers)
        })??;
        Ok(flow)
    }

    /// Ends the stream that a node sends to `group`. Returns whether there was one.
    pub fn close_stream(&mut self, scheme: &str, node: usize, group: &str) -> bool {
        let close = |stack: &mut Stack, storage: &mut MemoryStorage, now| {
            stack.at(now, storage).close_stream(scheme, group)
        };
        self.with_stack(node, close).unwrap_or(false)
    }

    /// Offers a packet of a stream's layer to the source of the stream. The inner result says why
    /// the engine refused the packet, if it did.
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
        self.with_stack(node, |stack, storage, now| {
            stack.at(now, storage).send_stream_packet(scheme, flow, layer, packet)
        })
    }

    /// Makes a node join `group` with `scheme`.
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
        self.with_stack(node, |stack, storage, now| {
            stack.at(now, storage).join(scheme, group, utility)
        })??;
        Ok(())
    }

    /// Makes a node leave `group`. Returns whether it had joined.
    pub fn leave(&mut self, scheme: &str, node: usize, group: &str) -> bool {
        let leave = |stack: &mut Stack, storage: &mut MemoryStorage, now| {
            stack.at(now, storage).leave(scheme, group)
        };
        self.with_stack(node, leave).unwrap_or(false)
    }

    /// Returns the stream packets that arrived since the last call.
    pub fn take_stream_packets(&mut self) -> Vec<StreamArrival> {
        core::mem::take(&mut self.stream_packets)
    }

    /// Calls the stack of a running node, and then handles its events, frames and timers.
    fn with_stack<R>(
        &mut self,
        node: usize,
        call: impl FnOnce(&mut Stack, &mut MemoryStorage, Instant) -> R,
    ) -> Result<R, SimulationError> {
        let host = self.hosts.get_mut(node).ok_or(SimulationError::NotRunning(node))?;
        let stack = host.stack.as_mut().ok_or(SimulationError::NotRunning(node))?;
        let result = call(stack, &mut host.storage, self.now);
        self.attend(node);
        Ok(result)
    }
}
