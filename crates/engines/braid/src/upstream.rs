//! When a node tells the one before it what it has.
//!
//! Each frame of a node says what it has, so one that sends packets on need not report. A report
//! goes out where that is not heard in time: at the destination, over links that lose, and when the
//! node before waits for room.

use super::frame::State;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::NodeId;

/// Something counts as told if all copies are lost with no more than this probability.
const LOST: f64 = 0.2;
const MOST_COPIES: u32 = 4;
/// Innovative packets after which a report is due.
const EVERY: u32 = 8;
/// Packet times for which a report waits for a data frame that says the same, and between copies.
const WAIT: f64 = 3.0;
/// Time for which what a parent said counts.
pub(crate) const LATELY: Duration = Duration::from_millis(500);

/// The way up of a flow at one node.
#[derive(Debug, Default)]
pub(crate) struct Upstream {
    /// The node that sends packets to this one.
    pub parent: Option<NodeId>,
    /// What that node said of itself.
    pub parent_state: State,
    /// Packets that may wait here, while this node gives turns to those who send to it.
    pub turn: Option<u8>,
    /// When that node was heard last.
    heard_at: Instant,
    due: Option<Instant>,
    /// Copies of what is due that were sent, and the probability that all were lost.
    copies: u32,
    lost: f64,
    /// Innovative packets since it was last told.
    fresh: u32,
}

impl Upstream {
    /// Notes a packet of the parent: whether it was innovative and asks for a report. If this node
    /// sends packets, those tell soon enough.
    pub(crate) fn note_packet(
        &mut self,
        (is_innovative, polls): (bool, bool),
        sends: bool,
        packet_time: Duration,
        now: Instant,
    ) {
        self.fresh += u32::from(is_innovative);
        if polls || !is_innovative || self.fresh >= EVERY {
            let wait = if sends { packet_time.mul_f64(WAIT) } else { Duration::ZERO };
            self.report(now + wait);
        }
    }

    /// Notes that this node sends packets to this one, and says this of itself.
    pub(crate) fn hear_parent(&mut self, node: NodeId, state: State, now: Instant) {
        (self.parent, self.parent_state, self.heard_at) = (Some(node), state, now);
    }

    /// Returns the node that has packets for this one, if it was heard lately.
    pub(crate) fn waiting_parent(&self, now: Instant) -> Option<NodeId> {
        let is_recent = now.since(self.heard_at) < LATELY;
        self.parent.filter(|_| is_recent && self.parent_state.backlog > 0)
    }

    /// Lets a report go out at `at`, unless one is due before.
    pub(crate) fn report(&mut self, at: Instant) {
        if self.due.is_none() {
            (self.copies, self.lost) = (0, 1.0);
        }
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Returns the parent if it is to be told now.
    pub(crate) fn reports_to(&self, now: Instant) -> Option<NodeId> {
        self.parent.filter(|_| self.due.is_some_and(|at| at <= now))
    }

    /// Notes a frame that tells the parent, over a link that delivers this share.
    pub(crate) fn note_told(&mut self, delivery: f64, packet_time: Duration, now: Instant) {
        self.copies += 1;
        self.lost *= 1.0 - delivery;
        if self.lost <= LOST || self.copies >= MOST_COPIES {
            (self.due, self.fresh) = (None, 0);
        } else if self.due.is_some() {
            self.due = Some(now + packet_time.mul_f64(WAIT));
        }
    }

    /// Returns when a report falls due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }
}
