//! Checks of generations on their way: this node's questions, those of others, and the answers.
//!
//! Nothing is asked or sent while all packets are true. A node that finds a generation false asks
//! the source for a check of the packets that it has; question and answer go hop by hop by unicast.
//! A lost question is asked again.
//!
//! ```text
//!   verifier            relay             source
//!      |-- request ------>|-- request ------>|   nonce, drawn after the packets were taken
//!      |                  |                  |
//!      |<------- check ---|<------- check ---|   sums of the generation by that nonce
//! ```

use crate::frame::{Check, CheckRequest};
use ncmesh_engine::TxResult;
use ncmesh_engine::file::check::{GenerationId, Nonce};
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::toolkit::backoff::Backoff;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_engine::toolkit::hop::passing::Passing;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// Most generations that a node asks about at a time.
const MAX_ASKED: usize = 64;
/// Times that a question is sent, and the pauses between them. Over two hops of a busy mesh a
/// question and its answer take 5 to 50 ms. An answer that comes twice is dropped.
const ATTEMPTS: u32 = 6;
const PAUSES: Backoff =
    Backoff { first: Duration::from_millis(150), longest: Duration::from_secs(3) };
/// How often a source answers, to one node and to all. A check takes about 400 bytes: 13 kB/s for
/// all, which is 5 percent of a channel of 2 Mbit/s while somebody asks without need.
const TO_ONE: Rate = Rate { every: Duration::from_millis(50), burst: 32 };
const TO_ALL: Rate = Rate { every: Duration::from_millis(30), burst: 64 };
/// Checks of a transfer that contradicted its announcement after which no more are asked for: a
/// member writes them in the name of a source without an identity. And the most such transfers.
const MOST_MISLEADING: u32 = 3;
const MAX_MISLEADING: usize = 64;
/// Most nodes whose questions a source counts apart.
const MAX_VERIFIERS: usize = 64;

/// Bound on events: one each so often, and a burst.
#[derive(Clone, Copy, Debug)]
struct Rate {
    every: Duration,
    burst: u32,
}

/// Events counted against a [`Rate`].
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// When all events so far would be over, at the rate.
    paid_at: Instant,
}

impl Counted {
    fn is_within(self, rate: Rate, now: Instant) -> bool {
        self.paid_at <= now + rate.every * (rate.burst - 1)
    }

    fn add(&mut self, rate: Rate, now: Instant) {
        self.paid_at = self.paid_at.max(now) + rate.every;
    }
}

/// Question of this node.
#[derive(Clone, Copy, Debug)]
struct Asked {
    nonce: Nonce,
    attempts: u32,
    /// When it is asked again.
    again_at: Instant,
}

/// Frame that is on its way to a source or to a verifier.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Request(CheckRequest),
    Check(Check),
}

/// Name of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CheckKey {
    of: GenerationId,
    verifier: NodeId,
    is_answer: bool,
}

impl Message {
    fn key(&self) -> CheckKey {
        match self {
            Self::Request(CheckRequest { of, verifier, .. }) => {
                CheckKey { of: *of, verifier: *verifier, is_answer: false }
            }
            Self::Check(Check { of, verifier, .. }) => {
                CheckKey { of: *of, verifier: *verifier, is_answer: true }
            }
        }
    }

    /// Returns the node that it is for.
    pub(crate) fn to(&self) -> NodeId {
        match self {
            Self::Request(request) => request.of.flow.source,
            Self::Check(check) => check.verifier,
        }
    }
}

/// Checks on their way.
#[derive(Debug, Default)]
pub struct Checks {
    asked: BTreeMap<GenerationId, Asked>,
    /// Checks of transfers that were not the source's.
    misleading: BTreeMap<FlowId, u32>,
    passing: Passing<CheckKey, Message>,
    /// Answers of this node as a source, to each node and to all.
    answered: BTreeMap<NodeId, Counted>,
    answered_all: Counted,
}

impl Checks {
    // ---- this node's questions

    /// Returns whether a check of a generation may be asked for: no answer is waited for, and there
    /// is room for the question.
    #[must_use]
    pub fn may_ask(&self, of: GenerationId) -> bool {
        let misleading = self.misleading.get(&of.flow).copied().unwrap_or_default();
        misleading < MOST_MISLEADING && self.asked.len() < MAX_ASKED && !self.is_asked(of)
    }

    /// Asks the source for a check of a generation, if it may be asked for. Returns whether there
    /// was room to send the question.
    pub fn ask(&mut self, me: NodeId, of: GenerationId, nonce: Nonce, now: Instant) -> bool {
        if !self.may_ask(of) {
            return false;
        }
        let again_at = now + PAUSES.pause(0);
        self.asked.insert(of, Asked { nonce, attempts: 1, again_at });
        self.pass_on(request(me, of, nonce), now)
    }

    fn is_asked(&self, of: GenerationId) -> bool {
        self.asked.contains_key(&of)
    }

    /// Notes that a check of a transfer contradicted its announcement.
    pub fn note_misled(&mut self, flow: FlowId) {
        make_room(&mut self.misleading, &flow, MAX_MISLEADING, |count| *count);
        *self.misleading.entry(flow).or_default() += 1;
    }

    /// Drops the question about a generation: it is answered, or nobody needs the answer any more.
    pub fn drop_question(&mut self, of: GenerationId) {
        self.asked.remove(&of);
    }

    /// Takes an answer. Returns whether it is one to a question of this node.
    pub(crate) fn take_answer(&mut self, check: &Check) -> bool {
        let is_answered = self.asked.get(&check.of).is_some_and(|asked| asked.nonce == check.nonce);
        if is_answered {
            self.asked.remove(&check.of);
        }
        is_answered
    }

    /// Asks again what was not answered, and gives up what never is.
    pub(crate) fn handle_timeout(&mut self, me: NodeId, now: Instant) {
        self.asked.retain(|_, asked| asked.again_at > now || asked.attempts < ATTEMPTS);
        let mut due = Vec::new();
        for (of, asked) in self.asked.iter_mut().filter(|(_, asked)| asked.again_at <= now) {
            asked.again_at = now + PAUSES.pause(asked.attempts);
            asked.attempts += 1;
            due.push(request(me, *of, asked.nonce));
        }
        for message in due {
            self.pass_on(message, now);
        }
    }

    // ---- the source

    /// Returns whether this node, as a source, answers a question of a node now. If so, it counts.
    pub(crate) fn may_answer(&mut self, verifier: NodeId, now: Instant) -> bool {
        let to_one = self.answered.get(&verifier).copied().unwrap_or_default();
        let may = to_one.is_within(TO_ONE, now) && self.answered_all.is_within(TO_ALL, now);
        if may {
            make_room(&mut self.answered, &verifier, MAX_VERIFIERS, |counted| counted.paid_at);
            self.answered.entry(verifier).or_default().add(TO_ONE, now);
            self.answered_all.add(TO_ALL, now);
        }
        may
    }

    // ---- on the way

    /// Takes a message to send it on, in place of an earlier one of the same name. Returns whether
    /// there was room.
    pub(crate) fn pass_on(&mut self, message: Message, now: Instant) -> bool {
        self.passing.admit(message.key(), message, now)
    }

    /// Returns the message to send next, if one is due.
    pub(crate) fn due(&self, now: Instant) -> Option<(CheckKey, &Message)> {
        self.passing.due(now)
    }

    /// Notes that a message was handed to the MAC.
    pub(crate) fn note_sent(&mut self, key: CheckKey, now: Instant) {
        self.passing.note_sent(key, now);
    }

    /// Handles the MAC's report on a message.
    pub(crate) fn handle_tx_result(&mut self, key: CheckKey, result: TxResult, now: Instant) {
        self.passing.handle_tx_result(key, result, now);
    }

    /// Returns the first time later than `after` at which something falls due.
    pub(crate) fn poll_timeout(&self, after: Instant) -> Option<Instant> {
        let again = self.asked.values().map(|asked| asked.again_at);
        again.chain(self.passing.poll_timeout(after)).filter(|at| *at > after).min()
    }
}

fn request(me: NodeId, of: GenerationId, nonce: Nonce) -> Message {
    // The next hop is known when it is sent.
    let next_hop = of.flow.source;
    Message::Request(CheckRequest { next_hop, verifier: me, of, nonce })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: NodeId = NodeId(2);
    const FLOW: FlowId = FlowId { source: NodeId(1), serial: 1 };

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn of(generation: u32) -> GenerationId {
        GenerationId { flow: FLOW, generation }
    }

    fn check(generation: u32, nonce: u8) -> Check {
        let nonce = Nonce([nonce; 16]);
        Check { next_hop: ME, verifier: ME, of: of(generation), nonce, sums: vec![1; 32] }
    }

    /// Sends what is due. Returns how many frames that were.
    fn send(checks: &mut Checks, now: Instant) -> usize {
        let mut sent = 0;
        while let Some((key, _)) = checks.due(now) {
            checks.note_sent(key, now);
            checks.handle_tx_result(key, TxResult::Acked, now);
            sent += 1;
        }
        sent
    }

    #[test]
    fn a_question_is_repeated_until_it_is_answered_or_was_asked_often() {
        let mut checks = Checks::default();
        assert!(checks.ask(ME, of(3), Nonce([1; 16]), at(0)));
        assert_eq!(send(&mut checks, at(0)), 1);
        checks.handle_timeout(ME, at(150));
        assert_eq!(send(&mut checks, at(150)), 1);
        assert!(!checks.take_answer(&check(3, 2)), "of another question");
        assert!(!checks.take_answer(&check(4, 1)), "of another generation");
        assert!(checks.take_answer(&check(3, 1)) && !checks.take_answer(&check(3, 1)));
        assert!(!checks.is_asked(of(3)));

        checks.ask(ME, of(3), Nonce([1; 16]), at(1000));
        let mut now = at(1000);
        let mut sent = send(&mut checks, now) as u32;
        while let Some(next) = checks.poll_timeout(now) {
            now = next;
            checks.handle_timeout(ME, now);
            sent += send(&mut checks, now) as u32;
        }
        assert_eq!((sent, checks.is_asked(of(3))), (ATTEMPTS, false));
    }

    #[test]
    fn a_transfer_whose_checks_mislead_is_asked_about_no_more() {
        let mut checks = Checks::default();
        (0..MOST_MISLEADING).for_each(|_| {
            assert!(checks.may_ask(of(1)));
            checks.note_misled(FLOW);
        });
        assert!(!checks.may_ask(of(1)) && !checks.ask(ME, of(1), Nonce([1; 16]), at(0)));
        assert!(checks.may_ask(GenerationId { flow: FlowId { serial: 2, ..FLOW }, generation: 1 }));
    }

    #[test]
    fn questions_take_bounded_memory() {
        let mut checks = Checks::default();
        for generation in 0..1000 {
            let has_room = checks.ask(ME, of(generation), Nonce([1; 16]), at(0));
            assert_eq!(has_room, (generation as usize) < MAX_ASKED);
            checks.note_misled(FlowId { serial: generation, ..FLOW });
        }
        assert_eq!(checks.misleading.len(), MAX_MISLEADING);
        let mut kept = 0;
        for generation in 0..1000 {
            kept += usize::from(checks.pass_on(Message::Check(check(generation, 1)), at(0)));
        }
        assert!(kept < 256, "{kept}");
    }

    #[test]
    fn a_node_that_asks_all_the_time_is_answered_a_bounded_number_of_times() {
        let mut checks = Checks::default();
        let mut answered = |verifier: u16, times: std::ops::Range<u64>| {
            times.filter(|ms| checks.may_answer(NodeId(verifier), at(*ms))).count() as u64
        };
        // A burst at once, and then one each 50 ms.
        let most = u64::from(TO_ONE.burst) + 9_999 / 50;
        assert_eq!(answered(7, 0..10_000), most);
        assert!(answered(8, 10_000..10_001) == 1, "others still get an answer");

        // Invented nodes get no more than all together may.
        let mut checks = Checks::default();
        let asked = (0..20_000_u64).map(|i| (NodeId(i as u16), at(i / 2)));
        let all = asked.filter(|(node, now)| checks.may_answer(*node, *now)).count() as u64;
        assert!(all <= u64::from(TO_ALL.burst) + 10_000 / 30 + 1, "{all}");
        assert!(checks.answered.len() <= MAX_VERIFIERS);
    }
}
