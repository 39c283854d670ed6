//! The source's part: invites receivers, reads and checks the file, and learns from acknowledgments
//! what is still missing.
//!
//! A transfer begins with announcements. Receivers answer with acknowledgments, and once enough in
//! reach have answered ([`Quorum`]), or a grace period is over, the carrier begins to send. It ends
//! when every receiver has the file or has refused it.
//!
//! | module | what |
//! | --- | --- |
//! | `state` | open, or closed and why |
//! | `receiver` | what is known of one receiver |
//! | `announce_timer` | when to announce |
//! | `read` | generations, read and checked |

mod announce_timer;
mod read;
mod receiver;
mod state;

use crate::frame::{Ack, Announcement, Version};
use announce_timer::{AnnounceTimer, PAUSES};
use ncmesh_engine::file::merkle::MerkleTree;
use ncmesh_engine::file::{Allowance, GenerationSet, Manifest, Outgoing, ReceiverState};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::{Metric, Paths};
use ncmesh_engine::{Context, Event};
use ncmesh_wire::NodeId;
pub use receiver::Receiver;
pub(crate) use state::{CloseReason, SourceState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time that receivers have to answer before the first packet is sent.
const GRACE: Duration = Duration::from_millis(1500);
/// Time after a claimed end in which acknowledgments may be copies from before it.
const LATE_COPIES: Duration = Duration::from_millis(500);

/// Receivers in reach that must have answered before the first packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// All of them.
    All,
    /// Half of them. Those that answer later are served as well.
    Half,
}

/// A file this node sends.
#[derive(Debug)]
pub struct FileSource {
    /// The file.
    pub manifest: Manifest,
    /// The nodes that are to have it.
    pub receivers: BTreeMap<NodeId, Receiver>,
    /// Data packets sent by this node.
    pub packets_sent: u64,
    pub(crate) state: SourceState,
    pub(crate) started: Instant,
    /// Whether nodes that are not listed may join.
    open_to_all: bool,
    pub(crate) allowance: Allowance,
    announce_timer: AnnounceTimer,
    /// Epoch in which somebody else announced this transfer in the name of this node. It is
    /// answered in a later one.
    belied_in: Option<u64>,

    /// Version of the topology that `paths` belong to.
    topology_version: Option<u64>,
    /// Shortest paths from this node.
    paths: Option<Arc<Paths>>,

    /// Hashes of the generations.
    tree: MerkleTree,
    /// Where generations are read to.
    scratch: Vec<u8>,
    /// When the file is read again that could not be read, and how often that failed in a row.
    reread_at: Instant,
    read_failures: u32,
}

impl FileSource {
    pub(crate) fn new(outgoing: Outgoing, cx: &Context<'_>) -> Self {
        let now = cx.now;
        let g = outgoing.manifest.geometry;

        // Receivers that ended before this node restarted need not be asked again.
        let receiver = |node: &NodeId| match outgoing.done.get(node) {
            Some(state) => (*node, Receiver::ended(g.generations(), *state, now)),
            None => (*node, Receiver::invited(g.generations(), false, now)),
        };

        let receivers = outgoing.receivers.iter().chain(outgoing.done.keys()).map(receiver);
        Self {
            state: SourceState::Open,
            receivers: receivers.collect(),
            started: now,
            packets_sent: 0,
            open_to_all: outgoing.open,
            allowance: outgoing.allowance,
            announce_timer: AnnounceTimer::new(now),
            belied_in: None,
            topology_version: None,
            paths: None,
            tree: MerkleTree::new(outgoing.leaves, g.depth()),
            scratch: Vec::new(),
            reread_at: now,
            read_failures: 0,
            manifest: outgoing.manifest,
        }
    }

    /// Returns whether the transfer goes on.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state == SourceState::Open
    }

    /// Returns whether the transfer has ended for good.
    pub(crate) fn is_over(&self) -> bool {
        !self.is_open() && self.state.confirmed_at().is_none()
    }

    /// Finds out which receivers can be reached, if the mesh has changed. Returns whether it has.
    pub(crate) fn refresh_paths(&mut self, cx: &Context<'_>) -> bool {
        if self.topology_version == Some(cx.topology.version()) {
            return false;
        }
        self.topology_version = Some(cx.topology.version());
        let paths = cx.topology.paths_from(self.manifest.flow.source, Metric::Broadcast);

        // A receiver that comes into reach is to hear an announcement soon. One that is out of
        // reach must not keep a turn going.
        let mut somebody_new = false;
        for (node, receiver) in &mut self.receivers {
            let is_reachable = paths.reaches(*node);
            somebody_new |= is_reachable && !receiver.is_reachable && !receiver.state.is_final();
            if receiver.is_reachable && !is_reachable && receiver.state == ReceiverState::Active {
                receiver.state = ReceiverState::Lost;
            }
            receiver.is_reachable = is_reachable;
        }

        self.paths = Some(paths);
        if somebody_new {
            self.announce_timer.reset(cx.now);
        }
        true
    }

    /// Returns the ETX distance of `node`; 0 as long as paths are unknown.
    #[must_use]
    pub fn distance(&self, node: NodeId) -> u128 {
        self.paths.as_ref().map_or(0, |paths| paths.distance(node))
    }

    /// Handles a receiver's acknowledgment. Returns whether it is news.
    pub(crate) fn handle_ack(&mut self, ack: &Ack, cx: &mut Context<'_>) -> bool {
        // A receiver that goes on objects to the end, as long as that is not confirmed.
        self.reopen_for(ack, cx);

        // One that goes on after the end has missed it: announce it again, but not for every one of
        // its acknowledgments.
        if let SourceState::Closed { announced_at, .. } = &mut self.state {
            let was_told_lately = announced_at.is_some_and(|at| cx.now.since(at) < PAUSES.longest);
            if !ack.state.is_final() && !was_told_lately {
                *announced_at = None;
            }
            return false;
        }

        // A node that is not listed may join, as long as an announcement has room for it.
        let generations = self.manifest.geometry.generations();
        let max_receivers = Announcement::room_for_receivers(&self.manifest, cx.mtu);
        if self.open_to_all
            && !self.receivers.contains_key(&ack.receiver)
            && self.receivers.len() < max_receivers
        {
            let is_reachable = self.paths.as_ref().is_some_and(|p| p.reaches(ack.receiver));
            let receiver = Receiver::invited(generations, is_reachable, cx.now);
            self.receivers.insert(ack.receiver, receiver);
        }

        let Some(receiver) = self.receivers.get_mut(&ack.receiver) else { return false };
        if !receiver.accepts(ack, cx.now) {
            return false;
        }
        // A later objection is told from copies of older acknowledgments by this version.
        if !ack.state.is_final() {
            receiver.active_version = ack.version;
        }

        // The acknowledgment carries the whole state, so it takes the place of all before.
        receiver.version = ack.version;
        receiver.heard_at = cx.now;
        receiver.have = GenerationSet::from_wire(generations, ack.first_missing, &ack.bits);
        if ack.state != receiver.state {
            let was_final = receiver.state.is_final();
            receiver.state = ack.state;
            receiver.finished = ack.state.is_final().then_some(cx.now);
            if ack.state.is_final() {
                cx.events.push_back(Event::ReceiverDone(self.manifest.flow, ack.receiver));
            } else if was_final {
                cx.events.push_back(Event::ReceiverObjected(self.manifest.flow, ack.receiver));
            }
        }

        true
    }

    /// Opens the transfer again if an acknowledgment objects to its end, which is not confirmed.
    fn reopen_for(&mut self, ack: &Ack, cx: &Context<'_>) {
        let SourceState::Closed { reason: CloseReason::SaidDone, at, .. } = self.state else {
            return;
        };
        let Some(receiver) = self.receivers.get_mut(&ack.receiver) else { return };
        let is_late = cx.now.since(at) < LATE_COPIES;
        if ack.state.is_final() || (is_late && !receiver.is_objection(ack)) {
            return;
        }

        // The objection counts, whatever version was claimed.
        receiver.version = Version::default();
        self.state = SourceState::Open;
        self.announce_timer.reset(cx.now);
    }

    /// Returns the receivers that are not done.
    pub fn unfinished(&self) -> impl Iterator<Item = NodeId> {
        let open = self.receivers.iter().filter(|(_, receiver)| !receiver.state.is_final());
        open.map(|(node, _)| *node)
    }

    /// Notes that somebody else announces this transfer in the name of this node.
    pub(crate) fn note_lie(&mut self, epoch: u64) {
        self.belied_in = Some(epoch);
    }

    /// Announces the transfer again if this node has another epoch than when it was belied.
    pub(crate) fn answer_lie(&mut self, epoch: u64, now: Instant) {
        if self.belied_in.is_none_or(|belied| belied == epoch) {
            return;
        }
        self.belied_in = None;
        match &mut self.state {
            SourceState::Open => self.announce_timer.hasten(now),
            SourceState::Closed { announced_at, .. } => *announced_at = None,
        }
    }

    /// Returns whether this node has made an announcement of this version, as far as it knows.
    pub(crate) fn has_announced(&self, version: Version, epoch: u64) -> bool {
        version <= Version { epoch, number: self.announce_timer.count() }
    }

    /// Returns the first time later than `after` at which it may announce, or at which data may be
    /// sent that could not be before.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        if !self.is_open() {
            return self.state.confirmed_at().filter(|at| *at > after);
        }
        let times = [self.announce_timer.next_at(), self.started + GRACE, self.reread_at];
        times.into_iter().filter(|t| *t > after).min()
    }

    /// Returns the announcement to flood, if one is due. One of a closed transfer is always due:
    /// the caller knows when.
    pub(crate) fn announcement(&mut self, cx: &Context<'_>) -> Option<Announcement> {
        let now = cx.now;
        if self.is_open() && now < self.announce_timer.next_at() {
            return None;
        }

        // Silent receivers are looked for here because an announcement is what wakes them up.
        self.receivers.values_mut().for_each(|receiver| receiver.expire(now));
        let number = self.announce_timer.note_announced(now);
        let receivers = self.receivers.iter().map(|(node, r)| (*node, r.announced_state(now)));
        Some(Announcement {
            version: Version { epoch: cx.epoch, number },
            phase: self.state.phase(),
            open_to_all: self.open_to_all,
            background: self.allowance.background,
            manifest: self.manifest.clone(),
            receivers: receivers.collect(),
        })
    }

    /// Returns the announcement that the transfer is closed, if there is somebody to tell.
    pub(crate) fn closing_announcement(&mut self, cx: &Context<'_>) -> Option<Announcement> {
        match &mut self.state {
            SourceState::Closed { announced_at: announced_at @ None, .. } => {
                *announced_at = Some(cx.now);
                self.announcement(cx)
            }
            _ => None,
        }
    }

    /// Withdraws the file.
    pub(crate) fn withdraw(&mut self, now: Instant) {
        self.close(CloseReason::Withdrawn, now);
    }

    /// Closes the transfer if no receiver wants anything more.
    pub(crate) fn close_if_done(&mut self, cx: &mut Context<'_>) {
        if self.is_open() && self.receivers.values().all(|r| r.state.is_final()) {
            self.close(CloseReason::SaidDone, cx.now);
            cx.events.push_back(Event::SendEnded(self.manifest.flow));
        }
    }

    /// Confirms the end if all receivers had time to object.
    pub(crate) fn confirm_end(&mut self, cx: &mut Context<'_>) {
        if self.state.confirmed_at().is_some_and(|at| cx.now >= at)
            && let SourceState::Closed { reason, .. } = &mut self.state
        {
            *reason = CloseReason::Ended;
            cx.events.push_back(Event::SendConfirmed(self.manifest.flow));
        }
    }

    fn close(&mut self, reason: CloseReason, now: Instant) {
        self.state = SourceState::Closed { reason, at: now, announced_at: None };
    }

    /// Returns whether data may be sent: the transfer goes on, the file can be read, and enough
    /// receivers in reach have answered, or all had time to.
    #[must_use]
    pub fn may_send(&self, quorum: Quorum, now: Instant) -> bool {
        let in_reach = || self.receivers.values().filter(|r| r.is_reachable);
        let answered = || in_reach().filter(|r| r.state != ReceiverState::Invited).count();
        let has_quorum = || match quorum {
            Quorum::All => answered() == in_reach().count(),
            Quorum::Half => 2 * answered() >= in_reach().count().max(1),
        };

        let has_begun = now >= self.started + GRACE || has_quorum();
        self.is_open() && now >= self.reread_at && has_begun
    }
}
