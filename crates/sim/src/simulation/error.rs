//! Why a simulation cannot be.

use ncmesh_engine::file::SendError;
use ncmesh_engine::stream::StreamError;
use ncmesh_engine::tunnel::PacketError;
use ncmesh_medium::MediumError;
use ncmesh_stack::ConfigError;

/// Why a simulation cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// A setting of the ether.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// A setting of a node.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Names and radios do not match.
    #[error("{names} names for {radios} radios")]
    Names {
        /// Names given.
        names: usize,
        /// Radios of the medium.
        radios: usize,
    },
    /// No engine has that name.
    #[error("no scheme here is called {0:?}")]
    UnknownScheme(String),
    /// A node that is switched off or does not exist.
    #[error("node {0} is not running")]
    NotRunning(usize),
    /// A node that has no gateway for IP packets.
    #[error("node {0} has no gateway")]
    NoGateway(usize),
    /// A file that cannot be sent.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A packet that is not taken.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A stream or membership that cannot be.
    #[error(transparent)]
    Stream(#[from] StreamError),
}
