//! Faults of a network or a setup.

use ncmesh_engine::stream::{LAYERS, UtilityError};
use ncmesh_engine_multirate::{ParameterError, TreeError};

/// Reason why a network is not simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WirelineError {
    /// A network without links or without sessions.
    #[error("{0}: there are none")]
    Empty(&'static str),
    /// An invalid link.
    #[error("links[{link}]: {fault}")]
    Link {
        /// Its index.
        link: usize,
        /// The fault.
        fault: String,
    },
    /// An invalid session.
    #[error("sessions[{session}]: {fault}")]
    Session {
        /// Its index.
        session: usize,
        /// The fault.
        fault: String,
    },
    /// A session whose links do not form a tree to its receivers.
    #[error("sessions[{session}]: {error}")]
    Tree {
        /// Its index.
        session: usize,
        /// The reason.
        error: TreeError,
    },
    /// More layers than a queue distinguishes.
    #[error("sessions[{session}]: {layers} layers: allowed is 1 to {LAYERS}")]
    Layers {
        /// Its index.
        session: usize,
        /// Their number.
        layers: usize,
    },
    /// An invalid change of capacity.
    #[error("changes[{change}]: {fault}")]
    Change {
        /// Its index.
        change: usize,
        /// The fault.
        fault: String,
    },
    /// Contradicting parameters.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// A stream whose bursts never fit.
    #[error(
        "sessions[{session}]: d_max = {d_max}: with mu_max = {mu_max} at most {a_max} packets \
         enter in a slot, which is no more than the rate {rate}"
    )]
    Burst {
        /// Its index.
        session: usize,
        /// The given value.
        d_max: u32,
        /// Packets that the fastest link carries in a slot.
        mu_max: u32,
        /// Packets that `d_max` leaves room for.
        a_max: u32,
        /// Packets per slot.
        rate: f64,
    },
    /// More sessions than random streams are named for.
    #[error("sessions: allowed are at most {most}")]
    ManySessions {
        /// The limit.
        most: usize,
    },
    /// A number of utility lists that differs from the number of sessions.
    #[error("utilities: for {given} sessions, there are {sessions}")]
    UtilitySessions {
        /// The number of lists.
        given: usize,
        /// The number of sessions.
        sessions: usize,
    },
    /// A number of utilities that differs from the number of receivers.
    #[error("utilities: {given} for session {session}, which has {receivers} receivers")]
    Utilities {
        /// The session's index.
        session: usize,
        /// The number of utilities.
        given: usize,
        /// The number of receivers.
        receivers: usize,
    },
    /// An invalid utility.
    #[error("utility of receiver {receiver} of session {session}: {error}")]
    Utility {
        /// The session's index.
        session: usize,
        /// The receiver's name.
        receiver: String,
        /// The reason.
        error: UtilityError,
    },
    /// Utilities under a policy that ignores them.
    #[error("policy mmt maximizes the sum of rates and knows no utilities: take mmu")]
    NoUtilities,
    /// A wireless link under a policy for wires.
    #[error("links[{link}] is wireless: only policy mmu_w serves those")]
    Wireless {
        /// Its index.
        link: usize,
    },
    /// A run without slots to average over.
    #[error("slots = {slots}, warm_up = {warm_up}: at least one slot must come after the warm-up")]
    NoSlots {
        /// The given value.
        slots: u64,
        /// The given value.
        warm_up: u64,
    },
    /// An invalid series.
    #[error("series = {every}: allowed is 1 to {slots} slots, and at most {most} numbers in all")]
    Series {
        /// The given value.
        every: u64,
        /// Slots of the run.
        slots: u64,
        /// The limit of numbers kept.
        most: u64,
    },
    /// The caller ended the run.
    #[error("interrupted")]
    Interrupted,
}
