//! The source's part: invites receivers, sends batches by the scheme's plan, and learns from
//! acknowledgments what is still missing (Pacifier, III).
//!
//! A transfer begins with announcements. Receivers answer with acknowledgments, and once all in
//! reach have answered, or a grace period is over, the source begins to send. It works in turns:
//! each is on one batch, for the receivers that lack it (`schedule`, `turn`). It ends when every
//! receiver has the file or has refused it.
//!
//! | module | what |
//! | --- | --- |
//! | `state` | open, or closed and why |
//! | `receiver` | what is known of one receiver |
//! | `announce_timer` | when to announce |
//! | `schedule` | which batch, for whom, by which plan |
//! | `turn` | what to send within a turn |
//! | `send` | filling data packets |
//! | `rate_limit` | how fast |

mod announce_timer;
mod rate_limit;
mod receiver;
mod schedule;
mod send;
mod state;
mod turn;

use super::frame::{Ack, Announcement, Data, Report, TurnId, Version};
use super::scheme::Scheme;
use announce_timer::{AnnounceTimer, PAUSES};
use ncmesh_code::Encoder;
use ncmesh_engine::file::merkle::MerkleTree;
use ncmesh_engine::file::{BatchSet, Manifest, Outgoing, ReceiverState};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::{Metric, Paths};
use ncmesh_engine::{Context, Event, TxResult};
use ncmesh_wire::NodeId;
use rate_limit::RateLimiter;
use receiver::Receiver;
pub(super) use state::{CloseReason, SourceState};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turn::BatchTurn;

/// Time that receivers have to answer before the first packet is sent.
const GRACE: Duration = Duration::from_millis(1500);
/// Most batches after the first missing one that are sent from. Fewer if the bits of an
/// acknowledgment do not reach so far.
const WINDOW: usize = 8192;
/// Time after a claimed end in which acknowledgments may be copies from before it.
const LATE_COPIES: Duration = Duration::from_millis(500);

/// A file this node sends.
#[derive(Debug)]
pub(super) struct FileSource {
    pub manifest: Manifest,
    pub state: SourceState,
    pub receivers: BTreeMap<NodeId, Receiver>,
    pub started: Instant,
    /// When a data packet was last sent.
    pub sent_at: Instant,
    /// Data packets sent by this node.
    pub packets_sent: u64,
    /// Every node that was a forwarder in some plan.
    pub forwarders: BTreeSet<NodeId>,
    /// Whether nodes that are not listed may join.
    open_to_all: bool,
    announce_timer: AnnounceTimer,
    /// Epoch in which somebody else announced this transfer in the name of this node. It is
    /// answered in a later one.
    belied_in: Option<u64>,

    /// Version of the topology that `paths` belong to.
    topology_version: Option<u64>,
    /// Shortest paths from this node.
    paths: Option<Arc<Paths>>,

    /// The turn under way.
    turn: Option<BatchTurn>,
    /// Its name, or that of the turn before.
    turn_id: TurnId,
    /// Batches that had a turn.
    sent_once: BatchSet,
    /// Batch of the last turn.
    last_batch: Option<u32>,
    /// Batches from the first missing one on that may have a turn.
    window: u32,
    rate_limiter: RateLimiter,

    /// Hashes of the batches.
    tree: MerkleTree,
    /// The batch of the turn, ready to code.
    encoder: Option<Encoder>,
    /// The batches that a scheme which sends by rank used last, ready to code.
    encoders: BTreeMap<u32, Encoder>,
    /// Where batches are read to.
    scratch: Vec<u8>,
    /// When the file is read again that could not be read, and how often that failed in a row.
    reread_at: Instant,
    read_failures: u32,
}

impl FileSource {
    pub(super) fn new(outgoing: Outgoing, cx: &Context<'_>) -> Self {
        let (epoch, now) = (cx.epoch, cx.now);
        let g = outgoing.manifest.geometry;

        // Receivers that ended before this node restarted need not be asked again.
        let receiver = |node: &NodeId| match outgoing.done.get(node) {
            Some(state) => (*node, Receiver::ended(g.batches(), *state, now)),
            None => (*node, Receiver::invited(g.batches(), false, now)),
        };
        let receivers = outgoing.receivers.iter().chain(outgoing.done.keys()).map(receiver);

        // Forwarders tell the source's starts apart by 16 bits made of its epoch.
        let incarnation = (epoch ^ epoch >> 16 ^ epoch >> 32 ^ epoch >> 48) as u16;

        // A receiver can acknowledge only as many batches as an acknowledgment has bits for.
        let ack_bits = cx.mtu.saturating_sub(Ack::HEADER) * 8;
        Self {
            state: SourceState::Open,
            receivers: receivers.collect(),
            started: now,
            sent_at: now,
            packets_sent: 0,
            forwarders: BTreeSet::new(),
            open_to_all: outgoing.open,
            announce_timer: AnnounceTimer::new(now),
            belied_in: None,
            topology_version: None,
            paths: None,
            turn: None,
            turn_id: TurnId { incarnation, number: 0 },
            sent_once: BatchSet::none(g.batches()),
            last_batch: None,
            window: WINDOW.min(ack_bits).max(1) as u32,
            rate_limiter: RateLimiter::new(now),
            tree: MerkleTree::new(outgoing.leaves, g.depth()),
            encoder: None,
            encoders: BTreeMap::new(),
            scratch: Vec::new(),
            reread_at: now,
            read_failures: 0,
            manifest: outgoing.manifest,
        }
    }

    /// Returns whether the transfer goes on.
    pub(super) fn is_open(&self) -> bool {
        self.state == SourceState::Open
    }

    /// Returns whether the transfer has ended for good.
    pub(super) fn is_over(&self) -> bool {
        !self.is_open() && self.state.confirmed_at().is_none()
    }

    /// Finds out who can be reached, if the mesh has changed.
    pub(super) fn refresh_paths(&mut self, cx: &Context<'_>, scheme: Option<&dyn Scheme>) {
        if self.topology_version == Some(cx.topology.version()) {
            return;
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
        self.review_turn(true, cx, scheme);
    }

    /// Handles a receiver's acknowledgment. Returns whether it is news.
    pub(super) fn handle_ack(
        &mut self,
        ack: &Ack,
        cx: &mut Context<'_>,
        scheme: Option<&dyn Scheme>,
    ) -> bool {
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
        let batches = self.manifest.geometry.batches();
        let max_receivers = Announcement::room_for_receivers(&self.manifest, cx.mtu);
        if self.open_to_all
            && !self.receivers.contains_key(&ack.receiver)
            && self.receivers.len() < max_receivers
        {
            let is_reachable = self.paths.as_ref().is_some_and(|p| p.reaches(ack.receiver));
            let receiver = Receiver::invited(batches, is_reachable, cx.now);
            self.receivers.insert(ack.receiver, receiver);
        }
        let Some(receiver) = self.receivers.get_mut(&ack.receiver) else { return false };
        if !receiver.accepts(ack, cx.now) {
            return false;
        }
        if !ack.state.is_final() {
            receiver.active_version = ack.version;
        }

        // The acknowledgment carries the whole state, so it takes the place of all before.
        receiver.version = ack.version;
        receiver.heard_at = cx.now;
        receiver.have = BatchSet::from_wire(batches, ack.first_missing, &ack.bits);
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
        self.review_turn(false, cx, scheme);
        self.close_if_done(cx);
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
    pub(super) fn unfinished(&self) -> impl Iterator<Item = NodeId> {
        let open = self.receivers.iter().filter(|(_, receiver)| !receiver.state.is_final());
        open.map(|(node, _)| *node)
    }

    /// Notes that somebody else announces this transfer in the name of this node.
    pub(super) fn note_lie(&mut self, epoch: u64) {
        self.belied_in = Some(epoch);
    }

    /// Announces the transfer again if this node has another epoch than when it was belied.
    pub(super) fn answer_lie(&mut self, epoch: u64, now: Instant) {
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
    pub(super) fn has_announced(&self, version: Version, epoch: u64) -> bool {
        version <= Version { epoch, number: self.announce_timer.count() }
    }

    /// Handles a data packet of this transfer that was overheard.
    pub(super) fn handle_data(&mut self, sender: NodeId, data: &Data<'_>, now: Instant) {
        self.rate_limiter.handle_overheard(sender, now);
        if let Some(turn) = &mut self.turn {
            turn.handle_data(sender, data, now);
        }
    }

    /// Handles a child's report. Returns whether it is on the turn under way.
    pub(super) fn handle_report(&mut self, from: NodeId, report: &Report, now: Instant) -> bool {
        let is_current = report.turn == self.turn_id;
        let Some(turn) = self.turn.as_mut().filter(|_| is_current) else { return false };
        turn.handle_report(from, report, now);
        true
    }

    /// Handles the MAC's report on the data packet filled last; `packet_time` is the mean airtime
    /// of one (T_p).
    pub(super) fn handle_tx_result(
        &mut self,
        scheme: &dyn Scheme,
        result: TxResult,
        packet_time: Duration,
        now: Instant,
    ) {
        if let Some(turn) = &mut self.turn {
            turn.handle_tx_result(result, packet_time, now);
        }
        if let Some(wait) = scheme.child_wait() {
            self.rate_limiter.wait_for_child(wait, packet_time, now);
        }
    }

    /// Keeps the turn moving while somebody lacks its batch.
    pub(super) fn poll_if_stalled(&mut self, now: Instant) {
        let Some(turn) = &mut self.turn else { return };
        turn.poll_if_stalled(now);
        if turn.is_stuck(now) {
            // A higher number makes forwarders drop what they hold of the batch.
            self.turn_id = self.turn_id.next();
            turn.restart(self.manifest.flow.source, now);
        }
    }

    /// Returns whether a data packet can be sent.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        let has_packet = self.turn.as_ref().is_none_or(|turn| turn.next_packet(now).is_some());
        now >= self.rate_limiter.hold_until()
            && now >= self.reread_at
            && self.may_start(now)
            && has_packet
            && self.next_batch().is_some()
    }

    /// Returns the first time later than `after` at which it may send or announce.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        if !self.is_open() {
            return self.state.confirmed_at().filter(|at| *at > after);
        }
        let times = [
            self.rate_limiter.hold_until(),
            self.announce_timer.next_at(),
            self.started + GRACE,
            self.reread_at,
        ];
        let turn = self.turn.as_ref().and_then(|turn| turn.poll_timeout(after));
        times.into_iter().filter(|t| *t > after).chain(turn).min()
    }

    /// Returns the announcement to flood, if one is due. One of a closed transfer is always due:
    /// the caller knows when.
    pub(super) fn announcement(
        &mut self,
        cx: &Context<'_>,
        scheme: Option<&dyn Scheme>,
    ) -> Option<Announcement> {
        let now = cx.now;
        if self.is_open() && now < self.announce_timer.next_at() {
            return None;
        }

        // Silent receivers are looked for here because an announcement is what wakes them up.
        self.receivers.values_mut().for_each(|receiver| receiver.expire(now));
        self.review_turn(false, cx, scheme);
        let number = self.announce_timer.note_announced(now);
        let receivers = self.receivers.iter().map(|(node, r)| (*node, r.announced_state(now)));
        Some(Announcement {
            version: Version { epoch: cx.epoch, number },
            phase: self.state.phase(),
            open_to_all: self.open_to_all,
            manifest: self.manifest.clone(),
            receivers: receivers.collect(),
        })
    }

    /// Returns the announcement that the transfer is closed, if there is somebody to tell.
    pub(super) fn closing_announcement(
        &mut self,
        cx: &Context<'_>,
        scheme: Option<&dyn Scheme>,
    ) -> Option<Announcement> {
        match &mut self.state {
            SourceState::Closed { announced_at: announced_at @ None, .. } => {
                *announced_at = Some(cx.now);
                self.announcement(cx, scheme)
            }
            _ => None,
        }
    }

    /// Withdraws the file.
    pub(super) fn withdraw(&mut self, now: Instant) {
        self.close(CloseReason::Withdrawn, now);
    }

    /// Closes the transfer if no receiver wants anything more.
    pub(super) fn close_if_done(&mut self, cx: &mut Context<'_>) {
        if self.is_open() && self.receivers.values().all(|r| r.state.is_final()) {
            self.close(CloseReason::SaidDone, cx.now);
            cx.events.push_back(Event::SendEnded(self.manifest.flow));
        }
    }

    /// Confirms the end if all receivers had time to object.
    pub(super) fn confirm_end(&mut self, cx: &mut Context<'_>) {
        if self.state.confirmed_at().is_some_and(|at| cx.now >= at)
            && let SourceState::Closed { reason, .. } = &mut self.state
        {
            *reason = CloseReason::Ended;
            cx.events.push_back(Event::SendConfirmed(self.manifest.flow));
        }
    }

    fn close(&mut self, reason: CloseReason, now: Instant) {
        self.state = SourceState::Closed { reason, at: now, announced_at: None };
        self.turn = None;
        self.encoder = None;
        self.encoders = BTreeMap::new();
    }

    /// Returns whether sending may begin: every receiver in reach has answered, or had time to.
    fn may_start(&self, now: Instant) -> bool {
        let is_awaited = |r: &Receiver| r.is_reachable && r.state == ReceiverState::Invited;
        now >= self.started + GRACE || !self.receivers.values().any(is_awaited)
    }

    /// Returns whether a scheme that sends by rank may begin: half of the receivers in reach have
    /// answered, or all had time to. Those that answer later are served as well.
    pub(super) fn may_start_by_half(&self, now: Instant) -> bool {
        let in_reach = || self.receivers.values().filter(|r| r.is_reachable);
        let answered = in_reach().filter(|r| r.state != ReceiverState::Invited).count();
        let has_begun = now >= self.started + GRACE || 2 * answered >= in_reach().count().max(1);
        self.is_open() && now >= self.reread_at && has_begun
    }
}
