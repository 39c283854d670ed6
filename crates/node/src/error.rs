//! Errors of the daemon.

use crate::config::ConfigError;
use crate::etherd::client::EtherClientError;
use crate::radio::port::PortError;
use crate::state::StateError;
use crate::tunnel::device::DeviceError;
use std::io;
use std::path::PathBuf;

/// Reason why a daemon does not start or has to stop. Each is displayed as one line that says what
/// to do.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The radio's port cannot be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The channel emulator cannot be used.
    #[error(transparent)]
    Ether(#[from] EtherClientError),
    /// The tunnel device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The inbox cannot be written.
    #[error(
        "the inbox {dir} cannot be written: {1}; choose another [inbox] dir",
        dir = .0.display()
    )]
    Inbox(PathBuf, io::Error),
    /// Another daemon answers on the API's socket.
    #[error(
        "another ncmesh daemon answers on {}; stop it or set another [api] socket",
        .0.display()
    )]
    SocketInUse(PathBuf),
    /// The path of the API's socket is something other than a socket.
    #[error(
        "{path} is {1}, not a socket, and is left as it is; \
         remove it or set another [api] socket",
        path = .0.display()
    )]
    NoSocket(PathBuf, &'static str),
    /// The API's socket cannot be made.
    #[error(
        "the API socket {path} cannot be made: {1}; set another [api] socket",
        path = .0.display()
    )]
    Socket(PathBuf, io::Error),
    /// The console's server cannot listen.
    #[cfg(feature = "web")]
    #[error("{0}; set another [web] listen")]
    Web(#[source] ncmesh_web::BindError),
    /// The radio has failed.
    #[error("the radio failed: {0}")]
    Radio(io::Error),
    /// A system call that every program needs has failed.
    #[error("the system refuses: {0}")]
    System(#[from] io::Error),
}

impl NodeError {
    /// Returns whether another program uses something that the daemon needs.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        #[cfg(feature = "web")]
        if matches!(self, Self::Web(ncmesh_web::BindError::InUse(_))) {
            return true;
        }
        matches!(
            self,
            Self::State(StateError::InUse(_))
                | Self::Port(PortError::InUse { .. })
                | Self::SocketInUse(_)
                | Self::Device(DeviceError::InUse(_))
        )
    }
}
