//! The state of one station: its request, its frame, its contention window.
//!
//! | state | event | next state |
//! | --- | --- | --- |
//! | `Idle` | request | `Backoff`, of no slots if the channel has been idle for DIFS |
//! | `Backoff` | ends, with a frame to retransmit | `Transmitting` |
//! | `Backoff` | ends, with a request | `Granted` |
//! | `Backoff` | ends, with neither | `Idle` |
//! | `Granted` | supply | `Transmitting` |
//! | `Granted` | decline | `Backoff` |
//! | `Transmitting` | RTS or unicast frame ends | `AwaitingResponse` |
//! | `Transmitting` | broadcast ends, report | `Backoff` (post-backoff) |
//! | `AwaitingResponse` | CTS | `ClearToSend` |
//! | `AwaitingResponse` | ACK, report | `Backoff` (post-backoff) |
//! | `AwaitingResponse` | timeout | `Backoff` with a doubled window |
//! | `AwaitingResponse` | timeout at the retry limit, report | `Backoff` (post-backoff) |
//! | `ClearToSend` | SIFS has passed | `Transmitting` |
//! | any | switched off | `Idle` |

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::air::Response;
use crate::random::{Purpose, stream, uniform};
use crate::types::Access;

/// State of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is in progress. The next request may find the channel clear.
    Idle,
    /// Counts down before a frame or a retry, or after either (post-backoff).
    Backoff,
    /// The host has been asked for a frame.
    Granted,
    /// The frame, or the RTS before it, is on the air.
    Transmitting,
    /// Waits for the CTS or ACK of this attempt.
    AwaitingResponse { response: Response, attempt: u64 },
    /// Has received the CTS and transmits the frame after SIFS.
    ClearToSend,
}

/// A frame from its grant to its report.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) access: Access,
    pub(super) frame: Arc<[u8]>,
    /// Number of attempts so far.
    pub(super) attempts: u32,
    /// Number of those whose data frame, sent after RTS and CTS, was not acknowledged.
    pub(super) long_failures: u32,
    /// Number of the latest attempt among those of all stations.
    pub(super) attempt: u64,
    /// Airtime of all attempts, ns.
    pub(super) airtime_ns: u64,
    /// Whether the destination has received the frame. Later receptions are duplicates.
    pub(super) received: bool,
}

impl Outgoing {
    /// Creates a frame without attempts.
    pub(super) fn new(access: Access, frame: Arc<[u8]>) -> Self {
        Self {
            access,
            frame,
            attempts: 0,
            long_failures: 0,
            attempt: 0,
            airtime_ns: 0,
            received: false,
        }
    }
}

/// One station.
pub(super) struct Station {
    /// Whether the host has requested the medium.
    pub(super) requested: bool,
    pub(super) state: State,
    pub(super) outgoing: Option<Outgoing>,
    /// The backoff is drawn from `0..=contention_window` slots.
    pub(super) contention_window: u32,
    /// Rate of its frames over links without one of their own, bit/s.
    pub(super) bit_rate_bps: u64,
    rng: ChaCha8Rng,
}

impl Station {
    /// Creates the idle station of `radio`.
    pub(super) fn new(seed: u64, radio: usize, cw_min: u32, bit_rate_bps: u64) -> Self {
        let rng = stream(seed, Purpose::Backoff, radio);
        Self {
            requested: false,
            state: State::Idle,
            outgoing: None,
            contention_window: cw_min,
            bit_rate_bps,
            rng,
        }
    }

    /// Returns to idle. The random stream continues, and the rate stays.
    pub(super) fn reset(&mut self, cw_min: u32) {
        self.requested = false;
        self.state = State::Idle;
        self.outgoing = None;
        self.contention_window = cw_min;
    }

    /// Draws the backoff, in slots.
    pub(super) fn draw_backoff(&mut self) -> u32 {
        uniform(&mut self.rng, self.contention_window)
    }

    /// Doubles the contention window: 31, 63, 127, and so on up to `cw_max`.
    pub(super) fn double_window(&mut self, cw_max: u32) {
        self.contention_window = (2 * self.contention_window + 1).min(cw_max);
    }
}
