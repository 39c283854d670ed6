//! Tests of the decisions about files, with answers of a scripted disk.

use super::*;
use ncmesh_engine::file::{Geometry, SendFailure};
use ncmesh_wire::NodeId;
use proptest::prelude::*;

const FLOW: FlowId = FlowId { source: NodeId(2), serial: 7 };

const AT: Instant = Instant::from_nanos(0);

fn refusal<T>(why: Refusal) -> Result<T, Obstacle> {
    Err(Obstacle::Refused(why))
}

fn later<T>() -> Result<T, Obstacle> {
    Err(Obstacle::Temporary("too many open files".into()))
}

fn manifest() -> Box<Manifest> {
    let geometry = Geometry::new(100_000, 32, 1400).unwrap();
    let name = "a.bin".into();
    Box::new(Manifest { flow: FLOW, name, geometry, root: [1; 32], hash: [2; 32] })
}

fn some() -> GenerationSet {
    let mut have = GenerationSet::none(manifest().geometry.generations());
    have.insert(1);
    have
}

fn all() -> GenerationSet {
    GenerationSet::all(manifest().geometry.generations())
}

fn files() -> Files<&'static str> {
    Files::new(Some("inbox"), BTreeMap::new())
}

fn handle(files: &mut Files<&'static str>, event: Event) -> Vec<Action<&'static str>> {
    assert_eq!(files.handle_event(event, AT, |_| None), None);
    actions(files)
}

fn actions(files: &mut Files<&'static str>) -> Vec<Action<&'static str>> {
    core::iter::from_fn(|| files.poll_action()).collect()
}

fn announced(files: &mut Files<&'static str>, attempt: Attempt, place: &'static str) {
    let prepare = Action::Prepare { attempt, place, manifest: manifest() };
    assert_eq!(handle(files, Event::Announced(manifest())), [prepare]);
}

fn verify(attempt: Attempt) -> Action<&'static str> {
    Action::Verify { attempt, place: "inbox", manifest: manifest() }
}

/// A file of which everything has come.
fn assembled() -> Files<&'static str> {
    let mut files = files();
    announced(&mut files, 1, "inbox");
    assert!(files.handle_prepared(FLOW, 1, Ok(Prepared::Receiving(some())), AT));
    assert_eq!(actions(&mut files), [Action::Accept(FLOW, some())]);
    assert_eq!(handle(&mut files, Event::Assembled(FLOW)), [verify(1)]);
    files
}

#[test]
fn a_file_is_prepared_received_verified_and_delivered() {
    let mut files = assembled();
    assert!(files.handle_verified(FLOW, 1, Ok(()), AT));
    let delivered = [Action::Discard(FLOW, "inbox"), Action::Delivered(FLOW)];
    assert_eq!(actions(&mut files), delivered);
    assert!(!files.handle_verified(FLOW, 1, Ok(()), AT), "once is enough");
    assert_eq!(actions(&mut files), []);
}

#[test]
fn a_corrupt_file_goes_and_one_without_a_place_stays() {
    let refused = |why| Action::Refuse(FLOW, why);
    let mut files = assembled();
    assert!(!files.handle_verified(FLOW, 1, refusal(Refusal::Corrupt), AT));
    let discarded = [Action::Discard(FLOW, "inbox"), refused(Refusal::Corrupt)];
    assert_eq!(actions(&mut files), discarded);

    let mut files = assembled();
    assert!(!files.handle_verified(FLOW, 1, refusal(Refusal::Unwritable), AT));
    assert_eq!(actions(&mut files), [refused(Refusal::Unwritable)]);
    files.cancel(FLOW);
    let cancelled = [Action::NoteCancelled(manifest()), Action::Discard(FLOW, "inbox")];
    assert_eq!(actions(&mut files), cancelled);
}

#[test]
fn what_is_known_or_has_no_place_is_answered_at_once() {
    let announced = || Event::Announced(manifest());
    let mut files = files();
    assert_eq!(files.handle_event(announced(), AT, |_| Some(Known::Delivered)), None);
    assert_eq!(actions(&mut files), [Action::Accept(FLOW, all())]);
    assert_eq!(handle(&mut files, Event::Assembled(FLOW)), [Action::Delivered(FLOW)]);
    assert_eq!(files.handle_event(announced(), AT, |_| Some(Known::Cancelled)), None);
    assert_eq!(actions(&mut files), [Action::Refuse(FLOW, Refusal::Cancelled)]);
    assert_eq!(files.handle_event(announced(), AT, |_| Some(Known::Unwelcome)), None);
    assert_eq!(actions(&mut files), [Action::Refuse(FLOW, Refusal::NotAllowed)]);

    let mut homeless = Files::new(None, BTreeMap::new());
    let refused = [Action::Refuse(FLOW, Refusal::NoInbox)];
    assert_eq!(handle(&mut homeless, announced()), refused);

    // Delivered shortly before a crash: found under its name.
    let mut restarted = self::files();
    self::announced(&mut restarted, 1, "inbox");
    assert!(!restarted.handle_prepared(FLOW, 1, Ok(Prepared::Delivered), AT));
    assert_eq!(actions(&mut restarted), [Action::Accept(FLOW, all())]);
    assert_eq!(handle(&mut restarted, Event::Assembled(FLOW)), [verify(1)]);
}

#[test]
fn a_file_stays_in_the_inbox_where_it_was_begun() {
    let mut files = files();
    announced(&mut files, 1, "inbox");
    assert!(files.elsewhere().is_empty());
    files.use_inbox("usb");
    assert_eq!(files.inbox(), Some(&"usb"));
    announced(&mut files, 2, "usb");
    assert_eq!(files.elsewhere(), &BTreeMap::from([(FLOW, "usb")]));

    let mut restarted = Files::new(Some("inbox"), files.elsewhere().clone());
    announced(&mut restarted, 1, "usb");
    assert_eq!(handle(&mut restarted, Event::Withdrawn(FLOW)), [Action::Close(FLOW)]);
    // It would go on there.
    announced(&mut restarted, 2, "usb");
    restarted.give_up(FLOW);
    assert_eq!(actions(&mut restarted), [Action::Discard(FLOW, "usb")]);
    assert!(restarted.elsewhere().is_empty());
}

#[test]
fn what_may_pass_is_tried_again_ever_more_seldom_and_never_refused() {
    let mut files = files();
    announced(&mut files, 1, "inbox");
    let mut now = AT;
    let mut waits = Vec::new();
    for attempt in 1..9 {
        assert!(!files.handle_prepared(FLOW, attempt, later(), now));
        assert_eq!(actions(&mut files), []);
        assert_eq!(files.waiting().collect::<Vec<_>>(), [(FLOW, "too many open files")]);
        let due = files.poll_timeout().unwrap();
        files.handle_timeout(Instant::from_nanos(due.as_nanos() - 1));
        assert_eq!(actions(&mut files), []);
        files.handle_timeout(due);
        let again = Action::Prepare { attempt: attempt + 1, place: "inbox", manifest: manifest() };
        assert_eq!(actions(&mut files), [again]);
        waits.push(due.since(now).as_secs());
        now = due;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 64]);
    assert!(files.handle_prepared(FLOW, 9, Ok(Prepared::Receiving(some())), now));
    assert_eq!((actions(&mut files).len(), files.poll_timeout()), (1, None));

    // A generation that cannot be written closes the place, which is prepared again.
    assert_eq!(files.handle_event(Event::Unwritable(FLOW), now, |_| None), None);
    assert_eq!(actions(&mut files), [Action::Close(FLOW)]);
    files.handle_timeout(files.poll_timeout().unwrap());
    let again = Action::Prepare { attempt: 10, place: "inbox", manifest: manifest() };
    assert_eq!(actions(&mut files), [again]);

    // And so does a whole file that cannot be verified or named for now.
    let mut files = assembled();
    assert!(!files.handle_verified(FLOW, 1, later(), now));
    files.handle_timeout(files.poll_timeout().unwrap());
    assert_eq!(actions(&mut files), [verify(2)]);
    assert!(files.handle_verified(FLOW, 2, Ok(()), now));
}

#[test]
fn no_member_grows_a_table_beyond_its_bound() {
    let file = |serial| {
        let flow = FlowId { serial, ..FLOW };
        Box::new(Manifest { flow, ..*manifest() })
    };
    // One table after the other: places elsewhere, places never prepared, files without a name.
    let mut files = Files::new(Some("inbox"), BTreeMap::new());
    files.use_inbox("usb");
    for serial in 0..5000 {
        let announced = Event::Announced(file(serial));
        assert_eq!(files.handle_event(announced, AT, |_| None), None);
        if serial % 2 == 0 {
            let flow = file(serial).flow;
            files.handle_prepared(flow, u64::from(serial) + 1, refusal(Refusal::NoSpace), AT);
        }
        if serial % 3 == 0 {
            files.handle_event(Event::Suspended(file(serial).flow), AT, |_| None);
        }
        actions(&mut files);
        assert!(files.elsewhere.len() <= MAX_ELSEWHERE);
    }

    let mut files = self::files();
    for serial in 0..5000 {
        files.handle_event(Event::Announced(file(serial)), AT, |_| None);
        files.handle_event(Event::Withdrawn(file(serial).flow), AT, |_| None);
        actions(&mut files);
    }
    assert_eq!((files.abandoned.len(), files.receptions.len()), (MAX_ABANDONED, 0));

    let mut files = self::files();
    for serial in 0..5000 {
        let flow = file(serial).flow;
        let attempt = u64::from(serial) + 1;
        files.handle_event(Event::Announced(file(serial)), AT, |_| None);
        files.handle_prepared(flow, attempt, Ok(Prepared::Receiving(all())), AT);
        files.handle_event(Event::Assembled(flow), AT, |_| None);
        files.handle_verified(flow, attempt, refusal(Refusal::Unwritable), AT);
        actions(&mut files);
    }
    assert_eq!(files.receptions.len(), MAX_KEPT);
}

#[test]
fn a_late_answer_does_not_bring_a_file_back() {
    let receiving = || Ok(Prepared::Receiving(some()));
    // Given up while its place was made: what was made goes.
    let mut files = files();
    announced(&mut files, 1, "inbox");
    let discard = [Action::Discard(FLOW, "inbox")];
    files.give_up(FLOW);
    assert_eq!(actions(&mut files), discard);
    assert!(!files.handle_prepared(FLOW, 1, receiving(), AT));
    assert_eq!(actions(&mut files), discard);

    // Suspended or withdrawn: what was received before stays.
    for (attempt, event) in [(2, Event::Suspended(FLOW)), (3, Event::Withdrawn(FLOW))] {
        announced(&mut files, attempt, "inbox");
        assert_eq!(handle(&mut files, event), [Action::Close(FLOW)]);
        assert!(!files.handle_prepared(FLOW, attempt, receiving(), AT));
        assert_eq!(actions(&mut files), []);
    }

    // Given up and announced again: the answer to the first announcement is not for the second.
    announced(&mut files, 4, "inbox");
    files.give_up(FLOW);
    assert_eq!(actions(&mut files), discard);
    announced(&mut files, 5, "inbox");
    assert!(!files.handle_prepared(FLOW, 4, receiving(), AT));
    assert_eq!(actions(&mut files), []);
    assert!(files.handle_prepared(FLOW, 5, receiving(), AT));
    assert_eq!(actions(&mut files), [Action::Accept(FLOW, some())]);

    // Cancelled while it is verified.
    assert_eq!(handle(&mut files, Event::Assembled(FLOW)), [verify(5)]);
    files.cancel(FLOW);
    actions(&mut files);
    assert!(!files.handle_verified(FLOW, 5, Ok(()), AT));
    assert_eq!(actions(&mut files), []);
}

#[test]
fn a_sent_file_is_forgotten_once_and_its_receivers_are_news_until_then() {
    let mut files = files();
    files.send(FLOW);
    assert_eq!(handle(&mut files, Event::ReceiverDone(FLOW, NodeId(9))), []);
    assert_eq!(files.take_receiver_news(), BTreeSet::from([FLOW]));
    files.restore_receiver_news(FLOW);
    assert_eq!(files.take_receiver_news(), BTreeSet::from([FLOW]));
    // A receiver may still object, which is news, too.
    assert_eq!(handle(&mut files, Event::SendEnded(FLOW)), []);
    assert_eq!(handle(&mut files, Event::ReceiverObjected(FLOW, NodeId(9))), []);
    assert_eq!(files.take_receiver_news(), BTreeSet::from([FLOW]));
    assert_eq!(handle(&mut files, Event::SendConfirmed(FLOW)), [Action::ForgetSent(FLOW)]);
    files.restore_receiver_news(FLOW);
    let failed = Event::SendFailed(FLOW, SendFailure::Unreadable);
    assert_eq!((files.take_receiver_news().len(), handle(&mut files, failed)), (0, vec![]));
}

#[test]
fn other_events_are_left_to_the_driver() {
    let packet = Event::Packet { from: NodeId(3), packet: vec![1] };
    assert_eq!(files().handle_event(packet.clone(), AT, |_| None), Some(packet));
}

proptest! {
    /// In whatever order events and answers come: no file is delivered twice for one announcement,
    /// every verification belongs to an acceptance, and nothing is kept for files that are gone.
    #[test]
    fn any_order_of_events_and_answers_is_survived(
        steps in prop::collection::vec(0_u8..10, 0..80),
    ) {
        let mut files = files();
        let mut asked = Vec::new();
        let mut announcements = 0_u32;
        let mut deliveries = 0_u32;
        for step in steps {
            let event = match step {
                0 => {
                    announcements += 1;
                    Some(Event::Announced(manifest()))
                }
                1 => Some(Event::Withdrawn(FLOW)),
                2 => Some(Event::Suspended(FLOW)),
                3 => files.receptions.get(&FLOW)
                    .is_some_and(|reception| reception.state == State::Receiving)
                    .then_some(Event::Assembled(FLOW)),
                4 => {
                    files.cancel(FLOW);
                    None
                }
                9 => {
                    files.handle_timeout(AT + PAUSES.longest);
                    None
                }
                _ => {
                    if let Some((attempt, verifies)) = asked.pop() {
                        if verifies {
                            let answer = match step % 4 {
                                0 => Ok(()),
                                1 => refusal(Refusal::Corrupt),
                                2 => refusal(Refusal::Unwritable),
                                _ => later(),
                            };
                            files.handle_verified(FLOW, attempt, answer, AT);
                        } else {
                            let answer = match step {
                                5 => refusal(Refusal::NoSpace),
                                6 => later(),
                                _ => Ok(Prepared::Receiving(some())),
                            };
                            files.handle_prepared(FLOW, attempt, answer, AT);
                        }
                    }
                    None
                }
            };
            if let Some(event) = event {
                files.handle_event(event, AT, |_| None);
            }
            while let Some(action) = files.poll_action() {
                match action {
                    Action::Prepare { attempt, .. } => asked.push((attempt, false)),
                    Action::Verify { attempt, .. } => asked.push((attempt, true)),
                    Action::Delivered(_) => deliveries += 1,
                    _ => {}
                }
            }
            prop_assert!(deliveries <= announcements);
            prop_assert!(files.receptions.len() <= 1);
            prop_assert!(files.abandoned.len() <= asked.len());
        }
    }
}
