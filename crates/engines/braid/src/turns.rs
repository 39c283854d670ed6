//! Turns of nodes that send to this one and do not hear each other.
//!
//! Carrier sense does not keep them apart, and their packets collide here. So this node says in its
//! frames how many packets may wait here: none, but for the one whose turn it is.
//!
//! ```text
//!   alice           relay           bob
//!     |<- your turn ---|              |
//!     | packet 1       |              |
//!     |--------------->|              |
//!     | packet 2       |              |
//!     |--------------->| your turn -->|
//!     |                |     packet 1 |
//!     |                |<-------------|
//!     |                |     packet 2 |
//!     |                |<-------------|
//!     |<- 1 + 1 -------|------------->|
//!     |<- 2 + 2, your turn ---------->|
//! ```

use super::frame::State;
use super::pairs::HEARD;
use super::upstream::LATELY;
use super::{Braid, Ends};
use ncmesh_engine::Context;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

/// Packets in a turn, at most.
const TURN: u8 = 8;
/// Packet times of silence after which the turn of a node is over.
const SILENCE: f64 = 5.0;
/// Time for which turns go on after packets collided last.
const KEEP: Duration = Duration::from_secs(30);

/// Whose turn it is at this node.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    turn: Option<Turn>,
    /// When a node that sends to this one said last that its packets collide.
    collided_at: Option<Instant>,
    /// When two nodes that do not hear each other had packets for this one last.
    hidden_at: Option<Instant>,
}

#[derive(Debug)]
struct Turn {
    /// The node that sends to this one, or `None`: this node sends.
    holder: Option<NodeId>,
    /// Packets that are left to it.
    left: u8,
    /// When it is over unless something is sent.
    until: Instant,
}

impl Turns {
    /// Notes that packets for this node collide.
    pub(crate) fn note_collisions(&mut self, now: Instant) {
        self.collided_at = Some(now);
    }

    /// Returns whether there are turns.
    pub(crate) fn are_on(&self) -> bool {
        self.turn.is_some()
    }

    /// Returns whether this node is to be silent.
    pub(crate) fn is_anothers(&self, now: Instant) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.holder.is_some() && now < turn.until)
    }

    /// Returns when the turn is over unless something is sent.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.turn.as_ref().map(|turn| turn.until)
    }
}

impl Braid {
    /// Returns the nodes that have packets for this one, if they are to take turns: packets
    /// collided lately, and of those that had packets lately, two do not hear each other. A TCP
    /// connection has nothing to send now and then, and its turns go on meanwhile.
    fn taking_turns(&mut self, cx: &Context<'_>) -> Option<BTreeSet<NodeId>> {
        self.turns.collided_at.filter(|at| cx.now.since(*at) < KEEP)?;
        let waiting = self.flows.values().filter_map(|flow| flow.upstream.waiting_parent(cx.now));
        let parents: BTreeSet<NodeId> = waiting.collect();
        let hears = |a, b| cx.topology.delivery(a, b) > HEARD;
        let is_hidden = |a, b| a != b && !hears(a, b) && !hears(b, a);
        if parents.iter().any(|a| parents.iter().any(|b| is_hidden(*a, *b))) {
            self.turns.hidden_at = Some(cx.now);
        }
        self.turns.hidden_at.filter(|at| cx.now.since(*at) < LATELY && !parents.is_empty())?;
        Some(parents)
    }

    fn silence(&self) -> Duration {
        self.packet_time().mul_f64(SILENCE)
    }

    /// Begins and ends turns, after a packet for this node was `heard` of a node, or after a while.
    pub(crate) fn take_turns(&mut self, cx: &Context<'_>, heard: Option<NodeId>) {
        let Some(parents) = self.taking_turns(cx) else {
            return self.end_turns(cx.now);
        };
        let until = cx.now + self.silence();
        let Some(turn) = &mut self.turns.turn else {
            return self.pass_turn(cx.now, None, &parents, &[]);
        };
        let holder = turn.holder;
        if heard.is_some() && heard == holder {
            turn.left = turn.left.saturating_sub(1);
            turn.until = until;
            let left = turn.left;
            self.let_wait(holder, left);
        }
        let Some(turn) = &self.turns.turn else { return };
        let (is_used_up, is_silent) = (turn.left == 0, turn.until <= cx.now);
        let is_over = match &holder {
            Some(node) => is_used_up || is_silent || !parents.contains(node),
            None => is_silent && self.next(cx.now).is_none(),
        };
        if is_over {
            self.pass_turn(cx.now, holder, &parents, &[]);
        }
    }

    /// Notes a frame of this node of the flows `told`, which is to say whose turn it is next.
    pub(crate) fn note_own_frame(&mut self, cx: &Context<'_>, told: &[Ends]) {
        let until = cx.now + self.silence();
        let Some(turn) = self.turns.turn.as_mut().filter(|turn| turn.holder.is_none()) else {
            return;
        };
        turn.left = turn.left.saturating_sub(1);
        turn.until = until;
        if (turn.left == 0 || self.next(cx.now).is_none())
            && let Some(parents) = self.taking_turns(cx)
        {
            self.pass_turn(cx.now, None, &parents, told);
        }
    }

    /// Gives the turn to the node after `last` in a round of all `parents` and this node, and lets
    /// it know, unless it is `told` so of these flows.
    fn pass_turn(
        &mut self,
        now: Instant,
        last: Option<NodeId>,
        parents: &BTreeSet<NodeId>,
        told: &[Ends],
    ) {
        let after = |node| parents.range((Excluded(node), Unbounded)).next().copied();
        let first = parents.first().copied();
        let mut holder = last.map_or(first, after);
        if holder.is_none() {
            // This node's own turn, if it has something to send.
            self.turns.turn = None;
            holder = if self.next(now).is_none() { first } else { None };
        }
        self.turns.turn = Some(Turn { holder, left: TURN, until: now + self.silence() });
        self.let_wait(holder, TURN);
        for (ends, flow) in &mut self.flows {
            if holder.is_some() && flow.upstream.parent == holder && !told.contains(ends) {
                flow.upstream.report(now);
            }
        }
    }

    /// Lets as many more packets wait here that come from a node, and none that come from others.
    fn let_wait(&mut self, holder: Option<NodeId>, more: u8) {
        for flow in self.flows.values_mut() {
            let has_turn = holder.is_some() && flow.upstream.parent == holder;
            let most = flow.backlog().saturating_add(more).min(State::NO_TURNS - 1);
            flow.upstream.turn = Some(if has_turn { most } else { 0 });
        }
    }

    /// Lets all nodes send again as they like.
    fn end_turns(&mut self, now: Instant) {
        if self.turns.turn.take().is_some() {
            for flow in self.flows.values_mut() {
                flow.upstream.turn = None;
                flow.upstream.report(now);
            }
        }
    }
}
