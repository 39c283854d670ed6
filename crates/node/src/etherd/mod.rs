//! Channel emulator of the lab: a [`Medium`] on the wall clock, reached over UDP.
//!
//! Each daemon of the lab is a process of its own and one radio of the medium. A daemon attaches
//! with its radio's index and the run's token and requests the channel. At the instant at which the
//! MAC lets it send, the emulator grants the channel, and the daemon answers with a frame, as a
//! real driver would. The medium waits for that answer: it does not pass the grant's instant before
//! the frame has arrived, the grant is declined, or a wall-clock limit has expired.
//!
//! Medium time follows the wall clock. If the machine cannot keep up, the medium falls behind and
//! catches up later. The lag is measured, and a lasting lag ends the run, because the results would
//! show the machine and not the protocol. The timer of the runtime rounds to milliseconds. A lag of
//! about 1 ms is therefore normal; it does no harm, because frames are timed in medium time.
//!
//! Datagrams that are malformed, late, or from unknown processes are dropped and counted in
//! [`Faults`].

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

/// Settings of the emulator. Those of the medium are a `MediumConfig`.
#[derive(Clone, Debug)]
pub struct EtherConfig {
    /// Address to listen on. Port 0 takes any free one.
    pub bind: SocketAddr,
    /// Secret that processes need to attach.
    pub token: Token,
    /// Wall time for a radio to answer a grant. After that the grant counts as declined.
    pub grant_limit: Duration,
    /// Largest lag that may last.
    pub lag_limit: Duration,
    /// Time for which the lag may exceed the limit before the run ends.
    pub lag_timeout: Duration,
}

impl EtherConfig {
    /// Returns settings with a free port on loopback, 50 ms for an answer, and 250 ms of lag for a
    /// second.
    pub fn new(token: Token) -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token,
            grant_limit: Duration::from_millis(50),
            lag_limit: Duration::from_millis(250),
            lag_timeout: Duration::from_secs(1),
        }
    }
}

/// Counters of datagrams and grants that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Datagrams that are malformed, or that only the emulator sends.
    pub garbled: u64,
    /// Datagrams from processes that are not attached to any radio.
    pub strangers: u64,
    /// Refused attachments.
    pub refused: u64,
    /// Answers to grants that were not open any more.
    pub late_answers: u64,
    /// Frames that were too long, or addressed to a radio that does not exist.
    pub bad_frames: u64,
    /// Grants that were not answered in time.
    pub expired_grants: u64,
    /// Radios detached because three grants in a row expired.
    pub given_up: u64,
    /// Datagrams that the socket did not accept.
    pub unsent: u64,
}

/// Counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EtherStatistics {
    /// The medium's own counters.
    pub medium: Statistics,
    /// Medium time, ns.
    pub medium_ns: u64,
    /// Wall time since the start, ns.
    pub wall_ns: u64,
    /// Largest lag behind the wall clock, ns.
    pub lag_max_ns: u64,
    /// Mean lag, ns.
    pub lag_mean_ns: u64,
    /// Number of radios with a process.
    pub attached: usize,
    /// Counters of dropped datagrams and failed grants.
    pub faults: Faults,
}

/// Reason why the emulator could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum EtherError {
    /// The medium's settings are invalid.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The socket failed.
    #[error("ether at {address}: {source}")]
    Socket {
        /// Address of the socket.
        address: SocketAddr,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The kernel provides no timer.
    #[error("a timer for the ether: {source}")]
    Timer {
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The machine is too slow for the medium.
    #[error(
        "the medium has been more than {limit_ms} ms behind the wall clock for too long \
         (at most {max_ms} ms): lower the bit rate or the number of nodes"
    )]
    Lag {
        /// The limit, ms.
        limit_ms: u128,
        /// Largest lag, ms.
        max_ms: u64,
    },
}
