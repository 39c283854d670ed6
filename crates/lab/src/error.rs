//! Errors of a lab.

use ncmesh_node::api::client::ClientError;
use ncmesh_node::etherd::{ControlError, EtherError};
use ncmesh_sim::SimulationError;
use std::io;
use std::net::SocketAddr;
use std::process::ExitStatus;

/// Reason why a lab cannot run. Each is displayed as one line.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A setting of the scenario is invalid.
    #[error(transparent)]
    Scenario(#[from] SimulationError),
    /// The lab's directory cannot be used.
    #[error("the lab's directory cannot be made: {0}")]
    Directory(io::Error),
    /// There are not enough ports for the nodes' consoles.
    #[error("{0}: there are not enough ports behind it for the consoles of all nodes")]
    Ports(SocketAddr),
    /// The program that runs as daemon cannot be started.
    #[error("{program} cannot be started: {source}")]
    Program {
        /// Its path.
        program: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A daemon ended before the run did.
    #[error("the daemon of {node} has ended ({status}): {reason}")]
    NodeEnded {
        /// The node's name.
        node: String,
        /// The exit status.
        status: ExitStatus,
        /// The last line of its log.
        reason: String,
    },
    /// The channel emulator failed, for instance because the machine is too slow.
    #[error(transparent)]
    Ether(#[from] EtherError),
    /// The channel emulator did not accept a command.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The routing protocol found no path between two nodes.
    #[error(
        "{to} cannot be reached from {from}: \
         the scenario's links connect them too badly or not at all"
    )]
    Unreachable {
        /// The source.
        from: String,
        /// The receiver.
        to: String,
    },
    /// The flow's packets do not fit into a frame.
    #[error(
        "packets of {bytes} bytes are too long: {scheme} carries up to {longest} here; \
         set [medium] mtu higher"
    )]
    TooLong {
        /// Length of the packets, bytes.
        bytes: usize,
        /// Name of the scheme.
        scheme: String,
        /// Length of the longest packet that the scheme carries, bytes.
        longest: usize,
    },
    /// The nodes' network namespaces cannot be made.
    #[error(
        "flows need a network namespace for each end, and they cannot be made ({0}): \
         run as root, with iproute2 installed"
    )]
    Namespaces(String),
    /// The load generator cannot be started.
    #[error(
        "flows need iperf3, and it cannot be started ({0}): \
         install it, on Debian with `apt install iperf3`"
    )]
    Iperf(io::Error),
    /// The load generator of a flow failed.
    #[error("the flow from {from} to {to} failed: {problem}")]
    Flow {
        /// Name of the source.
        from: String,
        /// Name of the destination.
        to: String,
        /// Error message of the load generator.
        problem: String,
    },
    /// A daemon refused a request or did not answer.
    #[error(transparent)]
    Api(#[from] ClientError),
    /// A system call failed.
    #[error("the system refuses: {0}")]
    System(#[from] io::Error),
}
