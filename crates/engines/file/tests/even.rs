//! A complete file scheme, as an example: *Even* gives every forwarder the same credit.
//!
//! The documents include this file piece by piece (`docs/internals/example-scheme.md`), so they
//! cannot differ from what compiles and passes here. The scheme is from no paper.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use ncmesh_engine::Event;
use ncmesh_engine::file::{Allowance, BatchSet, FileLimits, Manifest, Outgoing, merkle};
use ncmesh_engine::registry::{Constructor, Entry, Registry};
use ncmesh_engine::settings::Section;
use ncmesh_engine::storage::MemoryStorage;
use ncmesh_engine::testing::symmetric;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::{Metric, Topology};
use ncmesh_engine::{TxReport, TxResult};
use ncmesh_engine_file::planned::{
    self, ChildWait, Forwarder, Forwarding, LAYOUTS, Plan, Routing, Scheme, Switching, frame,
};
use ncmesh_stack::{Stack, StackConfig};
use ncmesh_wire::{Cipher, FlowId, NodeId, Salt, ServiceId, Versions};
use std::collections::BTreeSet;

// --8<-- [start:config]
ncmesh_engine::settings! {
    /// `[even]` in `node.toml`, `[protocol.even]` in a scenario.
    #[derive(Clone, Debug, PartialEq)]
    struct EvenConfig {
        /// Packets each forwarder sends per packet received from upstream.
        credit: f64 = 1.0, within 0.1..=8.0, unit "packets";
        /// Packets of a batch (k).
        batch_size: u8 = 32, within 1..=255, unit "packets";
    }
}
// --8<-- [end:config]

// --8<-- [start:scheme]
/// Every inner node of the shortest-ETX tree forwards with the same credit.
#[derive(Clone, Debug, Default)]
struct Even {
    config: EvenConfig,
}

impl Scheme for Even {
    fn name(&self) -> &'static str {
        "even"
    }

    fn plan(&self, topology: &Topology, source: NodeId, receivers: &[NodeId]) -> Plan {
        // The inner nodes of the tree forward. Those next to the source are its children.
        let paths = topology.paths_from(source, Metric::Broadcast);
        let mut inner = BTreeSet::new();
        let mut first_hops = BTreeSet::new();
        for receiver in receivers {
            let path = paths.path_to(*receiver);
            first_hops.extend(path.first().copied());
            inner.extend(path.iter().rev().skip(1).copied());
        }

        // A node counts the forwarders listed before it as upstream.
        let mut forwarders: Vec<NodeId> = inner.into_iter().collect();
        forwarders.sort_by_key(|node| (paths.distance(*node), *node));
        let children: Vec<NodeId> =
            forwarders.iter().filter(|node| first_hops.contains(node)).copied().collect();

        // The source sends until its poorest first hop has everything.
        let worst = first_hops.iter().map(|k| topology.delivery(source, *k)).fold(1.0, f64::min);
        let credit = self.config.credit;
        let listed = forwarders.iter().map(|node| Forwarder::new(*node, credit)).collect();
        Plan {
            routing: Routing::Ordered(listed),
            source_transmissions: 1.0 / worst.max(0.01),
            children_credit: credit * children.len() as f64,
            children,
        }
    }

    fn forwarding(&self) -> Forwarding {
        Forwarding::Ordered
    }

    fn switching(&self) -> Switching {
        Switching::RoundRobin
    }

    fn child_wait(&self) -> Option<ChildWait> {
        None
    }

    fn batch_size(&self) -> u8 {
        self.config.batch_size
    }

    fn symbol_size(&self) -> Option<u16> {
        None
    }
}
// --8<-- [end:scheme]

// --8<-- [start:entry]
const ID: ServiceId = ServiceId(200);

/// Row of this scheme in a program's registry.
const EVEN: Entry = Entry {
    name: "even",
    id: ID,
    summary: "an example: the same credit for every forwarder",
    paper: "none",
    settings: EvenConfig::settings,
    layouts: LAYOUTS,
    read: |_, kind, body| frame::summary("even", kind, body),
    build: Constructor::File(|settings| {
        let config: EvenConfig = settings.parse()?;
        Ok(Box::new(planned::engine(ID, Even { config }, settings.file)))
    }),
};
// --8<-- [end:entry]

// --8<-- [start:plan]
#[test]
fn inner_nodes_forward() {
    let mesh = symmetric(&[(1, 2, 0.5), (2, 3, 0.9), (3, 4, 0.9)]);
    let plan = Even::default().plan(&mesh, NodeId(1), &[NodeId(4)]);
    assert_eq!(plan.routing.forwarders(), BTreeSet::from([NodeId(2), NodeId(3)]));
    assert_eq!(plan.children, [NodeId(2)]);
    assert!((plan.source_transmissions - 2.0).abs() < 1e-9);
}
// --8<-- [end:plan]

#[test]
fn settings_are_checked() {
    let config = |text: &str| {
        let config = toml::from_str::<EvenConfig>(text);
        config.map(|config| config.credit).map_err(|error| error.message().to_owned())
    };
    assert_eq!(config("credit = 2.5"), Ok(2.5));
    assert_eq!(config("credit = 9.0"), Err("credit = 9: allowed is 0.1 to 8 packets".into()));
    assert_eq!(
        config("batch_size = 0").unwrap_err(),
        "batch_size = 0: allowed is 1 to 255 packets"
    );
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
        let stack = Stack::new(config, Registry(&[EVEN]), Instant::default()).unwrap();
        Self { stack, storage: MemoryStorage::default() }
    }

    /// Does what a driver does on events: finds a place for a file, and says that it is complete.
    fn handle_events(&mut self, now: Instant) -> bool {
        let mut ended = false;
        while let Some(event) = self.stack.poll_event() {
            match event {
                Event::Announced(manifest) => {
                    let none = BatchSet::none(manifest.geometry.batches());
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
        std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let source = read("src/planned/scheme.rs");
    let (_, body) = source.split_once("pub trait Scheme").unwrap();
    let body = body.split("\n}").next().unwrap();
    let until = |text: &str, end| text.split(end).next().unwrap_or_default().to_owned();
    let methods: Vec<String> = body
        .lines()
        .filter_map(|line| Some(until(line.trim().strip_prefix("fn ")?, '(')))
        .collect();
    let page = read("../../../docs/internals/example-scheme.md");
    let (_, table) = page.split_once("| method of `Scheme` | returns |\n").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let named: Vec<String> =
        rows.map(|row| until(&until(row.trim_start_matches("| `"), '`'), '(')).collect();
    assert_eq!(named, methods);
}
