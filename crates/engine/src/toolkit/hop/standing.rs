//! Standing of a next hop: whether it answers, and so what it gets.

use crate::time::{Duration, Instant};
use crate::toolkit::sequence::is_older;

/// The number of a next hop's last frame counts for so long. No radio holds a frame back for
/// longer, and a forged number does harm no longer.
const NUMBER_COUNTS: Duration = Duration::from_secs(1);

/// Where a next hop stands, from best to worst. The diagram is in [the module above](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It was not heard yet, and nothing speaks against it.
    New,
    /// It was heard since it was asked last.
    Answering,
    /// A question is on its way, or the answer.
    Asked,
    /// Answers are missing: what was sent collides, perhaps. It is asked by short frames.
    Silent,
    /// Nothing shows that packets reach it. It gets questions alone, or few packets at a time.
    OnTrial,
    /// Another next hop takes its place, or it is forgotten.
    Gone,
}

/// When a next hop comes to another state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StandingPolicy {
    /// Answers that should have come, and did not, until it is silent.
    pub silent: f64,
    /// The same until it is on trial.
    pub on_trial: f64,
    /// Packets that should have reached it, and of which it does not tell, until it is on trial.
    pub unheard: f64,
    /// Packets that should have reached it, and brought it nothing by its own word, until it is on
    /// trial.
    pub in_vain: f64,
    /// Least chance that a packet counts with. What is known of a link is what the next hop says,
    /// and one that says it hears nothing must not hold the channel.
    pub least_chance: f64,
    /// Time without a frame of it until it is gone if it is on trial. `None`: as in other states.
    pub given_up: Option<Duration>,
    /// The same in any state. `None`: never.
    pub forgotten: Option<Duration>,
    /// The same of one that was never heard, if all of its frames arrive. Longer if fewer do.
    pub never_heard: Option<Duration>,
}

/// A question that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Question {
    /// When it was asked last.
    at: Instant,
    /// Whether it was repeated: then nothing tells which one an answer is for (Karn and Partridge,
    /// SIGCOMM 1987).
    is_repeated: bool,
}

/// Standing of a next hop, by its frames and by their absence.
///
/// All counts are of what *should* have come by the deliveries of the link: one that delivers half
/// needs twice the packets of a good one to show that nothing comes of it.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Number of its last frame; `None` if it was not heard.
    number: Option<u16>,
    heard_at: Instant,
    gained_at: Instant,
    question: Option<Question>,
    /// Answers that should have come since it was heard.
    missed: f64,
    /// Packets that should have reached it, and of which it does not tell yet.
    unheard: f64,
    /// Packets of which it told that they brought it nothing, since it gained last.
    in_vain: f64,
}

impl Standing {
    /// Returns the standing of a next hop that was not heard yet.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            number: None,
            heard_at: now,
            gained_at: now,
            question: None,
            missed: 0.0,
            unheard: 0.0,
            in_vain: 0.0,
        }
    }

    // ---- what it says

    /// Returns whether a frame with this number was sent before one that was heard.
    #[must_use]
    pub fn is_stale(&self, number: u16, now: Instant) -> bool {
        let is_recent = now.since(self.heard_at) < NUMBER_COUNTS;
        is_recent && self.number.is_some_and(|last| is_older(number, last))
    }

    /// Notes a frame of it, which does not tell yet of `uncovered` packets that should have reached
    /// it. Returns how long it took to answer, if it was asked once.
    pub fn hear(&mut self, number: u16, uncovered: f64, now: Instant) -> Option<Duration> {
        self.number = Some(number);
        let question = self.question;
        self.note_present(uncovered, now);
        question.filter(|question| !question.is_repeated).map(|question| now.since(question.at))
    }

    /// Notes that it is there, as the acknowledgment of its MAC shows.
    pub fn note_present(&mut self, uncovered: f64, now: Instant) {
        self.heard_at = now;
        self.question = None;
        self.missed = 0.0;
        // Only its frames show that packets bring it nothing.
        self.in_vain += (self.unheard - uncovered).max(0.0);
        self.unheard = uncovered.min(self.unheard);
    }

    /// Notes that it has more than before.
    pub fn note_gain(&mut self, now: Instant) {
        self.gained_at = now;
        self.in_vain = 0.0;
    }

    // ---- what is sent to it

    /// Notes a packet that reaches it with this chance.
    pub fn note_sent(&mut self, chance: f64, policy: &StandingPolicy) {
        self.unheard += chance.max(policy.least_chance);
    }

    /// Notes that a frame asks it, which repeats no question: an answer to the one before tells of
    /// this frame, too. If that one was repeated, the time of its answer is counted from now on: a
    /// node that repeats too soon would never learn how long answers take.
    pub fn note_asked(&mut self, now: Instant) {
        let awaited = self.question.filter(|question| !question.is_repeated);
        self.question = Some(awaited.unwrap_or(Question { at: now, is_repeated: false }));
    }

    /// Notes that no answer came, which had this chance. If it was asked, it is asked again now.
    pub fn note_missed(&mut self, chance: f64, now: Instant) {
        self.missed += chance;
        self.question = self.question.map(|_| Question { at: now, is_repeated: true });
    }

    // ---- what follows

    /// Returns its state. `back` is the share of its frames that arrive here.
    #[must_use]
    pub fn state(&self, back: f64, policy: &StandingPolicy, now: Instant) -> State {
        // Three signs that packets may be in vain: no answers, no frames at all, and frames that
        // show no gain.
        let is_on_trial = self.misses_answers(policy)
            || self.unheard >= policy.unheard
            || self.is_in_vain(policy);

        // A neighbour whose frames seldom arrive here needs more time until it is heard first.
        let forgotten = match self.number {
            Some(_) => policy.forgotten,
            None => policy.never_heard.map(|time| time.mul_f64(1.0 / back)),
        };
        let given_up = policy.given_up.filter(|_| is_on_trial);

        // The worst state comes first: each line holds only if none above it does.
        let silence = now.since(self.heard_at);
        match self.number {
            _ if [forgotten, given_up].into_iter().flatten().any(|time| silence >= time) => {
                State::Gone
            }
            _ if is_on_trial => State::OnTrial,
            _ if self.missed >= policy.silent => State::Silent,
            _ if self.question.is_some() => State::Asked,
            Some(_) => State::Answering,
            None => State::New,
        }
    }

    /// Returns whether it is on trial because answers are missing.
    #[must_use]
    pub fn misses_answers(&self, policy: &StandingPolicy) -> bool {
        self.missed >= policy.on_trial
    }

    /// Returns whether it is on trial because packets bring it nothing.
    #[must_use]
    pub fn is_in_vain(&self, policy: &StandingPolicy) -> bool {
        self.in_vain >= policy.in_vain
    }

    /// Returns whether it was ever heard.
    #[must_use]
    pub fn was_heard(&self) -> bool {
        self.number.is_some()
    }

    /// Returns when it was heard last, or became a next hop.
    #[must_use]
    pub fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Returns when it was last heard to have more, or became a next hop.
    #[must_use]
    pub fn gained_at(&self) -> Instant {
        self.gained_at
    }

    /// Returns when it was asked, again if an answer was missed, if it was not heard since.
    #[must_use]
    pub fn asked_at(&self) -> Option<Instant> {
        self.question.map(|question| question.at)
    }

    /// Returns how many answers should have come since it was heard.
    #[must_use]
    pub fn missed(&self) -> f64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: StandingPolicy = StandingPolicy {
        silent: 1.5,
        on_trial: 4.0,
        unheard: 32.0,
        in_vain: 64.0,
        least_chance: 0.25,
        given_up: Some(Duration::from_secs(2)),
        forgotten: Some(Duration::from_secs(20)),
        never_heard: Some(Duration::from_secs(3)),
    };

    fn at(ms: u64) -> Instant {
        Instant::default() + Duration::from_millis(ms)
    }

    fn state(standing: &Standing, ms: u64) -> State {
        standing.state(0.5, &POLICY, at(ms))
    }

    fn heard() -> Standing {
        let mut standing = Standing::new(at(0));
        standing.hear(1, 0.0, at(0));
        standing
    }

    #[test]
    fn a_next_hop_that_does_not_answer_goes_from_state_to_state() {
        let mut standing = Standing::new(at(0));
        assert_eq!(state(&standing, 0), State::New);
        standing.hear(1, 0.0, at(1));
        assert_eq!(state(&standing, 1), State::Answering);
        standing.note_asked(at(2));
        assert_eq!(state(&standing, 2), State::Asked);
        // Half of the answers should come.
        let states = (0..8).map(|_| {
            standing.note_missed(0.5, at(3));
            state(&standing, 3)
        });
        let expected = [&[State::Asked; 2][..], &[State::Silent; 5], &[State::OnTrial]].concat();
        assert_eq!(states.collect::<Vec<_>>(), expected);
        assert_eq!(state(&standing, 2000), State::OnTrial);
        assert_eq!(state(&standing, 2001), State::Gone);
        standing.hear(2, 0.0, at(2001));
        assert_eq!(state(&standing, 2001), State::Answering);
    }

    #[test]
    fn one_without_traffic_is_gone_late_and_one_that_was_never_heard_by_its_link() {
        assert_eq!(state(&heard(), 19_999), State::Answering);
        assert_eq!(state(&heard(), 20_000), State::Gone);
        assert_eq!(state(&Standing::new(at(0)), 5_999), State::New);
        assert_eq!(state(&Standing::new(at(0)), 6_000), State::Gone);
        let patient = StandingPolicy { forgotten: None, ..POLICY };
        assert_eq!(heard().state(0.5, &patient, at(u64::MAX / 2_000_000)), State::Answering);
    }

    #[test]
    fn packets_without_word_of_it_and_frames_without_gain_put_it_on_trial() {
        let mut standing = heard();
        (0..63).for_each(|_| standing.note_sent(0.5, &POLICY));
        assert_eq!(state(&standing, 0), State::Answering);
        standing.note_sent(0.5, &POLICY);
        assert_eq!(state(&standing, 0), State::OnTrial);
        // A frame that it wrote before they came tells of half of them.
        standing.hear(2, 16.0, at(0));
        assert_eq!(state(&standing, 0), State::Answering);
        (0..32).for_each(|_| standing.note_sent(0.5, &POLICY));
        assert_eq!(state(&standing, 0), State::OnTrial);
        // It tells of all, and has nothing more: 64 are in vain.
        standing.hear(3, 0.0, at(0));
        assert_eq!(state(&standing, 0), State::Answering);
        (0..32).for_each(|_| standing.note_sent(0.5, &POLICY));
        standing.hear(4, 0.0, at(0));
        assert!(standing.is_in_vain(&POLICY) && state(&standing, 0) == State::OnTrial);
        standing.note_gain(at(1));
        assert_eq!((state(&standing, 1), standing.gained_at()), (State::Answering, at(1)));
    }

    #[test]
    fn the_time_of_an_answer_is_known_if_one_question_was_asked() {
        let mut standing = heard();
        assert_eq!(standing.hear(2, 0.0, at(1)), None);
        standing.note_asked(at(10));
        standing.note_asked(at(12));
        assert_eq!(standing.hear(3, 0.0, at(15)), Some(Duration::from_millis(5)));
        standing.note_asked(at(20));
        standing.note_missed(0.5, at(30));
        assert_eq!(standing.asked_at(), Some(at(30)));
        assert_eq!(standing.hear(4, 0.0, at(31)), None, "which of them was answered?");
        standing.note_asked(at(40));
        standing.note_missed(0.5, at(50));
        standing.note_asked(at(52));
        assert_eq!(standing.hear(5, 0.0, at(55)), Some(Duration::from_millis(3)));
    }

    #[test]
    fn an_older_frame_is_stale_for_a_second() {
        let mut standing = heard();
        standing.hear(100, 0.0, at(10));
        assert!(standing.is_stale(99, at(1_009)) && !standing.is_stale(100, at(1_009)));
        assert!(!standing.is_stale(99, at(1_010)), "it may have been forged");
    }

    proptest! {
        /// Whatever it says of its link, the packets that it gets without gaining are bounded.
        #[test]
        fn a_next_hop_that_never_gains_gets_few_packets(
            chances in prop::collection::vec(-1.0..1.0f64, 400),
        ) {
            let mut standing = heard();
            for (number, chance) in (2..).zip(chances) {
                standing.note_sent(chance, &POLICY);
                standing.hear(number, 0.0, at(0));
            }
            prop_assert!(standing.is_in_vain(&POLICY));
        }
    }
}
