//! Frames by their bytes, and what one node does with packets. Whole meshes: the tests of all
//! tunnels.

use super::*;
use ncmesh_engine::counters::Counters;
use ncmesh_engine::rng;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::testing::directed;
use ncmesh_engine::time::Duration;
use ncmesh_engine::topology::Topology;
use ncmesh_wire::StartId;
use proptest::prelude::*;

fn header() -> Header {
    Header { next: NodeId(2), source: NodeId(1), destination: NodeId(3), hops_left: 9 }
}

/// Golden vector of `docs/reference/wire-format.md`.
#[test]
fn golden_frame() {
    let mut body = Vec::new();
    header().write(&mut body);
    body.extend_from_slice(b"IP");
    assert_eq!(body, [0, 2, 0, 1, 0, 3, 9, b'I', b'P']);
    assert_eq!(Header::parse(&body), Ok((header(), &b"IP"[..])));
    for end in 0..=Header::LEN {
        assert!(Header::parse(&body[..end]).is_err(), "{end}");
    }
}

/// Golden vector of `docs/reference/wire-format.md`.
#[test]
fn golden_queue() {
    let mut body = Vec::new();
    let asked = Queue { pause: Duration::from_millis(300) };
    asked.write(&mut body);
    assert_eq!((&body[..], Queue::parse(&body)), (&[1, 44][..], Ok(asked)));
    for body in [&[][..], &[1], &[1, 44, 0]] {
        assert!(Queue::parse(body).is_err(), "{body:?}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(body in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok((header, packet)) = Header::parse(&body) {
            let mut again = Vec::new();
            header.write(&mut again);
            again.extend_from_slice(packet);
            prop_assert_eq!(again, body);
        }
    }
}

/// Node 2 of a line 1, 2, 3, with a poor path around over node 4.
struct Bench {
    engine: Forward,
    topology: Topology,
    counters: Counters,
    events: VecDeque<Event>,
    now: Instant,
}

impl Bench {
    fn new(queue: usize) -> Self {
        let both = |a, b, d: f64| [(a, b, d), (b, a, d)];
        let links = [both(1, 2, 0.9), both(2, 3, 0.9), both(2, 4, 0.2), both(4, 3, 0.2)];
        Self {
            engine: Forward::new(ForwardConfig { queue }),
            topology: directed(&links.concat()),
            counters: Counters::default(),
            events: VecDeque::new(),
            now: Instant::default(),
        }
    }

    fn with<R>(&mut self, call: impl FnOnce(&mut Forward, &mut Context<'_>) -> R) -> R {
        let mut cx = Context {
            now: self.now,
            me: NodeId(2),
            epoch: 1,
            mtu: 1400,
            at: At::ONLY,
            topology: &self.topology,
            rng: &mut rng::stream(1, NodeId(2), "forward", "test"),
            counters: &mut self.counters,
            events: &mut self.events,
            storage: &mut MemoryStorage::default(),
        };
        call(&mut self.engine, &mut cx)
    }

    fn handle(&mut self, header: Header) {
        let mut body = Vec::new();
        header.write(&mut body);
        body.extend_from_slice(b"packet");
        let frame =
            Frame { sender: NodeId(1), start: StartId(1), service: ID, kind: DATA, body: &body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    /// Fills a frame. Returns its unicast receiver and its header.
    fn fill(&mut self) -> Option<(Option<NodeId>, Header)> {
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out))?;
        assert_eq!(filled.kind, DATA);
        Some((filled.to, Header::parse(&out).unwrap().0))
    }

    /// Fills a frame about the queue. Returns for how long the others are to wait.
    fn fill_queue(&mut self) -> Duration {
        assert_eq!(self.engine.offer(self.now), Some(Offer::of(Class::Control)));
        let mut out = Vec::new();
        let filled = self.with(|engine, cx| engine.fill(cx, &mut out)).unwrap();
        assert_eq!((filled.kind, filled.to), (QUEUE, None));
        self.report(TxResult::Sent);
        Queue::parse(&out).unwrap().pause
    }

    fn hear_queue(&mut self, sender: NodeId, ms: u64) {
        let mut body = Vec::new();
        Queue { pause: Duration::from_millis(ms) }.write(&mut body);
        let frame = Frame { sender, start: StartId(1), service: ID, kind: QUEUE, body: &body };
        self.with(|engine, cx| engine.handle_frame(cx, &frame));
    }

    fn report(&mut self, result: TxResult) {
        let report = TxReport { result, airtime: Duration::ZERO, heard_by: None };
        self.with(|engine, cx| engine.handle_tx_report(cx, report));
    }
}

#[test]
fn a_relay_uses_the_shortest_path_and_counts_lost_packets() {
    let mut bench = Bench::new(2);
    bench.handle(header());
    let next = Header { next: NodeId(3), hops_left: 8, ..header() };
    assert_eq!(bench.fill(), Some((Some(NodeId(3)), next)));
    bench.report(TxResult::Acked);
    assert_eq!(bench.engine.flows()[0].lost, 0);
    bench.handle(header());
    bench.fill();
    bench.report(TxResult::Failed);
    assert_eq!(bench.engine.flows()[0].lost, 1);

    // A packet for another relay, one without hops left, one too many for the queue.
    bench.handle(Header { next: NodeId(4), ..header() });
    bench.handle(Header { hops_left: 1, ..header() });
    (0..3).for_each(|_| bench.handle(header()));
    assert_eq!(bench.counters.dropped(DropReason::Stale), 1);
    assert_eq!(bench.counters.dropped(DropReason::Full), 1);
    let flow = &bench.engine.flows()[0];
    assert_eq!((flow.credits, flow.heard, flow.lost), (2, 6, 3));
}

#[test]
fn a_packet_for_this_node_is_delivered() {
    let mut bench = Bench::new(2);
    bench.handle(Header { destination: NodeId(2), ..header() });
    let packet = b"packet".to_vec();
    assert_eq!(bench.events.pop_front(), Some(Event::Packet { from: NodeId(1), packet }));
    assert_eq!(bench.fill(), None);
}

#[test]
fn packets_that_cannot_be_carried_are_refused() {
    let mut bench = Bench::new(1);
    let mut send = |to, packet: &[u8]| bench.with(|e, cx| e.handle_packet(cx, NodeId(to), packet));
    assert_eq!(send(2, b"p"), Err(PacketError::Oneself));
    assert_eq!(send(3, b""), Err(PacketError::Empty));
    assert_eq!(send(9, b"p"), Err(PacketError::NoPath(NodeId(9))));
    assert_eq!(send(3, &[0; 1394]), Err(PacketError::TooLong { bytes: 1394, longest: 1393 }));
    assert_eq!(send(3, &[0; 1393]), Ok(()));
    assert_eq!(send(3, b"p"), Err(PacketError::Full));
}

#[test]
fn a_relay_asks_to_wait_while_its_queue_is_full() {
    let mut bench = Bench::new(64);
    // One packet is sent every 10 ms; 24 wait.
    bench.handle(header());
    for _ in 0..4 {
        bench.handle(header());
        bench.fill();
        bench.now = bench.now + Duration::from_millis(10);
        bench.report(TxResult::Acked);
    }
    (0..23).for_each(|_| bench.handle(header()));
    assert_eq!(bench.engine.offer(bench.now), Some(Offer::of(Class::Data)));
    bench.handle(header());
    // Twelve more than when there is room: 120 ms, or a little more for what waits to be sent.
    let pause = bench.fill_queue();
    assert!((120..140).contains(&pause.as_millis()), "{pause:?}");
    // Nodes that did not hear it are told again.
    (0..8).for_each(|_| bench.handle(header()));
    assert_eq!(bench.engine.offer(bench.now), Some(Offer::of(Class::Data)));
    bench.handle(header());
    assert!(bench.fill_queue() > pause);
    while bench.engine.offer(bench.now) == Some(Offer::of(Class::Data)) {
        bench.fill();
        bench.report(TxResult::Acked);
    }
    assert_eq!((bench.fill_queue(), bench.engine.queue.len()), (Duration::ZERO, 12));
}

#[test]
fn a_node_waits_as_its_next_hop_asks_but_not_for_ever() {
    let mut bench = Bench::new(64);
    bench.topology = directed(&[(2, 3, 0.9), (3, 2, 0.9), (3, 5, 0.9), (5, 3, 0.9)]);
    let far = Header { destination: NodeId(5), ..header() };
    // A frame that no node waits for is not remembered.
    bench.hear_queue(NodeId(3), 500);
    assert!(bench.engine.paused.is_empty());
    bench.handle(far);
    bench.hear_queue(NodeId(3), 500);
    assert_eq!(bench.engine.offer(bench.now), None);
    assert_eq!(bench.engine.poll_timeout(bench.now), Some(bench.now + Duration::from_millis(500)));
    // The next hop itself takes what is for it.
    bench.handle(header());
    assert_eq!(bench.fill().unwrap().1.destination, NodeId(3));
    bench.report(TxResult::Acked);
    assert_eq!(bench.engine.offer(bench.now), None);
    bench.hear_queue(NodeId(3), 0);
    assert_eq!(bench.fill().unwrap().1.destination, NodeId(5));
    bench.report(TxResult::Acked);
    bench.handle(far);
    bench.hear_queue(NodeId(3), 60_000);
    bench.now = bench.now + Duration::from_secs(1);
    assert!(bench.engine.offer(bench.now).is_some());
}

#[test]
fn settings_out_of_range_are_named() {
    let bad = ForwardConfig { queue: 0 };
    let error = bad.check().unwrap_err().to_string();
    assert_eq!(error, "queue = 0: allowed is 1 to 10000 packets");
}

#[test]
fn a_next_hop_that_acknowledges_nothing_is_left_for_a_while() {
    let mut bench = Bench::new(100);
    let send = |bench: &mut Bench, result| {
        bench.with(|engine, cx| engine.handle_packet(cx, NodeId(3), b"packet")).unwrap();
        let mut body = Vec::new();
        let filled = bench.with(|engine, cx| engine.fill(cx, &mut body)).unwrap();
        let report = TxReport { result, airtime: Duration::from_millis(1), heard_by: None };
        bench.with(|engine, cx| engine.handle_tx_report(cx, report));
        filled.to
    };
    // Some losses, and none after the other, say nothing.
    for i in 0..40 {
        let result = if i % 8 == 7 { TxResult::Acked } else { TxResult::Failed };
        assert_eq!(send(&mut bench, result), Some(NodeId(3)), "packet {i}");
    }
    for i in 0..8 {
        assert_eq!(send(&mut bench, TxResult::Failed), Some(NodeId(3)), "packet {i}");
    }
    assert_eq!(send(&mut bench, TxResult::Acked), Some(NodeId(4)));
    bench.now = bench.now + Duration::from_secs(31);
    assert_eq!(send(&mut bench, TxResult::Acked), Some(NodeId(3)));
}
