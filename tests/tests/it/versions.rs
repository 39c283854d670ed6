//! Nodes of two releases in one mesh: the later one understands a version more.
//!
//! No release understands two versions yet. The later nodes here are this program's, told that a
//! version 3 exists whose layouts are those of version 2.

use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Event, TxReport, TxResult};
use ncmesh_engines::registry;
use ncmesh_stack::control::{self, HELLO};
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::{Cipher, Key, NodeId, Salt, Versions};
use std::collections::BTreeSet;

/// A release before the change, one that understands both versions, and one that has left the
/// older version behind.
const BEFORE: Versions = Versions { oldest: 2, newest: 2 };
const BETWEEN: Versions = Versions { oldest: 2, newest: 3 };
const AFTER: Versions = Versions { oldest: 3, newest: 3 };

/// Time after which all know all.
const SETTLED: Duration = Duration::from_secs(10);
/// Schemes by which packets are sent.
const SCHEMES: [&str; 2] = ["forward", "braid"];
/// Number of the frames that are looked at, at the end of a time.
const LATE: usize = 20;

/// A line of nodes, each of which hears the next and the one before. No frame is lost.
struct Line {
    /// None is switched off.
    nodes: Vec<Option<(Stack, MemoryStorage)>>,
    now: Instant,
    /// Sender and version of each frame sent, and whether it is a hello.
    sent: Vec<(usize, u8, bool)>,
    /// Frames that node 0 sent.
    recording: Vec<Vec<u8>>,
    packets: Vec<Vec<u8>>,
    starts: u8,
}

impl Line {
    fn of(kinds: &[Versions]) -> Self {
        let mut line = Self {
            nodes: kinds.iter().map(|_| None).collect(),
            now: Instant::default(),
            sent: Vec::new(),
            recording: Vec::new(),
            packets: Vec::new(),
            starts: 0,
        };
        for (node, versions) in kinds.iter().enumerate() {
            line.start(node, *versions);
        }
        line
    }

    /// Starts a node of a release, in place of what was there.
    fn start(&mut self, node: usize, versions: Versions) {
        self.starts += 1;
        let config = StackConfig {
            node: NodeId(node as u16 + 1),
            name: format!("n{node}"),
            profile: Default::default(),
            salt: Salt([self.starts; 16]),
            epoch: u64::from(self.starts) << 16,
            seed: u64::from(self.starts),
            mtu: 1472,
            versions,
            cipher: Cipher::new(&Key::new([5; 32])),
            trust: Default::default(),
            link: Default::default(),
            route: Default::default(),
            share: Default::default(),
            engines: toml::Table::new(),
            file: Default::default(),
        };
        let stack = Stack::new(config, registry(), self.now).unwrap();
        self.nodes[node] = Some((stack, MemoryStorage::default()));
    }

    fn stack(&mut self, node: usize) -> &mut Stack {
        &mut self.nodes[node].as_mut().unwrap().0
    }

    /// Hands a frame to a node that may be off.
    fn deliver(&mut self, node: usize, frame: &[u8]) {
        if let Some(Some((stack, storage))) = self.nodes.get_mut(node) {
            stack.at(self.now, storage).handle_datagram(frame);
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            for node in 0..self.nodes.len() {
                let mut frame = Vec::new();
                while let Some((stack, storage)) = &mut self.nodes[node] {
                    stack.at(self.now, storage).handle_timeout();
                    let Some(filled) = stack.at(self.now, storage).fill(&mut frame) else { break };
                    let is_hello = (filled.service, filled.kind) == (control::SERVICE, HELLO);
                    let airtime = Duration::from_micros(192 + frame.len() as u64);
                    self.now = self.now + airtime;
                    let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
                    stack.at(self.now, storage).handle_tx_report(report);
                    self.sent.push((node, frame[0] & 0x0F, is_hello));
                    if node == 0 {
                        self.recording.push(frame.clone());
                    }
                    for other in [node.wrapping_sub(1), node + 1] {
                        self.deliver(other, &frame);
                    }
                }
                let Some((stack, _)) = &mut self.nodes[node] else { continue };
                while let Some(event) = stack.poll_event() {
                    if let Event::Packet { packet, .. } = event {
                        self.packets.push(packet);
                    }
                }
            }
            let deadlines = self.nodes.iter().flatten().filter_map(|(s, _)| s.poll_timeout());
            self.now = self.now.max(deadlines.min().unwrap());
        }
    }

    /// Sends a packet from a node to the last one by two tunnel schemes. Returns those by which it
    /// arrives.
    fn arrives_by(&mut self, from: usize) -> Vec<&'static str> {
        let last = NodeId(self.nodes.len() as u16);
        let mut arrived = |scheme: &&str| {
            self.packets.clear();
            let now = self.now;
            let (stack, storage) = self.nodes[from].as_mut().unwrap();
            let scheme = stack.scheme(scheme).unwrap();
            stack.at(now, storage).send_packet(scheme, last, b"over two releases").unwrap();
            self.run(Duration::from_secs(2));
            self.packets.len() == 1
        };
        SCHEMES.into_iter().filter(|scheme| arrived(scheme)).collect()
    }

    /// Returns the versions of a node's last frames.
    fn speaks(&self, node: usize) -> BTreeSet<u8> {
        let last = self.sent.iter().rev().filter(|(sender, ..)| *sender == node);
        last.take(LATE).map(|(_, version, _)| *version).collect()
    }
}

#[test]
fn an_upgrade_node_by_node_is_no_flag_day() {
    // First all nodes get the release that understands both versions, then the one after it. A
    // node that restarts finds neighbours of either kind.
    let mut line = Line::of(&[BEFORE; 4]);
    line.run(SETTLED);
    assert_eq!(line.arrives_by(0), SCHEMES);
    for next in [BETWEEN, AFTER] {
        for node in [1, 3, 0, 2] {
            line.nodes[node] = None;
            line.run(Duration::from_secs(1));
            line.start(node, next);
            line.run(SETTLED);
            assert_eq!(line.arrives_by(0), SCHEMES, "{next:?} at {node}");
        }
        // All speak the newest version now, and say so.
        line.run(SETTLED);
        for node in 0..4 {
            let speaks = line.speaks(node);
            let shared = line.stack(node).shared_version();
            assert_eq!((speaks, shared), (BTreeSet::from([3]), 3), "{next:?} at {node}");
        }
    }
}

#[test]
fn only_those_next_to_an_older_node_speak_its_version() {
    let mut line = Line::of(&[BEFORE, BETWEEN, BETWEEN, BETWEEN]);
    line.run(SETTLED);
    assert_eq!(line.arrives_by(0), SCHEMES);
    let spoken = [0, 1, 2, 3].map(|node| line.speaks(node));
    assert_eq!(spoken, [2, 2, 3, 3].map(|version| BTreeSet::from([version])));
    let known = [1, 3].map(|id| line.stack(1).versions_of(NodeId(id)));
    assert_eq!(known, [Some(BEFORE), Some(BETWEEN)]);
}

#[test]
fn a_recording_of_an_older_node_changes_hellos_only_while_it_is_sent() {
    let mut line = Line::of(&[BEFORE, BETWEEN, BETWEEN]);
    line.run(SETTLED);
    // The older node goes for good. Somebody sends what it said when it began, again and again,
    // to a node that has started since.
    line.nodes[0] = None;
    line.start(1, BETWEEN);
    let recording = line.recording.clone();
    line.run(SETTLED);
    line.sent.clear();
    for frame in &recording[..10] {
        line.deliver(1, frame);
        line.run(Duration::from_secs(1));
    }
    assert_eq!(line.stack(1).shared_version(), 3);
    let others = |line: &Line| line.sent.iter().filter(|(_, _, is_hello)| !is_hello).count();
    let before = others(&line);
    assert_eq!(line.arrives_by(1), SCHEMES);
    assert!(line.sent.iter().all(|(_, version, is_hello)| *version == 3 || *is_hello));
    assert!(others(&line) > before && line.sent.contains(&(1, 2, true)));
    line.run(SETTLED * 6);
    assert_eq!(line.speaks(1), BTreeSet::from([3]));

    // Next to a node that could not read them, not even hellos change.
    let mut line = Line::of(&[BEFORE, BETWEEN, AFTER]);
    line.nodes[0] = None;
    line.start(1, BETWEEN);
    line.run(SETTLED);
    line.sent.clear();
    for frame in &recording[..10] {
        line.deliver(1, frame);
        line.run(Duration::from_secs(1));
    }
    assert_eq!(line.speaks(1), BTreeSet::from([3]));
}
