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

use super::flow::Flow;
use super::frame::State;
use super::pairs::{are_hidden, hears};
use super::upstream::PARENT_COUNTS;
use super::{Braid, Ends};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::flow::FlowInstance;
use ncmesh_engine::{At, Context, Port};
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};

/// Packets in a turn, at most. The length trades the cost of a change, a report, for the time that
/// the others wait. Five hidden clients of a gateway get 1.04 times as much by UDP with 16, and
/// their TCP connections are less alike (Jain's index 0.83 to 0.9; 0.93 to 0.98 with 8).
pub(crate) const TURN: u8 = 8;
/// Packet times of silence after which the turn of a node is over.
const SILENCE: f64 = 5.0;
/// Packet times that a packet of a turn takes at most, with the pause before it.
const SLOT: f64 = 1.2;
/// Packets that wait at one of two hidden sources at least before they take turns.
const BUSY: u8 = 2;
/// Packet times in each round in which no node has the turn, so that others come in.
const OPEN: f64 = 3.0;
/// Time for which turns go on after packets collided last.
const KEEP: Duration = Duration::from_secs(30);

/// Whose turn it is at this node.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    turn: Option<Turn>,
    /// When a node that sends to this one said last that its packets collide, and on which port.
    /// Nodes of one port take turns.
    collided_at: Option<Instant>,
    port: Port,
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

/// Frames for this node that a node sent, the last of which was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub node: NodeId,
    pub frames: u16,
}

impl Turns {
    /// Notes that packets for this node collide.
    pub(crate) fn note_collisions(&mut self, port: Port, now: Instant) {
        self.collided_at = Some(now);
        self.port = port;
    }

    /// Returns whether there are turns.
    pub(crate) fn are_on(&self) -> bool {
        self.turn.is_some()
    }

    /// Returns whether this node is to be silent on a port.
    pub(crate) fn is_anothers(&self, port: Port, now: Instant) -> bool {
        self.turn
            .as_ref()
            .filter(|_| port == self.port)
            .is_some_and(|turn| turn.holder.is_some() && now < turn.until)
    }

    /// Returns until when this node is to be silent for the turn of another node.
    pub(crate) fn others_until(&self) -> Instant {
        let turn = self.turn.as_ref().filter(|turn| turn.holder.is_some());
        turn.map_or_else(Instant::default, |turn| turn.until)
    }

    /// Returns whether it is the turn of a node other than `parent`: that one is told what was
    /// received with its own turn.
    pub(crate) fn is_before(&self, parent: NodeId, port: Port, now: Instant) -> bool {
        let Some(turn) = self.turn.as_ref().filter(|_| port == self.port) else { return false };
        turn.holder.is_some_and(|holder| holder != parent) && now < turn.until
    }

    /// Returns when the turn is over unless something is sent.
    pub(crate) fn until(&self) -> Option<Instant> {
        self.turn.as_ref().map(|turn| turn.until)
    }
}

impl Braid {
    /// Returns the sources that have packets for this node, if they are to take turns: packets
    /// collided recently, and two of those that had packets recently do not hear each other. A TCP
    /// connection has nothing to send now and then, and its turns go on meanwhile. A relay takes no
    /// turns: it has to send on to its own next hop meanwhile. Over a line of four, TCP carries
    /// 0.8x if it does.
    fn taking_turns(&mut self, cx: &Context<'_>) -> Option<BTreeSet<NodeId>> {
        self.turns.collided_at.filter(|at| cx.now.since(*at) < KEEP)?;

        // Sources that have packets for this node now.
        let parents: BTreeSet<NodeId> = self
            .flows
            .values()
            .filter_map(|flow| flow.waiting_parent(cx.now).filter(|node| *node == flow.id.source))
            .filter(|node| cx.at.ways.port_to(*node) == self.turns.port)
            .collect();

        // Small answers of several nodes, as TCP's acknowledgments to a gateway, are no reason.
        let is_busy = |flow: &&Flow| flow.upstream.parent_state.backlog >= BUSY;
        let waiting = self.flows.values().filter(is_busy);
        let busy = waiting.filter_map(|flow| flow.waiting_parent(cx.now));
        let mut busy = busy.filter(|node| parents.contains(node));
        if busy.any(|a| parents.iter().any(|b| are_hidden(cx, a, *b))) {
            self.turns.hidden_at = Some(cx.now);
        }
        self.turns
            .hidden_at
            .filter(|at| cx.now.since(*at) < PARENT_COUNTS && !parents.is_empty())?;
        Some(parents)
    }

    /// Heeds what the node `giver` says of turns in a frame of a flow, to `to` if it is a report:
    /// while another node has the turn, this one is silent. It is not if it gets the turn itself,
    /// if no node has it, or if it hears the node that has it and would defer anyway.
    pub(crate) fn heed_turn(
        &mut self,
        cx: &Context<'_>,
        giver: NodeId,
        id: FlowInstance,
        state: State,
        to: Option<NodeId>,
    ) {
        let Some(turn) = state.turn else { return };

        // A turn is over once as many packets wait there as may.
        let packets = turn.saturating_sub(state.backlog).min(TURN);
        let is_giver = |flow: &Flow| flow.child.as_ref().is_some_and(|child| child.node == giver);
        let is_own = self.flows.get(&id.key()).is_some_and(is_giver);
        if packets == 0 || is_own {
            self.silence[cx.at.port].end_turn(giver);
            return;
        }

        if to.is_some_and(|to| hears(cx, cx.me, to)) {
            return;
        }

        // The turn lasts as long as its packets take, and a silence after them.
        let packet_time = self.packet_time(cx.at.port);
        let until = cx.now + packet_time.mul_f64(SLOT * f64::from(packets) + SILENCE);
        if self.silence[cx.at.port].leave_to_turn(giver, until, cx.now) {
            let children = self.flows.values_mut().filter_map(|flow| flow.child.as_mut());
            for child in children.filter(|child| child.node == giver) {
                child.put_off(until, packet_time);
            }
        }
    }

    /// Returns the port on which nodes take turns.
    fn turn_at<'a>(&self, cx: &Context<'a>) -> At<'a> {
        At { port: self.turns.port, ways: cx.at.ways }
    }

    fn silence(&self) -> Duration {
        self.packet_time(self.turns.port).mul_f64(SILENCE)
    }

    /// Begins and ends turns, after a packet for this node was heard, or after a while.
    pub(crate) fn take_turns(&mut self, cx: &Context<'_>, used: Option<Used>) {
        let Some(parents) = self.taking_turns(cx) else {
            return self.end_turns(cx.now);
        };
        let until = cx.now + self.silence();
        let Some(turn) = &mut self.turns.turn else {
            return self.pass_turn(cx, None, &parents, &[]);
        };
        let holder = turn.holder;

        // Its frames use up the turn, those that were lost on the way included.
        if let Some(used) = used.filter(|used| Some(used.node) == holder) {
            turn.left = turn.left.saturating_sub(used.frames.min(TURN.into()) as u8);
            turn.until = until;
            let left = turn.left;
            self.let_wait(holder, left);
        }

        let Some(turn) = &self.turns.turn else { return };

        // A turn ends when it is used up, when nothing came for a while, or when its holder has
        // nothing to send any more.
        let is_used_up = turn.left == 0;
        let is_silent = turn.until <= cx.now;
        let is_over = match &holder {
            Some(node) => is_used_up || is_silent || !parents.contains(node),
            None => is_silent && self.next(cx.now, self.turn_at(cx)).is_none(),
        };

        if is_over {
            self.pass_turn(cx, holder, &parents, &[]);
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
        if (turn.left == 0 || self.next(cx.now, self.turn_at(cx)).is_none())
            && let Some(parents) = self.taking_turns(cx)
        {
            self.pass_turn(cx, None, &parents, told);
        }
    }

    /// Gives the turn to the node after `last` in a round of all `parents` and this node, and lets
    /// it know, unless it is `told` so of these flows.
    fn pass_turn(
        &mut self,
        cx: &Context<'_>,
        last: Option<NodeId>,
        parents: &BTreeSet<NodeId>,
        told: &[Ends],
    ) {
        let now = cx.now;
        let has_room = |node: &&NodeId| self.room_for(**node) > 0;

        // The round goes by ids, this node last. A node without room here is left out.
        let after = |node| parents.range((Excluded(node), Unbounded)).find(has_room).copied();
        let first = parents.iter().find(has_room).copied();
        let mut holder = last.map_or(first, after);
        let mut silence = self.silence();
        if holder.is_none() {
            self.turns.turn = None;
            match last {
                // This node's own turn.
                _ if self.next(now, self.turn_at(cx)).is_some() => {}
                None => holder = first,
                // It has nothing to send, and leaves the channel to nodes that it gave no turn yet.
                // A report tells them that no node has the turn.
                Some(_) => {
                    silence = self.packet_time(self.turns.port).mul_f64(OPEN);
                    let is_among = |flow: &&mut Flow| {
                        flow.upstream.parent.is_some_and(|parent| parents.contains(&parent))
                    };
                    if let Some(flow) = self.flows.values_mut().find(is_among) {
                        flow.upstream.report(now);
                    }
                }
            }
        }

        // The next holder learns of its turn by a report, unless a frame on the way tells it.
        let left = holder.map_or(TURN, |node| self.room_for(node));
        self.turns.turn = Some(Turn { holder, left, until: now + silence });
        self.let_wait(holder, left);
        for (ends, flow) in &mut self.flows {
            if holder.is_some() && flow.upstream.parent == holder && !told.contains(ends) {
                flow.upstream.report(now);
            }
        }
    }

    /// Returns how many packets of a node may come in its turn: as many as fit in a turn of this
    /// one.
    fn room_for(&self, node: NodeId) -> u8 {
        let flows = self.flows.values().filter(|flow| flow.upstream.parent == Some(node));
        let waiting = flows.map(Flow::backlog).max().unwrap_or(0);
        TURN.saturating_sub(waiting)
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
