//! Roll-outs without their operator: a node that heard no order, or that waits for a file while the
//! operator's node cannot be reached, asks others, and those that hold the file send it.
//!
//! It asks one node at a time, the nearest first, so one holder near enough answers and a mesh that
//! comes up at once has no storm. Questions become rarer while nobody has it.

use super::files::is_fleet_name;
use ncmesh_engine::file::{self, Direction};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::topology::Metric;
use ncmesh_fleet::rollout::Lacks;
use ncmesh_stack::Stack;
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

/// Time after a start in which an order may come by itself.
const FIRST_ASK: Duration = Duration::from_secs(3);
/// Time that an operator's node that can be reached has to begin to send a file.
const SERVED_WITHIN: Duration = Duration::from_secs(60);
/// Time that a node which has the file has to begin to send it.
const BEGUN_WITHIN: Duration = Duration::from_secs(30);
/// Pause between two looks whether a question is due.
const LOOK: Duration = Duration::from_secs(2);
/// Pauses between questions without an answer.
const ASKS: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(3600) };
/// Pauses after a node that has not got it either.
const REFUSED: Backoff =
    Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(3600) };
/// Questions after which the pause between two doubles.
const DOUBLED_AFTER: usize = 8;

/// Search of a node for another one that has what it lacks.
pub(super) struct Search {
    /// The thing that it lacks.
    lacks: Option<Lacks>,
    /// Since when.
    since: Instant,
    /// When it looks next whether to ask.
    at: Instant,
    /// Nodes that were asked since all were asked last.
    asked: BTreeSet<NodeId>,
    /// Questions since it lacks this.
    asks: usize,
    /// Node that had an order. It is asked first for the files.
    pub(super) holder: Option<NodeId>,
}

impl Search {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            lacks: None,
            since: now,
            at: now + FIRST_ASK,
            asked: BTreeSet::new(),
            asks: 0,
            holder: None,
        }
    }

    /// Returns when it is to be driven.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.lacks.map(|_| self.at)
    }

    /// Returns how often the pauses have doubled.
    fn doublings(&self) -> u32 {
        (self.asks / DOUBLED_AFTER) as u32
    }

    /// Notes what the node lacks now. Something new is asked for soon, and of all nodes.
    fn note(&mut self, now: Instant, lacks: Option<Lacks>) {
        if self.lacks != lacks {
            self.lacks = lacks;
            self.since = now;
            self.asked.clear();
            self.asks = 0;
            // The first wait is over once an order was passed on.
            self.at = if lacks == Some(Lacks::Order) { now + FIRST_ASK } else { now };
        }
    }

    /// Takes the answer of a node that was asked. One that sends the file has some time to begin;
    /// else it is the next one's turn soon.
    pub(super) fn note_answer(&mut self, now: Instant, from: NodeId, has: bool) -> bool {
        let was_asked = self.lacks.is_some() && self.asked.contains(&from);
        if was_asked {
            let pause = if has { BEGUN_WITHIN } else { REFUSED.pause(self.doublings()) };
            self.at = now + pause;
        }
        was_asked
    }

    /// Returns the node that is to be asked for what this one lacks, if that is due. `operator` is
    /// the node that leads the roll-out.
    pub(super) fn next(
        &mut self,
        now: Instant,
        lacks: Option<Lacks>,
        stack: &Stack,
        operator: Option<NodeId>,
    ) -> Option<NodeId> {
        self.note(now, lacks);
        lacks.filter(|_| self.at <= now)?;

        // The operator's node comes first, and a transfer that goes on is waited for.
        let me = stack.node();
        let paths = stack.topology().paths_from(me, Metric::Unicast);
        let is_led = operator.is_some_and(|operator| paths.reaches(operator));
        let transfers = stack.transfers();
        let is_arriving = transfers.iter().any(|t| {
            t.direction == Direction::Receiving
                && t.stage == file::Stage::Open
                && is_fleet_name(&t.name)
                && paths.reaches(t.flow.source)
        });
        if is_arriving || is_led && now < self.since + SERVED_WITHIN {
            self.at = now + LOOK;
            return None;
        }

        let others = stack.topology().nodes().filter(|node| {
            let is_open = *node != me && Some(*node) != operator && !self.asked.contains(node);
            is_open && paths.reaches(*node)
        });
        let nearest = others.min_by_key(|node| (self.holder != Some(*node), paths.distance(*node)));
        self.at = now + ASKS.pause(self.doublings()).max(LOOK);
        match nearest {
            Some(nearest) => {
                self.asked.insert(nearest);
                self.asks += 1;
            }
            // All were asked, or there is none yet: from the beginning.
            None => self.asked.clear(),
        }
        nearest
    }
}
