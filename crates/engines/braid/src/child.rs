//! The next hop of a flow: what it has by its own word, and what it should have by now.

use super::flight::{Filling, Flight};
use super::frame::{NAMED, State, WIDTH};
use ncmesh_engine::Port;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::average::FadingShare;
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::hop::delivery::{CountedDelivery, DeliveryPolicy};
use ncmesh_engine::toolkit::hop::{
    self, AnswerPolicy, AnswerTime, Standing, StandingPolicy, TripTime,
};
use ncmesh_wire::NodeId;
use std::ops::Range;

/// How packets to the next hop are counted. A shorter half life follows changes sooner, and takes
/// chance for change.
const COUNT: DeliveryPolicy = DeliveryPolicy { half_life: 64.0, evidence: 48.0 };
/// Packets of pairs after which a count of those separated has faded to half, and those that count
/// as separated before any is sent. More wait longer before a node that separates none gets none.
const PAIRS: f64 = 64.0;
const PRIOR: f64 = 16.0;
/// Packets that combinations span, from the first one on, until the next hop has seen them all. It
/// may know none of them before, and keeps no more than `WIDTH`.
const SPAN: u32 = WIDTH as u32 - 8;
/// Least share of the next hop's frames that is believed to arrive here. Bounds how long a next hop
/// that is dead counts as one that is hard to hear.
const LEAST_BACK: f64 = 0.1;
/// Packet times until what was sent last counts as lost, if nothing is heard. With fewer, packets
/// go again whose answers are on their way; with more, the channel idles after a loss. Half 0.96,
/// at the least 0.76; twice 1.01.
const LOST_PACKETS: f64 = 12.0;
const LONGEST: Duration = Duration::from_millis(250);
/// When its answer is late. RFC 6298 takes four deviations: there a spurious repetition costs more
/// than the wait.
const ANSWERS: AnswerPolicy = AnswerPolicy {
    deviations: 1.0,
    first_deviates: true,
    unlearned: LOST_PACKETS,
    // Learned times waver.
    least: 3.0,
    most: Some(LOST_PACKETS),
};
/// Answers that should have come until that time doubles. Over a link that delivers 0.2 each way,
/// most questions and answers are lost, and the next hop is there all the same.
const DOUBLE_AFTER: f64 = 1.5;
/// Least chance of an answer that is believed. Bounds how often a dead next hop is asked.
const LEAST_CHANCE: f64 = 0.05;
/// Where it stands. If it is silent it is asked by frames without packets: those collide more
/// seldom, and carry nothing if they arrive. One on trial gets only what is overdue, as a question;
/// by chance that happens seldom, and with higher limits more packets go to a next hop that is
/// dead, deaf or lies. If it is given up sooner, flows leave next hops that collide for a while;
/// later, they wait for dead ones. Packets that waited for it are given up, too. Without traffic it
/// need not be heard.
const STANDING: StandingPolicy = StandingPolicy {
    silent: 1.5,
    on_trial: 4.0,
    unheard: 32.0,
    in_vain: 64.0,
    // This node chooses its next hops, and leaves one that hears too little.
    least_chance: 0.0,
    given_up: Some(Duration::from_secs(2)),
    forgotten: None,
    never_heard: None,
};
/// Packets on their way to the next hop of which it is not known whether they arrived, at most.
/// With fewer, the channel idles until reports come: half 0.94, at the least 0.80. With more, new
/// packets go before lost ones: twice 1.02, and packets arrive later.
const AHEAD: usize = 16;
/// The same if the word of them takes longer than that many packets: over a cable. A state tells of
/// no more of them.
const MOST_AHEAD: usize = NAMED as usize;
/// Questions that are on their way to a next hop over a cable at a time. With one, the cable idles
/// while its answer comes.
const QUESTIONS: usize = 4;
/// Chance that a question and its answer arrive from which on neither is taken to be lost, and
/// packet times of a trip from which on the node is taken to be slow.
const CERTAIN: f64 = 0.9;
const SLOW: f64 = 4.0;
/// Trips until what was sent over a cable counts as lost. Processors are sometimes late.
const LOST_TRIPS: u32 = 2;
/// Packets that the next hop should be missing before it is asked, if nothing waits here but more
/// is on its way here. Each question costs an answer, each packet that is not known to be missing
/// comes later.
const UNCERTAIN: f64 = 0.3;
/// The same of one that is heard only when it is asked, while more packets wait here. Each answer
/// costs it a short frame and this node the time for that.
const UNCERTAIN_MEANWHILE: f64 = 1.5;
/// Packets sent, and packet times, since it was heard after which it is asked in any case. Fewer
/// cost answers, more keep packets that it has.
const UNASKED: f64 = 8.0;
const UNASKED_TIMES: f64 = 24.0;
/// Packet times in which it sends a packet on, whether that is heard or not. With fewer, packets
/// pile up at a relay; with more, it idles.
const PASSES_ON: f64 = 6.0;
/// Share of what link state promised below which packets collide, so that turns begin. Turns cost
/// reports where nothing collides: a single TCP connection never gets there. Half 0.99, at the
/// least 0.89; twice 1.00.
const COLLIDES: f64 = 0.3;
/// Standard deviations by which a node may have separated fewer pairs than expected until it gets
/// fewer. Without, a few bad draws end pairs: two flows that cross over links of 0.8 carried 0.95
/// of this.
const DOUBT: f64 = 2.0;
/// Time without a pair after which a count of those separated says nothing any more. It would not
/// be renewed otherwise, and a few bad draws end pairs for good.
const RENEWED: Duration = Duration::from_secs(1);
/// Least share of the expected pairs that a node must have separated, and the time for which it
/// gets none after that was less.
const LEAST_SEPARATED: f64 = 0.5;
const UNPAIRED: Duration = Duration::from_secs(5);
/// Time for which packets that the MAC acknowledged are not declared given up, and how many of them
/// at most: the next hop may handle a frame after the one that follows it.
const UNCONFIRMED: Duration = Duration::from_millis(500);
const MOST_UNCONFIRMED: u32 = 32;
/// Time for which what it carries, and gains, counts.
const CARRIES_FOR: Duration = Duration::from_secs(1);

/// The next hop, as the node before it knows it.
#[derive(Debug)]
pub(crate) struct Child {
    pub node: NodeId,
    /// Port by which it is reached.
    pub port: Port,
    pub state: State,
    /// Span of the combinations that it may not have decoded yet.
    combined: Range<u32>,
    standing: Standing,
    /// Share of the packets that arrive there.
    delivery: CountedDelivery,
    /// Share of its frames that arrive here.
    back: f64,
    /// Packets on their way there.
    pub flight: Flight,
    /// Repeated packets since it gained or had room.
    quiet: u32,
    /// When something was sent to it last, and when that counts as lost.
    sent_at: Instant,
    lost_at: Option<Instant>,
    /// The packets that its MAC acknowledged, while it did not say itself that it has them.
    unconfirmed: Option<Unconfirmed>,
    answers: AnswerTime,
    trips: TripTime,
    /// When it was asked first since it was heard.
    asked_first: Option<Instant>,
    /// Frames since it was asked last.
    unasked: usize,
    /// Packets on their way in pairs, each with the chance that it could separate the pair; what it
    /// made of them, of what was expected; and when that counts again.
    paired: Vec<(u32, f64)>,
    separated: FadingShare,
    paired_at: Instant,
    unpaired_until: Instant,
}

/// The first of some packets, and when it was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Unconfirmed {
    first: u32,
    since: Instant,
}

/// A frame in which a node says what it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub state: State,
    /// Number of the frame.
    pub number: u16,
    /// Whether the node itself was heard, not one that passed its report on.
    pub is_direct: bool,
}

/// How far ahead of a next hop a node sends, and how fast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Packets that may wait there.
    pub room: u8,
    pub packet_time: Duration,
}

/// Shares of frames that arrive over a link, as link state tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub there: f64,
    pub back: f64,
}

impl Child {
    /// Returns a next hop that has nothing from packet `needs` on, as far as is known.
    pub(crate) fn new(node: NodeId, needs: u32, link: Link, now: Instant) -> Self {
        Self {
            node,
            port: Port::FIRST,
            state: State { needs, ..State::default() },
            combined: 0..0,
            standing: Standing::new(now),
            delivery: CountedDelivery::new(link.there, &COUNT),
            back: link.back.max(LEAST_BACK),
            flight: Flight::default(),
            quiet: 0,
            sent_at: now,
            lost_at: None,
            unconfirmed: None,
            answers: AnswerTime::default(),
            trips: TripTime::default(),
            asked_first: None,
            unasked: 0,
            paired: Vec::new(),
            separated: FadingShare::starting_at(1.0, PRIOR, PAIRS),
            paired_at: now,
            unpaired_until: now,
        }
    }

    /// Takes what it says of itself, `lacks` if the node before it holds more. Returns how many
    /// packets it gained, or `None` if that is no news.
    pub(crate) fn hear(
        &mut self,
        said: Said,
        lacks: bool,
        pace: Pace,
        now: Instant,
    ) -> Option<u32> {
        let Said { state, number, .. } = said;
        let Pace { room, packet_time } = pace;

        // A frame that was overtaken tells nothing new.
        if self.standing.is_stale(number, now) {
            return None;
        }

        // A report that other nodes passed on says nothing of the link. A slow node takes several
        // questions at once and names the last one. So the time since the first one counts, unless
        // losses explain it.
        if let Some(trip) = self.flight.trip(state.handled, now).filter(|_| said.is_direct) {
            let is_slow = trip >= packet_time.mul_f64(SLOW);
            let answered = self.asked_first.filter(|_| is_slow && self.answer_chance() >= CERTAIN);
            let answered = answered.map_or(trip, |asked| now.since(asked));
            self.trips.add(trip.max(answered));
        }
        self.asked_first = None;

        // Its gain since then, over the frames that it had handled, is the link's delivery.
        let grown = state.total().saturating_sub(self.state.total());
        let covered = self.flight.cover(state.handled);
        let gain = f64::from(grown).min(covered);

        // Packets after the one that gave it all there was say nothing.
        let counted = if lacks { covered } else { covered.min(gain / self.delivery()) };
        if self.standing.was_heard() && counted > 0.0 {
            self.delivery.count(counted, gain);
        }

        // Its word replaces what was believed. Packets that were given up here stay given up.
        self.count_pairs(state, now);
        self.unconfirmed = self.unconfirmed.filter(|known| state.needs <= known.first);
        let given_up = self.state.needs;
        self.state = state;
        self.skip_to(given_up);

        // It answers, so nothing is awaited, and the time that it took is learned.
        if let Some(took) = self.standing.hear(number, self.uncovered(), now) {
            self.answers.add(took, &ANSWERS);
        }
        if grown > 0 {
            self.standing.note_gain(now);
        }

        // Where it lacks something, or waits for room, silence counts as loss after a while.
        let has_room = state.backlog < self.room(room);
        if grown > 0 || has_room {
            self.quiet = 0;
        }
        let waits = lacks || !has_room;
        self.lost_at = waits.then(|| now + self.pause(false, packet_time));
        Some(grown)
    }

    /// Counts the packets that were sent in pairs and arrived, of those of which that is known.
    fn count_pairs(&mut self, state: State, now: Instant) {
        let delivery = self.delivery();
        self.paired.retain(|(packet, chance)| {
            // Whether it arrived is not known yet.
            if self.flight.has(*packet) {
                return true;
            }
            self.separated.add(delivery * chance, f64::from(u8::from(state.has(*packet))));
            false
        });

        if self.separated.value() < LEAST_SEPARATED {
            self.separated = FadingShare::starting_at(1.0, PRIOR, PAIRS);
            self.unpaired_until = now + UNPAIRED;
        }
    }

    /// Returns the chance that it separates a pair, if it has the packet that is not for it with
    /// probability `chance`.
    pub(crate) fn separates(&self, chance: f64, now: Instant) -> f64 {
        if self.is_unpaired(now) {
            return 0.0;
        }
        if now.since(self.paired_at) >= RENEWED {
            return chance;
        }

        // Over this many pairs chance alone makes the share waver by so much.
        let doubt = DOUBT / self.separated.trials().sqrt();
        chance * (self.separated.value() + doubt).min(1.0)
    }

    /// Notes that this packet goes to it in a pair that it separates with this chance.
    pub(crate) fn note_paired(&mut self, packet: u32, chance: f64, now: Instant) {
        if now.since(self.paired_at) >= RENEWED {
            self.separated = FadingShare::starting_at(1.0, PRIOR, PAIRS);
        }
        self.paired_at = now;
        self.flight.note_paired(chance);
        self.paired.push((packet, chance));
    }

    /// Returns whether a packet that goes alone is to go by unicast: the MAC's acknowledgment
    /// answers sooner than a report, and after a collision the MAC waits at random. Link state's
    /// promise counts, for what is lost now may be lost to collisions.
    pub(crate) fn prefers_unicast(&self, least_chance: f64) -> bool {
        let is_clear = self.flight.pending() == 0.0 && self.standing.missed() == 0.0;
        is_clear && self.delivery.promised() * self.back >= least_chance
    }

    /// Notes that the MAC there acknowledged the last frame, which carried this packet.
    pub(crate) fn acknowledge(&mut self, packet: u32, packet_time: Duration, now: Instant) {
        // Its next report would say the same: the packet is there, and waits to be sent on.
        let backlog = self.backlog(packet_time, now);
        self.flight.settle_last();

        // If these did not count, only frames in doubt would.
        self.delivery.count(1.0, 1.0);
        match packet.checked_sub(self.state.needs) {
            None => {}
            Some(0) => self.skip_to(packet + 1 + self.state.leads.trailing_ones()),
            Some(far) => self.state.leads |= 1_u32.checked_shl(far - 1).unwrap_or(0),
        }

        if !self.state.ends {
            self.state.backlog = (backlog.ceil() as u8).saturating_add(1);
        }

        // The MAC acknowledges before the node handles the frame, which may still be lost there.
        let known = self.unconfirmed.filter(|known| now.since(known.since) < UNCONFIRMED);
        self.unconfirmed = known.or(Some(Unconfirmed { first: packet, since: now }));
        self.standing.note_present(self.uncovered(), now);
        self.standing.note_gain(now);
        self.quiet = 0;

        // A node that gives turns is asked if it does not give one in time.
        self.lost_at = self.state.turn.map(|_| now + self.pause(false, packet_time));
    }

    /// Returns the first packet that a frame with `packet` does not declare given up, if packets
    /// from `oldest` on are still sent.
    pub(crate) fn not_given_up(&self, oldest: u32, packet: u32) -> u32 {
        let first = self.unconfirmed.map_or(oldest, |unconfirmed| unconfirmed.first.min(oldest));
        first.max(packet.saturating_sub(MOST_UNCONFIRMED)).min(oldest)
    }

    /// Notes that the MAC gave up the last frame.
    pub(crate) fn fail(&mut self, packet_time: Duration, now: Instant) {
        self.flight.settle_last();
        self.standing.note_missed(self.answer_chance(), now);
        self.quiet += 1;
        self.lost_at = Some(now + self.pause(true, packet_time));
    }

    /// Notes that it gives another node the turn until then: it is silent for that reason, so what
    /// waits for its answer is not lost yet.
    pub(crate) fn put_off(&mut self, until: Instant, packet_time: Duration) {
        let answered_by = until + packet_time.mul_f64(LOST_PACKETS);
        let at = answered_by.min(self.standing.heard_at() + LONGEST);
        self.lost_at = self.lost_at.map(|lost_at| lost_at.max(at));
    }

    /// Returns the chance that it is heard after it was asked once.
    fn answer_chance(&self) -> f64 {
        (self.delivery() * self.back).max(LEAST_CHANCE)
    }

    /// Returns the time in which answers came so far; zero if none did.
    pub(crate) fn answer_time(&self) -> Duration {
        self.answers.mean()
    }

    /// Returns the time until what is sent now counts as lost. Answers come within a time that is
    /// learned, as of acknowledgments (RFC 6298).
    fn pause(&self, asks: bool, packet_time: Duration) -> Duration {
        // The answer to a question comes after a learned time. A report that is not asked for may
        // wait longer, and so may one in turns.
        let is_answered = asks && self.state.turn.is_none();
        let first = if is_answered {
            self.answers.wait(&ANSWERS, packet_time)
        } else {
            packet_time.mul_f64(LOST_PACKETS)
        };
        let first = if self.is_far(packet_time) {
            first.max(self.trips.value() * LOST_TRIPS)
        } else {
            first
        };
        let pauses = Backoff { first, longest: LONGEST };
        pauses.pause((f64::from(self.quiet) * self.answer_chance() / DOUBLE_AFTER) as u32)
    }

    /// Returns how many packets may be on their way there of which it is not known whether they
    /// arrived: as many as are sent until word of the first comes back.
    pub(crate) fn ahead(&self, packet_time: Duration) -> usize {
        let packets = self.trips.value().as_secs_f64() / packet_time.as_secs_f64();
        (packets.ceil() as usize).clamp(AHEAD, MOST_AHEAD)
    }

    /// Returns whether it is at the end of a cable: a packet and the word of it take longer than
    /// over any radio, since frames wait for processors. What no state covers is on its way then,
    /// not lost.
    pub(crate) fn is_far(&self, packet_time: Duration) -> bool {
        self.ahead(packet_time) > AHEAD
    }

    /// Returns whether an answer is on its way that comes too late to be waited for.
    pub(crate) fn is_asked_far(&self, packet_time: Duration) -> bool {
        self.is_far(packet_time) && self.standing.asked_at().is_some()
    }

    /// Returns whether it is to be asked again while answers are on their way.
    fn needs_another_question(&self, packet_time: Duration) -> bool {
        self.is_far(packet_time) && self.unasked >= self.ahead(packet_time) / QUESTIONS
    }

    /// Returns how many packets should have arrived there of which no state tells.
    fn uncovered(&self) -> f64 {
        self.delivery() * self.flight.pending()
    }

    /// Returns the share of packets that arrive there.
    pub(crate) fn delivery(&self) -> f64 {
        self.delivery.value()
    }

    /// Returns the share of packets that arrive there, as counted, and of its frames that arrive
    /// here, as link state told when it became the next hop; `None` if it was not heard lately.
    pub(crate) fn carries(&self, now: Instant) -> Option<(f64, f64)> {
        (now.since(self.standing.heard_at()) < CARRIES_FOR).then(|| (self.delivery(), self.back))
    }

    /// Returns whether it got packets lately.
    pub(crate) fn gains(&self, now: Instant) -> bool {
        now.since(self.standing.gained_at()) < CARRIES_FOR
    }

    /// Returns how many frames a packet takes by unicast, which is acknowledged.
    pub(crate) fn unicast_etx(&self) -> f64 {
        1.0 / (self.delivery() * self.back)
    }

    /// Returns whether it gets no pairs for now, because it separated too few.
    pub(crate) fn is_unpaired(&self, now: Instant) -> bool {
        now < self.unpaired_until
    }

    /// Returns the share of packets that arrive there, if it is far below what link state told and
    /// enough were counted.
    pub(crate) fn poor_delivery(&self) -> Option<f64> {
        self.delivery.poor_for_its_promise(&COUNT)
    }

    /// Returns whether it was asked for so long without an answer that another next hop is to be
    /// tried.
    pub(crate) fn is_given_up(&self, now: Instant) -> bool {
        self.stands(now) == hop::State::Gone
    }

    /// Returns whether packets bring it nothing by its own word.
    pub(crate) fn is_in_vain(&self) -> bool {
        self.standing.is_in_vain(&STANDING)
    }

    /// Returns whether it never said anything.
    pub(crate) fn is_unheard(&self) -> bool {
        !self.standing.was_heard()
    }

    /// Returns the share that arrives there of what link state promised.
    pub(crate) fn share_of_promise(&self) -> f64 {
        self.delivery.share_of_promise()
    }

    /// Returns whether what is sent to it collides with what this node does not hear.
    pub(crate) fn collides(&self) -> bool {
        self.share_of_promise() < COLLIDES
    }

    /// Returns how much it is expected to lack of what the node before it holds, if it lacked
    /// `known` dimensions when it was last heard.
    pub(crate) fn lacks(&self, known: usize) -> f64 {
        (known as f64 - self.delivery() * self.flight.pending()).max(0.0)
    }

    /// Returns whether it is to be asked though more packets are on their way here, after one that
    /// leaves `missing` packets of those sent missing there.
    pub(crate) fn is_uncertain(&self, missing: f64, packet_time: Duration, now: Instant) -> bool {
        self.is_due(missing, UNCERTAIN, packet_time, now)
    }

    /// Returns whether it is to be asked though more packets wait here.
    pub(crate) fn is_uncertain_meanwhile(&self, packet_time: Duration, now: Instant) -> bool {
        let missing = (self.flight.pending() + 1.0) * (1.0 - self.delivery());
        self.needs_another_question(packet_time)
            || self.is_due(missing, UNCERTAIN_MEANWHILE, packet_time, now)
    }

    /// Returns whether it is to be asked with a frame that is not the last. An answer that is
    /// awaited tells of that one, too.
    fn is_due(&self, missing: f64, at: f64, packet_time: Duration, now: Instant) -> bool {
        let unheard = now.since(self.standing.heard_at());
        self.standing.asked_at().is_none()
            && (missing >= at
                || self.flight.pending() + 1.0 >= UNASKED
                || unheard >= packet_time.mul_f64(UNASKED_TIMES))
    }

    /// Returns how much is expected to wait there for its own next hop. It sends on what it gets,
    /// even where that is not heard. While it gives turns, only what it is heard to say counts.
    pub(crate) fn backlog(&self, packet_time: Duration, now: Instant) -> f64 {
        if self.state.turn.is_some() {
            return self.came();
        }

        // Without turns it sends on all the time.
        let passed_on =
            now.since(self.standing.heard_at()).as_secs_f64() / packet_time.as_secs_f64();
        (self.came() - passed_on / PASSES_ON).max(0.0)
    }

    /// Returns how many packets may wait there: `usual`, or what it said if it gives turns.
    fn room(&self, usual: u8) -> u8 {
        self.state.turn.unwrap_or(usual)
    }

    /// Returns whether fewer packets should wait there than may.
    pub(crate) fn can_take(&self, usual: u8, packet_time: Duration, now: Instant) -> bool {
        self.backlog(packet_time, now) < f64::from(self.room(usual))
    }

    /// Returns what waited there when it was last heard, and what should have come since.
    fn came(&self) -> f64 {
        if self.state.ends && self.state.turn.is_none() {
            return 0.0;
        }
        // A turn counts frames, whether they arrive or not.
        let arrives = if self.state.turn.is_some() { 1.0 } else { self.delivery() };
        f64::from(self.state.backlog) + arrives * self.flight.pending()
    }

    fn stands(&self, now: Instant) -> hop::State {
        self.standing.state(self.back, &STANDING, now)
    }

    /// Returns whether it gets packets: it was heard lately, or is new.
    pub(crate) fn answers(&self, now: Instant) -> bool {
        self.stands(now) < hop::State::OnTrial
    }

    /// Returns whether several answers should have come and none did. What was sent collided,
    /// perhaps, and a short frame that asks has better chances.
    pub(crate) fn is_silent(&self) -> bool {
        self.standing.missed() >= STANDING.silent
    }

    /// Notes that it was heard to send something else. If it should have answered, now is the time
    /// to ask: who collided with what was sent is silent now, too.
    pub(crate) fn hear_elsewhere(&mut self, packet_time: Duration, now: Instant) {
        let again = self.sent_at + packet_time.mul_f64(LOST_PACKETS);
        if self.is_silent() && again <= now {
            self.lost_at = self.lost_at.map(|at| at.min(now));
        }
    }

    /// Returns whether what was sent counts as lost.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        self.lost_at.is_some_and(|at| at <= now)
    }

    /// Notes that a frame is given to the MAC. What is repeated next waits longer by a random
    /// share, `jitter`: two nodes that do not hear each other and sent at the same time would do so
    /// again and again.
    pub(crate) fn note_filled(
        &mut self,
        filling: &Filling,
        jitter: f64,
        packet_time: Duration,
        now: Instant,
    ) {
        let Filling { carries, repeats, asks, .. } = *filling;

        // The packet counts as in flight, and as in vain until the next hop gains.
        self.flight.note_filled(filling, now);
        if carries {
            self.standing.note_sent(self.delivery(), &STANDING);
        }
        self.sent_at = now;
        self.quiet += u32::from(repeats);

        // A question that is awaited is repeated, or a new one is asked.
        let is_asked = self.standing.asked_at().is_some();
        self.unasked += 1;
        if asks {
            self.standing.note_asked(now);
            self.asked_first.get_or_insert(now);
            self.unasked = 0;
        }
        if repeats {
            self.standing.note_missed(self.answer_chance(), now);
        }

        // A packet that does not ask does not put off the answer that is awaited.
        let lost_at = now + self.pause(asks, packet_time).mul_f64(1.0 + jitter);
        let awaited = self.lost_at.filter(|_| is_asked && !asks);
        self.lost_at = Some(awaited.map_or(lost_at, |awaited| awaited.min(lost_at)));
    }

    /// Notes that a combination of packets in this range is sent.
    pub(crate) fn note_combined(&mut self, packets: Range<u32>) {
        if self.state.needs >= self.combined.end {
            self.combined = packets;
        } else {
            self.combined.end = self.combined.end.max(packets.end);
        }
    }

    /// Returns whether a packet may be part of a combination: not if it would make the span too
    /// wide.
    pub(crate) fn may_combine(&self, packet: u32) -> bool {
        let Range { start, end } = self.combined;
        self.state.needs >= end || packet < start.saturating_add(SPAN).max(end)
    }

    /// Notes that packets before `needs` are given up.
    pub(crate) fn skip_to(&mut self, needs: u32) {
        let State { needs: before, leads, .. } = self.state;
        if needs > before {
            self.state.leads = leads.checked_shr(needs - before).unwrap_or(0);
            self.state.needs = needs;
        }
    }

    /// Returns when what was sent counts as lost, and when fewer than `room` packets should wait
    /// there.
    pub(crate) fn timeouts(
        &self,
        room: u8,
        packet_time: Duration,
    ) -> impl Iterator<Item = Instant> {
        let over = self.came() - f64::from(self.room(room));
        let takes = packet_time.mul_f64(PASSES_ON * (over.max(0.0) + 0.01));
        let has_room =
            (over >= 0.0 && self.state.turn.is_none()).then(|| self.standing.heard_at() + takes);
        self.lost_at.into_iter().chain(has_room)
    }
}
