//! Streams on the virtual clock.

use super::{Simulation, SimulationError};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::stream::StreamPacketError;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::time::Instant;
use ncmesh_stack::Stack;
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
        let flow = self.with_stack(node, |stack, storage, now| {
            stack.at(now, storage).open_stream(scheme, group, layers)
        })??;
        Ok(flow)
    }

    /// Ends the stream that a node sends to `group`. Says whether there was one.
    pub fn close_stream(&mut self, scheme: &str, node: usize, group: &str) -> bool {
        let close = |stack: &mut Stack, storage: &mut MemoryStorage, now| {
            stack.at(now, storage).close_stream(scheme, group)
        };
        self.with_stack(node, close).unwrap_or(false)
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
        self.with_stack(node, |stack, storage, now| {
            stack.at(now, storage).send_stream_packet(scheme, flow, layer, packet)
        })
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
        self.with_stack(node, |stack, storage, now| {
            stack.at(now, storage).join(scheme, group, utility)
        })??;
        Ok(())
    }

    /// Leaves `group` at a node. Says whether it had joined.
    pub fn leave(&mut self, scheme: &str, node: usize, group: &str) -> bool {
        let leave = |stack: &mut Stack, storage: &mut MemoryStorage, now| {
            stack.at(now, storage).leave(scheme, group)
        };
        self.with_stack(node, leave).unwrap_or(false)
    }

    /// The packets of streams that arrived since this was last called.
    pub fn take_stream_packets(&mut self) -> Vec<StreamArrival> {
        core::mem::take(&mut self.stream_packets)
    }

    /// Calls a running node's stack and attends to what comes of it.
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
