//! One station: what it wants, what it is sending, and its contention window.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use crate::Access;
use crate::air::Answer;
use crate::random::{Purpose, stream, uniform};

/// Where a station stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing under way; the next request may find the channel clear.
    Idle,
    /// Counting down, before a frame, a retry, or after either.
    Backoff,
    /// Its host was asked for a frame.
    Granted,
    /// Its frame, or the request to send it, is in the air.
    Sending,
    /// The answer to that is pending: the CTS or ACK of this attempt.
    Awaiting { answer: Answer, attempt: u64 },
    /// It is clear to send and will, SIFS after the CTS.
    Cleared,
}

/// A frame from its grant to its report.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) access: Access,
    pub(super) frame: Arc<[u8]>,
    pub(super) attempts: u32,
    /// Names the latest of them among all.
    pub(super) attempt: u64,
    /// Airtime of all attempts, ns.
    pub(super) airtime_ns: u64,
    /// The destination has it: what comes again is a duplicate there.
    pub(super) arrived: bool,
}

impl Outgoing {
    /// A frame not yet sent.
    pub(super) fn new(access: Access, frame: Arc<[u8]>) -> Self {
        Self { access, frame, attempts: 0, attempt: 0, airtime_ns: 0, arrived: false }
    }
}

/// A station's state.
pub(super) struct Station {
    pub(super) wants: bool,
    pub(super) phase: Phase,
    pub(super) outgoing: Option<Outgoing>,
    /// The contention window: backoff is drawn from `0..=window`.
    pub(super) window: u32,
    rng: ChaCha8Rng,
}

impl Station {
    /// An idle station of `radio`.
    pub(super) fn new(seed: u64, radio: usize, window: u32) -> Self {
        let rng = stream(seed, Purpose::Backoff, radio);
        Self { wants: false, phase: Phase::Idle, outgoing: None, window, rng }
    }

    /// Back to idle, its random stream going on.
    pub(super) fn reset(&mut self, window: u32) {
        self.wants = false;
        self.phase = Phase::Idle;
        self.outgoing = None;
        self.window = window;
    }

    /// Slots to wait.
    pub(super) fn draw_backoff(&mut self) -> u32 {
        uniform(&mut self.rng, self.window)
    }

    /// Doubles the window: 31, 63, 127, and so on up to `most`.
    pub(super) fn widen(&mut self, most: u32) {
        self.window = (2 * self.window + 1).min(most);
    }
}
