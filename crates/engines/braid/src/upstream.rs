//! When a node tells the one before it what it has.
//!
//! Each frame of a node says what it has, so one that sends packets on need not report. A report
//! goes out where that is not heard in time: at the destination, over links that lose, and when the
//! node before waits for room.

use super::child::Said;
use super::frame::State;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::hop::Handled;
use ncmesh_engine::toolkit::hop::report::{ReportPolicy, ReportTimer};
use ncmesh_wire::NodeId;

/// How a report is sent. More copies cost airtime where data frames say the same soon.
const REPORT: ReportPolicy = ReportPolicy { loss: 0.2, copies: 4, between: WAIT };
/// Packet times for which a report waits for a data frame that says the same, and between copies.
const WAIT: f64 = 3.0;
/// Packets after which a parent is told that does not hear what this node sends on, for that goes
/// by another port. More let it wait for room that is there; each report takes airtime.
const UNTOLD: u32 = 4;
/// Time for which the word of a parent counts. Longer, turns go on for nodes that have gone.
pub(crate) const PARENT_COUNTS: Duration = Duration::from_millis(500);

/// The way up of a flow at one node.
#[derive(Debug, Default)]
pub(crate) struct Upstream {
    /// The node that sends packets to this one.
    pub parent: Option<NodeId>,
    /// State of that node by its own word.
    pub parent_state: State,
    /// Packets that may wait here, while this node gives turns to those who send to it.
    pub turn: Option<u8>,
    /// When that node was heard last, and the number of that frame.
    heard_at: Instant,
    number: u16,
    report: ReportTimer,
    /// Packets of that node since it was told last, if it does not hear what this node sends on.
    untold: u32,
    /// The node that was told first, and what link state promised of the way there then.
    promise: Option<Promise>,
}

/// Share of frames that reached a node before the flow's own packets could collide with them.
#[derive(Clone, Copy, Debug)]
struct Promise {
    parent: NodeId,
    delivery: f64,
}

/// A packet of the parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub is_innovative: bool,
    /// Whether it asks for a report.
    pub polls: bool,
    /// Whether the parent hears what this node sends on.
    pub is_heard: bool,
}

impl Upstream {
    /// Notes a packet of the parent. If this node sends packets, those tell soon enough.
    pub(crate) fn note_packet(
        &mut self,
        packet: Arrived,
        sends: bool,
        packet_time: Duration,
        now: Instant,
    ) {
        if packet.polls || !packet.is_innovative {
            let wait = if sends { packet_time.mul_f64(WAIT) } else { Duration::ZERO };
            self.report(now + wait);
        }

        self.untold = if packet.is_heard { 0 } else { self.untold + 1 };
        if self.untold >= UNTOLD {
            self.report(now);
        }
    }

    /// Returns how many frames the node `sender` has sent since it was heard last, up to the frame
    /// of this number: those that were lost count, too.
    pub(crate) fn frames_until(&self, sender: NodeId, number: u16) -> u16 {
        let known = self.parent.filter(|parent| *parent == sender);
        known.map_or(1, |_| number.wrapping_sub(self.number).max(1))
    }

    /// Notes that this node sends packets to this one, and says this of itself.
    pub(crate) fn hear_parent(&mut self, node: NodeId, said: Said, now: Instant) {
        self.parent = Some(node);
        self.parent_state = said.state;
        self.number = said.number;
        self.heard_at = now;
    }

    /// Returns the last frame of that node that was handled here.
    pub(crate) fn handled(&self, now: Instant) -> Handled {
        let lately = Handled { number: self.number, ago: now.since(self.heard_at) };
        self.parent.map_or_else(Handled::default, |_| lately)
    }

    /// Returns the node that sends packets to this one, if it was heard recently.
    pub(crate) fn present_parent(&self, now: Instant) -> Option<NodeId> {
        self.parent.filter(|_| now.since(self.heard_at) < PARENT_COUNTS)
    }

    /// Returns whether more packets wait there, or on the way there, by what that node said lately.
    pub(crate) fn has_more(&self, now: Instant) -> bool {
        now.since(self.heard_at) < PARENT_COUNTS && self.parent_state.more
    }

    /// Lets a report go out at `at`, unless one is due before.
    pub(crate) fn report(&mut self, at: Instant) {
        self.report.request(at);
    }

    /// Returns the parent if it is to be told now.
    pub(crate) fn reports_to(&self, now: Instant) -> Option<NodeId> {
        self.parent.filter(|_| self.report.is_due(now))
    }

    /// Notes a frame that tells the parent, over a link of which link state tells this share.
    /// Copies make good what the link loses. If the link lost less before this flow had packets,
    /// frames collide here: copies would, too, and the parent asks again.
    pub(crate) fn note_told(&mut self, told: f64, packet_time: Duration, now: Instant) {
        let Some(parent) = self.parent else { return };
        self.untold = 0;
        let first = self.promise.filter(|promise| promise.parent == parent);
        let promise = first.unwrap_or(Promise { parent, delivery: told });
        self.promise = Some(promise);
        let delivery = told.max(promise.delivery);
        self.report.note_sent(delivery, 0, &REPORT, packet_time, now);
    }

    /// Returns when a report falls due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.report.due()
    }
}
