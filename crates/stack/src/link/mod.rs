//! Neighbour discovery, and measurement of delivery ratios.
//!
//! Nodes say hello about once a second, and with it how many frames of control they have sent
//! (`neighbour`). Hellos come quickly after a start and whenever a neighbour appears; then their
//! interval doubles up to the longest one (Trickle, RFC 6206, without suppression). In a crowd the
//! longest interval grows with the number of nodes, so that hellos never fill the channel.
//!
//! Frames of data show that a neighbour is there, but do not count for its delivery. Many of them
//! are lost in collisions with frames of nodes that do not hear each other, and engines that send
//! the more, the worse a link looks, would fill the channel with copies.
//!
//! Link state carries the results to the others, so that both directions of every link are known.

mod config;
mod exposure;
mod neighbour;
mod share;

use crate::share::Uses;
pub use config::LinkConfig;
use exposure::Airtimes;
pub(crate) use exposure::HIDDEN;
use ncmesh_engine::rng::unit;
use ncmesh_engine::time::{Duration, Instant, seconds};
use ncmesh_engine::topology::LONG_FRAME as COMPARED;
use ncmesh_wire::{LongAddress, NodeId, RadioAddress, ShortAddress, StartId, Versions};
use neighbour::Neighbour;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Most neighbours that are kept.
const MAX_NEIGHBOURS: usize = 1024;
/// Most neighbours that one hello asks to answer.
pub(crate) const MAX_ASKED: usize = 16;
/// Most others that one hello names as late.
pub(crate) const MAX_LATE: usize = 12;
/// Nodes that fit into the bytes by which a long address exceeds a short one. A hello with a long
/// address tells as many less, so that it does not exceed the longest one with a short address.
const LONG_ADDRESS_NODES: usize =
    (size_of::<LongAddress>() - size_of::<ShortAddress>()) / size_of::<NodeId>();
/// Delivery from which it means something that a node misses another, and the most that it is
/// trusted.
const WITNESS: f64 = 0.3;
/// Chance of a silence below which a neighbour is doubtful.
const DOUBT: f64 = 0.02;
const MOST_TRUST: f64 = 0.9;
/// How much likelier it is that a neighbour hears another if all is as before than if the other has
/// faded to a tenth.
const HEARD_ALL_THE_SAME: f64 = 10.0;
/// Number of neighbours above which the interval between hellos grows.
const CROWD: usize = 32;
/// Most neighbours that another node is believed to have.
const MOST_CLAIMED: u16 = 256;
/// Frames of more bytes than this on the air are long ones.
const LONG_FRAME: usize = 500;
/// Number of hellos after which a node that sent no long frame sends one for measurement: while
/// hellos are quick, and later.
const LONG_EVERY: [u8; 2] = [4, 100];
/// Quick hellos when a neighbour appears.
const QUICK_FOR_NEIGHBOUR: u16 = 4;
/// Silence up to which a neighbour that comes in another start was running all the time. It begins
/// one when somebody else sends under its id; a machine that restarts is away for longer.
const RUNS_ON: Duration = Duration::from_secs(1);
/// Time in which a node answers a neighbour that asks for it, at most.
const ANSWER_JITTER: Duration = Duration::from_millis(10);
/// Least pause between a hello and an answer.
const LEAST_PAUSE: Duration = Duration::from_millis(50);
/// Airtime of a byte at 1 Mbit/s.
const SLOWEST_BYTE: Duration = Duration::from_micros(8);
/// How much of what a neighbour with long frames shows about length is taken over.
const LEARN: f64 = 0.02;
/// Greatest exponent of length.
const MAX_EXPONENT: f64 = 16.0;

/// Most newer versions that a hello tells of.
const MAX_NEWER: u8 = 3;
/// Time for which hellos are in the version of a node that greeted. It says several meanwhile.
const GREETED: Duration = Duration::from_secs(30);

/// Most nodes of which a hello says how well they are heard on its port.
pub(crate) const MAX_HEARD_BACK: usize = 8;
/// The part of a hello about the port that it is sent on, if its sender has several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnPort {
    /// Frames of any kind that its sender has sent on it, modulo 2^16. Their numbers do not tell:
    /// all ports share them.
    pub frames: u16,
    /// Nodes that its sender hears on this port and on others.
    pub heard: Vec<HeardBack>,
}

/// How well a node is heard on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeardBack {
    pub node: NodeId,
    /// Share of its frames that arrives, in 1/255.
    pub share: u8,
}

impl HeardBack {
    /// Returns the word on a node of whose frames this share arrives.
    pub(crate) fn of(node: NodeId, delivery: f64) -> Self {
        Self { node, share: (delivery.clamp(0.0, 1.0) * 255.0).round() as u8 }
    }
}

/// First part of a hello frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Time within which the sender sends its next frame.
    pub interval: Duration,
    /// Frames of control that it has sent in its start, short ones and long ones, modulo 2^16.
    pub short_sent: u16,
    pub long_sent: u16,
    /// Number of its neighbours.
    pub neighbours: u16,
    /// Digest of the link states that it knows.
    pub digest: u64,
    /// Neighbours that it asks to answer.
    pub asks: Vec<NodeId>,
    /// Others that it did not hear when they promised.
    pub late: Vec<NodeId>,
    /// Whether its sender understands the version of the wire format before this frame's.
    pub knows_older: bool,
    /// Number of versions that its sender understands beyond this frame's.
    pub newer: u8,
    /// Use of the time by services around it, if there are several.
    pub uses: Option<Uses>,
    /// Address of its radio, if that has one of four bytes.
    pub short_address: Option<ShortAddress>,
    /// Address of its radio, if that has one of eight bytes.
    pub long_address: Option<LongAddress>,
    /// The port that it is sent on, if its sender has several.
    pub on_port: Option<OnPort>,
}

impl Hello {
    /// Returns the frames that it counts, short ones and long ones.
    fn counts(&self) -> [u16; 2] {
        [self.short_sent, self.long_sent]
    }

    /// Returns the versions of the wire format that its sender understands, if the hello is written
    /// in `version`.
    pub(crate) fn versions(&self, version: u8) -> Versions {
        Versions {
            oldest: version.saturating_sub(u8::from(self.knows_older)),
            newest: version + self.newer,
        }
    }

    /// Returns the address of its sender's radio.
    fn address(&self) -> Option<RadioAddress> {
        let long = || self.long_address.map(RadioAddress::Long);
        self.short_address.map(RadioAddress::Short).or_else(long)
    }

    /// Returns the neighbours that its sender misses.
    fn missing(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.asks.iter().chain(&self.late).copied()
    }
}

/// The outer frame of something that was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Version of the wire format in which it was written.
    pub version: u8,
    pub start: StartId,
    pub counter: u32,
    pub at: Instant,
}

/// A frame that was heard and handled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameHeard {
    /// Its sender.
    pub sender: NodeId,
    /// Start of the sender that it belongs to.
    pub start: StartId,
    /// Its length, bytes.
    pub len: usize,
    /// Its number among those of its sender.
    pub counter: u32,
    pub is_control: bool,
    /// Whether another overtook it: it may be a recording, so it is no sign of life.
    pub is_late: bool,
}

/// A neighbour that sent lately, and the share of the time that its frames took here.
struct Sender {
    node: NodeId,
    share: f64,
}

/// Link measurement at one node.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    /// Versions of the wire format that this node understands.
    versions: Versions,
    /// Newest version of a node that said hello and is no neighbour yet, and when: the least of
    /// those heard lately.
    greeting: Option<(u8, Instant)>,
    /// Address of this node's radio, which its hellos tell.
    address: Option<RadioAddress>,
    next_hello: Instant,
    /// When the last hello was sent.
    said_hello: Instant,
    interval: Duration,
    /// Quick hellos still to come.
    quick: u16,
    short_sent: u16,
    long_sent: u16,
    /// Frames of any kind that were sent, modulo 2^16.
    frames: u16,
    /// Hellos since the last long frame.
    since_long: u8,
    neighbours: BTreeMap<NodeId, Neighbour>,
    /// Silent neighbours that the next hello asks to answer.
    questionable: Vec<NodeId>,
    /// Neighbours that are probably gone.
    doubtful: BTreeSet<NodeId>,
    /// When the answers of silent neighbours are overdue.
    answers_due: Vec<Instant>,
    /// A link that delivers a share d of short frames delivers d to this power of long ones.
    exponent: f64,
    /// Least airtime of a byte in frames that this node has sent.
    per_byte: Duration,
    /// How long our radio has sent, or could hardly hear a frame for those of others.
    busy: Duration,
    airtimes: Airtimes,
}

impl Link {
    /// Returns a link layer that says its first hello at `now`.
    #[must_use]
    pub fn new(config: LinkConfig, versions: Versions, now: Instant) -> Self {
        Self {
            versions,
            greeting: None,
            address: None,
            next_hello: now,
            said_hello: now,
            interval: seconds(config.quick_hello_s),
            quick: config.quick_hellos,
            short_sent: 0,
            long_sent: 0,
            frames: 0,
            since_long: 0,
            neighbours: BTreeMap::new(),
            questionable: Vec::new(),
            doubtful: BTreeSet::new(),
            answers_due: Vec::new(),
            exponent: 1.0,
            per_byte: SLOWEST_BYTE,
            busy: Duration::ZERO,
            airtimes: Airtimes::default(),
            config,
        }
    }

    /// Returns the neighbours heard, with the share of their long frames that arrives here.
    pub fn inbound(&self) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        self.neighbours.iter().filter_map(|(node, n)| Some((*node, n.told()?)))
    }

    /// Tells `address` in hellos from now on.
    pub(crate) fn set_address(&mut self, address: Option<RadioAddress>) {
        self.address = address;
    }

    /// Returns the address of a neighbour's radio, as its last hello told it.
    pub(crate) fn address_of(&self, node: NodeId) -> Option<RadioAddress> {
        self.neighbours.get(&node).and_then(Neighbour::address)
    }

    /// Returns the versions of the wire format that a neighbour understands.
    pub(crate) fn versions_of(&self, node: NodeId) -> Option<Versions> {
        self.neighbours.get(&node).map(Neighbour::versions)
    }

    /// Returns whether a node is a neighbour in this start of it.
    pub(crate) fn knows_start(&self, node: NodeId, start: StartId) -> bool {
        self.neighbours.get(&node).is_some_and(|neighbour| neighbour.start() == start)
    }

    /// Returns the newest version that this node and all its neighbours understand.
    pub(crate) fn shared_version(&self) -> u8 {
        self.versions.shared(&self.neighbours.values().map(Neighbour::versions))
    }

    /// Notes a hello from a node that has not proved yet that it is there, and the `newest` version
    /// that it understands.
    pub(crate) fn note_greeting(&mut self, newest: u8, now: Instant) {
        if self.greeted(now).is_none_or(|known| newest <= known) {
            self.greeting = Some((newest, now));
        }
    }

    /// Returns the version of the greeting that still counts.
    fn greeted(&self, now: Instant) -> Option<u8> {
        self.greeting.filter(|(_, at)| now.since(*at) < GREETED).map(|(newest, _)| newest)
    }

    /// Returns the version of the next hello. It is the shared one, unless a node that is no
    /// neighbour yet understands only older ones. It has to read our hellos first, since it proves
    /// that it is there by naming a frame of ours. What was heard of it may be a recording, so it
    /// changes hellos only, and none that a neighbour could then not read.
    pub(crate) fn hello_version(&self, now: Instant) -> u8 {
        let shared = self.shared_version();
        let readable =
            |version: u8| self.neighbours.values().all(|n| n.versions().contain(version));
        let older = self.greeted(now).filter(|version| *version < shared && readable(*version));
        older.unwrap_or(shared)
    }

    /// Returns the number of nodes that share the channel around this node or around a neighbour,
    /// whichever is more crowded: the spokes of a hub have one neighbour each, and fill the hub's
    /// channel together.
    pub(crate) fn crowd(&self) -> usize {
        let claimed = self.neighbours.values().map(|n| n.neighbours().min(MOST_CLAIMED));
        self.neighbours.len().max(usize::from(claimed.max().unwrap_or(0)))
    }

    /// Returns the longest interval between hellos that a neighbour is believed to promise: what
    /// this node could choose itself. One that promises more is asked to answer when that is over.
    pub(crate) fn longest_promise(&self) -> Duration {
        let crowd = self.neighbours.len().max(usize::from(MOST_CLAIMED));
        self.longest_interval(crowd)
    }

    /// Returns the longest interval between hellos in a crowd.
    fn longest_interval(&self, crowd: usize) -> Duration {
        seconds(self.config.hello_s * (crowd as f64 / CROWD as f64).max(1.0))
    }

    /// Returns the neighbours that did not send what they promised.
    pub(crate) fn late(&self, now: Instant) -> impl Iterator<Item = NodeId> + '_ {
        let late = self.neighbours.iter().filter(move |(_, n)| n.missed(now) > 0);
        late.map(|(node, _)| *node)
    }

    /// Returns whether a neighbour is probably gone: this node misses it, and so do others.
    pub(crate) fn is_doubtful(&self, node: NodeId) -> bool {
        self.doubtful.contains(&node)
    }

    /// Returns whether a node is a neighbour.
    pub(crate) fn knows(&self, node: NodeId) -> bool {
        self.neighbours.contains_key(&node)
    }

    /// Returns whether a neighbour sends what it promises.
    pub(crate) fn is_punctual(&self, node: NodeId, now: Instant) -> bool {
        self.neighbours.get(&node).is_some_and(|n| n.missed(now) == 0)
    }

    /// Returns the airtime, s, that a long frame to a neighbour and its answer take on this port in
    /// the mean; infinite if the neighbour is late. `None` if it is not heard here.
    pub(crate) fn cost(&self, node: NodeId, now: Instant) -> Option<f64> {
        let neighbour = self.neighbours.get(&node)?;
        if neighbour.missed(now) > 0 {
            return Some(f64::INFINITY);
        }
        let airtime = self.long_airtime().unwrap_or(self.per_byte * COMPARED as u32);
        Some(airtime.as_secs_f64() / neighbour.both_ways())
    }

    /// Returns how long the frame takes by which ports are compared, if that is known.
    pub(crate) fn long_airtime(&self) -> Option<Duration> {
        self.airtime(COMPARED)
    }

    /// Returns whether no later frame of a neighbour was heard on this port, although one was on
    /// another, which may be quicker.
    pub(crate) fn is_latest_here(&self, node: NodeId, counter: u32) -> bool {
        self.neighbours.get(&node).is_some_and(|n| n.has_ports() && n.exposure.is_latest(counter))
    }

    /// Returns the number of frames of any kind that were sent, modulo 2^16.
    pub(crate) fn frames_sent(&self) -> u16 {
        self.frames
    }

    // ---- what is heard

    /// Handles a hello. Returns false if there are too many neighbours already.
    pub(crate) fn handle_hello(
        &mut self,
        me: NodeId,
        sender: NodeId,
        hello: &Hello,
        received: Received,
        rng: &mut ChaCha8Rng,
    ) -> bool {
        // A neighbour misses us. It is answered soon, but not in step with the answers of others.
        if hello.asks.contains(&me) {
            let soon = received.at + ANSWER_JITTER.mul_f64(unit(rng));
            let at = soon.max(self.said_hello + LEAST_PAUSE);
            self.next_hello = self.next_hello.min(at);
        }

        let full = self.neighbours.len() >= MAX_NEIGHBOURS;
        let is_room = self.note_hello(sender, full, hello, received, rng);
        if let Some(neighbour) = self.neighbours.get_mut(&sender) {
            neighbour.note_port(me, hello.on_port.as_ref());
        }
        is_room
    }

    /// Takes a hello of a neighbour, or of a new one. Returns false if there is no room for it.
    fn note_hello(
        &mut self,
        sender: NodeId,
        full: bool,
        hello: &Hello,
        received: Received,
        rng: &mut ChaCha8Rng,
    ) -> bool {
        match self.neighbours.get_mut(&sender) {
            Some(known) if known.start() == received.start => {
                let before = known.long.weight();
                known.handle_hello(hello, received);
                if known.long.weight() > before {
                    self.learn_exponent(sender);
                }
            }
            None if full => return false,
            _ => {
                // The newcomer measures its links to us by our hellos.
                self.quick = self.quick.max(QUICK_FOR_NEIGHBOUR);
                self.interval = seconds(self.config.quick_hello_s);

                // Others heard it, too, of which some do not hear each other.
                let soon = received.at + self.interval.mul_f64(0.5 + 0.5 * unit(rng));
                self.next_hello = self.next_hello.min(soon);
                let known = self.neighbours.get(&sender);
                let runs_on = |known: &&Neighbour| received.at.since(known.heard_at()) < RUNS_ON;
                let neighbour = match known.filter(runs_on) {
                    Some(known) => known.renewed(hello, received),
                    None => Neighbour::new(hello, received),
                };
                self.neighbours.insert(sender, neighbour);
            }
        }

        true
    }

    /// Notes a frame, after it was handled.
    pub(crate) fn note_frame(&mut self, frame: FrameHeard, now: Instant) {
        let FrameHeard { sender, start, .. } = frame;

        // A node that does not hear the sender may send at the same time. Its frame is lost here if
        // it begins during this one, or so shortly before that it is not over yet.
        self.busy += self.per_byte * 2 * u32::try_from(frame.len).unwrap_or(u32::MAX);
        if let Some(neighbour) = self.neighbours.get_mut(&sender).filter(|n| n.start() == start) {
            neighbour.count_frame(frame.is_control.then_some(frame.len > LONG_FRAME));
            let are_all_here = !neighbour.has_ports();
            neighbour.exposure.note_frame(frame.counter, frame.len, are_all_here);
            if !frame.is_late {
                neighbour.note_life(now);
                neighbour.busy_before = self.busy;
            }
        }

        self.note_answers();
    }

    /// Removes a neighbour.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.neighbours.remove(&node);
        self.note_answers();
    }

    /// Removes the neighbours that keep silent, asks those that may be gone, and looks at what was
    /// measured of the others. `delivery` is what the mesh knows of links between neighbours, and
    /// `is_lost_with_others` whether others lost a node, or one that it hears, since a time.
    /// Returns those removed, and whether the delivery of another is to be told anew.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        delivery: impl Fn(NodeId, NodeId) -> f64,
        is_lost_with_others: impl Fn(NodeId, Instant) -> bool,
    ) -> (Vec<NodeId>, bool) {
        self.note_exposure(now, &delivery);
        let mut gone = Vec::new();

        // Where several nodes miss a neighbour, each is sooner sure that it is gone.
        let late = self.neighbours.iter().filter(|(_, n)| n.missed(now) > 0);
        let others: Vec<(NodeId, f64)> =
            late.map(|(node, _)| (*node, self.chance_of_others(*node, &delivery))).collect();
        self.questionable.clear();
        self.doubtful.clear();
        for (node, others) in others {
            let Some(n) = self.neighbours.get(&node) else { continue };
            let with_others = is_lost_with_others(node, n.heard_at());
            if n.is_gone(others, with_others, self.busy, now) {
                self.neighbours.remove(&node);
                gone.push(node);
                continue;
            }

            // A doubtful neighbour stays a neighbour. One whose silence is odd is asked at once.
            if n.chance(self.busy, now) * others < DOUBT {
                self.doubtful.insert(node);
            }
            let is_questionable = n.is_questionable(others, self.busy, now);
            if is_questionable && self.questionable.len() < MAX_ASKED {
                self.questionable.push(node);
                self.next_hello = now;
            }
        }

        self.note_answers();
        let retold = self.neighbours.values_mut().map(|n| n.retell(now, self.exponent));
        (gone, retold.fold(false, |any, retold| any | retold))
    }

    /// Looks at what neighbours sent, and how much of it each of them hears. `delivery` is what the
    /// mesh knows of the links between them.
    fn note_exposure(&mut self, now: Instant, delivery: impl Fn(NodeId, NodeId) -> f64) {
        let Some(look) = self.airtimes.look(now) else { return };

        // A frame of a poor link is often too weak here to disturb another.
        let share = |n: &mut Neighbour| n.exposure.take_share(look) * n.hope();
        let all = self.neighbours.iter_mut();
        let all = all.map(|(node, n)| Sender { node: *node, share: share(n) });
        let senders: Vec<Sender> = all.filter(|sender| sender.share > 0.0).collect();

        for (node, neighbour) in &mut self.neighbours {
            let mut sensed = look.own;
            let mut hidden = 0.0;
            for sender in senders.iter().filter(|sender| sender.node != *node) {
                if delivery(sender.node, *node) < HIDDEN {
                    hidden += sender.share;
                } else {
                    sensed += sender.share;
                }
            }

            neighbour.exposure.note_shares(sensed, hidden, look);
        }
    }

    /// Returns the chance that all neighbours which hear `node` and miss it do so although nothing
    /// has happened to it; 1 if too many others have heard it lately. One may still hear, by luck,
    /// a node that has faded for all.
    fn chance_of_others(&self, node: NodeId, delivery: &impl Fn(NodeId, NodeId) -> f64) -> f64 {
        let Some(due_at) = self.neighbours.get(&node).map(Neighbour::due_at) else { return 1.0 };
        let mut chance = 1.0;
        for (other, n) in self.neighbours.iter().filter(|(other, _)| **other != node) {
            // One that said hello before the neighbour was late knows no more than we do.
            if n.said_hello() < due_at {
                continue;
            }
            let hears = delivery(node, *other);
            if hears < WITNESS {
                continue;
            }
            chance *= if n.misses(node) { 1.0 - hears.min(MOST_TRUST) } else { HEARD_ALL_THE_SAME };
        }

        chance.min(1.0)
    }

    /// Learns what length does to delivery from a neighbour that has just shown it.
    fn learn_exponent(&mut self, node: NodeId) {
        let Some(n) = self.neighbours.get(&node) else { return };
        let short = n.short.value();
        let long = n.long.value();

        // Links that lose hardly anything or nearly everything say little about it.
        if n.long.weight() >= 4.0 && (0.05..0.97).contains(&short) && long > 0.01 {
            let seen = (libm::log(long) / libm::log(short)).clamp(0.25, MAX_EXPONENT);
            self.exponent += LEARN * (seen - self.exponent);
        }
    }

    // ---- what is sent

    /// Counts a frame of any kind that this node sends.
    pub(crate) fn count_frame(&mut self) {
        self.frames = self.frames.wrapping_add(1);
    }

    /// Counts a frame of control, of `len` bytes, that this node sends.
    pub(crate) fn note_sent(&mut self, len: usize) {
        if len > LONG_FRAME {
            self.long_sent = self.long_sent.wrapping_add(1);
            self.since_long = 0;
        } else {
            self.short_sent = self.short_sent.wrapping_add(1);
        }
    }

    /// Notes the airtime of a frame of `len` bytes that this node sent, whatever it was.
    pub(crate) fn note_airtime(&mut self, len: usize, airtime: Duration) {
        self.busy += airtime;
        self.airtimes.note(len, airtime);
        let per_byte = airtime / u32::try_from(len).unwrap_or(u32::MAX).max(1);
        self.per_byte = self.per_byte.min(per_byte);
    }

    /// Returns how long a frame of `len` bytes takes; `None` before this node sent two of different
    /// length.
    pub(crate) fn airtime(&self, len: usize) -> Option<Duration> {
        self.airtimes.airtime(len)
    }

    /// Notes a frame that was made as long as the radio takes.
    pub(crate) fn note_probe(&mut self) {
        self.since_long = 0;
    }

    /// Returns when, later than `after`, a hello or the answer of a silent neighbour is due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let times = self.answers_due.iter().copied().chain([self.next_hello]);
        times.filter(|t| *t > after).min()
    }

    /// Returns whether the answer of a silent neighbour is overdue.
    pub(crate) fn is_answer_due(&self, now: Instant) -> bool {
        self.answers_due.iter().any(|due| *due <= now)
    }

    /// Notes that some answers may not be awaited any more.
    fn note_answers(&mut self) {
        if !self.answers_due.is_empty() {
            self.answers_due = self.answers().collect();
        }
    }

    /// Returns when the answers of silent neighbours are overdue.
    fn answers(&self) -> impl Iterator<Item = Instant> + '_ {
        self.neighbours.values().filter_map(Neighbour::answer_due)
    }

    /// Says hello soon, because somebody waits for a proof of ours. Recordings may ask for it, so
    /// there is a pause after the last hello.
    pub(crate) fn hasten(&mut self, now: Instant, rng: &mut ChaCha8Rng) {
        let quick = seconds(self.config.quick_hello_s);
        let soon = now + (quick / 2).mul_f64(unit(rng));
        self.next_hello = self.next_hello.min(soon.max(self.said_hello + quick / 2));
    }

    /// Says hello now, in another start, and often for a while: neighbours measure that start anew.
    pub(crate) fn begin_start(&mut self, now: Instant) {
        self.quick = self.quick.max(QUICK_FOR_NEIGHBOUR);
        self.next_hello = now;
    }

    /// Returns whether a hello is due.
    pub(crate) fn is_hello_due(&self, now: Instant) -> bool {
        now >= self.next_hello
    }

    /// Returns whether too few long frames were sent for the neighbours to measure by.
    pub(crate) fn is_long_frame_due(&self) -> bool {
        self.since_long >= LONG_EVERY[usize::from(self.quick == 0)]
    }

    /// Returns the hello to be sent now, with the `digest` of link states, and sets the time of the
    /// next one.
    pub(crate) fn hello(
        &mut self,
        digest: u64,
        uses: Option<Uses>,
        now: Instant,
        rng: &mut ChaCha8Rng,
    ) -> Hello {
        let quick = seconds(self.config.quick_hello_s);
        let longest = self.longest_interval(self.crowd());
        if self.quick > 0 {
            self.quick -= 1;
            self.interval = quick;
        } else {
            self.interval = (self.interval * 2).clamp(quick, longest);
        }

        // An answer keeps its distance from this hello.
        self.said_hello = now;

        // Nodes that begin at the same time, after a power failure, and do not hear each other
        // would say hello at the same time again and again.
        let is_longest = self.interval >= longest;
        let pause = if is_longest { 0.9 + 0.1 * unit(rng) } else { 0.5 + unit(rng) };
        self.next_hello = now + self.interval.mul_f64(pause).min(longest);
        self.since_long = self.since_long.saturating_add(1);

        let asks = core::mem::take(&mut self.questionable);
        for node in &asks {
            if let Some(n) = self.neighbours.get_mut(node) {
                n.note_ask(now);
            }
        }

        // Neighbours that we miss are named, so that others that miss them, too, are surer of it.
        // The list is short, so silence over the best links goes first.
        self.answers_due = self.answers().collect();
        let late =
            self.neighbours.iter().filter(|(node, n)| n.missed(now) > 0 && !asks.contains(node));
        let mut late: Vec<(NodeId, f64)> = late.map(|(node, n)| (*node, n.hope())).collect();
        late.retain(|(_, hope)| *hope >= WITNESS);
        late.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let long_address = self.address.and_then(RadioAddress::long);
        let most_late = MAX_LATE - long_address.map_or(0, |_| LONG_ADDRESS_NODES);
        let late = late.into_iter().take(most_late).map(|(node, _)| node).collect();

        let version = self.hello_version(now);

        // The promise is the longest interval: the hello that lengthens it may be lost.
        Hello {
            interval: longest,
            short_sent: self.short_sent,
            long_sent: self.long_sent,
            neighbours: self.neighbours.len() as u16,
            digest,
            asks,
            late,
            knows_older: self.versions.oldest < version,
            newer: (self.versions.newest - version).min(MAX_NEWER),
            uses,
            short_address: self.address.and_then(RadioAddress::short),
            long_address,
            on_port: None,
        }
    }

    /// Returns the neighbours that were heard lately, measured or not.
    pub(crate) fn heard(&self) -> BTreeSet<NodeId> {
        self.neighbours.keys().copied().collect()
    }
}

#[cfg(test)]
impl Hello {
    /// Returns a hello of a node that promises one each second and has sent `short_sent` frames.
    pub(crate) fn of_test(short_sent: u16) -> Self {
        Self {
            interval: Duration::from_secs(1),
            short_sent,
            long_sent: 0,
            neighbours: 1,
            digest: 0,
            asks: Vec::new(),
            late: Vec::new(),
            knows_older: false,
            newer: 0,
            uses: None,
            short_address: None,
            long_address: None,
            on_port: None,
        }
    }
}

#[cfg(test)]
mod following;
#[cfg(test)]
mod hidden;
#[cfg(test)]
mod tests;
