//! Tests with a scripted mesh on a virtual clock.

use super::*;
use ipnet::IpNet;
use ncmesh_engine::tunnel::PacketError;
use proptest::prelude::*;

const HERE: NodeId = NodeId(1);
const BARN: NodeId = NodeId(2);
const ROOF: NodeId = NodeId(3);

/// Time that a packet takes from one node to the other.
const DELAY: Duration = Duration::from_millis(5);
/// Time between two steps of the clock. A scheme takes one packet of a run in it.
const STEP: Duration = Duration::from_millis(1);

/// A scheme that takes `room` packets before it has enough.
#[derive(Default)]
struct Scheme {
    room: usize,
    sent: Vec<(NodeId, Vec<u8>)>,
}

impl Mesh for Scheme {
    fn version(&self) -> u64 {
        0
    }

    fn each_announced(&self, _: &mut dyn FnMut(NodeId, IpNet)) {}

    fn nearest(&self, _: &[NodeId]) -> Option<NodeId> {
        None
    }

    fn named(&self, _: &str) -> Option<NodeId> {
        None
    }

    fn below_low_watermark(&self, _: NodeId) -> bool {
        self.room > 0
    }

    fn send(&mut self, to: NodeId, packet: &[u8]) -> Result<(), PacketError> {
        self.room = self.room.saturating_sub(1);
        self.sent.push((to, packet.into()));
        Ok(())
    }
}

type Own = Measurements<&'static str, &'static str>;

/// Two nodes, and the packets between them.
struct Pair {
    now: Instant,
    nodes: [Own; 2],
    /// When a packet arrives, at which of the two.
    way: VecDeque<(Instant, usize, Vec<u8>)>,
}

impl Pair {
    fn new() -> Self {
        let nodes = [Own::new(70), Own::new(u32::MAX)];
        Self { now: Instant::default(), nodes, way: VecDeque::new() }
    }

    /// Moves the clock by `duration`. Packets for which `is_lost` holds do not arrive.
    fn pass(&mut self, duration: Duration, mut is_lost: impl FnMut(&[u8]) -> bool) {
        let end = self.now + duration;
        while self.now < end {
            for node in 0..2 {
                let mut scheme = Scheme { room: 1, ..Scheme::default() };
                while let Some(at) =
                    self.way.iter().position(|(at, to, _)| *to == node && *at <= self.now)
                {
                    let (_, _, packet) = self.way.remove(at).unwrap();
                    let from = [BARN, HERE][node];
                    let handled =
                        self.nodes[node].handle_packet(from, &packet, &mut scheme, self.now);
                    assert_eq!(handled, Ok(()));
                }
                self.nodes[node].drain(&mut scheme, self.now);
                for (to, packet) in scheme.sent {
                    assert_eq!(to, [BARN, HERE][node]);
                    if !is_lost(&packet) {
                        self.way.push_back((self.now + DELAY, 1 - node, packet));
                    }
                }
            }
            self.now = self.now + STEP;
        }
    }

    fn begin_run(&mut self, bytes: usize, interval: Option<Duration>) {
        let duration = Duration::from_secs(2);
        let settings = RunSettings { to: BARN, bytes, duration, interval };
        self.nodes[0].begin_run(settings, "run", self.now);
    }

    /// Returns the result of the run and of no other measurement.
    #[track_caller]
    fn result(&mut self) -> Option<Bandwidth> {
        let Some(Outcome::Bandwidth("run", result)) = self.nodes[0].poll_outcome() else {
            panic!("the run has not ended");
        };
        assert_eq!(self.nodes[0].poll_outcome(), None);
        assert_eq!(self.nodes[0].poll_timeout(), None);
        result
    }
}

#[test]
fn an_echo_comes_back_or_is_lost() {
    let mut pair = Pair::new();
    let until = pair.now + Duration::from_secs(2);
    pair.nodes[0].echo(BARN, "first", pair.now, until);
    pair.pass(DELAY * 3, |_| false);
    assert_eq!(pair.nodes[0].poll_outcome(), Some(Outcome::Echo("first", Some(DELAY * 2))));

    pair.nodes[0].echo(BARN, "second", pair.now, until);
    pair.pass(Duration::from_secs(1), |_| true);
    assert_eq!(pair.nodes[0].poll_outcome(), None);
    assert_eq!(pair.nodes[0].poll_timeout(), Some(until));
    pair.pass(Duration::from_secs(1), |_| true);
    assert_eq!(pair.nodes[0].poll_outcome(), Some(Outcome::Echo("second", None)));
    assert_eq!(pair.nodes[0].poll_timeout(), None);
}

#[test]
fn answers_count_only_from_whoever_was_asked() {
    let mut own = Own::new(70);
    let mut scheme = Scheme::default();
    let now = Instant::default();
    own.echo(BARN, "echo", now, now + STEP);
    let settings = RunSettings { to: BARN, bytes: 100, duration: STEP, interval: None };
    own.begin_run(settings, "run", now);
    let packets = [
        Packet::EchoReply { token: 71, payload: &[] },
        Packet::EchoReply { token: 99, payload: &[] },
        // The run sends still, and asked for nothing.
        Packet::Report { token: 72, report: Report::default() },
    ];
    for (from, packet) in [(ROOF, packets[0]), (BARN, packets[1]), (BARN, packets[2])] {
        let handled = own.handle_packet(from, &packet.to_bytes(), &mut scheme, now);
        assert_eq!(handled, Err(DropReason::UnknownFlow), "{packet:?}");
    }
    assert_eq!(own.poll_outcome(), None);
    assert!(own.handle_packet(BARN, &packets[0].to_bytes(), &mut scheme, now).is_ok());
    assert_eq!(own.poll_outcome(), Some(Outcome::Echo("echo", Some(Duration::ZERO))));
}

#[test]
fn a_run_sends_what_the_scheme_takes_and_learns_what_arrived() {
    let mut pair = Pair::new();
    pair.begin_run(1000, None);
    pair.pass(Duration::from_secs(3), |_| false);
    // One packet in each millisecond.
    let result = pair.result().unwrap();
    assert_eq!((result.sent, result.received, result.bytes), (2000, 2000, 2_000_000));
    assert_eq!((result.goodput_bps(), result.lost()), (8e6, 0.0));

    // Every fourth packet of the second run is lost, and the first question.
    let mut n = 0;
    let mut asked = false;
    pair.begin_run(1000, None);
    pair.pass(Duration::from_secs(4), |packet| {
        match Packet::parse(packet) {
            Ok(Packet::Data { .. }) => n += 1,
            Ok(Packet::End { .. }) if !asked => {
                asked = true;
                return true;
            }
            _ => return false,
        }
        n % 4 == 0
    });
    let result = pair.result().unwrap();
    assert_eq!((result.sent, result.received), (2000, 1500));
    assert_eq!((result.goodput_bps(), result.lost()), (6e6, 0.25));
    assert_eq!(pair.nodes[1].runs(), 2);
}

#[test]
fn a_run_keeps_its_rate_and_makes_up_for_late_calls() {
    let mut pair = Pair::new();
    pair.begin_run(500, Some(Duration::from_millis(4)));
    pair.pass(Duration::from_secs(3), |_| false);
    let result = pair.result().unwrap();
    assert_eq!((result.sent, result.received), (500, 500));
    assert_eq!(result.goodput_bps(), 1e6);

    let mut own = Own::new(1);
    let start = Instant::default();
    let interval = Some(Duration::from_millis(4));
    let duration = Duration::from_secs(1);
    own.begin_run(RunSettings { to: BARN, bytes: 500, duration, interval }, "run", start);
    let mut sent_at = |ms: u64, room| {
        let mut scheme = Scheme { room, ..Scheme::default() };
        own.drain(&mut scheme, start + Duration::from_millis(ms));
        let next = own.poll_timeout().unwrap().since(start).as_millis();
        (scheme.sent.len(), next)
    };
    assert_eq!(sent_at(0, 9), (1, 4));
    // Called 8 ms late.
    assert_eq!(sent_at(12, 9), (3, 16));
    // Without room it waits for some, not for a time.
    assert_eq!(sent_at(500, 0), (0, 1000));
    assert_eq!(sent_at(600, 9), (2, 604));
}

#[test]
fn a_receiver_that_does_not_report_is_given_up() {
    let mut pair = Pair::new();
    pair.begin_run(100, None);
    pair.pass(Duration::from_secs(2), |_| true);
    assert!(pair.nodes[0].is_running());
    pair.pass(ASK_TIME + STEP, |_| true);
    assert_eq!(pair.result(), None);

    // The same if the scheme takes nothing, and never a timer in the past.
    let mut own = Own::new(1);
    let mut now = Instant::default();
    let settings =
        RunSettings { to: BARN, bytes: 100, duration: Duration::from_secs(2), interval: None };
    own.begin_run(settings, "run", now);
    while own.is_running() {
        own.drain(&mut Scheme::default(), now);
        if let Some(next) = own.poll_timeout() {
            assert!(next > now);
            now = next;
        }
    }
    assert_eq!(own.poll_outcome(), Some(Outcome::Bandwidth("run", None)));
}

#[test]
fn what_arrives_twice_counts_once() {
    let mut own = Own::new(1);
    let mut scheme = Scheme::default();
    let now = Instant::default();
    let data = |number| Packet::Data { token: 5, number, filler: 91 }.to_bytes();
    for (number, expected) in [
        (1, Ok(())),
        (0, Ok(())),
        (1, Err(DropReason::Stale)),
        (0, Err(DropReason::Stale)),
        (2, Ok(())),
    ] {
        assert_eq!(own.handle_packet(BARN, &data(number), &mut scheme, now), expected);
    }
    let later = now + STEP;
    assert!(own.handle_packet(BARN, &data(3), &mut scheme, later).is_ok());
    let end = Packet::End { token: 5 }.to_bytes();
    assert!(own.handle_packet(BARN, &end, &mut scheme, later).is_ok());
    let report = Report { packets: 4, bytes: 400, elapsed_us: 1000 };
    let expected = Packet::Report { token: 5, report }.to_bytes();
    assert_eq!(scheme.sent, [(BARN, expected)]);
}

#[test]
fn a_member_who_floods_makes_no_state_grow_and_gets_few_answers() {
    let mut own = Own::new(1);
    let mut scheme = Scheme::default();
    let mut now = Instant::default();
    let second = Duration::from_secs(1);
    for token in 0..10_000 {
        let from = NodeId(token as u16);
        for packet in [
            Packet::Data { token, number: 0, filler: 1000 },
            Packet::End { token },
            Packet::EchoRequest { token, payload: &[0; 900] },
            Packet::EchoReply { token, payload: &[] },
            Packet::Report { token, report: Report::default() },
        ] {
            let packet = packet.to_bytes();
            let sent = scheme.sent.len();
            let _ = own.handle_packet(from, &packet, &mut scheme, now);
            assert!(scheme.sent[sent..].iter().all(|(_, reply)| reply.len() <= packet.len()));
        }
        if token == 5000 {
            assert_eq!(scheme.sent.len(), REPLIES_PER_SECOND as usize);
            now = now + second;
        }
    }
    assert_eq!(scheme.sent.len(), 2 * REPLIES_PER_SECOND as usize);
    assert_eq!((own.runs(), own.poll_outcome()), (MAX_RUNS, None));
    own.forget_idle(now + IDLE);
    assert_eq!(own.runs(), 0);

    // The runs that this host asks for are bounded, too.
    for _ in 0..MAX_ECHOES + 2 {
        own.echo(BARN, "echo", now, now + second);
    }
    assert_eq!(own.echoes(), MAX_ECHOES);
    assert_eq!(std::iter::from_fn(|| own.poll_outcome()).count(), 2);
}

proptest! {
    #[test]
    fn any_packet_is_handled_or_dropped(
        packets in prop::collection::vec(prop::collection::vec(0..8u8, 0..40), 0..40),
    ) {
        let mut own = Own::new(0);
        let mut scheme = Scheme { room: 9, ..Scheme::default() };
        let mut now = Instant::default();
        let duration = Duration::from_millis(5);
        own.begin_run(RunSettings { to: BARN, bytes: 9, duration, interval: None }, "run", now);
        own.echo(BARN, "echo", now, now + duration);
        for packet in packets {
            let _ = own.handle_packet(BARN, &packet, &mut scheme, now);
            own.drain(&mut scheme, now);
            now = now + STEP;
            scheme.room = 1;
        }
        while let Some(outcome) = own.poll_outcome() {
            if let Outcome::Bandwidth(_, Some(result)) = outcome {
                prop_assert!((0.0..=1.0).contains(&result.lost()) && result.goodput_bps() >= 0.0);
            }
        }
    }
}

/// One packet of 1,200 bytes at 1 kbit/s stands for 9.6 s, also in a run of half a second.
#[test]
fn a_short_run_at_a_low_rate_measures_that_rate() {
    let packets = 1;
    let run = Run {
        settings: RunSettings {
            to: NodeId(2),
            bytes: 1200,
            duration: Duration::from_millis(500),
            interval: Some(Duration::from_millis(9600)),
        },
        waiter: (),
        token: 1,
        sent: packets,
        stage: Stage::Asking {
            next: Instant::default(),
            until: Instant::default(),
            report: Some(Report { packets, bytes: 1200, elapsed_us: 0 }),
        },
    };
    let result = run.result().unwrap();
    assert!((result.goodput_bps() - 1000.0).abs() < 1e-6, "{}", result.goodput_bps());
}
