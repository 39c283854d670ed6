//! What can be wrong with a network or a setup.

use ncmesh_engine::stream::{LAYERS, UtilityError};
use ncmesh_engine_multirate::{ParameterError, TreeError};

/// Why a network is not simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WirelineError {
    /// A network without links or without sessions.
    #[error("{0}: there are none")]
    Empty(&'static str),
    /// A link that cannot be.
    #[error("links[{link}]: {fault}")]
    Link {
        /// Its index.
        link: usize,
        /// What is wrong.
        fault: String,
    },
    /// A session that cannot be.
    #[error("sessions[{session}]: {fault}")]
    Session {
        /// Its index.
        session: usize,
        /// What is wrong.
        fault: String,
    },
    /// A session's links are no tree to its receivers.
    #[error("sessions[{session}]: {error}")]
    Tree {
        /// Its index.
        session: usize,
        /// Why.
        error: TreeError,
    },
    /// More layers than a queue tells apart.
    #[error("sessions[{session}]: {layers} layers: allowed is 1 to {LAYERS}")]
    Layers {
        /// Its index.
        session: usize,
        /// How many.
        layers: usize,
    },
    /// A change of capacity that cannot be.
    #[error("changes[{change}]: {fault}")]
    Change {
        /// Its index.
        change: usize,
        /// What is wrong.
        fault: String,
    },
    /// Parameters that contradict each other.
    #[error(transparent)]
    Parameters(#[from] ParameterError),
    /// Bursts of a stream that never fit.
    #[error(
        "sessions[{session}]: d_max = {d_max}: with mu_max = {mu_max} at most {a_max} packets enter in a slot, \
         which is no more than the rate {rate}"
    )]
    Burst {
        /// Its index.
        session: usize,
        /// As it was given.
        d_max: u32,
        /// The most packets that a link carries in a slot.
        mu_max: u32,
        /// What is left of d_max.
        a_max: u32,
        /// Packets per slot.
        rate: f64,
    },
    /// More sessions than there are names for.
    #[error("sessions: allowed are at most {most}")]
    ManySessions {
        /// The most.
        most: usize,
    },
    /// Utilities for other sessions than there are.
    #[error("utilities: for {given} sessions, there are {sessions}")]
    UtilitySessions {
        /// For how many.
        given: usize,
        /// How many there are.
        sessions: usize,
    },
    /// Utilities for other receivers than there are.
    #[error("utilities: {given} for session {session}, which has {receivers} receivers")]
    Utilities {
        /// The session's index.
        session: usize,
        /// How many there are.
        given: usize,
        /// How many receivers there are.
        receivers: usize,
    },
    /// A utility that cannot be.
    #[error("utility of receiver {receiver} of session {session}: {error}")]
    Utility {
        /// The session's index.
        session: usize,
        /// The receiver's name.
        receiver: String,
        /// Why.
        error: UtilityError,
    },
    /// Utilities where none is looked at.
    #[error("policy mmt maximizes the sum of rates and knows no utilities: take mmu")]
    NoUtilities,
    /// Radios where links are wires.
    #[error("links[{link}] is wireless: only policy mmu_w serves those")]
    Wireless {
        /// Its index.
        link: usize,
    },
    /// Nothing to average over.
    #[error("slots = {slots}, warm_up = {warm_up}: at least one slot must come after the warm-up")]
    NoSlots {
        /// As given.
        slots: u64,
        /// As given.
        warm_up: u64,
    },
    /// A series that cannot be.
    #[error("series = {every}: allowed is 1 to {slots} slots, and at most {most} numbers in all")]
    Series {
        /// As given.
        every: u64,
        /// Of the run.
        slots: u64,
        /// The most numbers that are kept.
        most: u64,
    },
    /// A run was ended from outside.
    #[error("interrupted")]
    Interrupted,
}
