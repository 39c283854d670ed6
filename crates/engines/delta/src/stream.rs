//! One stream at one node: what it has, who wants it from here, and what is sent next.
//!
//! A node may be source, receiver or relay of a stream; a relay may be a receiver as well. It takes
//! part while it is a receiver or has next hops, and tells its parent so in each frame.

use crate::child::{Child, GivenUp, REPORT};
use crate::frame::{Have, Head, MAX_ASKED, MAX_MAP, State, WIDTH};
use crate::lane::{Lane, Times};
use crate::parent::Choice;
use ncmesh_code::Coded;
use ncmesh_engine::Context;
use ncmesh_engine::stream::Deadline;
use ncmesh_engine::stream::{LAYERS, Sending, StreamQueue, StreamStatus};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::hop::SentFrames;
use ncmesh_engine::toolkit::hop::pacing::{Pacing, PacingPolicy};
use ncmesh_engine::toolkit::hop::report::ReportTimer;
use ncmesh_engine::toolkit::live::{ANNOUNCE_INTERVAL, Live, Part, Receiver};
use ncmesh_wire::NodeId;
use rand_core::RngCore;

/// How a node pauses between packets.
const PACING: PacingPolicy = PacingPolicy { slot: 1.5, ease: 2.0, most_ease: 8.0 };
/// Time after which a node tells its state again.
pub(crate) const TELL_INTERVAL: Duration = Duration::from_millis(200);
/// Announcements of a stream that follow each other sooner, and the time between them.
const EARLY: u32 = 3;
const EARLY_INTERVAL: Duration = Duration::from_secs(1);
/// Packets that a next hop lacks for certain, less those that should come with combinations, before
/// one is sent.
const MARGIN: f64 = 0.9;
/// Packets that a next hop should lack, of those that may be lost, before they go again although
/// that is not known. One fewer is left to answers.
const EAGER: f64 = 1.2;
/// Packets that should be lost on the way to a next hop when it is asked.
const ASK_LOST: f64 = 0.7;
/// Frames of which nothing is known when a next hop is asked.
const ASK_FRAMES: usize = 8;
/// Share of the deadline for which a frame stays uncertain before its next hop is asked, times the
/// packets that should be lost, and its bounds.
const RISK: f64 = 0.02;
const LEAST_PATIENCE: f64 = 1.0 / 32.0;
const MOST_PATIENCE: f64 = 1.0 / 6.0;
/// Packet times in which an answer should come, times the share of questions that are answered:
/// where few are, it does not pay to wait for one. At least as many.
const ANSWER: f64 = 8.0;
const LEAST_ANSWER: f64 = 5.0;
/// Most doublings of that time.
const MAX_DOUBLINGS: u32 = 6;
/// Doublings for each answer that was missed.
const DOUBLINGS: f64 = 0.5;
/// Missed answers up to which a question carries a packet. Later ones are short.
const WITH_PACKET: f64 = 2.0;
/// Share of the deadline after which a source does not begin to send a packet of the base to its
/// only receiver. The rest is left to the hops on the way.
const LATEST_START: f64 = 0.5;
/// Age of a packet of the base, in 1/255 of the deadline, from which on enhancement layers wait
/// for it wherever its loss is known of.
const HOLD: u8 = 96;
/// The same of a packet of another stream.
pub(crate) const HOLD_OTHERS: u8 = 192;

/// Frame that goes out next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Next {
    pub layer: usize,
    pub what: What,
}

/// Content of a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// A packet as it is.
    Plain(u32),
    /// A combination of these packets.
    Repair(Vec<u32>),
    /// Nothing: the frame only asks.
    Ask,
}

/// A frame that is ready to be written.
pub(crate) struct Made {
    pub head: Head,
    pub symbol: Vec<u8>,
    /// Next hops that it asks and that answer by a report of their own.
    pub answers: u32,
}

/// A stream at one node.
#[derive(Debug)]
pub(crate) struct Stream {
    pub part: Part<Self>,
    pub choice: Choice,
    pub lanes: [Lane; LAYERS],
    /// Frames that this node sent, and the number of the last one.
    pub sent: SentFrames,
    pub number: u16,
    pub report: ReportTimer,
    /// When it said last what it has.
    pub told_at: Instant,
    pub pacing: Pacing,
    /// When it was served last, among the streams of this node.
    pub served_at: Instant,
}

impl Live for Stream {
    type Terms = Deadline;
    type Source = Sending;
    type Receiver = Receiver;
    type Child = Child;

    fn new(part: Part<Self>, now: Instant) -> Self {
        Self {
            part,
            choice: Choice::default(),
            lanes: std::array::from_fn(|_| Lane::default()),
            sent: SentFrames::default(),
            number: 0,
            report: ReportTimer::default(),
            told_at: Instant::default(),
            pacing: Pacing::new(PACING, now),
            served_at: Instant::default(),
        }
    }

    fn part(&self) -> &Part<Self> {
        &self.part
    }

    fn part_mut(&mut self) -> &mut Part<Self> {
        &mut self.part
    }

    fn entered(&self) -> Vec<u32> {
        self.lanes.iter().map(Lane::end).collect()
    }

    fn clear(&mut self) {
        self.lanes = std::array::from_fn(|_| Lane::default());
    }

    fn note_departure(&mut self) {
        if !self.part.takes_part() {
            self.part.note_departure();
            self.clear();
        }
    }

    /// The first announcements follow each other sooner: a node that misses one, over a poor link,
    /// does not wait long.
    fn announce_interval(&self) -> Duration {
        let is_young = self.part.announcement.version <= EARLY;
        if is_young { EARLY_INTERVAL } else { ANNOUNCE_INTERVAL }
    }
}

impl Stream {
    // ---- the tree

    /// Returns whether this node has a state to tell.
    pub(crate) fn tells(&self) -> bool {
        self.part.takes_part() || self.part.leave_notices > 0
    }

    /// Removes next hops that have been silent for too long. Returns whether there were any.
    pub(crate) fn remove_silent(&mut self, now: Instant) -> bool {
        let before = self.part.children.len();
        self.part.children.retain(|_, child| !child.is_gone(now));
        let has_departed = self.part.children.len() < before;
        if has_departed {
            self.note_departure();
        }
        has_departed
    }

    /// Returns the layers that this node wants, the base in the lowest bit.
    fn wants(&self, now: Instant) -> u8 {
        let is_wanted = |layer: &usize| {
            let mut children = self.part.children.values();
            self.part.receiver.is_some() || children.any(|child| child.takes(*layer, now))
        };
        (0..self.part.layers.len()).filter(is_wanted).fold(0, |wants, layer| wants | 1 << layer)
    }

    /// Returns the numbers behind the newest packets of each layer.
    pub(crate) fn ends(&self) -> [u32; LAYERS] {
        std::array::from_fn(|layer| self.lanes[layer].end())
    }

    // ---- time

    /// Gives up packets whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        for layer in 0..self.part.layers.len() {
            let is_late = self.lanes[layer].expire(now);
            if !is_late {
                continue;
            }
            self.judge_children(layer, now);
        }
    }

    /// Lets each next hop count the packets that were given up here.
    fn judge_children(&mut self, layer: usize, now: Instant) {
        let lane = &self.lanes[layer];
        let given_up = GivenUp { before: lane.oldest(), crowded: lane.crowded() };
        for child in self.part.children.values_mut() {
            child.judge(layer, given_up, now);
        }
    }

    /// Returns how long a next hop is left without a question about frames on their way to it: the
    /// longer, the less of them should be lost.
    fn patience(&self, child: &Child) -> Duration {
        let frames = child.uncertain().map_or(0, |uncertain| uncertain.frames);
        let lost = frames as f64 * (1.0 - child.delivery());
        let part = (RISK / lost).clamp(LEAST_PATIENCE, MOST_PATIENCE);
        self.part.announcement.deadline().mul_f64(part)
    }

    /// Returns when a next hop is to be asked, if nothing is heard of it before.
    fn question_at(&self, child: &Child, packet_time: Duration) -> Option<Instant> {
        match child.asked_at() {
            Some(asked_at) => {
                let doublings = ((child.missed_answers() * DOUBLINGS) as u32).min(MAX_DOUBLINGS);
                let wait = (ANSWER * child.answered()).max(LEAST_ANSWER);
                Some(asked_at + packet_time.mul_f64(wait) * (1 << doublings))
            }
            None => child.uncertain().map(|uncertain| uncertain.since + self.patience(child)),
        }
    }

    /// Returns the times at which it has something to send.
    pub(crate) fn timeouts(&self, packet_time: Duration) -> impl Iterator<Item = Instant> + '_ {
        let questions = self.part.children.values();
        let questions = questions.filter_map(move |child| self.question_at(child, packet_time));
        let own = [self.report.due(), Some(self.pacing.until())];
        questions.chain(own.into_iter().flatten())
    }

    // ---- what is sent

    /// Returns whether packets of the base are so late at a node behind this one that enhancement
    /// layers wait.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.lag(now) >= HOLD
    }

    /// Returns what to send now, if anything; of enhancement layers nothing if `is_held`.
    pub(crate) fn next(&self, packet_time: Duration, is_held: bool, now: Instant) -> Option<Next> {
        if now < self.pacing.until() || self.part.children.is_empty() {
            return None;
        }
        let base = self.next_of(0, packet_time, now);
        let first = base.or_else(|| self.question(packet_time, now));
        first.or_else(|| {
            let mut layers = 1..self.part.layers.len();
            if layers.is_empty() || is_held {
                return None;
            }
            layers.find_map(|layer| self.next_of(layer, packet_time, now))
        })
    }

    /// Returns what to send of a layer.
    fn next_of(&self, layer: usize, packet_time: Duration, now: Instant) -> Option<Next> {
        let lane = &self.lanes[layer];

        // Next hops that want the layer, and the first packet that one of them may lack.
        let children = self.part.children.values().filter(|child| child.takes(layer, now));
        let mut children: Vec<Wanting<'_>> =
            children.map(|child| Wanting { child, lost: 0, flying: 0 }).collect();
        let needs = children.iter().map(|wanting| wanting.child.needs(layer).unwrap_or(0)).min()?;

        // If more is offered than the first hop carries, each packet would be nearly too old when
        // its source sends it, and relays would give it up after it took airtime. Of several
        // receivers, those near the source would still get it.
        let deadline = self.part.announcement.deadline();
        let is_bounded = layer == 0 && self.part.source.is_some() && self.part.receivers() == 1;
        let left = if is_bounded { deadline.mul_f64(1.0 - LATEST_START) } else { Duration::ZERO };

        // A packet goes as it is the first time, to all that lack it. It goes again once it is
        // known to be lost.
        let mut new = None;
        let mut lost: Vec<u32> = Vec::new();
        let mut flying: Vec<u32> = Vec::new();
        for (number, until) in lane.live_from(needs) {
            // A packet that would come too late is not worth its airtime.
            if until <= now + packet_time {
                continue;
            }
            let first = lost.first().into_iter().chain(flying.first()).min();
            let first = first.copied().unwrap_or(number);
            let is_sent = lane.is_sent(number);
            let mut is_lost = false;
            let mut is_flying = false;
            for wanting in &mut children {
                let child = wanting.child;
                if child.has(layer, number) {
                    continue;
                }
                if !is_sent {
                    let may_start = !child.feeds || until >= now + left;
                    new = new.or(may_start.then_some(number));
                } else if child.answers(now) && number - first < WIDTH {
                    // Combinations span at most `WIDTH` packets, so packets farther on wait.
                    if child.is_flying(layer, number) {
                        wanting.flying += 1;
                        is_flying = true;
                    } else {
                        wanting.lost += 1;
                        is_lost = true;
                    }
                }
            }

            if is_lost {
                lost.push(number);
            } else if is_flying {
                flying.push(number);
            }

            // Nothing behind this packet can change the choice.
            if new.is_some() && number - first >= WIDTH {
                break;
            }
        }

        // Combinations that are on their way repair some of what is lost.
        let lacks =
            |wanting: &Wanting<'_>| f64::from(wanting.lost) - wanting.child.coming_combined(layer);
        if children.iter().any(|wanting| lacks(wanting) > MARGIN) {
            // If one next hop lacks all of it, a combination helps no more than a packet.
            let most = children.iter().map(|wanting| wanting.lost as usize).max();
            let is_one_hop = most == Some(lost.len());
            let what =
                if is_one_hop { self.plain_or_repair(layer, lost) } else { What::Repair(lost) };
            return Some(Next { layer, what });
        }

        if let Some(new) = new {
            return Some(Next { layer, what: What::Plain(new) });
        }

        // Over a poor link a packet goes again before it is known to be lost: a combination of all
        // that may be lost makes up for any of it.
        let should_lack = |wanting: &Wanting<'_>| {
            f64::from(wanting.lost + wanting.flying) - wanting.child.coming(layer)
        };
        if children.iter().any(|wanting| should_lack(wanting) > EAGER) {
            lost.extend(flying);
            lost.sort_unstable();
            return Some(Next { layer, what: self.plain_if_one(layer, lost) });
        }

        None
    }

    /// Returns the first of these packets, or a combination if that one is not decoded here.
    fn plain_or_repair(&self, layer: usize, lost: Vec<u32>) -> What {
        let known = lost.iter().copied().find(|number| self.lanes[layer].is_known(*number));
        known.map_or(What::Repair(lost), What::Plain)
    }

    /// Returns a frame that asks a next hop which should have answered.
    fn question(&self, packet_time: Duration, now: Instant) -> Option<Next> {
        // It asks only about frames that are on their way: else there is nothing to learn.
        let is_due = |child: &&Child| {
            self.question_at(child, packet_time).is_some_and(|at| at <= now)
                && child.uncertain().is_some()
        };

        let child = self.part.children.values().find(is_due)?;
        let asked = child.asked_at().is_some();

        // A packet that it may lack asks as well as a short frame, and may be what is missing.
        let layers = (0..self.part.layers.len()).filter(|layer| child.takes(*layer, now));
        let mut may_lack = layers.map(|layer| {
            let live = self.lanes[layer].live_from(child.needs(layer).unwrap_or(0));
            let flying = live.filter(|(number, until)| {
                *until > now + packet_time
                    && !child.has(layer, *number)
                    && child.is_flying(layer, *number)
            });

            let mut numbers: Vec<u32> = flying.map(|(number, _)| number).collect();
            let first = numbers.first().copied().unwrap_or(0);
            numbers.retain(|number| number - first < WIDTH);
            Next { layer, what: self.plain_if_one(layer, numbers) }
        });

        let packets = may_lack.find(|next| next.what != What::Ask);
        let carries = asked && child.missed_answers() < WITH_PACKET;
        let ask = Next { layer: 0, what: What::Ask };
        Some(packets.filter(|_| carries).unwrap_or(ask))
    }

    fn plain_if_one(&self, layer: usize, numbers: Vec<u32>) -> What {
        match numbers[..] {
            [] => What::Ask,
            [one] if self.lanes[layer].is_known(one) => What::Plain(one),
            _ => What::Repair(numbers),
        }
    }

    /// Makes the frame to send, of up to `mtu` bytes.
    pub(crate) fn make(
        &mut self,
        next: &Next,
        packet_time: Duration,
        cx: &mut Context<'_>,
    ) -> Option<Made> {
        let Next { layer, what } = next;
        let now = cx.now;
        let width = self.width(*layer, cx.mtu);
        let coded = match what {
            What::Plain(number) => self.lanes[*layer].send(*number)?,
            What::Repair(packets) => self.lanes[*layer].combine(packets, width, cx.rng)?,
            What::Ask => {
                let first = self.lanes[*layer].oldest();
                Coded { first, coefficients: vec![1], symbol: Vec::new() }
            }
        };

        // The frame counts as sent from here on, and asks those next hops that are due.
        let number = self.number_frame(now);
        self.note_sent(number, next, &coded, now);
        let asked = self.asked(packet_time, now);
        let answers = asked.iter().filter(|node| !self.part.children[*node].feeds).count() as u32;
        for node in &asked {
            if let Some(child) = self.part.children.get_mut(node) {
                child.note_asked(now);
            }
        }

        // Maps take what room is left.
        let last = coded.first + (coded.coefficients.len() as u32).saturating_sub(1);
        let head = Head {
            state: self.state(cx.me, number, 0, now),
            asked,
            layer: *layer as u8,
            first: coded.first,
            age_of_first: Head::age_of(self.age(*layer, coded.first, now)),
            age_of_last: Head::age_of(self.age(*layer, last, now)),
            coefficients: coded.coefficients.get(1..).unwrap_or_default().to_vec(),
        };

        let mut made = Made { head, symbol: coded.symbol, answers };
        let room = cx.mtu.saturating_sub(made.head.len() + made.symbol.len());
        made.head.state = self.state(cx.me, number, room, now);
        self.note_told(cx, packet_time);
        Some(made)
    }

    /// Returns how many packets a combination may span, so that its coefficients fit.
    fn width(&self, layer: usize, mtu: usize) -> u32 {
        let longest = self.lanes[layer].longest();
        let room = mtu.saturating_sub(Head::room(self.part.layers.len()) + longest);
        ((room + Head::COEFFICIENTS + 1) as u32).min(WIDTH)
    }

    fn note_sent(&mut self, number: u16, next: &Next, coded: &Coded, now: Instant) {
        let lane = &self.lanes[next.layer];
        let packets: Vec<u32> = match &next.what {
            What::Ask => return,
            What::Plain(packet) => vec![*packet],
            What::Repair(packets) => {
                let end = coded.first + coded.coefficients.len() as u32;
                packets.iter().copied().filter(|packet| *packet < end).collect()
            }
        };

        // It is on its way to each next hop that lacks one of its packets.
        let is_plain = matches!(next.what, What::Plain(_));
        for child in self.part.children.values_mut() {
            let lacks = packets.iter().any(|packet| !child.has(next.layer, *packet));
            if lane.has_begun() && lacks && child.takes(next.layer, now) {
                child.note_sent(number, next.layer, is_plain.then(|| packets[0]), now);
            }
        }
    }

    /// Returns the next hops that the frame which is being made asks.
    fn asked(&self, packet_time: Duration, now: Instant) -> Vec<NodeId> {
        let asks = |child: &Child| {
            // It is asked once enough may be lost, or nothing was heard for long.
            let Some(uncertain) = child.uncertain() else { return false };
            if child.asked_at().is_some() {
                return self.question_at(child, packet_time).is_some_and(|at| at <= now);
            }
            let lost = uncertain.frames as f64 * (1.0 - child.delivery());
            lost >= ASK_LOST
                || uncertain.frames >= ASK_FRAMES
                || now.since(uncertain.since) >= self.patience(child)
        };

        let children = self.part.children.iter().filter(|(_, child)| asks(child));
        children.map(|(node, _)| *node).take(MAX_ASKED).collect()
    }

    pub(crate) fn age(&self, layer: usize, packet: u32, now: Instant) -> Duration {
        let deadline = self.part.announcement.deadline();
        let until = self.lanes[layer].until(packet).unwrap_or(now);
        deadline.saturating_sub(until.since(now))
    }

    // ---- what is said

    /// Numbers a frame that is given to the MAC.
    pub(crate) fn number_frame(&mut self, now: Instant) -> u16 {
        self.number = self.number.wrapping_add(1);
        self.sent.note_filled(self.number, now);
        self.number
    }

    /// Returns what this node says of itself in a frame, with `room` bytes for maps.
    pub(crate) fn state(&self, me: NodeId, number: u16, mut room: usize, now: Instant) -> State {
        let mut layers: Vec<Have> = Vec::new();
        for lane in &self.lanes[..self.part.layers.len()] {
            // Layers share the room, the base first, so its map is the most complete one.
            let have = lane.have(room.min(MAX_MAP));
            room -= have.map.len();
            layers.push(have);
        }

        let handled = self.choice.handled(now);
        State {
            flow: self.part.announcement.flow,
            number,
            parent: self.choice.node().unwrap_or(me),
            receivers: u16::try_from(self.part.receivers()).unwrap_or(u16::MAX),
            feeds: !self.part.children.is_empty(),
            wants: self.wants(now),
            lag: self.lag(now),
            handled,
            heard: self.choice.heard().map_or(0, |share| (255.0 * share).clamp(1.0, 255.0) as u8),
            layers,
        }
    }

    /// Returns the age of the oldest packet of the base that a node behind this one lacks, in
    /// 1/255 of the deadline.
    pub(crate) fn lag(&self, now: Instant) -> u8 {
        // A node behind a link that cannot carry the base would hold the lag up for ever.
        let counts = |child: &&Child| child.takes(0, now) && !child.is_hopeless();
        let children: Vec<&Child> = self.part.children.values().filter(counts).collect();
        let behind = self.part.children.values().map(|child| child.lag(now)).max().unwrap_or(0);
        let needs = children.iter().map(|child| child.needs(0).unwrap_or(0)).min().unwrap_or(0);
        let mut live = self.lanes[0].live_from(needs);
        let lacking = live.find(|(number, _)| children.iter().any(|child| !child.has(0, *number)));
        let own = lacking.map_or(0, |(number, _)| {
            let age = self.age(0, number, now).as_secs_f64();
            (255.0 * age / self.part.announcement.deadline().as_secs_f64()) as u8
        });

        own.max(behind)
    }

    /// Notes that a frame says what this node has.
    pub(crate) fn note_told(&mut self, cx: &Context<'_>, packet_time: Duration) {
        self.told_at = cx.now;
        let Some(parent) = self.choice.node() else { return };
        let delivery = cx.topology.delivery(cx.me, parent);
        self.report.note_sent(delivery, 0, &REPORT, packet_time, cx.now);
    }

    /// Waits for a random time if far fewer packets arrive than links let through.
    pub(crate) fn ease(&mut self, packet_time: Duration, now: Instant, random: &mut impl RngCore) {
        // The best share decides: over a poor link few packets arrive without any collision.
        let answering = self.part.children.values().filter(|child| child.answers(now));
        let shares = answering.map(Child::share_of_promise);
        if let Some(best) = shares.reduce(f64::max) {
            self.pacing.ease(best, packet_time, now, random);
        }
    }

    // ---- what is heard

    /// Takes a combination. Returns whether it was innovative; `None` if there is no room for it.
    pub(crate) fn absorb(
        &mut self,
        head: &Head,
        symbol: &[u8],
        from_parent: bool,
        now: Instant,
    ) -> Option<bool> {
        let layer = usize::from(head.layer);
        let coefficients = [&[1], &head.coefficients[..]].concat();
        let coded = Coded { first: head.first, coefficients, symbol: symbol.to_vec() };
        let deadline = self.part.announcement.deadline();

        // The ages in the frame tell when its packets are of no use any more. Clocks need not
        // agree.
        let times = Times {
            first: now + deadline.saturating_sub(Head::age(head.age_of_first)),
            last: now + deadline.saturating_sub(Head::age(head.age_of_last)),
        };

        let lane = &mut self.lanes[layer];

        // The parent is right where it contradicts this node for good: the stream began again.
        if from_parent && lane.is_far_from(&coded) {
            *lane = Lane::default();
        }
        self.change_lane(layer, now, |lane| lane.absorb(coded, times))
    }

    /// Adds to a layer. Packets for which there is no room then are counted as given up.
    pub(crate) fn change_lane<R>(
        &mut self,
        layer: usize,
        now: Instant,
        change: impl FnOnce(&mut Lane) -> R,
    ) -> R {
        let lane = &mut self.lanes[layer];
        let before = lane.crowded();
        let changed = change(lane);
        if lane.crowded() != before {
            self.judge_children(layer, now);
        }
        changed
    }

    // ---- status

    /// Returns the stream's state.
    pub(crate) fn status(&self) -> StreamStatus {
        let queues = self.part.children.iter().map(|(to, child)| StreamQueue {
            to: *to,
            receivers: child.receivers,
            held: [0; LAYERS],
            place_holders: 0.0,
            drop_queue: 0.0,
            downstream: 0.0,
            weight: 0.0,
            rate: 0.0,
            sent: child.sent,
            dropped: child.dropped,
            no_room: child.no_room,
            lost: 0,
        });

        let receiving = self.part.receiver.as_ref();
        let receiving = receiving.map(|receiver| receiver.status(self.choice.node()));
        self.part.status(self.choice.node(), self.part.source.clone(), receiving, queues.collect())
    }
}

/// A next hop that wants a layer.
struct Wanting<'a> {
    child: &'a Child,
    /// Packets that it lacks for certain, and those of which that is not known.
    lost: u32,
    flying: u32,
}
