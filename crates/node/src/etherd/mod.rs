//! `etherd`: the medium on the wall clock, over UDP.
//!
//! The lab's daemons are processes of their own, each a radio of one [`Medium`]. A daemon attaches with its
//! radio index and the run's token, asks for the channel, and is asked for its frame at the instant at which
//! the MAC lets it send, as a real driver would be. The medium waits for the answer: it does not pass a
//! grant's instant before the frame is there, the grant is declined, or a wall-clock limit is over.
//!
//! Medium time follows the wall clock. Where the machine cannot keep up, the medium falls behind and catches
//! up later; how far it does is measured, and a lag that lasts ends the run, since what a lagging lab
//! measures is the machine, not the protocol. The timer of the runtime rounds to milliseconds, so a lag of
//! about 1 ms is normal, and harms nothing: frames are timed in medium time.
//!
//! Datagrams that are garbled, come from strangers or too late are counted in [`Faults`] and dropped.

pub mod client;
mod clients;
pub mod datagram;
mod ether;
mod lag;
mod serve;

pub use serve::{ControlError, EtherControl, Etherd};

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ncmesh_medium::{Medium, MediumError, Statistics};

use datagram::Token;
use ether::Ether;

/// Settings of the server; those of the medium are a `MediumConfig`.
#[derive(Clone, Debug)]
pub struct EtherConfig {
    /// Where to listen; port 0 takes any free one.
    pub bind: SocketAddr,
    /// What processes must know to attach.
    pub token: Token,
    /// Wall time that a radio has to answer a grant. Then it counts as declined.
    pub grant_limit: Duration,
    /// The lag that is too much if it lasts.
    pub lag_limit: Duration,
    /// How long it may last.
    pub lag_patience: Duration,
}

impl EtherConfig {
    /// A free port on loopback, 50 ms for an answer, 250 ms of lag for a second.
    pub fn new(token: Token) -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token,
            grant_limit: Duration::from_millis(50),
            lag_limit: Duration::from_millis(250),
            lag_patience: Duration::from_secs(1),
        }
    }
}

/// Datagrams and grants that came to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Datagrams that could not be read, or that only the ether sends.
    pub garbled: u64,
    /// Datagrams from processes that are not attached.
    pub strangers: u64,
    /// Attachments refused.
    pub refused: u64,
    /// Answers to grants that were no longer open.
    pub late_answers: u64,
    /// Frames too long, or to a radio that does not exist.
    pub bad_frames: u64,
    /// Grants that nobody answered in time.
    pub expired_grants: u64,
    /// Radios detached because three grants in a row expired.
    pub given_up: u64,
    /// Datagrams that the socket would not take.
    pub unsent: u64,
}

/// What happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtherStatistics {
    /// The medium's own counters.
    pub medium: Statistics,
    /// Medium time, ns.
    pub medium_ns: u64,
    /// Wall time since the start, ns.
    pub wall_ns: u64,
    /// The farthest that the medium was behind, ns.
    pub lag_max_ns: u64,
    /// How far it was behind on average, ns.
    pub lag_mean_ns: u64,
    /// Radios with a process.
    pub attached: usize,
    /// What was dropped.
    pub faults: Faults,
}

/// Why the ether could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum EtherError {
    /// The medium's settings.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The socket.
    #[error("ether at {address}: {source}")]
    Socket {
        /// Where it listens or should.
        address: SocketAddr,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The kernel's timer.
    #[error("a timer for the ether: {source}")]
    Timer {
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The machine is too slow for the medium.
    #[error(
        "the medium has been more than {limit_ms} ms behind the wall clock for too long (at most {max_ms} ms): \
         lower the bit rate or the number of nodes"
    )]
    Lag {
        /// The limit, ms.
        limit_ms: u128,
        /// The farthest behind, ms.
        max_ms: u64,
    },
}
