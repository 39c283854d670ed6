//! One receiver, as far as the source knows it.

use crate::frame::{Ack, Version};
use ncmesh_engine::file::{GenerationSet, ReceiverState};
use ncmesh_engine::time::{Duration, Instant};

/// Silence after which a receiver is asked for its state.
const ASK_AFTER: Duration = Duration::from_secs(5);
/// Silence after which a receiver counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(20);

/// A receiver as the source sees it.
#[derive(Debug)]
pub struct Receiver {
    /// How it fares.
    pub state: ReceiverState,
    /// Generations that it has acknowledged.
    pub have: GenerationSet,
    /// When it had the whole file, or refused it.
    pub(crate) finished: Option<Instant>,
    /// Version of its latest acknowledgment.
    pub(crate) version: Version,
    /// Version of the latest one that said that it goes on.
    pub(crate) active_version: Version,
    pub(crate) heard_at: Instant,
    /// Whether a path leads to it.
    pub is_reachable: bool,
}

impl Receiver {
    /// Returns a receiver of a file of `generations` that has not been heard from.
    pub(crate) fn invited(generations: u32, is_reachable: bool, now: Instant) -> Self {
        Self {
            state: ReceiverState::Invited,
            have: GenerationSet::none(generations),
            finished: None,
            version: Version::default(),
            active_version: Version::default(),
            heard_at: now,
            is_reachable,
        }
    }

    /// Returns a receiver that ended in `state` before this node restarted.
    pub(crate) fn ended(generations: u32, state: ReceiverState, now: Instant) -> Self {
        let is_complete = state == ReceiverState::Complete;
        let have = if is_complete {
            GenerationSet::all(generations)
        } else {
            GenerationSet::none(generations)
        };
        Self { state, have, finished: Some(now), ..Self::invited(generations, false, now) }
    }

    /// Returns whether an acknowledgment counts. Those before the latest one are late copies and do
    /// not, unless nothing else comes: then the latest one was a lie.
    pub(crate) fn accepts(&self, ack: &Ack, now: Instant) -> bool {
        let is_silent = now.since(self.heard_at) >= ASK_AFTER;
        ack.version > self.version
            || (is_silent && ack.version != self.version)
            || self.is_objection(ack)
    }

    /// Returns whether an acknowledgment contradicts the end that was claimed of this receiver: it
    /// goes on, and says so for the first time.
    pub(crate) fn is_objection(&self, ack: &Ack) -> bool {
        self.state.is_final()
            && !ack.state.is_final()
            && ack.version != self.version
            && ack.version > self.active_version
    }

    /// Returns whether data is sent for it.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.is_reachable && self.state == ReceiverState::Active
    }

    /// Returns whether data is sent for it, and it lacks `generation`.
    #[must_use]
    pub fn wants(&self, generation: u32) -> bool {
        self.is_served() && !self.have.contains(generation)
    }

    /// Counts it as lost if it was silent for too long. It is served again once it is heard.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.state == ReceiverState::Active && now.since(self.heard_at) > LOST_AFTER {
            self.state = ReceiverState::Lost;
        }
    }

    /// Returns the state that announcements show. A silent receiver is shown as lost before it
    /// counts as such: it answers an announcement that is wrong about it.
    pub(crate) fn announced_state(&self, now: Instant) -> ReceiverState {
        if self.state == ReceiverState::Active && now.since(self.heard_at) > ASK_AFTER {
            return ReceiverState::Lost;
        }
        self.state
    }
}
