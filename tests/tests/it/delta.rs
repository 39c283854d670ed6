//! Live streams by `delta`: the base arrives whole over measured meshes, and trees heal.

use ncmesh_engine::registry::{Scheme, ServiceKind};
use ncmesh_engine::stream::NewStream;
use ncmesh_engine::stream::UtilityConfig;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engines::registry;
use ncmesh_sim::outcome::StreamReceiverOutcome;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Simulation, SimulationConfig, run};
use ncmesh_tests::{links, mesh, settled};
use ncmesh_wire::FlowId;
use std::ops::ControlFlow;
use std::path::Path;

const SCHEME: &str = "delta";
/// Rates of base and enhancement in kbit/s that fit each mesh.
const LAYERS: [u32; 2] = [100, 100];

/// Returns what each receiver got of a stream over a shipped scenario, in place of its traffic.
fn over(mesh: &str, from: &str, to: &[&str], settings: &str) -> Vec<StreamReceiverOutcome> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let path = root.join(mesh);
    let text = std::fs::read_to_string(&path).unwrap();
    let [base, enhancement] = LAYERS;
    let to: Vec<String> = to.iter().map(|node| format!("{{ node = \"{node}\" }}")).collect();
    let stream = format!(
        "\n[[stream]]\ngroup = \"tv\"\nfrom = \"{from}\"\npacket = 1200\nwarm_up_s = 5\n\
         seconds = 40\nlayers = [{{ name = \"base\", rate = \"{base}k\" }}, \
         {{ name = \"enh\", rate = \"{enhancement}k\" }}]\nreceivers = [{}]\n{settings}",
        to.join(", ")
    );
    let scenario =
        Scenario::parse(&format!("{text}{stream}"), mesh, path.parent().unwrap()).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let limit = Duration::from_secs(200);
    let outcome = run(&scenario, config, SCHEME, limit, vec![], |_| ControlFlow::Continue(()));
    outcome.unwrap().streams().unwrap().streams[0].receivers.clone()
}

fn assert_base_is_whole(mesh: &str, receivers: &[StreamReceiverOutcome]) {
    for receiver in receivers {
        assert_eq!(receiver.corrupt, 0, "{mesh}: {receiver:?}");
        assert!(receiver.layers[0].share >= 0.99, "{mesh}: {receiver:?}");
    }
}

#[test]
fn the_base_arrives_whole_over_measured_meshes() {
    for (mesh, from, to) in [
        ("building.toml", "n01", ["n05", "n09", "n14", "n20"]),
        ("freifunk.toml", "l060", ["l230", "l041", "l005", "l222"]),
        ("meshes/stuttgart.toml", "s1124", ["s633", "s1047", "s668", "s690"]),
    ] {
        let receivers = over(mesh, from, &to, "");
        assert_base_is_whole(mesh, &receivers);
    }
}

/// Packets of a layer: their length in bytes, and the time between two of them.
#[derive(Clone, Copy)]
struct Load {
    bytes: usize,
    interval: Duration,
}

/// A load that every mesh of these tests carries.
const LIGHT: Load = Load { bytes: 604, interval: Duration::from_millis(20) };

/// A mesh, and the packets of one layer that its members got.
struct Broadcast {
    sim: Simulation,
    scheme: Scheme,
    source: usize,
    flow: FlowId,
    /// When each packet was sent, by its number.
    sent: Vec<Instant>,
    /// Packets that arrived: node, number and time.
    arrived: Vec<(usize, usize, Instant)>,
}

impl Broadcast {
    fn new(config: SimulationConfig, source: usize) -> Self {
        let mut sim = settled(config);
        let scheme = registry().choose(ServiceKind::Stream, SCHEME).unwrap().scheme;
        let flow = sim
            .open_stream(
                scheme,
                source,
                NewStream { group: "tv", layers: &["base".to_owned()], deadline: None },
            )
            .unwrap();
        Self { sim, scheme, source, flow, sent: Vec::new(), arrived: Vec::new() }
    }

    fn join(&mut self, node: usize) {
        let utility = UtilityConfig { name: "linear".into(), ..UtilityConfig::default() };
        self.sim.join(self.scheme, node, "tv", utility).unwrap();
    }

    /// Sends a light load for this number of seconds.
    fn send(&mut self, seconds: u64) {
        self.send_load(seconds, LIGHT);
    }

    /// Sends packets for this number of seconds.
    fn send_load(&mut self, seconds: u64, load: Load) {
        let until = self.sim.now() + Duration::from_secs(seconds);
        while self.sim.now() < until {
            let mut packet = (self.sent.len() as u32).to_be_bytes().to_vec();
            packet.resize(load.bytes, 7);
            let sent = self.sim.send_stream_packet(self.scheme, self.source, self.flow, 0, &packet);
            sent.unwrap().unwrap();
            self.sent.push(self.sim.now());
            self.sim.run_for(load.interval);
        }
        for arrival in self.sim.take_stream_packets() {
            let number = u32::from_be_bytes(*arrival.packet.first_chunk().unwrap());
            self.arrived.push((arrival.to, number as usize, arrival.at));
        }
    }

    /// Returns the delay of the slowest of 100 packets from `first` on at a node.
    fn slowest(&self, node: usize, first: usize) -> Duration {
        let got = self.arrived.iter().filter(|(at, number, _)| *at == node && *number >= first);
        let mut delays: Vec<Duration> =
            got.map(|(_, number, at)| at.since(self.sent[*number])).collect();
        delays.sort_unstable();
        delays[delays.len() * 99 / 100]
    }

    /// Returns the share of the packets from `first` on that a node got.
    fn share(&self, node: usize, first: usize) -> f64 {
        let got = self.arrived.iter().filter(|(at, number, _)| *at == node && *number >= first);
        got.count() as f64 / (self.sent.len() - first) as f64
    }
}

#[test]
fn a_line_that_loses_a_third_of_the_frames_of_each_hop_carries_the_base() {
    let config = mesh(links(4, &[(0, 1, 0.3), (1, 2, 0.3), (2, 3, 0.3)]), 3);
    let mut broadcast = Broadcast::new(config, 0);
    broadcast.join(3);
    broadcast.send(2);
    let first = broadcast.sent.len();
    broadcast.send(20);
    // Packets that were sent last are still on their way.
    assert!(broadcast.share(3, first) >= 0.985, "{}", broadcast.share(3, first));
}

#[test]
fn six_hops_at_four_fifths_of_their_load_take_less_than_half_a_second() {
    let hops: Vec<(usize, usize, f64)> = (0..6).map(|hop| (hop, hop + 1, 0.2)).collect();
    let mut broadcast = Broadcast::new(mesh(links(7, &hops), 7), 0);
    broadcast.join(6);
    broadcast.send(2);
    let first = broadcast.sent.len();
    // 640 kbit/s: a shared channel carries 752 such frames in a second, and a packet needs 7.5.
    broadcast.send_load(10, Load { bytes: 1000, interval: Duration::from_micros(12_500) });
    assert!(broadcast.share(6, first) >= 0.98, "{}", broadcast.share(6, first));
    let slowest = broadcast.slowest(6, first);
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
}

#[test]
fn no_packet_arrives_after_its_deadline_and_none_twice() {
    let mut config = mesh(links(4, &[(0, 1, 0.4), (1, 2, 0.4), (2, 3, 0.4)]), 4);
    config.engines = toml::from_str("[delta]\ndeadline_ms = 100").unwrap();
    let mut broadcast = Broadcast::new(config, 0);
    broadcast.join(3);
    broadcast.send(20);
    assert!(broadcast.share(3, 100) > 0.7, "{}", broadcast.share(3, 100));
    let mut numbers: Vec<usize> = Vec::new();
    for (_, number, at) in &broadcast.arrived {
        let delay = at.since(broadcast.sent[*number]);
        // An age is rounded down at each hop, and does not count the time on the air.
        assert!(delay < Duration::from_millis(115), "packet {number}: {delay:?}");
        numbers.push(*number);
    }
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn the_base_is_whole_again_two_seconds_after_a_relay_died() {
    let ways = [(0, 1, 0.1), (0, 2, 0.1), (1, 3, 0.1), (2, 3, 0.1), (3, 4, 0.1)];
    for seed in 1..4 {
        let mut broadcast = Broadcast::new(mesh(links(5, &ways), seed), 0);
        broadcast.join(4);
        broadcast.send(5);
        let relays = [1, 2];
        let streams = |node: usize| broadcast.sim.host(node).stack().unwrap().streams();
        let relays = relays
            .into_iter()
            .filter(|node| streams(*node).iter().any(|(_, status)| !status.queues.is_empty()));
        let relays: Vec<usize> = relays.collect();
        assert_eq!(relays.len(), 1, "one of the two relays carries the stream");
        broadcast.sim.switch_off(relays[0]);
        broadcast.send(2);
        let first = broadcast.sent.len();
        broadcast.send(10);
        let share = broadcast.share(4, first);
        assert!(share >= 0.985, "seed {seed}: {share}");
    }
}

#[test]
fn a_node_that_joins_late_has_a_whole_second_within_three_and_one_that_left_gets_nothing() {
    let config = mesh(links(4, &[(0, 1, 0.2), (1, 2, 0.2), (2, 3, 0.2)]), 6);
    let mut broadcast = Broadcast::new(config, 0);
    broadcast.join(1);
    broadcast.send(5);
    broadcast.join(3);
    broadcast.send(2);
    let first = broadcast.sent.len();
    broadcast.send(1);
    let until = broadcast.sent.len();
    broadcast.send(1);
    let got = broadcast.arrived.iter();
    let got = got.filter(|(at, number, _)| *at == 3 && (first..until).contains(number)).count();
    assert_eq!(got, until - first);

    assert!(broadcast.sim.leave(broadcast.scheme, 3, "tv"));
    broadcast.send(1);
    let first = broadcast.sent.len();
    broadcast.send(5);
    assert_eq!(broadcast.share(3, first), 0.0);
    assert!(broadcast.share(1, first) >= 0.985);
    // Nodes that lead to no member take no part any more.
    let streams = broadcast.sim.host(2).stack().unwrap().streams();
    assert!(streams.iter().all(|(_, status)| status.queues.is_empty() && status.receivers == 0));
}
