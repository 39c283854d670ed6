//! One neighbour: how many of its frames arrive, and whether it is still there.
//!
//! Long frames are lost more often than short ones. So each hello says how many short and how many
//! long frames of control its sender has sent: from one hello that arrives to the next, both are
//! counted exactly.
//!
//! Each hello also promises when the next frame comes at the latest. A neighbour that keeps silent
//! is asked to answer before it is given up, as in IPv6's neighbour unreachability detection
//! (RFC 4861, section 7.3).

use super::exposure::Exposure;
use super::share::Share;
use super::{Hello, OnPort, Received};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_wire::{NodeId, RadioAddress, StartId, Versions};

/// Least number of frames sent before delivery is reported.
const MIN_SENT: f64 = 4.0;
/// Number of long frames that count as much as what short frames let expect of long ones.
const EXPECTATION: f64 = 8.0;
/// Probability of a silence, by chance, below which a neighbour is asked to answer.
const ASK: f64 = 0.011;
/// Delivery from which it makes sense to ask.
const WORTH_ASKING: f64 = 0.5;
/// Probability of a silence, by chance, below which a neighbour is given up.
const GIVE_UP: f64 = 1e-4;
/// The same without questions.
const GIVE_UP_ALONE: f64 = 1e-4;
/// The same of a poor link, which hardly lets questions and answers pass, if others have meanwhile
/// lost the neighbour, or a node that it hears.
const GIVE_UP_WITH_OTHERS: f64 = 0.1;
/// Least questions that must have been in vain otherwise.
const LEAST_ASKS: u32 = 2;
/// Deviation from what was told up to which it is not told anew, in standard deviations. At two,
/// links that looked good at first by luck misled trees for half a minute.
const CHANCE: f64 = 1.0;
/// Least variance of whether a frame arrives.
const LEAST_VARIANCE: f64 = 0.01;
/// Greatest delivery that silence is judged by: the channel may be busy.
const MOST_HOPE: f64 = 0.99;
/// Part of the delivery that the silence of a neighbour with a poor link is judged by: few frames
/// have shown how poor it is, and a busy channel makes it worse.
const POOR_HOPE: f64 = 0.8;
/// Least share of a silence in which our radio counts as able to hear.
const LEAST_LISTENING: f64 = 0.6;
/// Least delivery by which ports are compared, so that a dead one has a cost.
const LEAST_DELIVERY: f64 = 0.01;
/// Time in which an answer is expected.
const ANSWER: Duration = Duration::from_millis(80);
/// Most questions to a silent neighbour.
const MAX_ASKS: u8 = 8;

/// Measurements of one neighbour.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    start: StartId,
    /// Number of the last hello that arrived, when, and the frames that it counted, short and long.
    hello: (u32, Instant, [u16; 2]),
    /// When the last frame arrived.
    heard_at: Instant,
    /// Time within which it promised its next frame.
    interval: Duration,
    /// Frames that arrived since that hello, with it.
    short_heard: u32,
    long_heard: u32,
    pub short: Share,
    pub long: Share,
    /// Delivery as it was told last.
    told: Option<f64>,
    /// Number of its last hello, and frames that it promised and did not deliver, when its delivery
    /// was looked at last.
    counted: (u32, u32),
    /// Neighbours that it missed when it said its last hello, and the number of all.
    missing: Vec<NodeId>,
    neighbours: u16,
    /// Versions of the wire format that it understands, as far as its last hello tells.
    versions: Versions,
    /// Address of its radio.
    address: Option<RadioAddress>,
    /// How long the channel had been busy in all when the last frame arrived.
    pub busy_before: Duration,
    pub exposure: Exposure,
    /// Whether it has several ports, and the share of this node's frames that arrives there on this
    /// one, by its last hello.
    has_ports: bool,
    hears_us: Option<f64>,
    /// Questions since the last frame, and when the last one was sent.
    asks: u8,
    asked_at: Instant,
}

impl Neighbour {
    /// Returns a neighbour that is heard for the first time, by a hello.
    pub(super) fn new(hello: &Hello, received: Received) -> Self {
        Self {
            start: received.start,
            hello: (received.counter, received.at, hello.counts()),
            heard_at: received.at,
            interval: hello.interval,
            short_heard: 0,
            long_heard: 0,
            short: Share::default(),
            long: Share::default(),
            told: None,
            counted: (received.counter, 0),
            missing: hello.missing().collect(),
            neighbours: hello.neighbours,
            versions: hello.versions(received.version),
            address: hello.address(),
            busy_before: Duration::ZERO,
            exposure: Exposure::default(),
            has_ports: false,
            hears_us: None,
            asks: 0,
            asked_at: received.at,
        }
    }

    /// Returns the neighbour in another start, which it began while it ran: what was measured of
    /// its links still holds.
    pub(super) fn renewed(&self, hello: &Hello, received: Received) -> Self {
        let short = self.short;
        let long = self.long;
        let told = self.told;
        Self { short, long, told, ..Self::new(hello, received) }
    }

    pub(super) fn start(&self) -> StartId {
        self.start
    }

    /// Counts the frames between the last hello and this one.
    pub(super) fn handle_hello(&mut self, hello: &Hello, received: Received) {
        let (counter, _, before) = self.hello;
        if received.counter <= counter {
            // The hello was overtaken: its counts are older than those we have.
            return;
        }

        // The counts wrap at 16 bits. No more frames of a kind can be lost than counters were used.
        let [short, long] = hello.counts();
        let frames = received.counter - counter;
        let sent = |now: u16, before: u16| u32::from(now.wrapping_sub(before)).min(frames);
        let clear = self.exposure.clear();
        if self.short.add(sent(short, before[0]), self.short_heard, clear) {
            // Long frames are rare. Those from before the step would hide it for long.
            self.long = Share::default();
        }

        self.long.add(sent(long, before[1]), self.long_heard, clear);
        self.short_heard = 0;
        self.long_heard = 0;

        self.hello = (received.counter, received.at, [short, long]);
        self.interval = hello.interval;
        self.missing = hello.missing().collect();
        self.neighbours = hello.neighbours;
        self.versions = hello.versions(received.version);
        self.address = hello.address();
    }

    /// Takes what its hello says of the port that it was sent on.
    pub(super) fn note_port(&mut self, me: NodeId, on_port: Option<&OnPort>) {
        self.has_ports = on_port.is_some();
        let heard = on_port.into_iter().flat_map(|on_port| &on_port.heard);
        let mut ours = heard.filter(|heard| heard.node == me);
        self.hears_us = ours.next().map(|heard| f64::from(heard.share) / 255.0);
        if let Some(on_port) = on_port {
            self.exposure.note_told(on_port.frames);
        }
    }

    /// Returns whether it has several ports.
    pub(super) fn has_ports(&self) -> bool {
        self.has_ports
    }

    /// Returns the share of frames that arrive in both directions on this port. Where it does not
    /// tell what it hears, links are taken to deliver alike.
    pub(super) fn both_ways(&self) -> f64 {
        let here = self.told.unwrap_or(self.short.value()).max(LEAST_DELIVERY);
        here * self.hears_us.unwrap_or(here).max(LEAST_DELIVERY)
    }

    /// Returns the versions of the wire format that it understands, as its last hello tells.
    pub(super) fn versions(&self) -> Versions {
        self.versions
    }

    /// Returns the address of its radio.
    pub(super) fn address(&self) -> Option<RadioAddress> {
        self.address
    }

    /// Returns how many neighbours it has.
    pub(super) fn neighbours(&self) -> u16 {
        self.neighbours
    }

    /// Returns when it said its last hello.
    pub(super) fn said_hello(&self) -> Instant {
        self.hello.1
    }

    /// Returns whether it missed `node` when it said its last hello.
    pub(super) fn misses(&self, node: NodeId) -> bool {
        self.missing.contains(&node)
    }

    /// Counts a frame that arrived, after it was handled; `is_long` says of one of control whether
    /// it was long.
    pub(super) fn count_frame(&mut self, is_long: Option<bool>) {
        match is_long {
            Some(true) => self.long_heard = self.long_heard.saturating_add(1),
            Some(false) => self.short_heard = self.short_heard.saturating_add(1),
            None => {}
        }
    }

    /// Notes a frame that shows that the neighbour is there.
    pub(super) fn note_life(&mut self, now: Instant) {
        self.heard_at = now;
        self.asks = 0;
    }

    /// Returns the share of its long frames that arrives, as it was told last.
    pub(super) fn told(&self) -> Option<f64> {
        self.told
    }

    /// Tells the delivery anew if it deviates from what was told by more than [`CHANCE`]. Returns
    /// whether it does.
    pub(super) fn retell(&mut self, now: Instant, exponent: f64) -> bool {
        // Nothing was received or missed since the last look, so there is nothing new to tell.
        let counted = (self.hello.0, self.missed(now));
        if self.counted == counted {
            return false;
        }
        self.counted = counted;
        let Some((measured, frames)) = self.delivery(now, exponent) else { return false };

        // Chance alone moves a measured share by about its standard deviation, which is large while
        // few frames were counted. Only a change beyond that is worth a state.
        let variance = (measured * (1.0 - measured)).max(LEAST_VARIANCE) / (frames + 1.0);
        let is_news = |told: f64| (measured - told).abs() > CHANCE * libm::sqrt(variance);
        let is_news = self.told.is_none_or(is_news);
        if is_news {
            self.told = Some(measured);
        }
        is_news
    }

    /// Returns the share of its long frames that arrives, from both kinds, and how many were sent;
    /// `None` while they are too few. Those that it promised and that did not come are lost. Short
    /// frames let expect delivery to the power of `exponent` of long ones.
    fn delivery(&self, now: Instant, exponent: f64) -> Option<(f64, f64)> {
        let mut short = self.short;
        let mut long = self.long;
        if short.add(self.missed(now), 0, self.exposure.clear()) {
            long = Share::default();
        }
        let frames = short.weight() + long.weight();
        let heard = long.heard() + EXPECTATION * libm::pow(short.value(), exponent);
        (frames >= MIN_SENT).then(|| (heard / (long.weight() + EXPECTATION), frames))
    }

    /// Returns when its last frame arrived.
    pub(super) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Returns when it is late if no frame comes.
    pub(super) fn due_at(&self) -> Instant {
        self.heard_at + self.interval + self.interval / 8
    }

    /// Returns how many frames it promised and did not deliver since the last one.
    pub(super) fn missed(&self, now: Instant) -> u32 {
        // A frame may have to wait for the channel.
        let silence = now.since(self.heard_at).saturating_sub(self.interval / 8);
        let missed = silence.as_nanos() / self.interval.as_nanos().max(1);
        u32::try_from(missed).unwrap_or(u32::MAX)
    }

    /// Returns the chance that it keeps silent although it is there; 1 if it is not late. `busy` is
    /// how long the channel has been busy in all.
    pub(super) fn chance(&self, busy: Duration, now: Instant) -> f64 {
        // On a channel that is always busy nobody is heard. It must not take for ever to find out
        // that there is nobody any more.
        let listening = self.listening(busy, now).max(LEAST_LISTENING);
        power(1.0 - listening * self.hope(), self.missed(now))
    }

    /// Returns the share of its silence in which our radio could hear it.
    fn listening(&self, busy: Duration, now: Instant) -> f64 {
        let silence = now.since(self.heard_at).as_secs_f64();
        let deaf = busy.saturating_sub(self.busy_before).as_secs_f64();
        if silence > 0.0 { (1.0 - deaf / silence).max(0.0) } else { 1.0 }
    }

    /// Returns whether its silence is hardly chance. `others` is the chance that those who miss it
    /// as well do so although it is there; `is_lost_with_others` says that others lost it, or a
    /// node that it hears, since it fell silent.
    pub(super) fn is_gone(
        &self,
        others: f64,
        is_lost_with_others: bool,
        busy: Duration,
        now: Instant,
    ) -> bool {
        // A question and its answer must both arrive. The last question may yet be answered.
        let pending = u8::from(now < self.asked_at + ANSWER);
        let unanswered = u32::from(self.asks.saturating_sub(pending));
        let answer = self.listening(busy, now) * self.hope() * self.hope();
        let chance = self.chance(busy, now);
        let asked = chance * others * power(1.0 - answer, unanswered);
        let alone = match is_lost_with_others && self.hope() < WORTH_ASKING {
            true => GIVE_UP_WITH_OTHERS,
            false => GIVE_UP_ALONE,
        };

        chance < alone || (asked < GIVE_UP && unanswered >= LEAST_ASKS)
    }

    /// Returns whether it should be asked to answer now. A poor link that loses an answer says
    /// nothing; such a neighbour is given up when its silence alone is long enough.
    pub(super) fn is_questionable(&self, others: f64, busy: Duration, now: Instant) -> bool {
        let measured = self.short.weight() >= MIN_SENT && self.hope() >= WORTH_ASKING;
        let again = self.asks == 0 || now >= self.asked_at + ANSWER;
        measured && again && self.asks < MAX_ASKS && self.chance(busy, now) * others < ASK
    }

    /// Notes that it was asked.
    pub(super) fn note_ask(&mut self, now: Instant) {
        self.asks += 1;
        self.asked_at = now;
    }

    /// Returns when the answer to the last question is overdue.
    pub(super) fn answer_due(&self) -> Option<Instant> {
        (self.asks > 0 && self.asks < MAX_ASKS).then_some(self.asked_at + ANSWER)
    }

    /// Returns the delivery of short frames that silence is judged by.
    pub(super) fn hope(&self) -> f64 {
        let delivery = self.short.value().min(MOST_HOPE);
        if delivery < WORTH_ASKING { POOR_HOPE * delivery } else { delivery }
    }
}

fn power(base: f64, exponent: u32) -> f64 {
    libm::pow(base, f64::from(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Neighbour {
        fn note_frame(&mut self, is_long: Option<bool>, now: Instant) {
            self.count_frame(is_long);
            self.note_life(now);
        }
    }

    const QUIET: Duration = Duration::ZERO;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn hello(short_sent: u32, long_sent: u16) -> Hello {
        Hello { long_sent, ..Hello::of_test(short_sent as u16) }
    }

    fn received(counter: u32, ms: u64) -> Received {
        Received { version: 2, start: StartId(1), counter, at: at(ms) }
    }

    /// A neighbour of which every hello arrives, one a second, for a minute.
    fn good() -> Neighbour {
        let mut n = Neighbour::new(&hello(0, 0), received(1, 0));
        n.note_frame(Some(false), at(0));
        for i in 1..=60 {
            n.handle_hello(&hello(i, 0), received(i + 1, 1000 * u64::from(i)));
            n.note_frame(Some(false), at(1000 * u64::from(i)));
        }
        n
    }

    #[test]
    fn frames_of_both_lengths_are_counted_between_hellos() {
        let mut n = Neighbour::new(&hello(65_534, 65_530), received(10, 0));
        n.note_frame(Some(false), at(0));
        // 5 of 20 long frames arrive, and 2 of 4 short ones, with the hello. The count wraps.
        (0..5).for_each(|_| n.note_frame(Some(true), at(500)));
        n.note_frame(Some(false), at(600));
        n.handle_hello(&hello(2, 14), received(34, 1000));
        assert_eq!((n.short.weight(), n.short.heard()), (4.0, 2.0));
        assert_eq!((n.long.weight(), n.long.heard()), (20.0, 5.0));
        let (told, _) = n.delivery(at(1000), 1.0).unwrap();
        assert!((told - (5.0 + 8.0 * 0.5) / 28.0).abs() < 1e-9, "{told}");
    }

    #[test]
    fn frames_of_data_show_that_a_neighbour_is_there_and_say_nothing_about_delivery() {
        let mut n = good();
        n.note_frame(None, at(61_900));
        assert_eq!(n.missed(at(62_500)), 0);
        n.handle_hello(&hello(61, 0), received(900, 62_500));
        assert!((n.short.weight() - good().short.weight() * 256.0 / 257.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn long_frames_from_before_a_step_do_not_hide_it() {
        let mut n = good();
        n.long.add(60, 60, 1.0);
        assert!(n.delivery(at(60_000), 1.0).unwrap().0 > 0.95);
        // Only the last of eight more hellos arrives; or none has come when it is due.
        n.handle_hello(&hello(68, 60), received(69, 68_000));
        assert!(n.delivery(at(68_000), 1.0).unwrap().0 < 0.3);
        let mut silent = good();
        silent.long.add(60, 60, 1.0);
        assert!(silent.delivery(at(69_000), 1.0).unwrap().0 < 0.3);
    }

    #[test]
    fn delivery_is_told_once_four_frames_were_sent() {
        let mut n = Neighbour::new(&hello(0, 0), received(1, 0));
        n.note_frame(Some(false), at(0));
        assert_eq!(n.delivery(at(0), 1.0), None);
        n.handle_hello(&hello(4, 0), received(5, 1000));
        assert!(n.delivery(at(1000), 1.0).unwrap().0 < 0.4);
    }

    #[test]
    fn a_good_neighbour_is_asked_after_a_hello_is_missed_and_given_up_soon_after() {
        let mut n = good();
        assert_eq!(n.missed(at(61_100)), 0);
        assert!(!n.is_questionable(1.0, QUIET, at(61_100)));
        assert!(n.is_questionable(1.0, QUIET, at(61_200)));
        for ask in 0..2 {
            let now = at(61_200 + 80 * ask);
            assert!(!n.is_gone(1.0, false, QUIET, now), "after {ask} questions");
            n.note_ask(now);
        }
        assert!(n.is_gone(1.0, false, QUIET, at(61_400)));
        // Any frame shows that it is there.
        n.note_frame(Some(true), at(61_410));
        assert!(
            !n.is_gone(1.0, false, QUIET, at(61_420)) && !n.is_questionable(1.0, QUIET, at(61_420))
        );
    }

    #[test]
    fn a_poor_neighbour_may_keep_silent_for_longer() {
        let mut n = Neighbour::new(&hello(0, 0), received(1, 0));
        for i in 1..=60 {
            let now = 4000 * u64::from(i);
            n.handle_hello(&hello(4 * i, 0), received(4 * i + 1, now));
            n.note_frame(Some(false), at(now));
        }
        let last = 240_000;
        assert!(!n.is_questionable(1.0, QUIET, at(last + 30_000)));
        assert!(!n.is_gone(1.0, false, QUIET, at(last + 20_000)));
        assert!(n.is_gone(1.0, false, QUIET, at(last + 120_000)));
    }

    #[test]
    fn a_poor_neighbour_is_given_up_sooner_if_others_have_lost_it_too() {
        let mut n = Neighbour::new(&hello(0, 0), received(1, 0));
        for i in 1..=60 {
            // One of three hellos arrives.
            let now = 3000 * u64::from(i);
            n.handle_hello(&hello(3 * i, 0), received(3 * i + 1, now));
            n.note_frame(Some(false), at(now));
        }
        let silent_for = |s: u64| at(180_000 + 1000 * s + 200);
        assert!(!n.is_gone(1.0, false, QUIET, silent_for(15)));
        assert!(!n.is_gone(1.0, true, QUIET, silent_for(3)));
        assert!(n.is_gone(1.0, true, QUIET, silent_for(9)));
        // A good one is asked instead.
        assert!(!good().is_gone(1.0, true, QUIET, at(61_200)));
    }

    #[test]
    fn nonsense_in_a_hello_does_no_harm() {
        let mut n = good();
        let nonsense = Hello { interval: Duration::ZERO, long_sent: u16::MAX, ..hello(9, 0) };
        n.handle_hello(&nonsense, received(u32::MAX, 61_000));
        n.handle_hello(&nonsense, received(3, 61_000));
        assert!((0.0..=1.0).contains(&n.delivery(at(62_000), 16.0).unwrap().0));
        assert!(n.missed(at(u64::from(u32::MAX))) > 0);
    }
}
