//! One transfer at one node: what it holds, its children, its way up, and what to send next.

use super::child::{Child, Overheard, Sent};
use super::frame::{DataHeader, Report, UNWANTED, Wants};
use super::held::{Held, Role};
use super::upstream::Upstream;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::hop::pacing::{Pacing, PacingPolicy};
use ncmesh_engine::toolkit::hop::{Handled, SentFrames};
use ncmesh_engine::{At, Context, PerPort, Port};
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::collections::BTreeMap;

/// Most children of a node. Bounds memory, and the time to look through them for each packet.
const MOST_CHILDREN: usize = 64;
/// A node sends from this many generations, counted from the lowest that a child wants: a child
/// that gets little holds the others back by no more than that.
const WINDOW: u32 = Report::LISTED as u32;
/// A child waits for its packets if it receives less than this share of what the best child does. A
/// higher share lets more children wait.
const DEFERRED: f64 = 0.5;
/// Least delivery of a link over which a child counts as served by another node's packets. With
/// less, children on lines wait for packets that only seem to have reached them (two of 24
/// instances 0.57 to 0.79 times as fast); with more, fewer
/// relays share their work. Dense meshes, whose links are good, do not care.
const HEARS_WELL: f64 = 0.5;
/// Bytes of generations that are kept though nobody here or below wants them, and the time for
/// which a relay without children keeps them after the transfer was last heard.
const KEPT: usize = 16 << 20;
const KEPT_FOR: Duration = Duration::from_secs(30);
/// Time after a generation was false during which only generations are passed on that are whole,
/// and so were checked: what came from others may be false, too. It goes on while generations are
/// false; longer, it slows down transfers whose liar was found.
const WARY: Duration = Duration::from_secs(2);
/// Time that a node leaves to a child which was heard to feed others, and that it waits where few
/// packets arrive. Shorter slots collide, longer ones idle: half 1.00, twice 0.97.
const PACING: PacingPolicy = PacingPolicy { slot: 1.3, ease: 2.0, most_ease: 8.0 };

/// Worth of a packet of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    Nothing,
    /// It serves only children who can wait for it.
    Later,
    Now,
}

/// Frames of a node by one port.
#[derive(Clone, Debug)]
struct Numbers {
    /// Number of the last one.
    last: u16,
    /// The latest ones.
    frames: SentFrames,
}

/// A child's word of itself, which goes with each frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    /// Number of the frame.
    pub number: u16,
    /// The last frame of this node that it had handled.
    pub handled: Handled,
    pub wants: &'a Wants,
}

/// One transfer at one node.
#[derive(Debug)]
pub(super) struct Flow {
    pub held: Held,
    pub children: BTreeMap<NodeId, Child>,
    pub upstream: Upstream,
    /// Frames that this node sent by each port. Neighbours count the frames of a port: those of
    /// others do not reach them.
    sent: PerPort<Numbers>,
    pacing: PerPort<Pacing>,
    /// Until when only whole generations are passed on.
    wary_until: Instant,
    /// When a data packet was last sent, and when anything of the transfer was last heard.
    pub sent_at: Instant,
    pub heard_at: Instant,
}

impl Flow {
    /// Returns a transfer of which nothing is known but `held`.
    pub(super) fn new(held: Held, rng: &mut impl RngCore, now: Instant) -> Self {
        Self {
            held,
            children: BTreeMap::new(),
            upstream: Upstream::default(),
            sent: PerPort::of(Numbers { last: rng.next_u32() as u16, frames: Default::default() }),
            pacing: PerPort::of(Pacing::new(PACING, now)),
            wary_until: now,
            sent_at: now,
            heard_at: now,
        }
    }

    /// Begins a frame of this node by a port. Returns its number.
    pub(super) fn begin_frame(&mut self, port: Port, now: Instant) -> u16 {
        let Numbers { last, frames } = &mut self.sent[port];
        *last = last.wrapping_add(1);
        frames.note_filled(*last, now);
        *last
    }

    /// Notes that the MAC of a port has sent the last frame.
    pub(super) fn note_ended(&mut self, port: Port, now: Instant) {
        self.sent[port].frames.note_sent(now);
    }

    // ---- children

    /// Takes a node for a child until it is heard, if there is room for it.
    pub(super) fn expect_child(&mut self, cx: &Context<'_>, node: NodeId) {
        if self.children.len() < MOST_CHILDREN {
            let to = cx.topology.delivery(cx.me, node);
            let from = cx.topology.delivery(node, cx.me);
            self.children.entry(node).or_insert_with(|| Child::expected(to, from, cx.now));
        }
    }

    /// Takes what a child says. One that wants nothing is no child any more.
    pub(super) fn hear_child(&mut self, cx: &Context<'_>, node: NodeId, said: Said<'_>) {
        let Said { number, handled, wants } = said;
        if wants.lowest().is_none() {
            self.children.remove(&node);
        } else {
            let lowest = self.lowest_wanted();
            self.expect_child(cx, node);
            let covered = self.sent[cx.at.ways.port_to(node)].frames.covered_by(handled);
            let Some(child) = self.children.get_mut(&node) else { return };
            child.hear(wants.clone(), number, covered, |g| self.held.packets(g), cx.now);

            // A generation that was not wanted before is asked for at once.
            let is_new = self.lowest_wanted().is_some_and(|now| lowest.is_none_or(|l| now < l));
            if is_new && !self.held.is_source() {
                self.upstream.report(cx.now);
            }
        }

        self.drop_unwanted();
    }

    /// Removes a child that said in its frame of this number that it has another parent.
    pub(super) fn lose_child(&mut self, node: NodeId, number: u16, now: Instant) {
        if self.children.get(&node).is_some_and(|child| !child.is_stale(number, now)) {
            self.children.remove(&node);
            self.drop_unwanted();
        }
    }

    /// Counts a packet of another node for all children that hear that node well.
    pub(super) fn note_elsewhere(
        &mut self,
        cx: &Context<'_>,
        sender: NodeId,
        header: &DataHeader,
        packet_time: Duration,
    ) {
        let DataHeader { generation, rank, .. } = *header;

        // A node that holds nothing of it does not serve it, and need not know.
        let own = self.held.rank(generation);
        if own == 0 {
            return;
        }
        for (node, child) in self.children.iter_mut().filter(|(node, _)| **node != sender) {
            let delivery = cx.topology.delivery(sender, *node);
            if delivery >= HEARS_WELL {
                let overheard = Overheard { generation, rank: rank.min(own), delivery };
                child.note_elsewhere(overheard, own, packet_time, cx.now);
            }
        }
    }

    /// Notes that a whole generation is not what was announced.
    pub(super) fn spoil(&mut self, generation: u32, now: Instant) {
        self.held.spoil(generation);
        self.wary_until = now + WARY;
    }

    /// Forgets most of what nobody here or below wants. Not all: a child that was lost may come
    /// back, and another node may take this one for its parent.
    pub(super) fn drop_unwanted(&mut self) {
        self.drop_unwanted_beyond(KEPT);
    }

    /// Forgets what nobody here or below wants, but for what `limit` bytes hold.
    pub(super) fn drop_unwanted_beyond(&mut self, limit: usize) {
        let children = &self.children;
        let is_wanted = |g| children.values().any(|child| child.wants.rank(g).is_some());
        self.held.drop_unwanted(limit, is_wanted);
    }

    // ---- what is wanted from upstream

    /// Returns whether a generation is wanted from upstream.
    pub(super) fn is_wanted(&self, generation: u32) -> bool {
        // It is wanted for this node itself, or for a child.
        let below = |child: &Child| child.wants.rank(generation).is_some();
        generation < self.held.len()
            && !self.held.is_whole(generation)
            && (self.held.lacks(generation) || self.children.values().any(below))
    }

    /// Returns the lowest generation that is wanted from upstream.
    pub(super) fn lowest_wanted(&self) -> Option<u32> {
        let below = self.children.values().filter_map(|child| child.wants.lowest());
        let lowest = below.chain(self.held.lowest_lacking()).min()?;
        (lowest..self.held.len()).find(|g| self.is_wanted(*g))
    }

    /// Returns what this node wants, with at most `listed` ranks.
    pub(super) fn wants(&self, listed: usize) -> Wants {
        let rank = |g| if self.is_wanted(g) { self.held.told_rank(g) } else { UNWANTED };
        let lowest = self.lowest_wanted().filter(|_| !self.held.is_source());
        let wants = match lowest {
            None => Wants::nothing(),
            Some(first) => Wants::from(first, (first..self.held.len()).map(rank), listed),
        };

        // How much a parent may send ahead depends on what this node still holds for the child that
        // lacks fewest generations. Counting those of the slowest child would hold back the others
        // for a branch that is slow anyway. What is whole beyond a gap does not count: the gap must
        // be filled.
        let end = lowest.unwrap_or(self.held.len());
        let lacking = |child: &Child| {
            let begun = child.wants.lowest().into_iter().flat_map(|lowest| self.held.begun(lowest));
            let before = begun.take_while(|g| *g < end);
            before.filter(|g| self.held.is_whole(*g) && child.wants.rank(*g).is_some()).count()
        };

        let backlog = self.children.values().map(lacking).min().unwrap_or(0);
        Wants {
            backlog: backlog.min(usize::from(u8::MAX)) as u8,
            receives: matches!(self.held.role, Role::Receiver(_)),
            forwards: !self.children.is_empty(),
            feeds: self.children.values().any(|child| child.wants.forwards),
            ..wants
        }
    }

    // ---- what is sent

    /// Returns the children that are reached by a port. Its frames are for them.
    fn children_at(&self, at: At<'_>) -> impl Iterator<Item = &Child> + Clone {
        self.children.iter().filter(move |(node, _)| at.reaches(**node)).map(|(_, child)| child)
    }

    /// Returns the generation to send a packet of now by a port, if there is one: the lowest that
    /// is worth it, before those that can wait.
    pub(super) fn next_generation(&self, now: Instant, at: At<'_>) -> Option<u32> {
        if now < self.pacing[at.port].until() {
            return None;
        }

        // Children get their generations in order, within a window that begins where the last child
        // is.
        let lowest = self.children_at(at).filter_map(|child| child.wants.lowest()).min()?;
        let end = lowest.saturating_add(WINDOW).min(self.held.len());
        if self.held.is_source() {
            self.first_worth_sending(lowest..end, now, at)
        } else {
            self.first_worth_sending(self.held.begun(lowest).take_while(|g| *g < end), now, at)
        }
    }

    /// A child over a link far poorer than another's needs many packets of each generation that
    /// serve nobody else. If no child forwards, they are sent when the others have theirs: those
    /// have them sooner, and the poor one has its own no later. While a child forwards, packets for
    /// another cost less, for the one that forwards has its hands full.
    fn first_worth_sending(
        &self,
        generations: impl Iterator<Item = u32>,
        now: Instant,
        at: At<'_>,
    ) -> Option<u32> {
        let forwards = self.children_at(at).any(|child| child.wants.forwards);
        let best = self.children_at(at).map(Child::delivery).fold(0.0, f64::max);
        let defer_below = if forwards { 0.0 } else { DEFERRED * best };
        let mut later = None;
        for generation in generations {
            match self.worth(generation, defer_below, now, at) {
                Worth::Now => return Some(generation),
                Worth::Later => later = later.or(Some(generation)),
                Worth::Nothing => {}
            }
        }

        later
    }

    /// Returns whether a packet of a generation is worth sending. Of one that is whole: if a child
    /// is expected to lack something, or did not answer a poll. Of another: if all that want it are
    /// far behind, for more will come that serves them all. Children can wait whose links deliver
    /// less than `defer_below`.
    fn worth(&self, generation: u32, defer_below: f64, now: Instant, at: At<'_>) -> Worth {
        let rank = self.held.rank(generation);
        let is_whole = self.held.is_whole(generation);
        if rank == 0 || (!is_whole && now < self.wary_until) {
            return Worth::Nothing;
        }

        // One packet serves all children at once, so it is worth sending if a single one lacks
        // something. A generation that is not whole waits until all who want it are far behind,
        // since what this node still receives makes each packet more likely to be innovative.
        let mut is_lacking = false;
        let mut is_unanswered = false;
        let mut are_far_behind = true;
        let mut can_wait = true;
        for child in self.children_at(at) {
            let Some(lacks) = child.lacks(generation, rank) else { continue };
            is_unanswered |= child.is_poll_lost(generation, now);
            are_far_behind &= Child::is_far_behind(lacks);
            if !Child::is_served(lacks) && child.takes_data(now) {
                is_lacking = true;
                can_wait &= child.delivery() < defer_below;
            }
        }

        let is_worth_it =
            if is_whole { is_lacking || is_unanswered } else { is_lacking && are_far_behind };
        match is_worth_it {
            false => Worth::Nothing,
            true if can_wait && !is_unanswered => Worth::Later,
            true => Worth::Now,
        }
    }

    /// Notes that a packet of a generation is sent now. Returns its header, and the packet to send
    /// if one is to be sent as it is.
    pub(super) fn note_sent(
        &mut self,
        cx: &Context<'_>,
        generation: u32,
        packet_time: Duration,
    ) -> (DataHeader, Option<u8>) {
        let now = cx.now;
        let rank = self.held.rank(generation);
        let wants = self.wants(DataHeader::LISTED);

        // The source sends each packet uncoded once: a node that hears it need not decode.
        let systematic = match &mut self.held.role {
            Role::Source(sending) => sending.take_uncoded(generation, rank),
            Role::Receiver(_) | Role::Relay => None,
        };

        // Once all children of the port should have everything, they are asked.
        let port = cx.at.port;
        let number = self.begin_frame(port, now);
        let sent = Sent { number, port, generation, at: now };
        let mut are_served = self.held.is_whole(generation);
        let mut is_due = false;
        let reached = |(node, _): &(&NodeId, &mut Child)| cx.at.reaches(**node);
        for (_, child) in self.children.iter_mut().filter(reached) {
            is_due |= child.note_sent(sent, packet_time);
            are_served &= child.lacks(generation, rank).is_none_or(Child::is_served);
        }

        let poll = are_served || is_due;
        if poll {
            for (_, child) in self.children.iter_mut().filter(reached) {
                child.note_poll(generation, packet_time, now);
            }
        }

        self.sent_at = now;
        let header = DataHeader {
            flow: self.held.manifest.flow,
            generation,
            packets: self.held.packets(generation),
            rank,
            poll,
            number,
            parent: self.upstream.parent.unwrap_or(cx.me),
            handled: self.upstream.handled(now),
            wants,
        };

        (header, systematic)
    }

    /// Leaves the channel to a child that was heard to send, if it feeds others that forward.
    pub(super) fn make_way(&mut self, cx: &Context<'_>, child: NodeId, packet_time: Duration) {
        if self.children.get(&child).is_some_and(|child| child.wants.feeds) {
            self.pacing[cx.at.port].make_way(packet_time, cx.now);
        }
    }

    /// Waits for a random time if far fewer packets arrive than the links let through: others that
    /// cannot be heard send at the same time.
    pub(super) fn ease(&mut self, cx: &mut Context<'_>, packet_time: Duration) {
        let shares = self.children_at(cx.at).filter_map(Child::share_of_promise);
        let share = shares.fold(f64::INFINITY, f64::min);
        self.pacing[cx.at.port].ease(share, packet_time, cx.now, cx.rng);
    }

    // ---- time

    /// Forgets children that keep silent. Returns whether the transfer still concerns this node.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        // Generations that only a lost child wanted take memory.
        let before = self.children.len();
        self.children.retain(|_, child| !child.is_gone(now));
        if self.children.len() < before {
            self.drop_unwanted();
        }
        !self.is_idle() || now.since(self.heard_at) < KEPT_FOR
    }

    /// Returns whether this node passes nothing on and wants nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.held.is_relay() && self.children.is_empty()
    }

    /// Returns the first time later than `after` at which it has something to do.
    pub(super) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let polls = self.children.values().flat_map(Child::timeouts);
        let pauses = self.pacing.values().map(Pacing::until);
        let own = self.upstream.timeouts().chain(pauses);
        polls.chain(own).filter(|at| *at > after).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Data;
    use ncmesh_engine::counters::Counters;
    use ncmesh_engine::file::{Geometry, Manifest};
    use ncmesh_engine::rng::stream;
    use ncmesh_engine::storage::MemoryStorage;
    use ncmesh_engine::testing::symmetric;
    use ncmesh_engine::topology::Topology;
    use ncmesh_transfer::frame::Coding;
    use ncmesh_wire::FlowId;
    use std::collections::VecDeque;

    const ID: FlowId = FlowId { source: NodeId(1), serial: 1 };
    const PACKET_TIME: Duration = Duration::from_millis(1);

    /// Runs a test with what node 2 knows of a mesh.
    fn at_relay(topology: &Topology, test: impl FnOnce(&mut Context<'_>)) {
        let mut cx = Context {
            now: Instant::default(),
            me: NodeId(2),
            epoch: 1,
            mtu: 1500,
            at: At::ONLY,
            topology,
            rng: &mut stream(1, NodeId(2), "flow", "test"),
            counters: &mut Counters::default(),
            events: &mut VecDeque::new(),
            storage: &mut MemoryStorage::default(),
        };
        test(&mut cx);
    }

    /// Returns a transfer of generations of four packets at node 2, whose child is node 3. The last
    /// generation is shorter.
    fn relay(cx: &mut Context<'_>) -> Flow {
        let geometry = Geometry::new(6 * 4 * 100, 4, 100).unwrap();
        let root = [0; 32];
        let hash = [0; 32];
        let manifest = Manifest { flow: ID, name: "f".into(), geometry, root, hash };
        let mut flow = Flow::new(Held::new(manifest, Role::Relay), cx.rng, cx.now);
        let wants = &Wants::from(0, [].into_iter(), 200);
        flow.hear_child(cx, NodeId(3), Said { number: 1, handled: Handled::default(), wants });
        flow
    }

    /// Returns the header of a packet whose sender holds this `rank` of a generation.
    fn header(generation: u32, rank: u8) -> DataHeader {
        DataHeader {
            flow: ID,
            generation,
            packets: 4,
            rank,
            poll: false,
            number: 0,
            parent: NodeId(1),
            handled: Handled::default(),
            wants: Wants::nothing(),
        }
    }

    /// Gives a node all packets of a generation.
    fn receive(flow: &mut Flow, generation: u32) {
        let packets = flow.held.packets(generation);
        for packet in 0..packets {
            let coding = Coding::Systematic(packet);
            let header = DataHeader { packets, ..header(generation, packets) };
            flow.held.absorb(NodeId(1), &Data { header, coding, payload: &[packet; 100] });
        }
    }

    #[test]
    fn generations_behind_a_gap_are_no_backlog() {
        at_relay(&symmetric(&[(1, 2, 0.9), (2, 3, 0.9)]), |cx| {
            let mut flow = relay(cx);
            let generations = flow.held.len();
            (1..generations).for_each(|generation| receive(&mut flow, generation));
            let wants = flow.wants(200);
            assert_eq!((wants.lowest(), wants.backlog), (Some(0), 0), "generation 0 is to be sent");
            receive(&mut flow, 0);
            assert_eq!(
                (flow.wants(200).lowest(), flow.wants(200).backlog),
                (None, generations as u8)
            );
        });
    }

    /// Returns what node 2 sends after a relay that the child hears with this delivery has sent
    /// eight packets of a generation, of which it holds `rank`; at once and after a while.
    fn sent_after_help(delivery: f64, generation: u32, rank: u8) -> [Option<u32>; 2] {
        let links = [(1, 2, 0.9), (1, 4, 0.9), (2, 4, 0.9), (2, 3, 0.9), (4, 3, delivery)];
        let mut sent = [None; 2];
        at_relay(&symmetric(&links), |cx| {
            let mut flow = relay(cx);
            receive(&mut flow, 0);
            assert_eq!(flow.next_generation(cx.now, cx.at), Some(0));
            let header = header(generation, rank);
            (0..8).for_each(|_| flow.note_elsewhere(cx, NodeId(4), &header, PACKET_TIME));
            let later = cx.now + PACKET_TIME.mul_f64(20.0);
            sent = [cx.now, later].map(|at| flow.next_generation(at, At::ONLY));
        });
        sent
    }

    #[test]
    fn a_child_that_hears_another_relay_well_gets_nothing_twice() {
        assert_eq!(sent_after_help(0.9, 0, 4), [None, Some(0)], "first silence, then a poll");
        assert_eq!(sent_after_help(0.3, 0, 4), [Some(0); 2], "the child hardly hears it");
        assert_eq!(sent_after_help(0.9, 0, 2), [Some(0); 2], "the other relay holds half");
        assert_eq!(sent_after_help(0.9, 1, 4), [Some(0); 2], "another generation");
        assert_eq!(sent_after_help(0.9, u32::MAX, 4), [Some(0); 2], "there is none");
    }
}
