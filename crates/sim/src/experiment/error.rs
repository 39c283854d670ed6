//! Why a scenario cannot be run, or a run ended early.

use crate::schemes::SchemesError;
use crate::simulation::SimulationError;

/// Reason why a scenario cannot be run, or a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The simulation refused a setting or a command.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The schemes that the user named do not exist.
    #[error(transparent)]
    Schemes(#[from] SchemesError),
    /// The scenario has no traffic of a scheme's service.
    #[error("the scenario has no {missing}: {scheme} has nothing to carry")]
    NoTraffic {
        /// Table that the scenario lacks.
        missing: &'static str,
        /// Name of the scheme.
        scheme: &'static str,
    },
    /// The simulator's TCP does not support a setting of a flow.
    #[error("the simulator's TCP {0}; `ncmesh lab` has the kernel's")]
    Tcp(String),
    /// No path was found while the mesh measured itself.
    #[error(
        "{to} cannot be reached from {from}: \
         the scenario's links connect them too badly or not at all"
    )]
    Unreachable {
        /// Name of the source.
        from: String,
        /// Name of the receiver.
        to: String,
    },
    /// A flow's packets do not fit into a frame.
    #[error("packets of {bytes} bytes are too long: {scheme} carries up to {longest} here")]
    TooLong {
        /// Length of the packets, bytes.
        bytes: usize,
        /// Name of the scheme.
        scheme: &'static str,
        /// Length of the longest packet that it carries, bytes.
        longest: usize,
    },
    /// The file to be sent cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, std::io::Error),
    /// The caller ended the run.
    #[error("interrupted")]
    Interrupted,
    /// An observer failed.
    #[error(transparent)]
    Observer(std::io::Error),
}
