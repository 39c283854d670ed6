//! Questions and answers over links that lose much: copies, and what tells them apart.

use super::*;
use crate::frame::UNKNOWN;
use crate::owed::{Latest, Owed};

impl Bench {
    /// A node of the cross whose links all lose half, and whose MAC does not know who hears what.
    fn poor(me: u16) -> Self {
        let mut bench = Self::new(me, Core::new(&CoreConfig::default()));
        bench.topology = cross(0.5, [0.5, 0.5]);
        let report = TxReport { result: TxResult::Sent, airtime: Duration::ZERO, heard_by: None };
        bench.with(|engine, cx| engine.handle_tx_report(cx, report));
        bench
    }

    fn told(&mut self, sender: u16, kind: u8, write: impl Fn(&mut Vec<u8>)) {
        let mut body = Vec::new();
        write(&mut body);
        let (sender, service) = (NodeId(sender), self.engine.id);
        let frame = Frame { sender, epoch: 1, service, kind, body: &body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    /// Node 3 asks.
    fn asked(&mut self, number: u16, again: bool) {
        let count = Count { serial: 1, number, again, head: head(1, 4), next: NodeId(4) };
        self.told(3, COUNT, |body| count.write(body));
    }

    /// The next answer's number, and to whom it goes.
    fn answers(&mut self) -> Option<(u16, Option<NodeId>)> {
        let mut body = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut body))?;
        assert_eq!(filled.kind, FEEDBACK);
        Some((Feedback::parse(&body).unwrap().number, filled.to))
    }
}

/// Six copies: 1 - 0.5^6 is more than 0.98.
#[test]
fn a_question_is_answered_once_in_copies_and_by_unicast_if_that_was_in_vain() {
    let mut bench = Bench::poor(4);
    for _ in 0..3 {
        bench.asked(7, false);
    }
    let mut answers = Vec::new();
    while let Some(answer) = bench.answers() {
        answers.push(answer);
        bench.asked(7, false);
        bench.asked(6, false);
    }
    assert_eq!(answers, [(1, None); 6], "copies of a question, or one before it, change nothing");
    bench.asked(8, true);
    assert_eq!((bench.answers(), bench.answers()), (Some((2, Some(NodeId(3)))), None));
}

#[test]
fn copies_of_an_answer_end_when_it_is_heeded() {
    let mut bench = Bench::poor(4);
    bench.asked(7, false);
    assert_eq!(bench.answers(), Some((1, None)));
    let first = part(head(1, 4), 4, [1, 1, 0, 0]);
    bench.hear(3, &Data { serial: 2, first, second: None, payload: &[1] });
    assert_eq!(bench.answers(), None, "what it asked for comes");
    for place in [0, 1] {
        let first = part(head(1, 4), 4, unit(4, place).try_into().unwrap());
        let payload = symbol(1, place);
        bench.hear(3, &Data { serial: 3, first, second: None, payload: &payload });
    }
    assert_eq!(bench.answers(), Some((2, None)), "it has it all");
    let first = part(head(1, 4), 4, [1, 1, 0, 0]);
    bench.hear(3, &Data { serial: 4, first, second: None, payload: &[1] });
    assert_eq!(bench.answers(), Some((2, None)), "which is being said");
    let next = Feedback { wish: Wish::Next, ..feedback(1) };
    bench.told(3, FEEDBACK, |body| next.write(body));
    assert_eq!(bench.answers(), None, "it is passed on");
}

/// Node 4's answer of this number: one packet is lacking.
fn feedback(number: u16) -> Feedback {
    Feedback {
        start: start(1, 4),
        to: NodeId(1),
        generation: 0,
        number,
        wish: Wish::More,
        alone: 1,
        combined: UNKNOWN,
        progress: 0,
        wanted: Vec::new(),
        heard: Vec::new(),
    }
}

#[test]
fn copies_of_an_answer_are_heeded_once() {
    let mut bench = Bench::poor(1);
    bench.with(|engine, cx| engine.handle_packet(cx, NodeId(4), &[1; 9])).unwrap();
    bench.now = at(1100);
    bench.with(Engine::handle_timeout);
    let start = bench.engine.flows[&(NodeId(1), NodeId(4))].start;
    let mut sent = |number| {
        let answer = Feedback { start, ..feedback(number) };
        bench.told(3, FEEDBACK, |body| answer.write(body));
        let kinds: Vec<u8> = (0..20).map_while(|_| bench.fill()).map(|(kind, _)| kind).collect();
        kinds.iter().filter(|kind| **kind == DATA).count()
    };
    // 1.06 / 0.5 transmissions of the packet, and as many for each request.
    assert_eq!([sent(5), sent(5), sent(4), sent(6), sent(6)], [2, 0, 0, 2, 0]);
}

#[test]
fn a_question_in_copies_is_one_and_its_repetition_has_a_number_of_its_own() {
    let rules = CoreConfig::default().rules();
    let mut sending = Sending::new(at(0));
    assert_eq!([(); 3].map(|()| sending.polled(Some(3), 4, at(1))), [4; 3]);
    assert!(sending.is_asked_again());
    assert_eq!(sending.polls_at(true, &rules), Some(at(1 + 2 * 50)));
    assert_eq!(sending.polled(Some(3), 9, at(200)), 9);
    assert_eq!(sending.polls_at(true, &rules), Some(at(1)), "at once, until there is an answer");
    sending.answer(1, at(210));
    assert!(!sending.is_asked_again());
    assert_eq!(sending.polled(Some(3), 12, at(300)), 12);
}

proptest! {
    /// Whatever is lost, doubled or late: each number is news at most once, and only if it is ahead of those before.
    #[test]
    fn what_is_heard_is_news_once(first: u16, steps in prop::collection::vec(-40_i32..40, 1..60)) {
        let mut latest = Latest::default();
        let mut highest = None;
        for step in steps {
            let number = first.wrapping_add_signed(step as i16);
            let is_news = highest.is_none_or(|highest| step > highest);
            prop_assert_eq!(latest.is_news(NodeId(3), 1, number), is_news);
            highest = highest.max(Some(step));
        }
        prop_assert!(latest.is_news(NodeId(3), 2, first), "another start counts anew");
        prop_assert!(latest.is_news(NodeId(4), 2, first), "so does another node");
    }
}

#[test]
fn answers_owed_are_bounded_and_the_newest_of_each_stands() {
    let mut owed = Owed::default();
    for generation in 0..64 {
        assert!(owed.owe((start(1, 4), generation), 1, false));
        assert!(owed.owe((start(1, 4), generation), 2, false));
    }
    assert!(!owed.owe((start(1, 4), 64), 3, false));
    let left: Vec<_> = core::iter::from_fn(|| owed.next()).collect();
    assert_eq!((left.len(), left[0].name.1, left[0].number), (64, 1, 2));
    // What the MAC gives up is sent again, unless there is something newer to say.
    owed.sends(left[0], None);
    owed.reported(true, 1);
    let again = owed.next().unwrap();
    assert_eq!((again.number, again.sent), (2, 1));
    owed.sends(again, None);
    owed.owe(again.name, 4, false);
    owed.reported(true, 9);
    assert_eq!((owed.next().map(|answer| answer.number), owed.next()), (Some(4), None));
}
