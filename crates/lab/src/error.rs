//! Why a lab does not run.

use ncmesh_node::api::client::ClientError;
use ncmesh_node::etherd::{ControlError, EtherError};
use ncmesh_sim::SimulationError;
use std::io;
use std::process::ExitStatus;

/// Why a lab does not run. Each shows as one line.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A setting of the scenario.
    #[error(transparent)]
    Scenario(#[from] SimulationError),
    /// The lab's directory.
    #[error("the lab's directory cannot be made: {0}")]
    Directory(io::Error),
    /// The program that is to run as daemon.
    #[error("{program} cannot be started: {source}")]
    Program {
        /// Its path.
        program: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A daemon is gone.
    #[error("the daemon of {node} has ended ({status}): {reason}")]
    NodeEnded {
        /// The node's name.
        node: String,
        /// How it ended.
        status: ExitStatus,
        /// The last line of its log.
        reason: String,
    },
    /// The ether failed, for instance because the machine is too slow.
    #[error(transparent)]
    Ether(#[from] EtherError),
    /// The ether took no command.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// No path was found.
    #[error(
        "{to} cannot be reached from {from}: the scenario's links connect them too badly or not at all"
    )]
    Unreachable {
        /// The source.
        from: String,
        /// The receiver.
        to: String,
    },
    /// Packets that fit no frame.
    #[error(
        "packets of {bytes} bytes are too long: {scheme} carries up to {longest} here; set [medium] mtu higher"
    )]
    TooLong {
        /// Their length.
        bytes: usize,
        /// The scheme.
        scheme: String,
        /// The most it carries.
        longest: usize,
    },
    /// The nodes' network namespaces.
    #[error(
        "flows need a network namespace for each end, and they cannot be made ({0}): run as root, with iproute2 installed"
    )]
    Namespaces(String),
    /// The program that makes the load.
    #[error(
        "flows need iperf3, and it cannot be started ({0}): install it, on Debian with `apt install iperf3`"
    )]
    Iperf(io::Error),
    /// A flow came to nothing.
    #[error("the flow from {from} to {to} came to nothing: {problem}")]
    Flow {
        /// Its source.
        from: String,
        /// Its destination.
        to: String,
        /// What the program that makes the load says.
        problem: String,
    },
    /// A daemon's answer.
    #[error(transparent)]
    Api(#[from] ClientError),
    /// The operating system.
    #[error("the system refuses: {0}")]
    System(#[from] io::Error),
}
