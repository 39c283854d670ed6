//! The next hops of one flow at one node: when to send to them, and what to tell them.
//!
//! Joins the two halves of the sender. [`Credits`] say what is owed to the hops, and the
//! [`FrameLog`] says what of it is in the air. A data frame is due when credits are outstanding.
//! Two kinds of frames go without that: one that announces credits which a hop does not know of
//! yet, after a short delay, and a probe of hops that seem to be gone. Neither is in the paper,
//! whose simulation knows the outcome of each transmission at once (4.1).

use crate::channel_access::ChannelAccess;
use crate::credits::{Announcement, Candidate, Credits};
use crate::frame::Acknowledgment;
use crate::frame_log::FrameLog;
use crate::hops::HopSet;
use crate::paths::PathSet;
use ncmesh_engine::rng;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::NodeId;
use rand_core::RngCore;

/// Time between probes of next hops that seem to be gone, while packets are owed to them.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Frames that some hop should have received but none acknowledged, after which the backoff
/// doubles. Two senders that are hidden from each other would otherwise destroy all of each other's
/// frames for ever.
const FRAMES_PER_DOUBLING: f64 = 8.0;
/// Longest backoff, frames' time.
const MAX_BACKOFF_FRAMES: u32 = 64;
/// Frames without any acknowledgment after which a frame asks for one at once.
const MAX_UNACKNOWLEDGED: u32 = 4;
/// Delivery that is assumed of a link on the paths which this node has not measured yet. The source
/// takes it for a link, so it is not nothing.
const UNMEASURED_DELIVERY: f64 = 0.5;

/// The next hops of one flow at one node.
#[derive(Debug)]
pub(crate) struct Downstream {
    /// DST(n, c), in the order in which credits number them.
    hops: Vec<NodeId>,
    pub credits: Credits,
    log: FrameLog,
    /// Probability that any of the hops receives a frame, by the link state. The measured one would
    /// not do: it tends to 0 where all frames are lost.
    expected_delivery: f64,
    /// End of the backoff: no data is sent before.
    not_before: Instant,
}

/// Fields of the next data frame that are for the hops.
#[derive(Debug)]
pub(crate) struct FrameFields {
    pub serial: u16,
    /// Asks hops to acknowledge it.
    pub wants_ack: bool,
    /// Asks them to do so at once.
    pub waits_for_ack: bool,
    pub announcement: Announcement,
}

impl Downstream {
    /// Returns the next hops of `me` on the paths, without credits.
    pub(crate) fn new(paths: &PathSet, topology: &Topology, me: NodeId, now: Instant) -> Self {
        let mut downstream = Self {
            hops: Vec::new(),
            credits: Credits::new(&[], None),
            log: FrameLog::default(),
            expected_delivery: 0.0,
            not_before: now,
        };

        downstream.reroute(paths, topology, me);
        downstream
    }

    /// Returns whether there are none: this node is the destination.
    pub(crate) fn is_empty(&self) -> bool {
        self.hops.is_empty()
    }

    /// Returns the number of hops.
    pub(crate) fn hops(&self) -> usize {
        self.hops.len()
    }

    // ---- handle

    /// Continues over other paths. Credits that the old hops do not know of go to the new ones.
    pub(crate) fn reroute(&mut self, paths: &PathSet, topology: &Topology, me: NodeId) {
        self.hops = paths.next_hops(me);
        let destination = self.hops.iter().position(|hop| *hop == paths.destination());

        let quality: Vec<f64> = self
            .hops
            .iter()
            .map(|hop| match topology.delivery(me, *hop) {
                delivery if delivery > 0.0 => delivery,
                _ => UNMEASURED_DELIVERY,
            })
            .collect();
        self.credits.reroute(&quality, destination);

        // Nothing is assumed of links back: over one that goes one way nothing ever arrives.
        let back = self.hops.iter().map(|hop| topology.delivery(*hop, me));
        self.credits.set_quality_back(&back.collect::<Vec<f64>>());

        self.expected_delivery = self.credits.quality_of_all();
        self.log.clear();
    }

    /// Handles what a node says of itself: how many credits it holds, and which frames of this node
    /// it received. Returns whether it is a next hop.
    pub(crate) fn handle_state<'a>(
        &mut self,
        sender: NodeId,
        credits: u16,
        acks: impl Iterator<Item = &'a Acknowledgment>,
    ) -> bool {
        let Some(hop) = self.hops.iter().position(|hop| *hop == sender) else { return false };
        for ack in acks {
            self.log.handle_ack(hop, *ack, &mut self.credits);
        }

        // This comes last: the number includes the credits that the acknowledgments show it to have
        // learned of.
        self.credits.handle_backlog(hop, u32::from(credits));
        true
    }

    /// Handles the MAC's report on which nodes received the latest frame.
    pub(crate) fn handle_mac_report(&mut self, receivers: &[NodeId]) {
        let hops = self.hops.iter().enumerate();
        let received: HopSet =
            hops.filter(|(_, node)| receivers.contains(node)).map(|(hop, _)| hop).collect();
        self.log.handle_mac_report(received, self.hops.len(), &mut self.credits);
    }

    /// Settles frames whose acknowledgment has timed out.
    pub(crate) fn expire(&mut self, access: ChannelAccess, now: Instant) {
        self.log.expire(access.ack_timeout(), self.hops.len(), now, &mut self.credits);
    }

    /// Transfers credits to the hops as far as back-pressure lets them.
    pub(crate) fn transfer(&mut self, rng: &mut impl RngCore) {
        if self.credits.transfer(rng) {
            self.log.update_pending(&mut self.credits, None);
        }
    }

    // ---- poll

    /// Returns the generation to send from now.
    pub(crate) fn candidate(&self, access: ChannelAccess, now: Instant) -> Option<Candidate> {
        if now < self.not_before {
            return None;
        }
        let is_quiet_for = |pause| self.log.latest_at().is_none_or(|latest| latest + pause <= now);

        // 1. Packets that are owed to the hops.
        if let Some(due) = self.credits.due() {
            return Some(due);
        }

        // 2. Credits that a hop has the packets for but does not know of. It cannot send them on
        //    before. The weight is 0, because the frame brings it nothing new.
        if let Some(generation) = self.credits.unacknowledged()
            && is_quiet_for(access.announce_delay())
        {
            return Some(Candidate { generation, weight: 0.0 });
        }

        // 3. A probe of hops that seem to be gone.
        self.credits.stalled().filter(|_| is_quiet_for(PROBE_INTERVAL))
    }

    /// Returns when the latest frame was sent.
    pub(crate) fn latest_at(&self) -> Option<Instant> {
        self.log.latest_at()
    }

    /// Returns what a frame of `generation` says to the hops, with credits of at most `announced`
    /// generations.
    pub(crate) fn frame_fields(
        &mut self,
        generation: u32,
        access: ChannelAccess,
        announced: usize,
    ) -> FrameFields {
        // Count the frame as sent, to see whether anything is due after it. If not, nothing is sent
        // before the hops have answered, and they should do so at once.
        self.log.update_pending(&mut self.credits, Some(generation));
        let is_last = self.credits.due().is_none();
        let is_overdue = self.log.since_ack() >= MAX_UNACKNOWLEDGED;
        let wants_ack = !access.mac_reports;
        let assigned = self.log.assigned_in_flight(generation);
        FrameFields {
            serial: self.log.next_serial(),
            wants_ack,
            waits_for_ack: wants_ack && (is_overdue || is_last),
            announcement: self.credits.announce(generation, assigned, announced),
        }
    }

    /// Notes a frame of `generation` that was handed to the MAC, and backs off if none of those
    /// before it was acknowledged.
    pub(crate) fn note_sent(
        &mut self,
        generation: u32,
        announcement: Announcement,
        access: ChannelAccess,
        rng: &mut impl RngCore,
        now: Instant,
    ) {
        let total = self.credits.total(generation);
        self.log.push(generation, total, announcement, now);
        self.log.update_pending(&mut self.credits, None);

        // Only frames that hops should have received count: over bad links silence is normal.
        let missed = f64::from(self.log.timed_out()) * self.expected_delivery;
        let doublings = (missed / FRAMES_PER_DOUBLING) as u32;
        if doublings > 0 {
            let first = access.frame_time();
            let backoff = Backoff { first, longest: first.saturating_mul(MAX_BACKOFF_FRAMES) };
            self.not_before = now + first + backoff.pause(doublings).mul_f64(rng::unit(rng));
        }
    }

    /// Returns the first time later than `after` at which something falls due.
    pub(crate) fn poll_timeout(&self, access: ChannelAccess, after: Instant) -> Option<Instant> {
        let latest = self.log.latest_at();
        let times = [
            Some(self.not_before),
            self.credits.unacknowledged().and(latest).map(|at| at + access.announce_delay()),
            self.credits.stalled().and(latest).map(|at| at + PROBE_INTERVAL),
            self.log.expires_at(access.ack_timeout()),
        ];
        times.into_iter().flatten().filter(|at| *at > after).min()
    }
}
