//! An adversary at work all the time, beside every engine: one without the network key, who changes
//! nothing, and one with it, who can slow a mesh down but neither stop nor corrupt a file.

use ncmesh_engine::registry::{Entry, ServiceKind};
use ncmesh_engine::rng;
use ncmesh_engine::stream::NewStream;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_sim::{Event, Observer, Simulation, SimulationConfig, What};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_tests::{contents, ended, links, mesh, settled};
use ncmesh_wire::{Cipher, NodeId, Salt, Sealer, Versions, frame};
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

/// Most frames that the adversary remembers.
const MEMORY: usize = 4096;
/// Time between two frames of the adversary.
const PAUSE: Duration = Duration::from_millis(10);
/// Packets that a tunnel or a stream carries in these tests.
const PACKETS: u32 = 800;
/// Packets that are sent while a member lies; then it stops.
const ATTACKED: u32 = 200;
/// Packets within which a service must have recovered from that.
const RECOVERY: u32 = 400;
/// Share of the packets that each tunnel carries while a member lies, at least.
const FLOOR: f64 = 0.06;

/// A diamond of five nodes with lossy links, which start as daemons do.
fn diamond(seed: u64) -> SimulationConfig {
    let with = [(0, 1, 0.1), (0, 2, 0.2), (1, 3, 0.1), (2, 3, 0.2), (3, 4, 0.1), (0, 3, 0.6)];
    SimulationConfig {
        link: LinkConfig::default(),
        route: RouteConfig::default(),
        ..mesh(links(5, &with), seed)
    }
}

/// Somebody who hears every frame of the mesh.
#[derive(Default)]
struct Tap {
    /// Frames and who heard them, in a ring.
    heard: Vec<(usize, Vec<u8>)>,
    next: usize,
}

impl Observer for Tap {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Heard { frame, .. } = event.what {
            let entry = (event.node, frame.to_vec());
            match self.heard.get_mut(self.next) {
                Some(oldest) => *oldest = entry,
                None => self.heard.push(entry),
            }
            self.next = (self.next + 1) % MEMORY;
        }
        Ok(())
    }
}

/// Actions of the adversary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attack {
    Nothing,
    /// It has no key.
    Outsider,
    /// It has the key and lies, for some time.
    Member,
}

/// A sender of bad frames. It uses no time on the channel: jamming needs no protocol.
struct Adversary {
    tap: Rc<RefCell<Tap>>,
    rng: ChaCha8Rng,
    cipher: Cipher,
    sealer: Sealer,
    attack: Attack,
}

impl Adversary {
    fn new(s: &mut Simulation, attack: Attack) -> Self {
        let tap = Rc::new(RefCell::new(Tap::default()));
        s.observe(Box::new(Rc::clone(&tap)));
        Self {
            tap,
            rng: rng::stream(3, NodeId(0), "tests", "adversary"),
            sealer: Sealer::new(s.config().cipher(), NodeId(77), Salt([1; 16])),
            cipher: s.config().cipher(),
            attack,
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        self.rng.next_u32() as usize % limit
    }

    /// Returns a frame of the mesh, and a node that heard it.
    fn overheard(&mut self) -> Option<(usize, Vec<u8>)> {
        let count = self.tap.borrow().heard.len();
        (count > 0).then(|| self.below(count)).map(|at| self.tap.borrow().heard[at].clone())
    }

    /// Without the key: a frame again to a node that heard it, a frame with one bit changed, or
    /// random bytes behind the header of a true frame.
    fn outsider(&mut self, s: &mut Simulation) {
        let Some((hearer, mut frame)) = self.overheard() else { return };
        match self.below(3) {
            0 => s.inject(hearer, &frame),
            1 => {
                let bit = self.below(8 * frame.len());
                frame[bit / 8] ^= 1 << (bit % 8);
                let node = self.below(s.len());
                s.inject(node, &frame);
            }
            _ => {
                let start = self.below(frame::HEADER_LEN + 1).min(frame.len());
                self.rng.fill_bytes(&mut frame[start..]);
                let node = self.below(s.len());
                s.inject(node, &frame);
            }
        }
    }

    /// With the key: true frames of all kinds with up to three bytes changed, of a node that does
    /// not exist and is believed to be a neighbour.
    fn member(&mut self, s: &mut Simulation) {
        let Some((_, frame)) = self.overheard() else { return };
        let mut scratch = Vec::new();
        let Ok(opened) = self.cipher.open(&frame, &mut scratch) else { return };
        let service = opened.service;
        let kind = opened.kind;
        let mut body = opened.body.to_vec();
        for _ in 0..self.below(4).min(body.len()) {
            let at = self.below(body.len());
            body[at] = self.rng.next_u32() as u8;
        }
        let mut forged = Vec::new();
        Sealer::begin(&mut forged, service, kind);
        forged.extend_from_slice(&body);
        self.sealer.seal(&mut forged, Versions::OWN.newest);
        let node = self.below(s.len());
        s.inject(node, &forged);
    }

    /// Stops lying.
    fn relent(&mut self) {
        if self.attack == Attack::Member {
            self.attack = Attack::Nothing;
        }
    }

    /// Lets the mesh run for one pause after the adversary has sent.
    fn step(&mut self, s: &mut Simulation) {
        match self.attack {
            Attack::Nothing => {}
            Attack::Outsider => self.outsider(s),
            Attack::Member => self.member(s),
        }
        s.run_for(PAUSE);
    }
}

/// Returns a mesh that has found itself, and the adversary beside it.
fn beside(attack: Attack, seed: u64) -> (Simulation, Adversary) {
    let mut s = settled(diamond(seed));
    s.trust_all();
    let adversary = Adversary::new(&mut s, attack);
    (s, adversary)
}

/// Outcome of a service beside an adversary.
struct Run {
    simulation: Simulation,
    /// Packets that were sent to each receiver, by whether they arrived as they were sent. A file
    /// has none.
    packets: Vec<bool>,
}

impl Run {
    /// Returns the share of these packets that arrived.
    fn share(&self, which: std::ops::Range<u32>) -> f64 {
        let arrived = which.clone().filter(|i| self.packets[*i as usize]).count();
        arrived as f64 / which.len() as f64
    }

    fn drops(&self) -> u64 {
        let stacks = (0..self.simulation.len()).filter_map(|n| self.simulation.host(n).stack());
        stacks.flat_map(|stack| stack.counters().drops()).map(|(_, count)| count).sum()
    }
}

/// Sends a file to all others, and checks that all have it soon after the adversary stopped.
fn file(scheme: &'static str, attack: Attack) -> Run {
    let (mut s, mut adversary) = beside(attack, 1);
    let start = s.now();
    let to = [1, 2, 3, 4];
    let flow = s.send_file(scheme, 0, Some(&to), contents(400_000)).expect("a file to send");
    while !ended(&s) {
        if s.now().since(start) > Duration::from_secs(20) {
            adversary.relent();
        }
        adversary.step(&mut s);
        assert!(s.now().since(start) < Duration::from_secs(240), "{scheme} did not end");
    }
    for node in to {
        assert_eq!(s.host(node).storage().received(flow), contents(400_000), "{scheme}");
    }
    Run { simulation: s, packets: Vec::new() }
}

/// Returns packet `i`: its number, and bytes that are always the same.
fn packet(i: u32) -> Vec<u8> {
    let mut packet = contents(300);
    packet[..4].copy_from_slice(&i.to_be_bytes());
    packet
}

/// Sends packets from one end of the mesh to the other by `send`, and waits for the last ones.
fn packets(
    mut s: Simulation,
    mut adversary: Adversary,
    send: impl Fn(&mut Simulation, u32),
    take: impl Fn(&mut Simulation) -> Vec<Vec<u8>>,
) -> Run {
    let mut arrived = BTreeSet::new();
    for i in 0..PACKETS + 100 {
        if i == ATTACKED {
            adversary.relent();
        }
        if i < PACKETS {
            send(&mut s, i);
        }
        adversary.step(&mut s);
        adversary.step(&mut s);
        arrived.extend(take(&mut s));
    }
    let packets = (0..PACKETS).map(|i| arrived.contains(&packet(i))).collect();
    Run { simulation: s, packets }
}

fn tunnel(scheme: &'static str, attack: Attack) -> Run {
    let send = |s: &mut Simulation, i| {
        // A full queue is a lost packet.
        let _ = s.send_packet(scheme, 0, 4, &packet(i));
    };
    let take = |s: &mut Simulation| s.take_packets().into_iter().map(|a| a.packet).collect();
    let (s, adversary) = beside(attack, 2);
    packets(s, adversary, send, take)
}

/// Streams a layer from one end to the other.
fn stream(scheme: &'static str, attack: Attack) -> Run {
    let (mut s, adversary) = beside(attack, 3);
    let utility = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
    let scheme = registry().scheme(scheme).expect("a scheme");
    s.join(scheme, 4, "group", utility).expect("a group");
    let flow = s
        .open_stream(
            scheme,
            0,
            NewStream { group: "group", layers: &["base".into()], deadline: None },
        )
        .expect("a stream");
    let send = |s: &mut Simulation, i| {
        // The engine limits what enters; what it refuses is a lost packet.
        let _ = s.send_stream_packet(scheme, 0, flow, 0, &packet(i)).expect("a node that runs");
    };
    let take = |s: &mut Simulation| s.take_stream_packets().into_iter().map(|a| a.packet).collect();
    packets(s, adversary, send, take)
}

/// Runs the service of an engine beside an adversary.
fn run(engine: &'static Entry, attack: Attack) -> Run {
    match engine.service() {
        ServiceKind::File => file(engine.name, attack),
        ServiceKind::Tunnel => tunnel(engine.name, attack),
        ServiceKind::Stream => stream(engine.name, attack),
    }
}

/// Whatever somebody without the key sends, every node sends the same frames at the same times.
#[test]
fn an_outsider_changes_nothing() {
    for engine in registry().entries() {
        let alone = run(engine, Attack::Nothing);
        let attacked = run(engine, Attack::Outsider);
        let hashes = [&alone, &attacked].map(|run| run.simulation.trace_hash());
        assert_eq!(hashes[0], hashes[1], "{}", engine.name);
        assert!(attacked.drops() > alone.drops() + 100, "{}: nothing was dropped", engine.name);
    }
}

/// One key for all cannot keep a member from disturbing what it can name. It can corrupt no file,
/// and nothing that it makes others believe outlasts it.
#[test]
fn a_member_that_lies_corrupts_no_file_and_stops_nothing_for_good() {
    for engine in registry().entries() {
        let attacked = run(engine, Attack::Member);
        if !attacked.packets.is_empty() {
            let during = attacked.share(0..ATTACKED);
            let after = attacked.share(ATTACKED + RECOVERY..PACKETS);
            let usual = run(engine, Attack::Nothing).share(ATTACKED + RECOVERY..PACKETS);
            let name = engine.name;
            println!(
                "{name}: {during:.2} while a member lies, {after:.2} of {usual:.2} afterwards"
            );
            assert!(during >= FLOOR, "{name}: {during} while a member lies");
            // A scheme that repairs nothing loses packets by chance: two deviations of that.
            let packets = f64::from(PACKETS - ATTACKED - RECOVERY);
            let chance = 2.0 * (2.0 * usual * (1.0 - usual) / packets).sqrt();
            assert!(after >= 0.95 * usual - chance, "{name}: {after} of {usual} afterwards");
        }
    }
}
