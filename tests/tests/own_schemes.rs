//! Schemes from outside, as `examples/own-scheme` adds them, carry what they are to carry.

#![allow(clippy::unwrap_used)] // Tests may.

#[path = "../../examples/own-scheme/src/even.rs"]
mod even;
#[path = "../../examples/own-scheme/src/ripple.rs"]
mod ripple;
#[path = "../../examples/own-scheme/src/twice.rs"]
mod twice;

use ncmesh_engine::file::{Allowance, FileLimits, GenerationSet, Manifest, Outgoing, merkle};
use ncmesh_engine::registry::{Registry, ServiceKind};
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::{Event, TxReport, TxResult};
use ncmesh_engines::registry;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Outcome, SimulationConfig, Step, run};
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::{Cipher, FlowId, NodeId, Salt, Versions};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Once;

/// Makes the schemes known, as a program does when it starts.
fn add() {
    static ADDED: Once = Once::new();
    let own = [even::EVEN, twice::TWICE, ripple::RIPPLE];
    ADDED.call_once(|| ncmesh_engines::add(&own).unwrap());
}

/// Runs a shipped scenario with a scheme.
fn simulate(scenario: &str, set: &[&str], scheme: &str) -> Outcome {
    add();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join(format!("../scenarios/{scenario}.toml"));
    let mut scenario = Scenario::load(&path).unwrap();
    set.iter().for_each(|set| scenario.set(set).unwrap());
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let go_on = |_: &Step<'_>| ControlFlow::Continue(());
    run(&scenario, config, scheme, Duration::from_secs(600), vec![], go_on).unwrap()
}

#[test]
fn they_stand_behind_those_of_the_project() {
    add();
    for (service, name) in [
        (ServiceKind::File, "even"),
        (ServiceKind::Tunnel, "twice"),
        (ServiceKind::Stream, "ripple"),
    ] {
        let names: Vec<&str> = registry().of(service).map(|entry| entry.name).collect();
        assert_eq!(names.last(), Some(&name));
        let error = registry().choose(service, &name[1..]).err().unwrap().to_string();
        assert!(error.ends_with(&format!("did you mean `{name}`?")), "{error}");
    }
}

#[test]
fn a_file_is_whole() {
    let outcome = simulate("line", &["traffic.size=200k"], "even");
    let receivers = outcome.services.transfer.unwrap().receivers;
    assert_eq!(receivers.len(), 1);
    assert!(receivers.iter().all(|receiver| receiver.verified));
}

#[test]
fn packets_arrive_both_ways() {
    // The ends do not hear each other, and no MAC repeats a broadcast.
    let flows = simulate("tunnel", &[], "twice").services.flows.unwrap().flows;
    assert_eq!(flows.len(), 2);
    for flow in flows {
        let taken = flow.taken.unwrap();
        assert!(taken > 300, "{taken}");
        assert!(flow.delivered as f64 > 0.7 * taken as f64, "{} of {taken}", flow.delivered);
        assert_eq!((flow.corrupt, flow.disordered), (Some(0), Some(0)));
    }
}

#[test]
fn a_stream_arrives() {
    // Two hops that lose a twentieth, and a relay that repeats nothing.
    let streams =
        simulate("../examples/own-scheme/stream", &[], "ripple").services.streams.unwrap().streams;
    for receiver in streams.iter().flat_map(|stream| &stream.receivers) {
        let base = &receiver.layers[0];
        assert!(base.share > 0.8, "{} gets {}", receiver.node, base.share);
        assert_eq!(receiver.corrupt, 0);
    }
}

/// A node of the mesh: its stack and its files.
struct Node {
    stack: Stack,
    storage: MemoryStorage,
}

impl Node {
    fn new(id: u16) -> Self {
        let config = StackConfig {
            node: NodeId(id),
            name: format!("n{id}"),
            profile: Default::default(),
            salt: Salt([1; 16]),
            epoch: 1,
            seed: 1,
            mtu: 1500,
            versions: Versions::OWN,
            cipher: Cipher::Null,
            trust: Default::default(),
            link: Default::default(),
            route: Default::default(),
            share: Default::default(),
            engines: toml::Table::new(),
            file: FileLimits::default(),
        };
        let stack = Stack::new(config, Registry(&[even::EVEN]), Instant::default()).unwrap();
        Self { stack, storage: MemoryStorage::default() }
    }

    /// Does what a driver does on events: finds a place for a file, and says that it is complete.
    fn handle_events(&mut self, now: Instant) -> bool {
        let mut ended = false;
        while let Some(event) = self.stack.poll_event() {
            match event {
                Event::Announced(manifest) => {
                    let none = GenerationSet::none(manifest.geometry.generations());
                    self.stack.at(now, &mut self.storage).accept(manifest.flow, &none);
                }
                Event::Assembled(flow) => self.stack.at(now, &mut self.storage).delivered(flow),
                Event::SendEnded(_) => ended = true,
                _ => {}
            }
        }
        ended
    }
}

// --8<-- [start:run]
#[test]
fn a_file_arrives_over_two_lossy_hops() {
    // n1, n2 and n3 in a line. Every fourth frame is lost.
    let mut nodes: Vec<Node> = (1..=3).map(Node::new).collect();
    let hears = |from: usize, to: usize| from.abs_diff(to) == 1;
    let mut now = Instant::default();
    let mut sent = 0_u32;
    let mut run = |nodes: &mut [Node], until: Duration| {
        let end = now + until;
        let mut ended = false;
        while now < end && !ended {
            now = now + Duration::from_millis(1);
            for from in 0..nodes.len() {
                let Node { stack, storage } = &mut nodes[from];
                if stack.poll_timeout().is_some_and(|due| due <= now) {
                    stack.at(now, storage).handle_timeout();
                }

                // One transmission: the node fills a frame, its neighbours hear it, the MAC
                // reports.
                let mut datagram = Vec::new();
                if stack.offer(now).is_some()
                    && stack.at(now, storage).fill(&mut datagram).is_some()
                {
                    for to in (0..nodes.len()).filter(|to| hears(from, *to)) {
                        sent += 1;
                        if !sent.is_multiple_of(4) {
                            let Node { stack, storage } = &mut nodes[to];
                            stack.at(now, storage).handle_datagram(&datagram);
                        }
                    }
                    let airtime = Duration::from_millis(1);
                    let report = TxReport { result: TxResult::Sent, airtime, heard_by: None };
                    let Node { stack, storage } = &mut nodes[from];
                    stack.at(now, storage).handle_tx_report(report);
                }
            }
            ended = nodes.iter_mut().fold(false, |ended, node| node.handle_events(now) | ended);
        }
        (now, ended)
    };

    // The nodes measure their links, then n1 sends 100 kB to n3.
    let (start, _) = run(&mut nodes, Duration::from_secs(10));
    let contents: Vec<u8> =
        (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let flow = FlowId { source: NodeId(1), serial: 7 };
    let Node { stack, storage } = &mut nodes[0];
    storage.provide(flow, contents.clone());
    let even = stack.scheme("even").unwrap();
    let geometry = stack.at(start, storage).geometry_for(even, 100_000).unwrap();
    let digest = merkle::digest(contents.as_slice(), &geometry).unwrap();
    let root = merkle::MerkleTree::new(digest.leaves.clone(), geometry.depth()).root();
    let manifest = Manifest { flow, name: "file".into(), geometry, root, hash: digest.whole };
    let outgoing = Outgoing {
        manifest,
        leaves: digest.leaves,
        receivers: vec![NodeId(3)],
        done: Default::default(),
        open: false,
        allowance: Allowance::default(),
    };
    stack.at(start, storage).send_file(even, outgoing).unwrap();

    let (_, ended) = run(&mut nodes, Duration::from_secs(60));
    assert!(ended, "the source learned that n3 has the file");
    assert_eq!(nodes[2].storage.received(flow), contents);
}
// --8<-- [end:run]

/// The page names every method of the trait, and no other.
#[test]
fn the_page_names_the_methods_of_the_trait() {
    let read = |path: &str| {
        std::fs::read_to_string(format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let source = read("crates/engines/file/src/planned/scheme.rs");
    let (_, body) = source.split_once("pub trait Scheme").unwrap();
    let body = body.split("\n}").next().unwrap();
    let until = |text: &str, end| text.split(end).next().unwrap_or_default().to_owned();
    let methods: Vec<String> = body
        .lines()
        .filter_map(|line| Some(until(line.trim().strip_prefix("fn ")?, '(')))
        .collect();
    let page = read("docs/internals/example-scheme.md");
    let (_, table) = page.split_once("| method of `Scheme` | returns |\n").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let named: Vec<String> =
        rows.map(|row| until(&until(row.trim_start_matches("| `"), '`'), '(')).collect();
    assert_eq!(named, methods);
}
