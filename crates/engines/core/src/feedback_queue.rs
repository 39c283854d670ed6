//! Queue of the feedback that this node has yet to send to previous hops.
//!
//! An entry only names a generation. What the feedback says is computed when it is sent, so it is
//! never out of date. There is at most one entry for each generation, as a newer one replaces it.
//!
//! ```text
//!               popped, sent by unicast              MAC acknowledges, or all attempts fail
//!   Waiting -------------------------------> On air -----------------------------------> gone
//!    ^  | ^                                    |
//!    |  | +------------------------------------+ the MAC gave up
//!    |  |
//!    +--+ sent by broadcast, and more copies are to follow
//! ```
//!
//! This is not the toolkit's retry: there are no pauses. A copy is due as soon as the channel is
//! granted again, and the previous hop polls again if all of them are lost.

use crate::frame::GenerationId;
use std::collections::VecDeque;

/// Most entries that wait.
const MAX_WAITING: usize = 64;

/// Feedback on one generation that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feedback {
    pub generation: GenerationId,
    /// Number that its copies share.
    pub number: u16,
    /// Whether the previous hop polled before and heard no answer.
    pub again: bool,
    /// Times it was sent: broadcast copies, or unicast frames that the MAC gave up.
    pub sent: u32,
}

/// Feedback to be sent, and the one that the MAC has not reported on yet.
#[derive(Debug, Default)]
pub(crate) struct FeedbackQueue {
    waiting: VecDeque<Feedback>,
    /// Sent by unicast.
    on_air: Option<Feedback>,
}

impl FeedbackQueue {
    /// Returns whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether feedback on this generation waits.
    pub(crate) fn contains(&self, generation: &GenerationId) -> bool {
        self.waiting.iter().any(|feedback| feedback.generation == *generation)
    }

    /// Queues feedback with a new number. It replaces what waits of the same generation; in a full
    /// queue it replaces the oldest entry. Returns whether nothing else was lost.
    pub(crate) fn push(&mut self, generation: GenerationId, number: u16, again: bool) -> bool {
        let feedback = Feedback { generation, number, again, sent: 0 };
        if let Some(known) = self.waiting.iter_mut().find(|known| known.generation == generation) {
            *known = feedback;
            return true;
        }

        // The previous hop polls again for the one that is dropped.
        let has_room = self.waiting.len() < MAX_WAITING;
        if !has_room {
            self.waiting.pop_front();
        }
        self.waiting.push_back(feedback);
        has_room
    }

    /// Drops further copies of the feedback that the previous hop has evidently received. Feedback
    /// that was never sent stays: it says something newer.
    pub(crate) fn drop_acknowledged(&mut self, is_acknowledged: impl Fn(&GenerationId) -> bool) {
        let stays =
            |feedback: &Feedback| feedback.sent == 0 || !is_acknowledged(&feedback.generation);
        self.waiting.retain(stays);
    }

    /// Takes the feedback that is to be sent next.
    pub(crate) fn pop(&mut self) -> Option<Feedback> {
        self.waiting.pop_front()
    }

    /// Notes that feedback from [`pop`](Self::pop) goes on the air: as one of `copies`
    /// broadcasts, or by unicast if `None`.
    pub(crate) fn note_sent(&mut self, feedback: Feedback, copies: Option<u32>) {
        let feedback = Feedback { sent: feedback.sent + 1, ..feedback };
        match copies {
            None => self.on_air = Some(feedback),
            Some(copies) if feedback.sent < copies => self.waiting.push_back(feedback),
            Some(_) => {}
        }
    }

    /// Notes that the node sends another frame, so that reports concern that one.
    pub(crate) fn clear_on_air(&mut self) {
        self.on_air = None;
    }

    /// Handles the MAC's report on the feedback sent last. If the MAC gave it up, it is sent again,
    /// up to `retries` times, unless newer feedback on the generation waits.
    pub(crate) fn handle_report(&mut self, failed: bool, retries: u32) {
        let feedback = self.on_air.take().filter(|feedback| failed && feedback.sent <= retries);
        if let Some(feedback) = feedback.filter(|feedback| !self.contains(&feedback.generation)) {
            self.waiting.push_back(feedback);
        }
    }
}
