//! Nodes with identities: whose states they believe, how keys travel, what ends with a revocation.

// A helper outside the `#[test]` functions fails its test where it unwraps.
#![allow(clippy::unwrap_used)]

use ncmesh_engine::counters::DropReason;
use ncmesh_engine::file::FileLimits;
use ncmesh_engine::registry::Registry;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Profile;
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_stack::control::{HELLO, SERVICE};
use ncmesh_stack::link::LinkConfig;
use ncmesh_stack::route::RouteConfig;
use ncmesh_stack::trust::{
    FirstUse, KEYS, KEYS_WANTED, KNOWN_LISTS, Membership, Pin, REVOCATIONS, TrustConfig,
};
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::identity::{Authority, Certificate, Revocations, SecretKey, Subject, Validity};
use ncmesh_wire::prefix::Prefixes;
use ncmesh_wire::{Cipher, NodeId, Salt, Sealer, Versions, Writer};

/// Time between two looks at all nodes.
const TICK: Duration = Duration::from_millis(5);
/// Time in which a mesh of a few nodes learns all states and keys.
const SETTLED: Duration = Duration::from_secs(12);
const DAY: u64 = 86_400;
/// A member that lies under an id of its own.
const LIAR: NodeId = NodeId(66);
/// A date in 2026, seconds since 1970.
const TODAY: u64 = 1_790_000_000;

fn key(seed: u8) -> SecretKey {
    SecretKey::new(&[seed; 32].into())
}

fn network() -> SecretKey {
    key(200)
}

fn id(index: usize) -> NodeId {
    NodeId(index as u16 + 1)
}

fn name(index: usize) -> String {
    format!("n{}", index + 1)
}

/// Trust on first use, of a node whose key is made of a number.
fn first_use(seed: u8) -> TrustConfig {
    TrustConfig::FirstUse(Box::new(FirstUse { key: key(seed), pins: Vec::new() }))
}

/// Certificate of a node from a network.
fn certificate(network: &SecretKey, index: usize, serial: u32, expires: u64) -> Certificate {
    let subject = Subject {
        node: id(index),
        key: key(index as u8).public(),
        name: name(index),
        prefixes: Prefixes(vec!["10.0.1.0/24".parse().unwrap()]),
    };
    Certificate::issue(network, Validity { serial, issued: TODAY, expires }, subject)
}

fn certified(certificate: Certificate, authority: Authority) -> TrustConfig {
    let key = key(certificate.node.0 as u8 - 1);
    TrustConfig::Network(Box::new(Membership { key, certificate, authority, known: Vec::new() }))
}

/// Membership of a node in the network of [`network`].
fn member(index: usize) -> TrustConfig {
    let certificate = certificate(&network(), index, index as u32 + 1, TODAY + 30 * DAY);
    certified(certificate, Authority::new([network().public()]))
}

/// Nodes in a line. Frames reach both neighbours and are never lost.
struct Line {
    stacks: Vec<Stack>,
    storage: MemoryStorage,
    now: Instant,
    starts: u8,
    lies: u32,
    /// Node that hears none of the others meanwhile, and is not heard.
    deaf: Option<usize>,
}

impl Line {
    fn new(trusts: impl IntoIterator<Item = TrustConfig>) -> Self {
        let mut line = Self {
            stacks: Vec::new(),
            storage: MemoryStorage::default(),
            now: Instant::default(),
            starts: 0,
            lies: 0,
            deaf: None,
        };
        for (index, trust) in trusts.into_iter().enumerate() {
            let stack = line.stack(index, trust, Profile::default());
            line.stacks.push(stack);
        }
        line
    }

    fn stack(&mut self, index: usize, trust: TrustConfig, profile: Profile) -> Stack {
        let config = self.config(index, trust, profile);
        Stack::new(config, Registry(&[]), self.now).unwrap()
    }

    fn config(&mut self, index: usize, trust: TrustConfig, profile: Profile) -> StackConfig {
        self.starts += 1;
        StackConfig {
            node: id(index),
            name: name(index),
            profile,
            salt: Salt([self.starts; 16]),
            epoch: self.starts.into(),
            seed: self.starts.into(),
            mtu: 1500,
            versions: Versions::OWN,
            cipher: Cipher::Null,
            trust,
            link: LinkConfig { quick_hello_s: 0.05, ..LinkConfig::default() },
            route: RouteConfig::default(),
            share: Default::default(),
            engines: toml::Table::new(),
            file: FileLimits::default(),
        }
    }

    /// Starts a node again under another name.
    fn restart_as(&mut self, index: usize, trust: TrustConfig, name: &str) {
        let mut config = self.config(index, trust, Profile::default());
        config.name = name.to_owned();
        self.stacks[index] = Stack::new(config, Registry(&[]), self.now).unwrap();
    }

    /// Starts a node again.
    fn restart(&mut self, index: usize, trust: TrustConfig) {
        self.stacks[index] = self.stack(index, trust, Profile::default());
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.now + TICK;
            for index in 0..self.stacks.len() {
                if self.stacks[index].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.stacks[index].at(self.now, &mut self.storage).handle_timeout();
                }
                if self.stacks[index].offer(self.now).is_none() {
                    continue;
                }
                let mut frame = Vec::new();
                let sent = self.stacks[index].at(self.now, &mut self.storage).fill(&mut frame);
                if sent.is_none() {
                    continue;
                }
                let airtime = Duration::from_micros(500);
                let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
                self.stacks[index].at(self.now, &mut self.storage).handle_tx_report(report);
                for neighbour in [index.wrapping_sub(1), index + 1] {
                    if self.deaf.is_none_or(|deaf| ![index, neighbour].contains(&deaf)) {
                        self.hear(neighbour, &frame);
                    }
                }
            }
        }
    }

    fn hear(&mut self, index: usize, frame: &[u8]) {
        if let Some(stack) = self.stacks.get_mut(index) {
            stack.at(self.now, &mut self.storage).handle_datagram(frame);
        }
    }

    /// Returns the nodes whose states a node believes.
    fn believes(&self, index: usize) -> Vec<u16> {
        self.stacks[index].topology().states().map(|(node, _)| node.0).collect()
    }

    /// Returns how many frames of control of a kind a node has sent.
    fn sent(&self, index: usize, kind: u8) -> u64 {
        self.stacks[index].counters().sent(SERVICE, kind).frames
    }

    fn drops(&self, index: usize) -> u64 {
        self.stacks[index].counters().dropped(DropReason::Untrusted)
    }

    /// Lets a node hear a frame of control, as one that a member wrote in another node's name.
    fn forge(&mut self, index: usize, kind: u8, body: &[u8]) {
        let neighbour = index + 1;
        let counter = 50_000 + u32::from(self.starts) * 100;
        self.starts += 1;
        let sealer =
            Sealer::resume(Cipher::Null, id(neighbour), self.stacks[neighbour].salt(), counter);
        self.hear_from(sealer, index, kind, body);
    }

    /// Lets a node hear a frame of control that a member wrote under an id of its own.
    fn lie(&mut self, index: usize, kind: u8, body: &[u8]) {
        self.lie_as(LIAR, index, kind, body);
    }

    /// The same under an id that the member has invented.
    fn lie_as(&mut self, id: NodeId, index: usize, kind: u8, body: &[u8]) {
        self.lies += 1;
        let sealer = Sealer::resume(Cipher::Null, id, Salt([250; 16]), self.lies);
        self.hear_from(sealer, index, kind, body);
    }

    fn hear_from(&mut self, mut sealer: Sealer, index: usize, kind: u8, body: &[u8]) {
        let mut frame = Vec::new();
        Sealer::begin(&mut frame, SERVICE, kind);
        frame.extend_from_slice(body);
        sealer.seal(&mut frame, Versions::OWN.newest);
        self.stacks[index].trust_all();
        self.hear(index, &frame);
    }
}

/// Body of a hello with a whole state without links, unsigned.
fn hello_with(node: NodeId, name: &str) -> Vec<u8> {
    let mut body = Vec::new();
    let mut w = Writer::new(&mut body);
    w.u16(1000).u16(0).u16(0).u16(1).u64(0).u8(0).u8(0).u8(0).u8(0);
    w.node(node).u8(0xFF).u32(9).u16(0).u64(1 << 40).short_bytes(name.as_bytes()).u8(0);
    body
}

#[test]
fn signed_states_and_keys_cross_a_line_in_each_mode() {
    for trust in [first_use as fn(u8) -> TrustConfig, |seed| member(seed.into())] {
        let mut line = Line::new((0..5).map(trust));
        line.run(SETTLED);
        for index in 0..5 {
            assert_eq!(line.believes(index), [1, 2, 3, 4, 5], "node {index}");
            let known: Vec<_> = line.stacks[index].identities().collect();
            assert_eq!(known.len(), 5);
            for (node, known) in known {
                assert_eq!(known.key, key(node.0 as u8 - 1).public());
            }
            assert_eq!(line.stacks[index].identity_conflicts().count(), 0);
        }
    }
}

#[test]
fn states_in_the_name_of_others_change_nothing() {
    for trust in [first_use as fn(u8) -> TrustConfig, |seed| member(seed.into())] {
        let mut line = Line::new((0..4).map(trust));
        line.run(SETTLED);
        let states = |line: &Line| {
            let states = line.stacks[0].topology().states();
            states.map(|(node, state)| (node, state.clone())).collect::<Vec<_>>()
        };
        let before = states(&line);
        let dropped = line.drops(0);
        for victim in 1..=4 {
            line.forge(0, HELLO, &hello_with(NodeId(victim), "liar"));
        }
        assert_eq!(states(&line), before);
        assert_eq!(line.drops(0), dropped + 4);
        let conflicts: Vec<_> = line.stacks[0].identity_conflicts().map(|node| node.0).collect();
        assert_eq!(conflicts, [2, 3, 4]);
        // Nothing is answered either: the epoch stays.
        line.run(Duration::from_secs(2));
        assert_eq!(line.stacks[0].epoch(), 1);
    }
}

#[test]
fn a_name_belongs_to_its_key_at_once_and_while_its_node_is_away() {
    let mut line = Line::new([first_use(0), first_use(1), first_use(2)]);
    line.run(SETTLED);
    line.forge(0, HELLO, &hello_with(NodeId(77), "n3"));
    assert!(line.believes(0).contains(&77), "a node without an identity is believed");
    assert_eq!(line.stacks[0].node_named("n3"), Some(NodeId(3)));

    // In a network it is not believed, and takes no name.
    let mut line = Line::new((0..3).map(member));
    line.run(SETTLED);
    line.forge(0, HELLO, &hello_with(NodeId(77), "n3"));
    assert_eq!(line.believes(0), [1, 2, 3]);
    assert_eq!(line.stacks[0].node_named("n3"), Some(NodeId(3)));
}

#[test]
fn pins_outlast_a_restart_and_another_key_is_a_conflict() {
    let mut line = Line::new([first_use(0), first_use(1), first_use(2)]);
    line.run(SETTLED);
    let pins = |line: &Line| -> Vec<Pin> {
        let known = line.stacks[0].identities();
        known.map(|(node, known)| Pin { node, name: known.name.clone(), key: known.key }).collect()
    };
    let pinned = pins(&line);
    assert_eq!(pinned.len(), 3);
    let version = |line: &Line| line.stacks[0].topology().state(id(2)).unwrap().version;
    let told = version(&line);
    // The last node loses its key while the first one is away.
    line.restart(2, first_use(9));
    let key = key(0);
    line.restart(0, TrustConfig::FirstUse(Box::new(FirstUse { key, pins: pinned.clone() })));
    line.run(SETTLED);
    // The others go on telling what it told under its first key.
    assert_eq!(version(&line), told);
    assert_eq!(line.stacks[1].identity_conflicts().collect::<Vec<_>>(), [NodeId(3)]);
    assert_eq!(pins(&line), pinned);
}

/// Nodes get identities one by one.
#[test]
fn nodes_with_and_without_identities_live_side_by_side_on_first_use() {
    let mut line = Line::new([first_use(0), TrustConfig::Key, first_use(2), TrustConfig::Key]);
    line.run(SETTLED);
    // A node without an identity passes on keys, and signatures with the states.
    for index in 0..4 {
        assert_eq!(line.believes(index), [1, 2, 3, 4], "node {index}");
    }
    let known: Vec<_> = line.stacks[0].identities().map(|(node, _)| node.0).collect();
    assert_eq!(known, [1, 3]);
    // A node that has an identity is not believed without it.
    line.restart(2, TrustConfig::Key);
    line.run(SETTLED);
    assert!(line.stacks[0].identity_conflicts().any(|node| node == NodeId(3)));
}

#[test]
fn certificates_of_others_expired_or_missing_are_not_believed() {
    let other = certified(
        certificate(&key(201), 2, 3, TODAY + 30 * DAY),
        Authority::new([network().public(), key(201).public()]),
    );
    let expired =
        certified(certificate(&network(), 2, 3, TODAY - 1), Authority::new([network().public()]));
    for (about, trust) in
        [("another network", other), ("expired", expired), ("first use", first_use(2))]
    {
        let mut line = Line::new([member(0), member(1), trust]);
        line.run(SETTLED);
        assert_eq!(line.believes(0), [1, 2], "{about}");
        assert_eq!(line.believes(1), [1, 2], "{about}");
        assert!(line.drops(1) > 0, "{about}");
    }
}

#[test]
fn a_certificate_ends_by_a_clock_that_can_be_right_and_a_new_one_brings_the_node_back() {
    let short = || {
        let certificate = certificate(&network(), 2, 3, TODAY + DAY);
        certified(certificate, Authority::new([network().public()]))
    };
    for (clock, is_out) in [(0, false), (TODAY + 2 * DAY, true), (TODAY + 3650 * DAY, false)] {
        let mut line = Line::new([member(0), member(1), short()]);
        line.run(SETTLED);
        let now = line.now;
        let mut storage = MemoryStorage::default();
        line.stacks[1].at(now, &mut storage).set_clock(clock);
        line.run(SETTLED);
        assert_eq!(!line.believes(1).contains(&3), is_out, "{clock}");
    }
    let mut line = Line::new([member(0), member(1), short()]);
    line.run(SETTLED);
    let now = line.now;
    let mut storage = MemoryStorage::default();
    for stack in &mut line.stacks {
        stack.at(now, &mut storage).set_clock(TODAY + 2 * DAY);
    }
    line.run(SETTLED);
    assert_eq!(line.believes(0), [1, 2]);
    let certificate = certificate(&network(), 2, 9, TODAY + 30 * DAY);
    line.restart(2, certified(certificate, Authority::new([network().public()])));
    line.run(Duration::from_secs(60));
    assert_eq!(line.believes(0), [1, 2, 3]);
    assert_eq!(line.believes(1), [1, 2, 3]);
}

#[test]
fn a_revoked_node_is_out_everywhere_and_its_frames_are_dropped() {
    let mut line = Line::new((0..4).map(member));
    line.run(SETTLED);
    let lists = [Revocations::issue(&network(), 1, TODAY, vec![2])];
    let [list] = &lists;
    let mut body = Vec::new();
    list.write(&mut body);
    line.forge(0, REVOCATIONS, &body);
    line.forge(2, REVOCATIONS, &body);
    line.run(Duration::from_secs(20));
    for index in [0, 2, 3] {
        assert!(!line.believes(index).contains(&2), "node {index}");
        assert_eq!(line.stacks[index].revocations(), lists, "node {index}");
    }
    assert_eq!(line.stacks[0].inbound().count(), 0, "it is no neighbour any more");
    // A list that a liar shortened brings nothing back.
    let shortened = Revocations { number: 2, serials: Vec::new(), ..list.clone() };
    let mut body = Vec::new();
    shortened.write(&mut body);
    line.forge(0, REVOCATIONS, &body);
    assert_eq!(line.stacks[0].revocations()[0].number, 1);
}

#[test]
fn a_list_reaches_nodes_that_were_away() {
    let mut line = Line::new((0..3).map(member));
    line.run(SETTLED);
    let list = Revocations::issue(&network(), 1, TODAY, vec![99]);
    let mut body = Vec::new();
    list.write(&mut body);
    line.forge(0, REVOCATIONS, &body);
    line.run(SETTLED);
    line.restart(2, member(2));
    line.run(SETTLED);
    assert_eq!(line.stacks[2].revocations(), [list]);
}

#[test]
fn a_list_is_told_until_neighbours_have_it_and_no_longer() {
    let mut line = Line::new((0..4).map(member));
    line.run(SETTLED);
    let list = Revocations::issue(&network(), 1, TODAY, vec![99]);
    let mut body = Vec::new();
    list.write(&mut body);
    // The list crosses the line while a node hears nothing, for so long that it stays a neighbour.
    line.deaf = Some(2);
    line.forge(0, REVOCATIONS, &body);
    line.run(Duration::from_millis(2500));
    assert!(line.stacks[2].revocations().is_empty());
    line.deaf = None;
    line.run(Duration::from_secs(60));
    for index in 0..4 {
        let [known] = line.stacks[index].revocations() else { panic!("node {index}") };
        assert_eq!(known, &list, "node {index}");
    }
    let frames = |line: &Line| -> u64 {
        (0..4).map(|index| line.sent(index, REVOCATIONS) + line.sent(index, KNOWN_LISTS)).sum()
    };
    let told = frames(&line);
    assert!(told <= 40, "{told} frames");
    line.run(Duration::from_secs(300));
    assert_eq!(frames(&line), told, "all have it");
}

#[test]
fn without_a_list_nothing_is_said_about_lists() {
    let mut line = Line::new((0..3).map(member));
    line.run(Duration::from_secs(60));
    assert!((0..3).all(|index| line.sent(index, KNOWN_LISTS) == 0));
}

/// A member says that it has older lists again and again, under ids of others and of its own.
#[test]
fn lists_are_told_ever_less_often_to_nodes_that_do_not_take_them() {
    let mut line = Line::new((0..3).map(member));
    line.run(SETTLED);
    let mut body = Vec::new();
    Revocations::issue(&network(), 7, TODAY, vec![99]).write(&mut body);
    line.forge(0, REVOCATIONS, &body);
    line.run(SETTLED);
    let before = line.sent(0, REVOCATIONS);
    // No networks, and the first node is asked.
    let mut body = vec![0];
    Writer::new(&mut body).node(id(0));
    for round in 0..600 {
        line.lie_as(NodeId(1000 + round), 0, KNOWN_LISTS, &body);
        line.run(Duration::from_millis(100));
    }
    let told = line.sent(0, REVOCATIONS) - before;
    assert!((3..=14).contains(&told), "{told} lists in a minute");
}

#[test]
fn two_networks_count_while_a_key_is_changed() {
    let both = || Authority::new([network().public(), key(201).public()]);
    let old =
        |index| certified(certificate(&network(), index, index as u32 + 1, TODAY + DAY), both());
    let new =
        |index| certified(certificate(&key(201), index, index as u32 + 1, TODAY + DAY), both());
    let mut line = Line::new([old(0), new(1), old(2), new(3)]);
    line.run(SETTLED);
    for index in 0..4 {
        assert_eq!(line.believes(index), [1, 2, 3, 4], "node {index}");
    }
}

#[test]
fn a_node_announces_no_prefix_that_its_certificate_does_not_permit() {
    let mut line = Line::new([member(0), member(1)]);
    let prefixes = ["10.0.1.128/25", "0.0.0.0/1"].map(|prefix| prefix.parse().unwrap());
    let profile = Profile { prefixes: prefixes.to_vec(), ..Profile::default() };
    line.stacks[1] = line.stack(1, member(1), profile.clone());
    line.run(SETTLED);
    let told = |line: &Line| line.stacks[0].topology().state(id(1)).unwrap().profile.clone();
    assert_eq!(told(&line).prefixes, [prefixes[0]]);

    // One that has the key of a node and announces what it may not is not believed.
    let wide = Certificate::issue(
        &key(202),
        Validity { serial: 2, issued: TODAY, expires: TODAY + DAY },
        Subject {
            node: id(1),
            key: key(1).public(),
            name: name(1),
            prefixes: Prefixes(vec!["0.0.0.0/0".parse().unwrap()]),
        },
    );
    let liar = certified(wide, Authority::new([key(202).public(), network().public()]));
    let mut line = Line::new([member(0), member(1)]);
    line.run(SETTLED);
    line.stacks[1] = line.stack(1, liar, profile);
    line.run(SETTLED);
    assert!(told(&line).prefixes.is_empty());
    assert!(line.drops(0) > 0);
}

#[test]
fn a_lie_from_before_the_first_meeting_ends_with_the_first_signed_state() {
    let mut line = Line::new([first_use(0), first_use(1), first_use(2)]);
    // An epoch that node 3 will not come to.
    line.lie(0, HELLO, &hello_with(NodeId(3), "n3"));
    let epoch = |line: &Line| line.stacks[0].topology().state(NodeId(3)).unwrap().version.0;
    assert_eq!(epoch(&line), 1 << 40);
    line.run(SETTLED);
    // Neighbours had believed it, too.
    assert!(epoch(&line) < 1 << 40);
    assert!(line.stacks[0].identities().any(|(node, _)| node == NodeId(3)));
    assert_eq!(line.believes(0), [1, 2, 3]);
}

#[test]
fn a_node_with_a_certificate_for_another_key_is_believed_again_far_away_too() {
    let mut line = Line::new((0..4).map(member));
    line.run(SETTLED);
    let subject = Subject {
        node: id(3),
        key: key(77).public(),
        name: name(3),
        prefixes: Prefixes(Vec::new()),
    };
    let validity = Validity { serial: 9, issued: TODAY + 1, expires: TODAY + DAY };
    line.restart(
        3,
        TrustConfig::Network(Box::new(Membership {
            key: key(77),
            certificate: Certificate::issue(&network(), validity, subject),
            authority: Authority::new([network().public()]),
            known: Vec::new(),
        })),
    );
    line.run(Duration::from_secs(90));
    for index in 0..3 {
        let known = line.stacks[index].identities().find(|(node, _)| *node == id(3));
        assert_eq!(known.map(|(_, known)| known.key), Some(key(77).public()), "node {index}");
        assert_eq!(line.believes(index), [1, 2, 3, 4], "node {index}");
    }
}

#[test]
fn requests_of_others_put_off_an_own_one_once() {
    let mut line = Line::new([first_use(0), first_use(1), first_use(2)]);
    let mut body = Vec::new();
    let mut w = Writer::new(&mut body);
    w.node(NodeId(99)).node(NodeId(2)).node(NodeId(3));
    for _ in 0..120 {
        line.lie(0, KEYS_WANTED, &body);
        line.run(Duration::from_millis(100));
    }
    assert_eq!(line.believes(0), [1, 2, 3]);
}

/// A member that asks under ever new ids gets each key a few times, not as often as it asks.
#[test]
fn keys_are_told_ever_less_often_to_nodes_that_go_on_asking() {
    let mut line = Line::new([first_use(0), first_use(1), first_use(2)]);
    line.run(SETTLED);
    let before = line.sent(0, KEYS);
    let mut body = Vec::new();
    Writer::new(&mut body).node(id(0)).node(id(1));
    for round in 0..600 {
        line.lie_as(NodeId(1000 + round), 0, KEYS_WANTED, &body);
        line.run(Duration::from_millis(100));
    }
    let told = line.sent(0, KEYS) - before;
    assert!((4..=12).contains(&told), "{told} answers in a minute");
    // After some quiet it is told at once.
    line.run(Duration::from_secs(70));
    let before = line.sent(0, KEYS);
    line.lie(0, KEYS_WANTED, &body);
    line.run(Duration::from_millis(50));
    assert_eq!(line.sent(0, KEYS), before + 1);
}

#[test]
fn false_keys_told_unasked_keep_no_node_out() {
    let mut line = Line::new([first_use(0), first_use(1), first_use(2), first_use(3)]);
    for round in 0..400 {
        for victim in 2..=4_u16 {
            let key = key(100 + victim as u8).public();
            let body = [&victim.to_be_bytes()[..], &key.bytes()].concat();
            line.lie_as(NodeId(1000 + round), 0, KEYS, &body);
        }
        line.run(Duration::from_millis(50));
    }
    assert_eq!(line.believes(0), [1, 2, 3, 4]);
    for (node, known) in line.stacks[0].identities() {
        assert_eq!(known.key, key(node.0 as u8 - 1).public());
    }
}

#[test]
fn a_signed_state_does_not_take_the_name_of_a_node_without_an_identity() {
    let mut line = Line::new([first_use(0), first_use(1), TrustConfig::Key]);
    line.run(SETTLED);
    assert_eq!(line.stacks[0].node_named("n3"), Some(NodeId(3)));
    // The second node comes back under the name of the third one, and with an identity.
    let trust = first_use(1);
    line.restart_as(1, trust, "n3");
    line.run(Duration::from_secs(40));
    assert_eq!(line.stacks[0].topology().state(id(1)).unwrap().name, "n3");
    assert_ne!(line.stacks[0].node_named("n3"), Some(id(1)));
}

#[test]
fn a_state_with_more_links_than_a_node_can_pass_on_is_malformed() {
    let mut line = Line::new([first_use(0), first_use(1)]);
    let mut body = hello_with(NodeId(9), "n9");
    // The mark of an empty profile, and as many links as the mark is.
    body.pop();
    body.extend([255, 0, 255]);
    body.extend((1000..1255_u16).flat_map(|node| [node.to_be_bytes().as_slice(), &[9]].concat()));
    line.forge(0, HELLO, &body);
    assert_eq!(line.stacks[0].counters().dropped(DropReason::Malformed), 1);
    assert_eq!(line.stacks[0].topology().state(NodeId(9)), None);
}

#[test]
fn a_flood_of_false_signatures_is_bounded_by_what_a_neighbour_may_cause() {
    let mut line = Line::new([first_use(0), first_use(1), first_use(2)]);
    line.run(SETTLED);
    let mut body = hello_with(NodeId(3), "n3");
    // A profile with nothing but a signature, and no links.
    body.pop();
    body.extend([255, 8]);
    body.extend([7; 64]);
    body.push(0);
    // Each under a new id, and then under that of the neighbour, which told the truth before.
    let before = line.drops(0);
    for round in 0..200 {
        line.lie_as(NodeId(1000 + round), 0, HELLO, &body);
    }
    let checked = line.drops(0) - before;
    assert!((45..=55).contains(&checked), "{checked} checks");
    for _ in 0..200 {
        line.forge(0, HELLO, &body);
    }
    let checked = line.drops(0) - before;
    assert!((46..=100).contains(&checked), "{checked} checks");
    let full = line.stacks[0].counters().dropped(DropReason::Full);
    assert!(full >= 300, "{full} unread");
    line.run(SETTLED);
    assert_eq!(line.believes(0), [1, 2, 3]);
}
