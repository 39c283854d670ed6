//! A member that sends false packets of files: under its own name, and under that of the true
//! sender. No wrong byte arrives, transfers go on, and the liar is named. Others misuse the checks
//! by which false packets are found.

use ncmesh_engine::counters::DropReason;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::rng;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_medium::LossMatrix;
use ncmesh_sim::{Event, Observation, Observer, Simulation, SimulationConfig, What, node_id};
use ncmesh_stack::Stack;
use ncmesh_stack::trust::TrustMode;
use ncmesh_tests::{contents, links, mesh, settled};
use ncmesh_wire::{Cipher, FlowId, NodeId, Reader, Salt, Sealer, ServiceId, Versions, Writer};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// Node that the member writes as under its own name. It is not in the mesh.
const MEMBER: NodeId = NodeId(77);
/// Kinds of frames of file schemes.
const DATA: u8 = 1;
const CHECK_REQUEST: u8 = 4;
const CHECK: u8 = 5;
const LEN: usize = 1_000_000;
/// Time between two looks of the member at the mesh.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes at the front of a payload that are false.
const FALSE: usize = 200;
/// Payload of a packet of a file, bytes.
const SYMBOL: usize = 1200;
/// Counter of a false frame ahead of the true one that it is made of: so far that the true sender
/// does not come to it, or so near that its own frame of that counter is lost.
const FAR_AHEAD: u32 = 5_000;
const NEAR_AHEAD: u32 = 300;

/// Data frames of a service that were heard, and by which node.
struct Tap {
    cipher: Cipher,
    heard: Vec<(usize, Vec<u8>)>,
}

impl Observer for Tap {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Heard { frame, .. } = event.what {
            let mut scratch = Vec::new();
            let opened = self.cipher.open(frame, &mut scratch);
            let is_engine = |id| registry().by_id(id).is_some();
            if let Ok(o) = opened
                && is_engine(o.service)
                && o.kind == DATA
                && o.header.sender != MEMBER
                && frame.len() > SYMBOL
            {
                self.heard.push((event.node, frame.to_vec()));
            }
        }
        Ok(())
    }
}

/// Name under which the member lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Own,
    /// That of the true sender.
    Stolen,
    /// The same, and each false frame takes the place of a true one.
    InPlace,
}

/// A member with a radio beside every node: one false packet for some true ones.
struct Polluter {
    tap: Rc<RefCell<Tap>>,
    cipher: Cipher,
    sealer: Sealer,
    rng: ChaCha8Rng,
    lie: Lie,
}

impl Polluter {
    fn new(s: &mut Simulation, lie: Lie) -> Self {
        let cipher = s.config().cipher();
        let tap = Rc::new(RefCell::new(Tap { cipher: cipher.clone(), heard: Vec::new() }));
        s.observe(Box::new(Rc::clone(&tap)));
        s.trust_all();
        let sealer = Sealer::new(cipher.clone(), MEMBER, Salt([1; 16]));
        let rng = rng::stream(7, MEMBER, "tests", "polluter");
        Self { tap, cipher, sealer, rng, lie }
    }

    /// Lets the mesh run, and answers what was heard meanwhile with false packets of the same
    /// generations, at the same hearers.
    fn step(&mut self, s: &mut Simulation) {
        s.run_for(LOOK);
        let heard = core::mem::take(&mut self.tap.borrow_mut().heard);
        for (hearer, frame) in heard {
            // One false packet for each of the true ones before it.
            if !self.rng.next_u32().is_multiple_of(self.lie.one_in - 1) {
                continue;
            }
            let mut scratch = Vec::new();
            let Ok(opened) = self.cipher.open(&frame, &mut scratch) else { continue };
            let mut forged = Vec::new();
            Sealer::begin(&mut forged, opened.service, opened.kind);
            forged.extend_from_slice(opened.body);
            let mut error = [0; FALSE];
            self.rng.fill_bytes(&mut error);
            // Another vector, or another packet that is sent as it is.
            let payload = forged.len() - SYMBOL;
            forged[payload - 1] = (self.rng.next_u32() % 16) as u8;
            forged[payload..].iter_mut().zip(error).for_each(|(byte, e)| *byte ^= e);
            match self.lie.name {
                Name::Own => self.sealer.seal(&mut forged, Versions::OWN.newest),
                Name::Stolen | Name::InPlace => {
                    let header = opened.header;
                    let is_far = self.lie.name == Name::Stolen;
                    let ahead = if is_far { FAR_AHEAD } else { NEAR_AHEAD };
                    let counter = header.counter.saturating_add(ahead);
                    let cipher = self.cipher.clone();
                    Sealer::resume(cipher, header.sender, header.salt, counter)
                        .seal(&mut forged, Versions::OWN.newest);
                }
            }
            s.inject(hearer, &forged);
        }
    }
}

fn service(scheme: &str) -> ServiceId {
    registry().entries().find(|entry| entry.name == scheme).unwrap().id
}

fn stacks(s: &Simulation) -> impl Iterator<Item = &Stack> {
    (0..s.len()).filter_map(|node| s.host(node).stack())
}

fn has(s: &Simulation, node: usize) -> bool {
    let is_delivered = |observation: &Observation| matches!(observation, Observation::Delivered(_));
    s.observations().iter().any(|seen| seen.node == node && is_delivered(&seen.observation))
}

/// Returns a mesh whose file schemes send payloads of [`SYMBOL`] bytes.
fn start(loss: LossMatrix, seed: u64, trust: TrustMode) -> Simulation {
    let mut config = SimulationConfig { trust, ..mesh(loss, seed) };
    for entry in registry().of(ServiceKind::File) {
        let settings = toml::toml! { symbol_size = 1200 };
        config.engines.insert(entry.name.into(), settings.into());
    }
    settled(config)
}

/// A mesh, and the last node of it gets a file of node 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Line,
    /// Two ways from node 0 to node 3.
    Diamond,
}

impl Shape {
    fn start(self, seed: u64, trust: TrustMode) -> Simulation {
        match self {
            Self::Line => start(links(3, &[(0, 1, 0.1), (1, 2, 0.1)]), seed, trust),
            Self::Diamond => {
                let with = [(0, 1, 0.1), (1, 3, 0.1), (0, 2, 0.2), (2, 3, 0.2)];
                start(links(4, &with), seed, trust)
            }
        }
    }
}

/// False packets: the name that they are sent under, and the share of them, one in this number.
#[derive(Clone, Copy, Debug)]
struct Lie {
    name: Name,
    one_in: u32,
}

/// Outcome of a transfer beside a polluter.
struct Run {
    /// Time that it took; `None` if it took longer than a minute.
    seconds: Option<f64>,
    simulation: Simulation,
}

impl Run {
    /// Returns the ids that each node names for false packets.
    fn named(&self) -> Vec<Vec<u16>> {
        stacks(&self.simulation)
            .map(|stack| stack.liars().map(|liar| liar.node.0).collect())
            .collect()
    }

    /// Returns the frames of a kind that nodes sent by a scheme.
    fn sent(&self, scheme: &str, kind: u8) -> u64 {
        let service = service(scheme);
        let counters = stacks(&self.simulation).map(Stack::counters);
        counters.map(|counters| counters.sent(service, kind).frames).sum()
    }

    /// Returns the false packets that nodes found under an id.
    fn found(&self, id: NodeId) -> u64 {
        stacks(&self.simulation)
            .flat_map(Stack::liars)
            .filter(|liar| liar.node == id)
            .map(|l| l.packets)
            .sum()
    }
}

/// Sends a file beside a polluter. No wrong byte arrives.
fn run(scheme: &'static str, shape: Shape, seed: u64, lie: Option<Lie>) -> Run {
    let mut s = shape.start(seed, TrustMode::Key);
    let mut polluter = lie.map(|lie| Polluter::new(&mut s, lie));
    let last = s.len() - 1;
    let start = s.now();
    let flow = s.send_file(scheme, 0, Some(&[last]), contents(LEN)).unwrap();
    while !has(&s, last) && s.now().since(start) < Duration::from_secs(60) {
        match &mut polluter {
            Some(polluter) => polluter.step(&mut s),
            None => s.run_for(LOOK),
        }
    }
    let seconds = has(&s, last).then(|| s.now().since(start).as_secs_f64());
    if seconds.is_some() {
        assert_eq!(s.host(last).storage().received(flow), contents(LEN), "{scheme}");
    }
    Run { seconds, simulation: s }
}

/// Runs a scheme with and without lies, for some seeds. Returns the median share of the clean
/// goodput; 0 where a file did not arrive.
fn share(scheme: &'static str, shape: Shape, lie: Lie, check: impl Fn(&Run)) -> f64 {
    let mut shares: Vec<f64> = (1..=3)
        .map(|seed| {
            let clean = run(scheme, shape, seed, None).seconds.expect("a clean mesh");
            let beside = run(scheme, shape, seed, Some(lie));
            check(&beside);
            beside.seconds.map_or(0.0, |seconds| clean / seconds)
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    println!("{scheme} {shape:?} {lie:?}: {shares:.2?}");
    shares[1]
}

#[test]
fn cascade_leaves_out_who_lies_under_its_own_name_and_names_it() {
    for shape in [Shape::Line, Shape::Diamond] {
        for one_in in [16, 2] {
            let lie = Lie { name: Name::Own, one_in };
            let share = share("cascade", shape, lie, |run| {
                let named = run.named();
                let liars: Vec<&u16> = named.iter().flatten().collect();
                assert!(!liars.is_empty(), "{lie:?}: no node is named");
                assert!(liars.iter().all(|id| **id == MEMBER.0), "{lie:?}: {named:?}");
                // Two generations have 64 packets, at each of the nodes.
                let found = run.found(MEMBER);
                assert!(found <= 64, "{lie:?}: {found} false packets were taken");
            });
            assert!(share >= 0.8, "{shape:?} {lie:?}: {share}");
        }
    }
}

#[test]
fn cascade_leaves_out_false_packets_that_come_under_the_name_of_the_parent() {
    // In the diamond the receiver changes its parent back and forth, which costs half.
    for (shape, leasts) in [(Shape::Line, [0.7, 0.7, 0.7]), (Shape::Diamond, [0.45, 0.3, 0.15])] {
        for (one_in, least) in [16, 4, 2].into_iter().zip(leasts) {
            let lie = Lie { name: Name::Stolen, one_in };
            let share = share("cascade", shape, lie, |run| {
                // Checks were asked for, and the name under which the lies came is known.
                assert!(run.sent("cascade", CHECK) > 0);
                let named = run.named();
                assert!(named.iter().any(|liars| !liars.is_empty()));
                assert!(!named.iter().flatten().any(|id| *id == MEMBER.0));
            });
            assert!(share >= least, "{shape:?} {lie:?}: {share}");
        }
    }
}

/// Where each false frame takes the place of a true one, the member stops a link as by jamming.
#[test]
fn cascade_goes_on_while_false_frames_take_the_place_of_those_of_the_parent() {
    for shape in [Shape::Line, Shape::Diamond] {
        for (one_in, least) in [(16, 0.35), (4, 0.25), (2, 0.05)] {
            let lie = Lie { name: Name::InPlace, one_in };
            let share = share("cascade", shape, lie, |run| {
                // A name that was stolen is avoided for a while, and not for good.
                assert!(!run.named().iter().flatten().any(|id| *id == MEMBER.0));
            });
            assert!(share >= least, "{shape:?} {lie:?}: {share}");
        }
    }
}

#[test]
fn schemes_that_plan_leave_out_who_lies_under_its_own_name_and_name_it() {
    for scheme in ["pacifier", "more"] {
        for shape in [Shape::Line, Shape::Diamond] {
            for (one_in, least) in [(16, 0.75), (2, 0.35)] {
                let lie = Lie { name: Name::Own, one_in };
                let share = share(scheme, shape, lie, |run| {
                    let named = run.named();
                    let liars: Vec<&u16> = named.iter().flatten().collect();
                    assert!(!liars.is_empty(), "{scheme} {lie:?}: no node is named");
                    assert!(liars.iter().all(|id| **id == MEMBER.0), "{scheme} {lie:?}: {named:?}");
                });
                assert!(share >= least, "{scheme} {shape:?} {lie:?}: {share}");
            }
        }
    }
}

#[test]
fn schemes_that_plan_find_false_packets_under_the_name_of_the_sender() {
    for scheme in ["pacifier", "more"] {
        for shape in [Shape::Line, Shape::Diamond] {
            for (one_in, least) in [(16, 0.4), (2, 0.1)] {
                let lie = Lie { name: Name::Stolen, one_in };
                let share = share(scheme, shape, lie, |_| {});
                assert!(share >= least, "{scheme} {shape:?} {lie:?}: {share}");
            }
        }
    }
}

// ---- misuse of checks

/// Questions that were heard.
struct Questions {
    cipher: Cipher,
    heard: Vec<Vec<u8>>,
}

impl Observer for Questions {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Heard { frame, .. } = event.what {
            let mut scratch = Vec::new();
            if let Ok(opened) = self.cipher.open(frame, &mut scratch)
                && opened.service == service("cascade")
                && opened.kind == CHECK_REQUEST
            {
                self.heard.push(opened.body.to_vec());
            }
        }
        Ok(())
    }
}

/// Question or answer of a member.
#[derive(Clone, Copy)]
struct Forged {
    next_hop: NodeId,
    verifier: NodeId,
    flow: FlowId,
    generation: u32,
    nonce: [u8; 16],
}

impl Forged {
    fn seal(&self, sealer: &mut Sealer, kind: u8) -> Vec<u8> {
        let mut frame = Vec::new();
        Sealer::begin(&mut frame, service("cascade"), kind);
        let mut w = Writer::new(&mut frame);
        w.node(self.next_hop).node(self.verifier).flow(self.flow).u32(self.generation);
        w.bytes(&self.nonce);
        if kind == CHECK {
            w.bytes(&[7; 8 * 32]);
        }
        sealer.seal(&mut frame, Versions::OWN.newest);
        frame
    }
}

fn drops(s: &Simulation, node: usize, reason: DropReason) -> u64 {
    let counters = s.host(node).stack().unwrap().counters();
    counters.drops().find(|(known, _)| *known == reason).map_or(0, |(_, count)| count)
}

#[test]
fn questions_and_checks_without_need_are_dropped_and_counted() {
    let mut s = Shape::Line.start(1, TrustMode::Key);
    s.trust_all();
    let mut sealer = Sealer::new(s.config().cipher(), MEMBER, Salt([1; 16]));
    let flow = s.send_file("cascade", 0, Some(&[2]), contents(LEN)).unwrap();
    s.run_for(Duration::from_millis(300));
    let source = node_id(0);
    let asked = Forged { next_hop: source, verifier: MEMBER, flow, generation: 1, nonce: [3; 16] };

    // A generation that there is not, another transfer, and the source itself as the one that asks.
    let other = FlowId { serial: flow.serial.wrapping_add(1), ..flow };
    for (forged, reason) in [
        (Forged { generation: 9_999, ..asked }, DropReason::UnknownFlow),
        (Forged { flow: other, ..asked }, DropReason::UnknownFlow),
        (Forged { verifier: source, ..asked }, DropReason::Malformed),
    ] {
        let before = drops(&s, 0, reason);
        s.inject(0, &forged.seal(&mut sealer, CHECK_REQUEST));
        assert_eq!(drops(&s, 0, reason), before + 1);
    }

    // Checks of a node's own file, and those that nobody asked for.
    s.inject(0, &asked.seal(&mut sealer, CHECK));
    assert_eq!(drops(&s, 0, DropReason::Malformed), 2);
    let unasked = Forged { next_hop: node_id(2), verifier: node_id(2), ..asked };
    s.inject(2, &unasked.seal(&mut sealer, CHECK));
    assert_eq!(drops(&s, 2, DropReason::Stale), 1);

    // Floods, to the source and to a node on the way.
    for verifier in 1_000..2_000 {
        let invented = Forged { verifier: NodeId(verifier), ..asked };
        s.inject(0, &invented.seal(&mut sealer, CHECK_REQUEST));
        let on_the_way = Forged { next_hop: node_id(1), ..invented };
        s.inject(1, &on_the_way.seal(&mut sealer, CHECK_REQUEST));
    }
    assert!(drops(&s, 0, DropReason::Full) >= 900);
    assert!(drops(&s, 1, DropReason::Full) >= 700);

    let limit = s.now() + Duration::from_secs(60);
    assert!(s.run_until(limit, |s| has(s, 2)));
    assert_eq!(s.host(2).storage().received(flow), contents(LEN));
    let sent = s.host(0).stack().unwrap().counters().sent(service("cascade"), CHECK);
    assert!(sent.frames <= 64 * 5, "{} checks", sent.frames);
}

/// A member sends false packets and answers each question before the source does. Without
/// identities that takes the use of checks away, and nothing else; with them it is not believed.
#[test]
fn answers_in_the_name_of_the_source_cost_no_more_than_the_checks() {
    for trust in [TrustMode::Key, TrustMode::FirstUse] {
        let mut s = Shape::Line.start(1, trust);
        let mut polluter = Polluter::new(&mut s, Lie { name: Name::Stolen, one_in: 16 });
        let cipher = s.config().cipher();
        let questions = Questions { cipher: cipher.clone(), heard: Vec::new() };
        let questions = Rc::new(RefCell::new(questions));
        s.observe(Box::new(Rc::clone(&questions)));
        let mut sealer = Sealer::new(cipher, NodeId(78), Salt([2; 16]));

        let flow = s.send_file("cascade", 0, Some(&[2]), contents(LEN)).unwrap();
        let start = s.now();
        while !has(&s, 2) && s.now().since(start) < Duration::from_secs(60) {
            polluter.step(&mut s);
            for body in core::mem::take(&mut questions.borrow_mut().heard) {
                let mut r = Reader::new(&body[2..]);
                let verifier = r.node().unwrap();
                let flow = r.flow().unwrap();
                let generation = r.u32().unwrap();
                let nonce = r.array().unwrap();
                let answer = Forged { next_hop: verifier, verifier, flow, generation, nonce };
                s.inject(usize::from(verifier.0) - 1, &answer.seal(&mut sealer, CHECK));
            }
        }
        assert!(has(&s, 2), "{trust:?}");
        assert_eq!(s.host(2).storage().received(flow), contents(LEN));
        let untrusted: u64 = (0..3).map(|node| drops(&s, node, DropReason::Untrusted)).sum();
        assert_eq!(untrusted > 0, trust == TrustMode::FirstUse);
    }
}
