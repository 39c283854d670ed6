//! Time that a node leaves to the answers of its children's children, which it may not hear.
//!
//! Carrier sense does not keep a node and its child's child apart, and what one of them sends is
//! lost at the child while the other one sends. But the node hears its child poll:
//!
//! ```text
//!   node             child          child's child      the two ends do not hear each other
//!    |<- data, poll ---|--------------->|
//!    |  silent         |<----- report --|
//!    |-- data -------->|                |
//! ```
//!
//! Only the parent of a node that polls is silent for its children. If all that hear the poll were,
//! dense meshes would be silent for answers that nothing hides.

use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::DurationAverage;
use ncmesh_engine::toolkit::hop::AnswerSlot;
use ncmesh_engine::toolkit::hop::silence::Silence;
use ncmesh_wire::{FlowId, NodeId};

/// Time for an answer. An answer waits for a random number of slots, so some take longer than the
/// mean. Half of that 0.98, at the least 0.82; twice 1.00.
const SLOT: AnswerSlot = AnswerSlot { unlearned: 0.8, of_mean: 1.3, least: 0.0, longest: 1.2 };
/// A report that comes later than this after a poll, in packet times, does not say how long answers
/// take: it waited for others, or was not caused by the poll.
const LATE: f64 = 2.0;

/// Polls that this node sent and heard, and the silence for their answers.
#[derive(Debug, Default)]
pub(super) struct Answering {
    silence: Silence,
    /// The child whose children are to answer.
    left_to: Option<NodeId>,
    polled: Option<Polled>,
    /// Mean time from the end of an own poll to a child's report.
    answers_in: DurationAverage,
}

/// The last poll that this node sent.
#[derive(Clone, Copy, Debug)]
struct Polled {
    flow: FlowId,
    at: Instant,
}

impl Answering {
    /// Notes that a data packet of a child was heard, and whether it polls the child's children.
    pub(super) fn hear_child(
        &mut self,
        child: NodeId,
        polls: bool,
        packet_time: Duration,
        now: Instant,
    ) {
        if self.left_to.take_if(|node| *node == child).is_some() {
            self.silence.end_answer();
        }
        if polls {
            let length = SLOT.length(self.answers_in.value(), packet_time);
            self.silence.leave_to_answer(now + length);
            self.left_to = Some(child);
        }
    }

    /// Notes that a report to `parent` was heard: one to the child that polled is the answer.
    pub(super) fn hear_report(&mut self, parent: NodeId) {
        if self.left_to.take_if(|node| *node == parent).is_some() {
            self.silence.end_answer();
        }
    }

    /// Notes that a poll of this node has left.
    pub(super) fn note_polled(&mut self, flow: FlowId, now: Instant) {
        self.polled = Some(Polled { flow, at: now });
    }

    /// Notes that a report of a child was heard, which may answer this node's last poll.
    pub(super) fn hear_answer(&mut self, flow: FlowId, packet_time: Duration, now: Instant) {
        if let Some(polled) = self.polled.take_if(|polled| polled.flow == flow) {
            let took = now.since(polled.at);
            if took < packet_time.mul_f64(LATE) {
                self.answers_in.add(took);
            }
        }
    }

    /// Returns when this node may send data again.
    pub(super) fn until(&self) -> Instant {
        self.silence.until()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };
    const CHILD: NodeId = NodeId(2);
    const PACKET_TIME: Duration = Duration::from_millis(10);
    const AT: Instant = Instant::from_nanos(1_000_000_000);

    /// Returns how long a node is silent after a poll of its child, ms.
    fn silence(slot: &mut Answering, now: Instant) -> u128 {
        slot.hear_child(CHILD, true, PACKET_TIME, now);
        slot.until().since(now).as_millis()
    }

    #[test]
    fn a_poll_of_a_child_is_followed_by_silence_until_it_is_answered() {
        let mut slot = Answering::default();
        slot.hear_child(CHILD, false, PACKET_TIME, AT);
        assert!(slot.until() <= AT);
        assert_eq!(silence(&mut slot, AT), 8);
        slot.hear_report(NodeId(7));
        assert!(slot.until() > AT, "a report to another node is no answer");
        slot.hear_report(CHILD);
        assert!(slot.until() <= AT);
        // The child goes on: it does not wait for an answer any more.
        assert_eq!(silence(&mut slot, AT), 8);
        slot.hear_child(CHILD, false, PACKET_TIME, AT);
        assert!(slot.until() <= AT);
    }

    #[test]
    fn the_silence_is_as_long_as_answers_take() {
        let mut slot = Answering::default();
        let answer = |slot: &mut Answering, ms| {
            slot.note_polled(FLOW, AT);
            slot.hear_answer(FLOW, PACKET_TIME, AT + Duration::from_millis(ms));
        };
        answer(&mut slot, 500);
        assert_eq!(silence(&mut slot, AT), 8, "one that waited for others says nothing");
        answer(&mut slot, 2);
        let later = AT + Duration::from_secs(1);
        slot.hear_child(CHILD, true, PACKET_TIME, later);
        assert_eq!(slot.until().since(later).as_micros(), 2600);
        (0..99).for_each(|_| answer(&mut slot, 19));
        assert_eq!(silence(&mut slot, later), 12);
        // Without a poll, a report is no answer.
        slot.hear_answer(FLOW, PACKET_TIME, later);
        assert_eq!(silence(&mut slot, later + Duration::from_secs(1)), 12);
    }
}
