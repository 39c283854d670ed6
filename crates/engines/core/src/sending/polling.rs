//! Polling: when a node asks the next hop whether what it sent was enough (CORE, section 6.3).
//!
//! In the paper a receiver times out and requests packets. Here the sender polls: only it knows
//! that its credits are used up, so it need not wait for a timeout. A poll is a count frame, and
//! feedback is the answer.
//!
//! ```text
//!              credit earned or spent
//!   Waiting ---------------------------> DataSent
//!    |  ^                                 |    |
//!    |  +---------- poll sent ------------+    | previous hop polls
//!    |  |                                      v
//!    |  +---------- poll sent ------------ Requested
//!    |                                         ^
//!    +------------ previous hop polls ---------+
//! ```
//!
//! | state | the next hop is polled |
//! | --- | --- |
//! | `DataSent` | as soon as the credits are used up |
//! | `Requested` | the same, and also by a relay that answers no requests itself |
//! | `Waiting` | after a pause, which doubles with each poll that brings no progress |
//!
//! A poll is sent when its unicast frame or the last of its broadcast copies is. An answer, or new
//! data, in between ends the copies.

use crate::parameters::Parameters;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;

/// Polls without progress after which a next hop is not counted on.
const SILENT_AFTER: u32 = 3;
/// Factor on the pause for a next hop with full rank: what is left is up to the nodes behind it.
const FULL_RANK_FACTOR: u32 = 4;
/// Longest pause, in poll timeouts.
const LONGEST_PAUSE: u32 = 32;

/// Reason to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was sent since the last poll.
    Waiting,
    /// Data were sent since the last poll, or are to be sent.
    DataSent,
    /// The previous hop polls, and this node has to ask the next hop before it can answer.
    Requested,
}

/// Last word of the next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextHop {
    /// It lacks packets.
    Incomplete,
    /// It has full rank, but the destination lacks packets.
    FullRank,
}

/// A poll of which some copies are sent and others are to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copies {
    number: u16,
    sent: u32,
}

/// Polls of one generation, sent by one node to the next hop.
#[derive(Debug)]
pub(crate) struct Polling {
    state: State,
    next_hop: NextHop,
    copies: Option<Copies>,
    /// When something was last sent, polled or answered.
    last_event: Instant,
    last_answer: Option<Instant>,
    /// Polls since the generation last made progress.
    attempts: u32,
    /// Whether no answer followed the last poll.
    unanswered: bool,
    /// Whether a poll ever went in copies.
    used_copies: bool,
    /// Greatest progress that the next hop reported.
    progress: u16,
}

impl Polling {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            state: State::Waiting,
            next_hop: NextHop::Incomplete,
            copies: None,
            last_event: now,
            last_answer: None,
            attempts: 0,
            unanswered: false,
            used_copies: false,
            progress: 0,
        }
    }

    // ---- sending

    /// Notes that there is credit for data.
    pub(super) fn note_earned(&mut self, now: Instant) {
        if self.state == State::Waiting {
            self.state = State::DataSent;
        }
        self.last_event = now;
    }

    /// Notes that data were sent. An earlier poll would count too few packets.
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.note_earned(now);
        self.copies = None;
    }

    /// Notes that the previous hop polls, and that the answer is up to the next hop.
    pub(crate) fn request(&mut self) {
        self.state = State::Requested;
        self.copies = None;
    }

    /// Notes that a count frame goes on the air: one of `copies` broadcasts, or unicast if `None`.
    /// Returns its number, which is `number` unless it is another copy of the last one.
    pub(crate) fn note_poll(&mut self, copies: Option<u32>, number: u16, now: Instant) -> u16 {
        let Copies { number, sent } = self.copies.unwrap_or(Copies { number, sent: 0 });
        self.used_copies |= copies.is_some();

        let more_follow = copies.is_some_and(|copies| sent + 1 < copies);
        self.copies = more_follow.then_some(Copies { number, sent: sent + 1 });
        if !more_follow {
            self.attempts += 1;
            self.state = State::Waiting;
            self.unanswered = true;
            self.last_event = now;
        }

        number
    }

    // ---- answers

    /// Handles an answer of the next hop, or of a node behind it.
    pub(crate) fn handle_answer(&mut self, progress: u16, now: Instant) {
        // Innovative packets at any node behind this one show that the path works.
        if progress > self.progress {
            self.progress = progress;
            self.attempts = 0;
        }
        self.last_event = now;
        self.last_answer = Some(now);
        self.copies = None;
        self.unanswered = false;
    }

    /// Handles a request for more packets, from the next hop or a node behind it. A node that
    /// asks is still there, so the attempts start from 0.
    pub(crate) fn handle_request(&mut self, progress: u16, now: Instant) {
        self.attempts = 0;
        self.handle_answer(progress, now);
    }

    /// Handles the next hop's own request for more packets.
    pub(super) fn handle_more(&mut self, progress: u16, now: Instant) {
        self.next_hop = NextHop::Incomplete;
        self.handle_request(progress, now);
    }

    /// Handles the next hop's request to stop.
    pub(super) fn handle_stop(&mut self, progress: u16, now: Instant) {
        self.next_hop = NextHop::FullRank;
        self.handle_answer(progress, now);
    }

    // ---- state

    /// Returns the greatest progress that the next hop reported.
    pub(crate) fn progress(&self) -> u16 {
        self.progress
    }

    /// Returns when the next hop last answered.
    pub(crate) fn last_answer(&self) -> Option<Instant> {
        self.last_answer
    }

    /// Returns whether no answer followed the last poll.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// Returns whether the next hop brought no progress for so long that nothing should wait for
    /// it.
    pub(crate) fn is_silent(&self) -> bool {
        self.attempts >= SILENT_AFTER
    }

    /// Returns whether all polls brought no progress, and the pause after the last one is over.
    pub(crate) fn has_timed_out(&self, parameters: &Parameters, now: Instant) -> bool {
        self.attempts >= self.max_attempts(parameters) && now >= self.pause_ends_at(parameters)
    }

    /// Returns when the next hop is to be polled, once the credits are used up. Where `own` is
    /// false this node polls only when the previous hop polls it.
    pub(crate) fn due_at(&self, own: bool, parameters: &Parameters) -> Option<Instant> {
        // The previous hop waits for the answer, or copies of a poll remain to be sent.
        if self.state == State::Requested || self.copies.is_some() {
            return Some(self.last_event);
        }
        if !own || self.attempts >= self.max_attempts(parameters) {
            return None;
        }

        // A next hop with full rank gains nothing by more data, so data are no reason to poll it.
        let at_once = self.state == State::DataSent && self.next_hop == NextHop::Incomplete;
        Some(if at_once { self.last_event } else { self.pause_ends_at(parameters) })
    }

    /// Returns when the pause after the last event ends.
    pub(crate) fn pause_ends_at(&self, parameters: &Parameters) -> Instant {
        self.last_event + self.pause(parameters)
    }

    /// Returns the number of polls after which the next hop is given up. It is one more if some
    /// went in copies, as all copies of a poll may have collided with frames of others.
    fn max_attempts(&self, parameters: &Parameters) -> u32 {
        parameters.max_polls + u32::from(self.used_copies)
    }

    fn pause(&self, parameters: &Parameters) -> Duration {
        let timeout = parameters.poll_timeout;
        let first = match self.next_hop {
            NextHop::Incomplete => timeout,
            NextHop::FullRank => timeout * FULL_RANK_FACTOR,
        };
        Backoff { first, longest: timeout * LONGEST_PAUSE }.pause(self.attempts)
    }
}
