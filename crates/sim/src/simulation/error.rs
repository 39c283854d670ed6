//! Errors of simulations: invalid settings, and commands that a node refuses.

use ncmesh_engine::file::SendError;
use ncmesh_engine::port::MAX_PORTS;
use ncmesh_engine::stream::StreamError;
use ncmesh_engine::tunnel::PacketError;
use ncmesh_medium::MediumError;
use ncmesh_stack::ConfigError;

/// Reason why a simulation cannot be built, or refuses a command.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// A setting of the medium is invalid.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A setting of a node is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The numbers of names and of radios differ.
    #[error("{names} names for {radios} radios")]
    Names {
        /// Number of names.
        names: usize,
        /// Number of radios of the medium.
        radios: usize,
    },
    /// A further channel has another number of radios than the first.
    #[error("channel {channel} has {radios} radios for {nodes} nodes")]
    Channel {
        /// Its number; the first channel is 0.
        channel: usize,
        /// Number of its radios.
        radios: usize,
        /// Number of nodes.
        nodes: usize,
    },
    /// Nodes that know their links beforehand do not know by which channel they lead.
    #[error("on several channels nodes measure their links themselves")]
    Unmeasured,
    /// A node has more ports than it may, or none.
    #[error("node {node} is on {channels} channels: 1 to {MAX_PORTS} are allowed")]
    Ports {
        /// Index of the node.
        node: usize,
        /// Channels that it is on.
        channels: usize,
    },
    /// The node is switched off or does not exist.
    #[error("node {0} is not running")]
    NotRunning(usize),
    /// The node has no gateway for IP packets.
    #[error("node {0} has no gateway")]
    NoGateway(usize),
    /// The file cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The tunnel refused the packet.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The engine refused to open the stream, or to join or leave it.
    #[error(transparent)]
    Stream(#[from] StreamError),
}
