//! A child: what it wants, and what it should have by now of what it was sent.

use super::frame::Wants;
use ncmesh_engine::Port;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::hop::delivery::{CountedDelivery, DeliveryPolicy};
use ncmesh_engine::toolkit::hop::{
    self, AnswerPolicy, AnswerTime, Covered, Standing, StandingPolicy,
};
use std::collections::{BTreeMap, VecDeque};

/// How a child's packets are counted. A shorter half life follows changes sooner, and takes chance
/// for change. Whether its link is poor is for the child to judge.
const COUNT: DeliveryPolicy = DeliveryPolicy { half_life: 64.0, evidence: f64::INFINITY };
/// Least share of a child's frames that is believed to arrive here. Bounds how long a dead child
/// counts as one that is hard to hear.
const LEAST_BACK: f64 = 0.1;
/// A child counts as served when it is expected to lack no more packets than this. With 1 the last
/// packet of a generation was often left out, and all waited until the poll was repeated.
const MARGIN: f64 = 0.05;
/// A node sends from a generation that is not whole only if every child that wants it lacks at
/// least this many packets of what the node holds. Later combinations span more packets, and help
/// more children. Lower, relays send sooner what helps less; higher, they wait. Half 1.01, twice
/// 1.00.
const GAP: f64 = 8.0;
/// A child gets no more data while this many whole generations wait there for its own children.
/// Fewer let it idle, more take the channel from it.
const BACKLOG: u8 = 4;
/// Where a child stands. One on trial gets [`TRIAL`] packets at a time: its reports may collide,
/// and may come through in the pauses, which grow while answers are missing. One that was never
/// heard gets polls alone. One that is heard but never gains, as if it asked for ever, must not
/// hold the channel: its pauses are the longest. It need not be heard while there is nothing for
/// it, so it is forgotten late: generations are kept for one that has gone, but one behind a busy
/// channel need not begin again.
const STANDING: StandingPolicy = StandingPolicy {
    silent: 2.0,
    on_trial: 2.0,
    unheard: 64.0,
    in_vain: 128.0,
    // A child chooses its parent, and could say that it hears nothing.
    least_chance: 0.25,
    given_up: None,
    forgotten: Some(Duration::from_secs(20)),
    never_heard: Some(Duration::from_secs(2)),
};
/// Packets that a child on trial gets at a time.
const TRIAL: u32 = 32;
/// First pause between two trials, packet times, and the longest one. Longer pauses idle where a
/// few answers were lost by chance, in shorter ones no answer comes through.
const TRIAL_PAUSE: f64 = 64.0;
const TRIAL_LONGEST: Duration = Duration::from_secs(1);
/// Packet times until a poll counts as lost: the time for which the child's report may wait. A
/// child that other nodes served is polled after the same time. Shorter polls in vain, longer
/// idles.
const POLL_PACKETS: f64 = 12.0;
/// When an answer is late, whatever packets take. On a cable it takes as long as hundreds of them.
const ANSWERS: AnswerPolicy = AnswerPolicy {
    deviations: 4.0,
    first_deviates: false,
    unlearned: POLL_PACKETS,
    least: POLL_PACKETS,
    most: None,
};
/// Most packets of a child that may be on their way, as by cable: no more are sent until it tells
/// of some. Fewer idle on long ways, more fill up queues.
const MOST_IN_FLIGHT: usize = 1024;
/// Longest pause between two polls. Bounds how long a child waits that comes back.
const LONGEST_POLL: Duration = Duration::from_millis(250);
/// Time after a frame of a child arrived in which nothing is believed that others pass on in its
/// name. A child that finds that its link brings nothing back is believed this much later.
const SPEAKS: Duration = Duration::from_secs(2);

/// A child, as its parent knows it.
#[derive(Debug)]
pub(super) struct Child {
    pub wants: Wants,
    standing: Standing,
    /// When a frame of its own arrived, not passed on by another node.
    own_at: Option<Instant>,
    /// Share of its packets that arrive there.
    delivery: CountedDelivery,
    /// Share of what other nodes' packets should have brought it that they did bring.
    elsewhere: CountedDelivery,
    /// Share of its frames that arrive here, as link state told at first.
    back: f64,
    /// Packets sent since its rank was last heard, by generation.
    pending: BTreeMap<u32, Pending>,
    answers: AnswerTime,
    /// Packets sent to it of which its frames do not tell yet, oldest first.
    flight: VecDeque<Sent>,
    /// How many of them are there for longer than an answer takes.
    overdue: usize,
    /// Trials since it was last heard, when the next one begins, and the packets that it got since
    /// then.
    trials: u32,
    trial_at: Instant,
    tried: u32,
}

/// Packets of a generation that a child was sent since its rank was last heard.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    sent: f64,
    /// Packets of other nodes that should have reached it since then.
    elsewhere: f64,
    polls: u32,
    /// When it was polled first since its rank grew.
    polled_at: Instant,
    /// When the last poll counts as lost.
    lost_at: Option<Instant>,
}

/// A packet of another node that a child hears as well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overheard {
    pub generation: u32,
    /// How much of the generation its sender holds.
    pub rank: u8,
    /// Share of the sender's packets that reach the child.
    pub delivery: f64,
}

/// A packet that a child was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Number of its frame among those of the port.
    pub number: u16,
    pub port: Port,
    pub generation: u32,
    pub at: Instant,
}

impl Child {
    /// Returns a child that has not been heard yet, to which and from which these shares of frames
    /// arrive.
    pub(super) fn expected(told: f64, back: f64, now: Instant) -> Self {
        Self {
            wants: Wants::default(),
            standing: Standing::new(now),
            own_at: None,
            delivery: CountedDelivery::new(told, &COUNT),
            elsewhere: CountedDelivery::new(1.0, &COUNT),
            back: back.max(LEAST_BACK),
            pending: BTreeMap::new(),
            answers: AnswerTime::default(),
            flight: VecDeque::new(),
            overdue: 0,
            trials: 0,
            trial_at: now,
            tried: 0,
        }
    }

    /// Returns whether a frame of it is older than one that was heard.
    pub(super) fn is_stale(&self, number: u16, now: Instant) -> bool {
        self.standing.is_stale(number, now)
    }

    /// Notes that a frame of its own arrived.
    pub(super) fn note_own(&mut self, now: Instant) {
        self.own_at = Some(now);
    }

    /// Returns whether its own frames arrive, so that no other node need pass on what it says.
    pub(super) fn speaks_itself(&self, now: Instant) -> bool {
        self.own_at.is_some_and(|at| now.since(at) < SPEAKS)
    }

    /// Returns whether it has been silent for too long.
    pub(super) fn is_gone(&self, now: Instant) -> bool {
        self.stands(now) == hop::State::Gone
    }

    fn stands(&self, now: Instant) -> hop::State {
        self.standing.state(self.back, &STANDING, now)
    }

    /// Takes what it wants, by its frame of this number, which tells of the packets that it covers.
    /// How much it gained by those says how much arrives. `packets` is the number of packets of a
    /// generation.
    pub(super) fn hear(
        &mut self,
        mut wants: Wants,
        number: u16,
        covered: Covered,
        packets: impl Fn(u32) -> u8,
        now: Instant,
    ) {
        // Packets from before it had heard of the transfer say nothing about its link.
        if !self.standing.was_heard() {
            self.pending.clear();
            self.flight.clear();
            self.overdue = 0;
        }

        // Its word replaces what it said before. All that it did not list stays as it was.
        while self.flight.front().is_some_and(|sent| covered.covers(sent.number)) {
            self.land();
        }
        let uncovered = self.delivery() * self.overdue as f64;
        self.standing.hear(number, uncovered, now);
        self.trials = 0;
        let listed_until = wants.listed_until();
        wants.complete(&self.wants);
        let before = core::mem::replace(&mut self.wants, wants);
        let delivery = self.delivery();
        let mut gained = false;
        self.pending.retain(|generation, pending| {
            let Some(before) = before.rank(*generation) else { return false };

            // A later frame tells the rest, for which this one had no room.
            if *generation >= listed_until {
                return true;
            }
            let after = self.wants.rank(*generation);

            // It left out false packets, which it had counted before. That says nothing about what
            // arrives.
            let in_flight = self.flight.iter().filter(|sent| sent.generation == *generation);
            let in_flight = (in_flight.count() as f64).min(pending.sent);
            if after.is_some_and(|after| after < before) {
                *pending = Pending { sent: in_flight, elsewhere: 0.0, polls: 0, ..*pending };
                return true;
            }
            let gain = after.unwrap_or_else(|| packets(*generation)).saturating_sub(before);
            gained |= gain > 0;

            // Nothing says which packets of a gain came from where, so it is divided as expected.
            let own = self.delivery.value() * pending.sent;
            let helped = self.elsewhere.value() * pending.elsewhere;
            let own_part = if helped > 0.0 { own / (own + helped) } else { 1.0 };
            if helped > 0.0 {
                let gain = f64::from(gain) * (1.0 - own_part);
                self.elsewhere.count(pending.elsewhere, gain.min(pending.elsewhere));
            }

            // Packets after the one that made it whole say nothing.
            let landed = pending.sent - in_flight;
            let gain = (f64::from(gain) * own_part).min(pending.sent);
            let counted = match after {
                Some(_) => landed.max(gain),
                None => pending.sent.min(gain / delivery),
            };

            self.delivery.count(counted, gain);

            // Only one poll that brought the news: of several, nobody knows which was answered.
            if after.is_none() && pending.polls == 1 {
                self.answers.add(now.since(pending.polled_at), &ANSWERS);
            }

            // Its answer is due as long as the poll, or what follows it, is on its way.
            let lost_at = pending.lost_at.filter(|_| in_flight > 0.0);
            let polls = if gain > 0.0 && lost_at.is_none() { 0 } else { pending.polls };
            *pending = Pending { sent: in_flight, elsewhere: 0.0, polls, lost_at, ..*pending };
            after.is_some()
        });

        if gained {
            self.standing.note_gain(now);
        }
    }

    /// Forgets the oldest packet on its way: it arrived, or was lost.
    fn land(&mut self) {
        if self.flight.pop_front().is_none() {
            return;
        }
        match self.overdue.checked_sub(1) {
            Some(left) => self.overdue = left,
            None => self.standing.note_sent(self.delivery.value(), &STANDING),
        }
    }

    /// Notes of which packets its frames should have told by now.
    fn note_overdue(&mut self, now: Instant) {
        let answered_after = self.answers.late(&ANSWERS);
        let is_overdue = |sent: &Sent| now.since(sent.at) >= answered_after;
        while self.flight.get(self.overdue).is_some_and(is_overdue) {
            self.overdue += 1;
            self.standing.note_sent(self.delivery.value(), &STANDING);
        }
    }

    /// Returns the share of packets that arrive there.
    pub(super) fn delivery(&self) -> f64 {
        self.delivery.value()
    }

    /// Returns the share that arrives there of what link state promised, if it is being served.
    pub(super) fn share_of_promise(&self) -> Option<f64> {
        (!self.pending.is_empty()).then(|| self.delivery.share_of_promise())
    }

    /// Returns how far it is expected to be behind `rank` in a generation, if it wants it.
    pub(super) fn lacks(&self, generation: u32, rank: u8) -> Option<f64> {
        // Its last word, its share of what was sent since, and what others should have given it.
        let known = f64::from(self.wants.rank(generation)?);
        let pending = self.pending.get(&generation).copied().unwrap_or_default();
        let helped = self.elsewhere.value() * pending.elsewhere;
        let expected = known + self.delivery() * pending.sent + helped;
        Some((f64::from(rank) - expected).max(0.0))
    }

    /// Returns whether it is served if it lacks this much.
    pub(super) fn is_served(lacks: f64) -> bool {
        lacks <= MARGIN
    }

    /// Returns whether it lacks enough for a packet of a generation that is not whole.
    pub(super) fn is_far_behind(lacks: f64) -> bool {
        lacks >= GAP
    }

    /// Returns whether it gets data: it answers, and what it has does not pile up there.
    pub(super) fn takes_data(&self, now: Instant) -> bool {
        // A trial is worth its packets only if there was ever an answer.
        let is_on_trial = self.is_on_trial(now);
        let is_served = !is_on_trial || (self.standing.was_heard() && now >= self.trial_at);
        let has_room = self.flight.len() - self.overdue < MOST_IN_FLIGHT;
        is_served && has_room && (self.wants.receives || self.wants.backlog < BACKLOG)
    }

    /// Returns how long it gets nothing after a trial.
    fn trial_pause(&self, packet_time: Duration) -> Duration {
        // In a pause its answers must have the time to come.
        let first = packet_time.mul_f64(TRIAL_PAUSE).max(self.answers.late(&ANSWERS));
        Backoff { first: first.min(TRIAL_LONGEST), longest: TRIAL_LONGEST }.pause(self.trials)
    }

    /// Returns whether nothing says that packets reach it.
    fn is_on_trial(&self, now: Instant) -> bool {
        self.stands(now) >= hop::State::OnTrial
    }

    /// Returns whether a poll about a generation that it wants was lost.
    pub(super) fn is_poll_lost(&self, generation: u32, now: Instant) -> bool {
        let lost_at = self.pending.get(&generation).and_then(|pending| pending.lost_at);
        lost_at.is_some_and(|at| at <= now) && self.wants.rank(generation).is_some()
    }

    /// Notes that it is sent a packet. Returns whether it is to be polled at once.
    pub(super) fn note_sent(&mut self, sent: Sent, packet_time: Duration) -> bool {
        if self.wants.rank(sent.generation).is_none() {
            return false;
        }
        self.pending.entry(sent.generation).or_default().sent += 1.0;
        let now = sent.at;
        let was_on_trial = self.is_on_trial(now);
        // This node remembers no more frames, and could not tell which of them are covered.
        if self.flight.len() >= 2 * MOST_IN_FLIGHT {
            self.land();
        }
        // It tells of frames of the port by which it is reached.
        while self.flight.back().is_some_and(|last| last.port != sent.port) {
            self.land();
        }
        self.flight.push_back(sent);
        self.note_overdue(now);

        // A child of which nothing says that packets reach it gets a few, and is then left alone
        // for a while.
        if !self.is_on_trial(now) {
            return false;
        }
        self.tried += 1;
        if was_on_trial && self.tried < TRIAL {
            return false;
        }
        let gains = !self.standing.is_in_vain(&STANDING);
        self.trial_at = now + if gains { self.trial_pause(packet_time) } else { TRIAL_LONGEST };
        let misses_answers = self.standing.misses_answers(&STANDING);
        self.trials = self.trials.saturating_add(u32::from(misses_answers));
        self.tried = 0;
        gains
    }

    /// Notes a packet of another node. Once the child should have reached the rank `served_at`, it
    /// is polled, but not at once: it may report that its generation is whole before that.
    pub(super) fn note_elsewhere(
        &mut self,
        overheard: Overheard,
        served_at: u8,
        packet_time: Duration,
        now: Instant,
    ) {
        let Overheard { generation, rank, delivery } = overheard;

        // A sender that holds no more than the child has nothing new for it.
        if self.lacks(generation, rank).is_none_or(Self::is_served) {
            return;
        }
        self.pending.entry(generation).or_default().elsewhere += delivery;
        let is_served = self.lacks(generation, served_at).is_none_or(Self::is_served);
        if let Some(pending) = self.pending.get_mut(&generation).filter(|_| is_served) {
            let poll_at = now + packet_time.mul_f64(POLL_PACKETS);
            pending.lost_at.get_or_insert(poll_at);
        }
    }

    /// Notes that the packet polls it. An earlier poll, about any generation, was lost if it should
    /// have been answered by now.
    pub(super) fn note_poll(&mut self, generation: u32, packet_time: Duration, now: Instant) {
        if self.wants.rank(generation).is_none() {
            return;
        }

        let wait = self.answers.wait(&ANSWERS, packet_time);
        let asked_at = self.standing.asked_at();
        self.standing.note_asked(now);
        if asked_at.is_some_and(|at| at + wait <= now) {
            self.standing.note_missed(self.delivery.value() * self.back, now);
        }

        // A poll that is repeated waits twice as long each time.
        let pending = self.pending.entry(generation).or_default();
        let pauses = Backoff { first: wait, longest: LONGEST_POLL };
        if pending.polls == 0 {
            pending.polled_at = now;
        }
        pending.lost_at = Some(now + pauses.pause(pending.polls));
        pending.polls += 1;
    }

    /// Returns when the polls to it count as lost, and when it gets packets again.
    pub(super) fn timeouts(&self) -> impl Iterator<Item = Instant> + '_ {
        self.pending.values().filter_map(|pending| pending.lost_at).chain([self.trial_at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::UNWANTED;
    use core::ops::{Deref, DerefMut};
    use ncmesh_engine::toolkit::hop::{Handled, SentFrames};
    use proptest::prelude::*;

    const AT: Instant = Instant::from_nanos(1_000_000_000);
    const PACKET_TIME: Duration = Duration::from_millis(1);

    fn wants(first: u32, ranks: &[u8]) -> Wants {
        Wants { receives: true, ..Wants::from(first, ranks.iter().copied(), 200) }
    }

    /// A child, and the frames that it is sent.
    struct Tested {
        child: Child,
        frames: SentFrames,
        number: u16,
    }

    impl Tested {
        fn expected(told: f64, back: f64) -> Self {
            let child = Child::expected(told, back, AT);
            Self { child, frames: SentFrames::default(), number: 0 }
        }

        /// Sends it a packet, and returns whether it is to be polled.
        fn send(&mut self, generation: u32, packet_time: Duration, at: Instant) -> bool {
            self.number = self.number.wrapping_add(1);
            self.frames.note_filled(self.number, at);
            self.frames.note_sent(at);
            self.child.note_sent(
                Sent { number: self.number, port: Port::FIRST, generation, at },
                packet_time,
            )
        }

        /// Takes a frame that tells of all that it was sent.
        fn hear_all(&mut self, wants: Wants, number: u16, packets: u8, now: Instant) {
            self.hear_some(wants, number, |_| packets, now);
        }

        fn hear_some(
            &mut self,
            wants: Wants,
            number: u16,
            packets: impl Fn(u32) -> u8,
            now: Instant,
        ) {
            let covered = self.frames.covered_by(Handled::default());
            self.child.hear(wants, number, covered, packets, now);
        }

        /// Takes a frame that tells of what it was sent up to a frame.
        fn hear_until(&mut self, wants: Wants, number: u16, handled: u16, now: Instant) {
            let handled = Handled { number: handled, ago: Duration::ZERO };
            self.child.hear(wants, number, self.frames.covered_by(handled), |_| 32, now);
        }
    }

    impl Deref for Tested {
        type Target = Child;

        fn deref(&self) -> &Child {
            &self.child
        }
    }

    impl DerefMut for Tested {
        fn deref_mut(&mut self) -> &mut Child {
            &mut self.child
        }
    }

    /// A child over a link that was told to deliver half, which has been heard.
    fn child() -> Tested {
        let mut child = Tested::expected(0.5, 0.5);
        child.hear_all(wants(0, &[]), 1, 32, AT);
        child
    }

    #[test]
    fn it_is_served_once_what_it_was_sent_should_have_arrived() {
        let mut child = child();
        for sent in 0..64 {
            assert!(!Child::is_served(child.lacks(0, 32).unwrap()), "after {sent} packets");
            child.send(0, PACKET_TIME, AT);
        }
        assert!(Child::is_served(child.lacks(0, 32).unwrap()));
        // It has 24 of them: the rest is worth another 16 packets and more, as the link is worse.
        child.hear_all(wants(0, &[24]), 2, 32, AT);
        let lacks = child.lacks(0, 32).unwrap();
        assert!((lacks - 8.0).abs() < 1e-9 && child.delivery() < 0.5, "{lacks}");
        child.hear_all(wants(1, &[]), 3, 32, AT);
        assert_eq!(child.lacks(0, 32), None);
    }

    #[test]
    fn what_it_was_sent_before_it_was_heard_says_nothing_about_its_link() {
        let mut child = Tested::expected(0.9, 0.9);
        for _ in 0..90 {
            child.send(0, PACKET_TIME, AT);
        }
        child.hear_all(wants(0, &[]), 7, 64, AT);
        assert!((child.delivery() - 0.9).abs() < 1e-9);
        assert!((child.lacks(0, 64).unwrap() - 64.0).abs() < 1e-9);
    }

    #[test]
    fn a_poll_that_is_not_answered_is_repeated_more_and_more_rarely() {
        let mut child = child();
        let mut now = AT;
        let mut pauses = Vec::new();
        for _ in 0..10 {
            child.note_poll(0, PACKET_TIME, now);
            assert!(!child.is_poll_lost(0, now));
            let lost_at = child.timeouts().filter(|at| *at > now).min().unwrap();
            pauses.push(lost_at.since(now).as_millis());
            now = lost_at;
            assert!(child.is_poll_lost(0, now));
        }
        assert_eq!(pauses, [12, 24, 48, 96, 192, 250, 250, 250, 250, 250]);
        // If half of its packets and of its answers arrive, eight in a row are hardly lost by
        // chance.
        let trial =
            (0..100).take_while(|_| child.takes_data(now) && !child.send(0, PACKET_TIME, now));
        assert_eq!(trial.count() as u32, TRIAL - 1);
        assert!(!child.takes_data(now));
        child.hear_all(wants(0, &[]), 2, 32, now);
        assert!(child.takes_data(now));
        let mut never_heard = Tested::expected(0.5, 0.5);
        let polled_at = (0..10).map(|poll| AT + LONGEST_POLL * poll);
        polled_at.for_each(|at| never_heard.note_poll(0, PACKET_TIME, at));
        assert!(!never_heard.takes_data(AT + LONGEST_POLL * 10));
    }

    #[test]
    fn what_a_list_has_no_room_for_was_not_lost() {
        let mut child = child();
        for generation in 0..4 {
            (0..8).for_each(|_| assert!(!child.send(generation, PACKET_TIME, AT)));
        }
        // The frame lists two of the four generations.
        let cut = Wants { receives: true, ..Wants::from(0, [4, 4, 4, 4].into_iter(), 2) };
        child.hear_all(cut, 2, 32, AT);
        assert!((child.delivery() - 0.5).abs() < 1e-9);
        assert_eq!(child.lacks(1, 32), Some(28.0));
        assert_eq!(child.lacks(2, 32), Some(28.0), "eight packets are on their way");
        child.hear_all(wants(0, &[4, 4, 4, 4]), 3, 32, AT);
        assert!((child.delivery() - 0.5).abs() < 1e-9 && child.lacks(2, 32) == Some(28.0));
    }

    /// Sends a generation of 32 packets that asks at its end, 10 us for each. Returns when it is
    /// sent.
    fn send_by_cable(child: &mut Tested, generation: u32, begin: Instant) -> Instant {
        let packet_time = Duration::from_micros(10);
        let times = (0..32).map(|packet| begin + packet_time * packet);
        times.for_each(|at| assert!(!child.send(generation, packet_time, at)));
        child.note_poll(generation, packet_time, begin + packet_time * 32);
        begin + packet_time * 32
    }

    #[test]
    fn what_is_on_its_way_by_cable_was_not_lost() {
        let mut child = Tested::expected(1.0, 1.0);
        child.hear_all(wants(0, &[]), 1, 32, AT);
        let mut now = send_by_cable(&mut child, 0, AT);
        now = now + Duration::from_millis(1);
        child.hear_until(wants(1, &[]), 2, 32, now);

        // An answer takes as long as a hundred packets, so three generations are under way. One
        // that was written when 20 packets of the first had come says nothing about the others.
        for generation in 1..=3 {
            now = send_by_cable(&mut child, generation, now);
        }
        child.hear_until(wants(1, &[20]), 3, 32 + 20, now);
        assert!(child.delivery() > 0.98, "{}", child.delivery());
        for generation in 1..=3 {
            assert!(child.lacks(generation, 32).unwrap() < 1.0, "generation {generation}");
            assert!(!child.is_poll_lost(generation, now), "its answer is on its way");
        }

        // It handled eight packets of the last generation, so what lacks of those before is lost.
        child.hear_until(wants(1, &[31, UNWANTED, 8]), 4, 3 * 32 + 8, now);
        assert_eq!(child.lacks(1, 32), Some(1.0));
        assert!(child.lacks(3, 32).unwrap() < 1.5 && child.delivery() > 0.9);

        // It handled all, and nothing of the last 24 came.
        child.hear_until(wants(3, &[8]), 5, 4 * 32, now);
        assert_eq!(child.lacks(3, 32), Some(24.0));
        assert!(child.delivery() < 0.9);
    }

    #[test]
    fn no_more_is_on_its_way_than_it_can_be_expected_to_handle() {
        let mut child = Tested::expected(1.0, 1.0);
        child.hear_all(wants(0, &[]), 1, 32, AT);
        child.answers.add(Duration::from_secs(1), &ANSWERS);
        let packets = (0..10_000_u32)
            .take_while(|packet| child.takes_data(AT) && !child.send(packet / 32, PACKET_TIME, AT));
        assert_eq!(packets.count(), MOST_IN_FLIGHT);
        child.hear_until(wants(1, &[]), 2, 32, AT);
        assert!(child.takes_data(AT));
    }

    /// A child that lacks a generation of 32 packets of which another node sends this many, over a
    /// link that should deliver 0.9.
    fn helped_child(packets: u32) -> Tested {
        let mut child = Tested::expected(0.5, 0.5);
        child.hear_all(wants(0, &[]), 1, 32, AT);
        (0..packets).for_each(|_| overhear(&mut child, 32, AT));
        child
    }

    fn overhear(child: &mut Tested, rank: u8, now: Instant) {
        let overheard = Overheard { generation: 0, rank, delivery: 0.9 };
        child.note_elsewhere(overheard, 32, PACKET_TIME, now);
    }

    #[test]
    fn packets_of_another_node_serve_it_and_it_is_asked_later() {
        let mut child = helped_child(20);
        assert!((child.lacks(0, 32).unwrap() - 14.0).abs() < 1e-9);
        assert!(child.timeouts().all(|at| at <= AT), "it lacks more");
        // A node that holds no more than the child should have brings it nothing.
        (0..20).for_each(|_| overhear(&mut child, 18, AT));
        assert!((child.lacks(0, 32).unwrap() - 14.0).abs() < 1e-9);

        (0..16).for_each(|_| overhear(&mut child, 32, AT));
        assert!(Child::is_served(child.lacks(0, 32).unwrap()));
        let poll_at = AT + PACKET_TIME.mul_f64(POLL_PACKETS);
        assert!(!child.is_poll_lost(0, AT) && child.is_poll_lost(0, poll_at));
        // If it has them, nothing more is to be asked.
        child.hear_all(wants(1, &[]), 2, 32, AT);
        assert!(!child.is_poll_lost(0, poll_at));
        assert_eq!(child.delivery(), 0.5, "its link was not used");
    }

    #[test]
    fn a_node_whose_packets_bring_nothing_does_not_keep_a_child_from_being_served() {
        let mut child = helped_child(0);
        for number in 2..20 {
            (0..32).for_each(|_| overhear(&mut child, 32, AT));
            child.hear_all(wants(0, &[]), number, 32, AT);
        }
        (0..32).for_each(|_| overhear(&mut child, 32, AT));
        assert!(child.lacks(0, 32).unwrap() > 28.0, "{:?}", child.lacks(0, 32));
    }

    #[test]
    fn a_trial_pauses_for_packets_or_an_answer_and_for_no_fixed_time() {
        let mut child = Tested::expected(1.0, 1.0);
        let pause = |child: &Tested| child.trial_pause(Duration::from_micros(10)).as_micros();
        assert_eq!(pause(&child), 640);
        child.answers.add(Duration::from_millis(5), &ANSWERS);
        assert_eq!(pause(&child), 5000);
    }

    #[test]
    fn one_that_is_not_heard_gets_few_packets_at_a_time() {
        let mut child = child();
        let mut now = AT;
        let mut bursts = Vec::new();
        for _ in 0..30 {
            let mut sent = 0;
            while child.takes_data(now) {
                let is_polled = child.send(0, PACKET_TIME, now);
                sent += 1;
                assert_eq!(is_polled, !child.takes_data(now));
            }
            bursts.push((sent, child.trial_at.since(now).as_millis()));
            child.note_poll(0, PACKET_TIME, now);
            now = child.trial_at;
        }
        // Half of what it is sent arrives, and half of its answers. Once as many are missing as
        // chance does not explain, the pauses grow.
        let most = 2 * STANDING.unheard as u32;
        assert_eq!(bursts[0], (most, 64));
        assert!(bursts[1..].iter().all(|(sent, _)| *sent == TRIAL));
        let mut pauses: Vec<u128> = bursts.iter().map(|(_, pause)| *pause).collect();
        assert!(pauses[..8].iter().all(|pause| *pause == 64), "{pauses:?}");
        pauses.dedup();
        assert_eq!(pauses, [64, 128, 256, 512, 1000]);
        child.hear_all(wants(0, &[1]), 2, 32, now);
        (0..most).for_each(|_| assert!(child.takes_data(now) | child.send(0, PACKET_TIME, now)));
    }

    #[test]
    fn one_whose_rank_does_not_grow_gets_few_packets_a_second() {
        let mut child = child();
        let mut now = AT;
        let mut sent = 0;
        for number in 2..2002 {
            now = now + Duration::from_millis(5);
            child.hear_all(wants(0, &[]), number, 32, now);
            for _ in 0..10 {
                if child.takes_data(now) {
                    child.send(0, PACKET_TIME, now);
                    sent += 1;
                }
            }
        }
        // Its link seems to deliver next to nothing, so each packet counts as a quarter.
        let in_vain = STANDING.in_vain as u32 * 4;
        assert!((in_vain + 9 * TRIAL..=in_vain + 11 * TRIAL).contains(&sent), "{sent} in 10 s");
        child.hear_all(wants(0, &[1]), 2002, 32, now);
        assert!(child.takes_data(now));
    }

    proptest! {
        /// Whatever a child says, what is expected of it stays within bounds, and packets without
        /// word from it are few.
        #[test]
        fn no_report_upsets_it(
            steps in prop::collection::vec(
                (any::<u32>(), prop::collection::vec(any::<u8>(), 0..20), 0..40u32, any::<u16>()),
                1..50,
            ),
        ) {
            let mut child = child();
            let mut now = AT;
            for (first, ranks, sent, number) in steps {
                let first = if first % 2 == 0 { first % 4 } else { first };
                child.hear_some(wants(first, &ranks), number, |g| if g < 4 { 32 } else { 0 }, now);
                let mut taken = 0;
                for packet in 0..sent * 10 {
                    if child.takes_data(now) && child.wants.rank(packet % 4).is_some() {
                        child.send(packet % 4, PACKET_TIME, now);
                        taken += 1;
                    }
                }
                let unheard = 4 * STANDING.unheard as u32 + MOST_IN_FLIGHT as u32;
                prop_assert!(taken <= unheard + TRIAL, "{taken}");
                prop_assert!((0.0..=1.0).contains(&child.delivery()));
                for generation in 0..5 {
                    if let Some(lacks) = child.lacks(generation, 32) {
                        prop_assert!((0.0..=32.0).contains(&lacks));
                    }
                }
                child.note_poll(0, PACKET_TIME, now);
                now = now + Duration::from_millis(u64::from(sent));
            }
        }
    }
}
