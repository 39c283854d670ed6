//! Silence that a node keeps for frames of nodes that it does not hear.
//!
//! Carrier sense does not keep two hidden nodes apart, and what one of them sends is lost at the
//! node between them while the other one sends. But both hear that node. So its frames say who
//! sends next, and others that hear them are silent meanwhile. In the cascade that is the parent of
//! a node that asks. In braid it is each node that would not hear the answer. Turns are braid's:
//!
//! ```text
//!   a                b                c        a and c do not hear each other
//!   |<- packet; c is asked ---------->|
//!   | silent         |<----- report --|        an answer: the time of one short frame
//!   | packet ------->|                |
//!   |<- turn of c: 8 packets -------->|
//!   | silent         |<----- packet --|        a turn: the time of as many packets
//! ```
//!
//! A silence ends by itself: the node that was to send may be gone.

use crate::time::Instant;
use ncmesh_wire::NodeId;

/// Until when a node is silent, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silence {
    answer_until: Instant,
    turn: Option<OthersTurn>,
}

/// Turn of another node.
#[derive(Clone, Copy, Debug)]
struct OthersTurn {
    giver: NodeId,
    until: Instant,
}

impl Silence {
    /// Leaves the channel to an answer until then.
    pub fn leave_to_answer(&mut self, until: Instant) {
        self.answer_until = self.answer_until.max(until);
    }

    /// Notes that the answer was heard.
    pub fn end_answer(&mut self) {
        self.answer_until = Instant::default();
    }

    /// Leaves the channel until then to the node that has `giver`'s turn. While another node's turn
    /// lasts, that one goes on: two givers that hear each other would silence a node for good.
    /// Returns whether this node is silent for `giver`.
    pub fn leave_to_turn(&mut self, giver: NodeId, until: Instant, now: Instant) -> bool {
        let is_free = self.turn.is_none_or(|turn| turn.giver == giver || turn.until <= now);
        if is_free {
            self.turn = Some(OthersTurn { giver, until });
        }
        is_free
    }

    /// Ends the silence for a turn that `giver` gave.
    pub fn end_turn(&mut self, giver: NodeId) {
        self.turn = self.turn.filter(|turn| turn.giver != giver);
    }

    /// Returns until when this node sends no data.
    #[must_use]
    pub fn until(&self) -> Instant {
        self.turn.map_or(self.answer_until, |turn| turn.until.max(self.answer_until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    #[test]
    fn an_answer_that_was_heard_ends_the_silence_for_it_alone() {
        let mut silence = Silence::default();
        silence.leave_to_answer(at(5));
        silence.leave_to_answer(at(3));
        assert_eq!(silence.until(), at(5));
        assert!(silence.leave_to_turn(NodeId(1), at(4), at(0)));
        silence.end_answer();
        assert_eq!(silence.until(), at(4));
    }

    #[test]
    fn a_turn_is_ended_by_its_giver_and_prolonged_by_no_other() {
        let mut silence = Silence::default();
        assert!(silence.leave_to_turn(NodeId(1), at(10), at(0)));
        assert!(!silence.leave_to_turn(NodeId(2), at(90), at(5)));
        silence.end_turn(NodeId(2));
        assert_eq!(silence.until(), at(10));
        assert!(silence.leave_to_turn(NodeId(1), at(20), at(5)));
        silence.end_turn(NodeId(1));
        assert_eq!(silence.until(), at(0));
        // One that was not ended is over in time.
        assert!(silence.leave_to_turn(NodeId(1), at(30), at(20)));
        assert!(silence.leave_to_turn(NodeId(2), at(40), at(30)));
    }
}
