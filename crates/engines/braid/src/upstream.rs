//! When a node tells the one before it what it has.
//!
//! Each frame of a node says what it has, so one that sends packets on need not report. A report
//! goes out where that is not heard in time: at the destination, over links that lose, and when the
//! node before waits for room.

use super::flight::Handled;
use super::frame::State;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::report::{ReportPolicy, ReportTimer};
use ncmesh_wire::NodeId;

/// How a report is sent.
const REPORT: ReportPolicy = ReportPolicy { loss: 0.2, copies: 4, between: WAIT };
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
    /// When that node was heard last, and the number of that frame.
    heard_at: Instant,
    number: u16,
    report: ReportTimer,
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
    pub(crate) fn hear_parent(
        &mut self,
        node: NodeId,
        (state, number): (State, u16),
        now: Instant,
    ) {
        (self.parent, self.parent_state) = (Some(node), state);
        (self.heard_at, self.number) = (now, number);
    }

    /// Returns the last frame of that node that was handled here.
    pub(crate) fn handled(&self, now: Instant) -> Handled {
        let lately = Handled { number: self.number, ago: now.since(self.heard_at) };
        self.parent.map_or_else(Handled::default, |_| lately)
    }

    /// Returns the node that has packets for this one, if it was heard lately.
    pub(crate) fn waiting_parent(&self, now: Instant) -> Option<NodeId> {
        let is_recent = now.since(self.heard_at) < LATELY;
        self.parent.filter(|_| is_recent && self.parent_state.backlog > 0)
    }

    /// Returns whether more packets wait there, or on the way there, by what that node said lately.
    pub(crate) fn has_more(&self, now: Instant) -> bool {
        now.since(self.heard_at) < LATELY && self.parent_state.more
    }

    /// Lets a report go out at `at`, unless one is due before.
    pub(crate) fn report(&mut self, at: Instant) {
        self.report.request(at);
    }

    /// Returns the parent if it is to be told now.
    pub(crate) fn reports_to(&self, now: Instant) -> Option<NodeId> {
        self.parent.filter(|_| self.report.is_due(now))
    }

    /// Notes a frame that tells the parent, over a link that delivers this share.
    pub(crate) fn note_told(&mut self, delivery: f64, packet_time: Duration, now: Instant) {
        if self.report.note_sent(delivery, 0, &REPORT, packet_time, now) {
            self.fresh = 0;
        }
    }

    /// Returns when a report falls due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.report.due()
    }
}
