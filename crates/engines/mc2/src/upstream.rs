//! A previous hop of a flow: which of its frames arrived, when to acknowledge them, and which
//! credits it announced (MC2, 3.3, 3.4).
//!
//! Acknowledgments ride in this node's own data frames where there are any (passive). Where not, a
//! report is due: after some frames, or soon if the previous hop waits for it. Next hops answer one
//! after the other, because two that do not hear each other would collide. A report may be lost, so
//! it is repeated until the previous hop goes on or is likely to have heard one:
//!
//! ```text
//!   no ack due --frame that wants one--> pending --sent--> repeating --last one--> no ack due
//!                                           ^                  |
//!                                           +---next frame-----+
//! ```

use crate::frame::{Acknowledgment, GenerationHeader};
use crate::generation::Generation;
use ncmesh_engine::Malformed;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::sequence::{Received, SequenceWindow};
use ncmesh_wire::{NodeId, StartId};
use std::collections::BTreeMap;

/// Frames of a previous hop that wants acknowledgments, after which a report is due.
const FRAMES_PER_REPORT: u32 = 8;
/// Time after a frame at which a report is due, if its sender does not wait for it.
const REPORT_DELAY: Duration = Duration::from_millis(50);
/// Time between the reports of two next hops to a sender that waits.
const REPORT_STAGGER: Duration = Duration::from_millis(2);
/// Reports are repeated until the probability that all are lost is no higher.
const MAX_ALL_LOST: f64 = 0.1;
/// Most times that a report is sent.
const MAX_REPORTS: u32 = 8;
/// Credits that a node may announce for each packet of a generation. Some are announced again in
/// answers to requests.
const MAX_ANNOUNCED_PER_PACKET: u16 = 8;

/// One previous hop of a flow.
#[derive(Debug)]
pub(crate) struct Upstream {
    /// Its start. Another one numbers its frames anew.
    start: StartId,
    node: NodeId,
    /// Its frames that arrived, by serial number.
    received: SequenceWindow<u16>,
    /// Frames since the latest acknowledgment, if it wants any.
    pub unacknowledged: u32,
    /// Whether it wants acknowledgments.
    pub wants_ack: bool,
    ack: Option<PendingAck>,
    /// Probability that it hears a frame of this node.
    delivery_back: f64,
    /// Revision of the paths that its announcements belong to.
    revision: u8,
    /// Credits that it announced to this node, by generation.
    announced: BTreeMap<u32, u16>,
}

/// An acknowledgment that is to be sent.
#[derive(Clone, Copy, Debug)]
struct PendingAck {
    at: Instant,
    /// How often it is still to be sent.
    remaining: u32,
    /// Time between repetitions.
    interval: Duration,
    /// Whether it was sent once already.
    is_repetition: bool,
}

impl Upstream {
    /// Returns a previous hop of `me` as its first frame shows it. It hears the share
    /// `delivery_back` of this node's frames.
    pub(crate) fn new(
        node: NodeId,
        start: StartId,
        header: &GenerationHeader,
        me: NodeId,
        delivery_back: f64,
        now: Instant,
    ) -> Self {
        let mut upstream = Self {
            start,
            node,
            received: SequenceWindow::new(header.serial),
            unacknowledged: u32::from(header.wants_ack),
            wants_ack: header.wants_ack,
            ack: None,
            delivery_back,
            revision: header.revision,
            announced: BTreeMap::new(),
        };

        upstream.schedule_ack(header, me, now);
        upstream
    }

    /// Returns whether this is the state of this `start`.
    pub(crate) fn is_of(&self, start: StartId) -> bool {
        self.start == start
    }

    // ---- frames

    /// Notes a frame. Returns whether it is the first with its serial number; one that is older
    /// than the window counts as new.
    pub(crate) fn note_frame(
        &mut self,
        header: &GenerationHeader,
        me: NodeId,
        now: Instant,
    ) -> bool {
        if self.received.receive(header.serial) == Received::Duplicate {
            return false;
        }
        self.schedule_ack(header, me, now);
        self.wants_ack = header.wants_ack;
        self.unacknowledged = if header.wants_ack { self.unacknowledged + 1 } else { 0 };
        true
    }

    /// Plans the acknowledgment of a frame, if its sender wants one.
    fn schedule_ack(&mut self, header: &GenerationHeader, me: NodeId, now: Instant) {
        let hops = header.paths.next_hops(self.node);
        let place = hops.iter().position(|hop| *hop == me).unwrap_or(0);
        let (delay, reports) = if header.waits_for_ack {
            (REPORT_STAGGER * place as u32, reports_for(self.delivery_back))
        } else {
            (REPORT_DELAY, 1)
        };

        // One that was planned for an earlier frame keeps its time. One that was sent is settled:
        // its sender goes on, so it seems to have heard it.
        let at = match self.ack {
            Some(ack) if !ack.is_repetition => ack.at.min(now + delay),
            _ => now + delay,
        };

        let interval = REPORT_STAGGER * hops.len() as u32;
        let ack = PendingAck { at, remaining: reports, interval, is_repetition: false };
        self.ack = header.wants_ack.then_some(ack);
    }

    /// Returns whether a report is due.
    pub(crate) fn is_report_due(&self, now: Instant) -> bool {
        self.unacknowledged >= FRAMES_PER_REPORT || self.report_at().is_some_and(|at| at <= now)
    }

    /// Returns when a report falls due at the latest.
    pub(crate) fn report_at(&self) -> Option<Instant> {
        self.ack.map(|ack| ack.at)
    }

    /// Returns the acknowledgment to send now, and plans its repetition if there is to be one.
    pub(crate) fn acknowledge(&mut self, now: Instant) -> Acknowledgment {
        self.unacknowledged = 0;
        self.ack = self.ack.filter(|ack| ack.remaining > 1).map(|ack| PendingAck {
            at: now + ack.interval,
            remaining: ack.remaining - 1,
            is_repetition: true,
            ..ack
        });

        // The frame has room for half of the window.
        let before = self.received.before() as u32;
        Acknowledgment { of: self.node, latest: self.received.latest(), before }
    }

    // ---- credits

    /// Adds the credits that a frame announces to this node, the sender's next hop number `hop`, to
    /// the generations that are here.
    ///
    /// # Errors
    /// [`Malformed`] if a count is higher than can be true; the others are added all the same.
    pub(crate) fn handle_announcement(
        &mut self,
        header: &GenerationHeader,
        hop: usize,
        generations: &mut BTreeMap<u32, Generation>,
    ) -> Result<(), Malformed> {
        // Each choice of paths starts the counts anew. Frames from before it may arrive late.
        let newer = header.revision.wrapping_sub(self.revision);
        if newer > u8::MAX / 2 {
            return Ok(());
        }
        if newer != 0 {
            self.revision = header.revision;
            self.announced.clear();
        }

        let limit = MAX_ANNOUNCED_PER_PACKET * u16::from(header.generation_size);
        let mut result = Ok(());
        for credits in &header.announced {
            let Some(total) = credits.by_hop.get(hop).copied() else { continue };
            if total > limit {
                result = Err(Malformed);
                continue;
            }

            let Some(generation) = generations.get_mut(&credits.generation) else { continue };
            let known = self.announced.entry(credits.generation).or_default();
            generation.announced += u32::from(total.saturating_sub(*known));
            *known = total.max(*known);
        }

        result
    }

    /// Forgets announcements for generations before `oldest`.
    pub(crate) fn drop_before(&mut self, oldest: u32) {
        self.announced = self.announced.split_off(&oldest);
    }
}

/// Returns how often a report is sent to a node that hears each with probability `delivery`.
fn reports_for(delivery: f64) -> u32 {
    (1..MAX_REPORTS)
        .find(|reports| libm::pow(1.0 - delivery, f64::from(*reports)) <= MAX_ALL_LOST)
        .unwrap_or(MAX_REPORTS)
}
