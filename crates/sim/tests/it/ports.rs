//! Nodes with several ports: two radios on two channels, a cable beside a radio, ports that fail.

use crate::support::outcome_of;
use ncmesh_console::Sink;
use ncmesh_console::schema::Message;
use ncmesh_engine::Port;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::topology::Metric;
use ncmesh_medium::{LossMatrix, MediumConfig, Phy, RadioId};
use ncmesh_sim::scenario::{Channel, Scenario};
use ncmesh_sim::{
    Capture, CapturePoints, Console, Event, EventLines, Observation, Observer, Outage, Outcome,
    Schemes, Simulation, SimulationConfig, What, node_id, run,
};
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::cell::RefCell;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

/// A link of both directions.
type Link = (usize, usize, f64);

fn losses(nodes: usize, links: &[Link]) -> LossMatrix {
    let mut all = LossMatrix::new(nodes);
    for (a, b, loss) in links {
        all.set(RadioId(*a), RadioId(*b), *loss).unwrap();
        all.set(RadioId(*b), RadioId(*a), *loss).unwrap();
    }
    all
}

/// Returns a channel of 11 Mbit/s with these links, and the nodes that are on it.
fn radio(nodes: usize, links: &[Link]) -> Channel {
    let medium = MediumConfig::dot11b(losses(nodes, links), 11_000_000);
    let name = "radio".to_owned();
    Channel { name, medium, nodes: links.iter().flat_map(|(a, b, _)| [*a, *b]).collect() }
}

/// Returns a cable between two nodes: a channel of its own that loses nothing.
fn cable(nodes: usize, a: usize, b: usize) -> Channel {
    let medium = MediumConfig::with_links(Phy::DOT11A, losses(nodes, &[(a, b, 0.0)]), 54_000_000);
    Channel { name: "cable".to_owned(), medium, nodes: [a, b].into() }
}

/// Returns the configuration of a scenario over these channels.
fn over(scenario: &Scenario, channels: Vec<Channel>) -> SimulationConfig {
    let mut config = SimulationConfig::from_scenario(scenario).unwrap();
    let mut channels = channels.into_iter();
    let first = channels.next().unwrap();
    config.absent = (0..config.names.len()).filter(|node| !first.nodes.contains(node)).collect();
    config.medium = first.medium;
    config.channels = channels.collect();
    config
}

fn outcome_over(scenario: &Scenario, channels: Vec<Channel>, scheme: &str) -> Outcome {
    let limit = Duration::from_secs(300);
    let config = over(scenario, channels);
    run(scenario, config, scheme, limit, vec![], |_| ControlFlow::Continue(())).unwrap()
}

/// A relay that hears two nodes which do not hear each other. Frames are long for the rate: of two
/// stations on one channel one waits for the other instead of the channel, so that short frames
/// would hide a part of what the second channel brings.
const RELAY: &str = r#"
name = "relay"
sealed = false
nodes = ["a", "r", "b"]
medium = { phy = "802.11b", bit_rate = "2M" }
link = [{ from = "a", to = "r", loss = 0.0 }, { from = "r", to = "b", loss = 0.0 }]
protocol.link = { quick_hello_s = 0.1 }
flow = [{ from = "a", to = "b", warm_up_s = 5, seconds = 20 }]
"#;

fn at_2m(nodes: usize, links: &[Link]) -> Channel {
    let mut channel = radio(nodes, links);
    channel.medium = MediumConfig::dot11b(losses(nodes, links), 2_000_000);
    channel
}

fn throughput(outcome: &Outcome) -> f64 {
    outcome.flows().unwrap().flows[0].throughput_bps
}

#[test]
fn a_relay_with_two_radios_on_two_channels_carries_twice_as_much() {
    let scenario = Scenario::parse(RELAY, "", Path::new("")).unwrap();
    for scheme in ["forward", "braid"] {
        let one = throughput(&outcome_of(RELAY, scheme, 300));
        let radios = vec![at_2m(3, &[(0, 1, 0.0)]), at_2m(3, &[(1, 2, 0.0)])];
        let two = throughput(&outcome_over(&scenario, radios, scheme));
        println!("{scheme}: {one} {two} {}", two / one);
        assert!(two >= 1.9 * one, "{scheme}: {one} with one radio, {two} with two");
    }
}

#[test]
fn two_radios_halve_the_time_of_a_file_over_a_relay() {
    let time = |channels: Vec<Channel>| {
        let mut sim = mesh(3, channels);
        let begun = sim.now();
        sim.send_file("cascade", 0, Some(&[2]), contents()).unwrap();
        let end = until_delivered(&mut sim, 1).unwrap();
        end.since(begun).as_secs_f64()
    };
    let one = time(vec![radio(3, &[(0, 1, 0.1), (1, 2, 0.1)])]);
    let two = time(vec![radio(3, &[(0, 1, 0.1)]), radio(3, &[(1, 2, 0.1)])]);
    println!("{one} {two}");
    assert!(two <= 0.65 * one, "{one} s with one radio, {two} s with two");
}

/// Engines that know nothing of ports carry what they carry on any node.
#[test]
fn engines_that_serve_no_ports_carry_over_two_radios() {
    let radios = || vec![radio(3, &[(0, 1, 0.1)]), radio(3, &[(1, 2, 0.1)])];
    for scheme in ["pacifier", "more", "etx_unicast", "tree_flood"] {
        let mut sim = mesh(3, radios());
        sim.send_file(scheme, 0, None, contents()[..100_000].to_vec()).unwrap();
        assert!(until_delivered(&mut sim, 2).is_some(), "{scheme}");
    }
    for scheme in ["xor", "core_nc", "cope", "mc2"] {
        let mut sim = mesh(3, radios());
        let mut sent = 0;
        while sent < 200 {
            if sim.can_send(scheme, 0, 2) {
                sent += usize::from(sim.send_packet(scheme, 0, 2, &[1; 500]).is_ok());
            }
            sim.run_for(Duration::from_millis(10));
        }
        sim.run_for(Duration::from_secs(5));
        let arrived = sim.take_packets().len();
        println!("{scheme}: {arrived} of {sent}");
        assert!(arrived as f64 >= 0.9 * sent as f64, "{scheme}: {arrived} of {sent}");
    }
}

/// Keys and certificates reach the nodes behind every port.
#[test]
fn nodes_of_a_network_believe_each_other_across_ports() {
    let text = RELAY.replace("sealed = false", "trust = \"network\"");
    let scenario = Scenario::parse(&text, "", Path::new("")).unwrap();
    let radios = vec![radio(3, &[(0, 1, 0.1)]), radio(3, &[(1, 2, 0.1)])];
    let mut sim = Simulation::new(over(&scenario, radios)).unwrap();
    sim.run_for(Duration::from_secs(10));
    for node in 0..3 {
        let stack = sim.host(node).stack().unwrap();
        assert_eq!(stack.identities().count(), 3, "node {node}");
        assert_eq!(stack.topology().states().count(), 3, "node {node}");
    }
}

/// Two cells of three nodes that two relays join, over links that lose.
const CELLS: [Link; 9] = [
    (0, 1, 0.1),
    (0, 2, 0.1),
    (1, 2, 0.1),
    (2, 3, 0.3),
    (3, 4, 0.3),
    (4, 5, 0.3),
    (5, 6, 0.1),
    (5, 7, 0.1),
    (6, 7, 0.1),
];
const SIZE: usize = 1_000_000;

/// Returns a mesh of `nodes` over these channels that has measured its links.
fn mesh(nodes: usize, channels: Vec<Channel>) -> Simulation {
    let names: Vec<String> = (0..nodes).map(|node| format!("\"n{node}\"")).collect();
    let names = names.join(", ");
    let text = format!(
        "name = \"mesh\"\nsealed = false\nnodes = [{names}]\nprotocol.link = {{ quick_hello_s = \
         0.1 }}\nmedium = {{ phy = \"802.11b\", bit_rate = \"11M\" }}\n"
    );
    let scenario = Scenario::parse(&text, "", Path::new("")).unwrap();
    let mut sim = Simulation::new(over(&scenario, channels)).unwrap();
    sim.run_for(Duration::from_secs(5));
    sim
}

fn contents() -> Vec<u8> {
    (0..SIZE).map(|i| (i * i / 7) as u8).collect()
}

/// Runs until the file is at `receivers`. Returns when that was.
fn until_delivered(sim: &mut Simulation, receivers: usize) -> Option<Instant> {
    let delivered = |sim: &Simulation| {
        let all = sim.observations().iter();
        all.filter(|seen| matches!(seen.observation, Observation::Delivered(_))).count()
    };
    let end = sim.now() + Duration::from_secs(300);
    sim.run_until(end, |sim| delivered(sim) == receivers).then(|| sim.now())
}

#[test]
fn a_cable_across_brings_a_file_sooner_and_carries_each_packet_once() {
    let time = |channels: Vec<Channel>| {
        let mut sim = mesh(8, channels);
        let begun = sim.now();
        sim.send_file("cascade", 0, None, contents()).unwrap();
        let end = until_delivered(&mut sim, 7).unwrap();
        (end.since(begun).as_secs_f64(), sim)
    };
    let (without, _) = time(vec![radio(8, &CELLS)]);
    let (with, sim) = time(vec![radio(8, &CELLS), cable(8, 0, 5)]);
    let cabled = &sim.channel_statistics(1).radios[0];
    println!("{without} s without, {with} s with; {cabled:?}");
    assert!(with <= 0.6 * without, "{without} s without, {with} s with the cable");
    // A packet takes about 1,300 bytes of the file, and there are hellos.
    let most = SIZE as u64 / 1300 + 50;
    assert!(cabled.frames_sent <= most, "{} frames over the cable", cabled.frames_sent);
}

/// Returns two nodes with a radio and a cable between them.
fn pair() -> Simulation {
    mesh(2, vec![radio(2, &[(0, 1, 0.0)]), cable(2, 0, 1)])
}

fn port_of(sim: &Simulation) -> Port {
    sim.host(0).stack().unwrap().port_to(node_id(1))
}

#[test]
fn a_neighbour_behind_two_ports_is_one_that_is_reached_by_the_quicker() {
    let sim = pair();
    let stack = sim.host(0).stack().unwrap();
    assert_eq!(stack.inbound().count(), 1);
    assert_eq!(port_of(&sim), Port::new(1).unwrap());
    assert!(stack.ports().all(|port| stack.inbound_on(port).count() == 1));
}

#[test]
fn what_a_node_carries_goes_on_by_another_port_when_one_fails() {
    for (scheme, sees) in [("braid", true), ("braid", false), ("forward", true)] {
        let mut sim = pair();
        let flow = sim.send_file("cascade", 0, None, contents()).unwrap();
        let mut sent = 0;
        let mut arrived = 0;
        let mut cut_at = None;
        let mut moved_at = None;
        while sent < 1500 {
            if sim.can_send(scheme, 0, 1) {
                sent += u32::from(sim.send_packet(scheme, 0, 1, &[1; 500]).is_ok());
            }
            sim.run_for(Duration::from_millis(4));
            if sent == 20 && cut_at.is_none() {
                assert!(sim.observations().is_empty(), "the file is under way");
                cut_at = Some(sim.now());
                for node in [0, 1] {
                    sim.set_on_channel(node, 1, false, sees);
                }
            }
            if cut_at.is_some() && moved_at.is_none() && port_of(&sim) == Port::FIRST {
                moved_at = Some(sim.now());
            }
            arrived += sim.take_packets().len();
        }
        assert!(until_delivered(&mut sim, 1).is_some(), "{scheme} {flow:?}");
        sim.run_for(Duration::from_secs(5));
        arrived += sim.take_packets().len();
        let took = moved_at.unwrap().since(cut_at.unwrap());
        println!("{scheme} {sees}: {took:?} {arrived} of {sent}");
        assert!(took < Duration::from_secs(2), "{took:?}");
        let most_lost = if scheme == "forward" { 2 } else { 0 };
        assert!(arrived as u32 + most_lost >= sent, "{scheme} {sees}: {arrived} of {sent}");
    }
}

#[test]
fn channels_that_are_not_of_one_mesh_are_refused() {
    let scenario = Scenario::parse(RELAY, "", Path::new("")).unwrap();
    let refused = |channels: Vec<Channel>| {
        let made = Simulation::new(over(&scenario, channels));
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let line = [(0, 1, 0.0), (1, 2, 0.0)];
    assert_eq!(
        refused(vec![radio(3, &line), cable(2, 0, 1)]),
        "channel 1 has 2 radios for 3 nodes"
    );
    let only_two = vec![radio(3, &line[..1]), cable(3, 0, 1)];
    assert_eq!(refused(only_two), "node 2 is on 0 channels: 1 to 8 are allowed");
    let mut many = vec![radio(3, &line)];
    many.extend((0..63).map(|_| cable(3, 0, 1)));
    assert_eq!(refused(many), "node 0 is on 64 channels: 1 to 8 are allowed");
}

/// A scenario file says the same as the channels above.
const TWO_RADIOS: &str = r#"
name = "relay"
sealed = false
nodes = ["a", "r", "b"]
medium = { phy = "802.11b", bit_rate = "2M" }
channel = [{ name = "up" }, { name = "cable", phy = "802.11a", bit_rate = "54M" }]
link = [
    { from = "a", to = "r", loss = 0.0 },
    { from = "r", to = "b", loss = 0.0, channel = "up" },
    { from = "a", to = "r", wired = true, channel = "cable" },
]
protocol.link = { quick_hello_s = 0.1 }
flow = [{ from = "a", to = "b", warm_up_s = 5, seconds = 20 }]
"#;

#[test]
fn a_scenario_file_has_further_channels() {
    let scenario = Scenario::parse(TWO_RADIOS, "", Path::new("")).unwrap();
    assert_eq!(scenario.absent, [2].into());
    let nodes: Vec<Vec<usize>> =
        scenario.channels.iter().map(|channel| channel.nodes.iter().copied().collect()).collect();
    assert_eq!(nodes, [vec![1, 2], vec![0, 1]]);
    let rates = scenario.channels.iter().map(|channel| channel.medium.bit_rate_bps);
    assert_eq!(rates.collect::<Vec<_>>(), [2_000_000, 54_000_000]);
    assert_eq!(scenario.deliveries().len(), 4, "a link on two channels is one");

    // By cable and radio the relay carries as much as the radio alone.
    let outcome = outcome_of(TWO_RADIOS, "braid", 300);
    assert!(throughput(&outcome) > 1.5e6, "{outcome:?}");
}

#[test]
fn mistakes_in_channels_are_named() {
    let problem = |old: &str, new: &str| {
        let text = TWO_RADIOS.replace(old, new);
        assert_ne!(text, TWO_RADIOS);
        let error = Scenario::parse(&text, "s.toml", Path::new("")).unwrap_err().to_string();
        error.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(
        problem("channel = \"up\"", "channel = \"u\""),
        "no `[[link]]` has `channel = \"up\"`"
    );
    let unknown = problem(
        "loss = 0.0 },\n    { from = \"r\"",
        "loss = 0.0, channel = \"x\" },\n    { from = \"r\"",
    );
    assert_eq!(unknown, "no `[[channel]]` is named `x`");
    assert!(problem("\"cable\", phy", "\"up\", phy").starts_with("two channels are named `up`"));
    assert_eq!(
        problem("name = \"up\"", "name = \"air\""),
        "the channel of [medium] is called `air`"
    );
    let slotted = problem("bit_rate = \"2M\"", "bit_rate = \"2M\", mac = \"slotted\"");
    assert_eq!(slotted, "further channels need `mac = \"dcf\"` of [medium]");
    let measured = problem(
        "protocol.link",
        "measure = { seconds = 9, period_s = 0.1, bytes = 100 }\nprotocol.link",
    );
    assert_eq!(measured, "on several channels nodes measure their links themselves");
}

/// Output that the test reads after the observer that wrote it.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A frame of a capture: its interface, and the address that it is sent to.
type Captured = (String, Vec<u8>);

fn captured(file: &[u8]) -> Vec<Captured> {
    let mut reader = PcapNgReader::new(file).unwrap();
    let mut frames = Vec::new();
    let mut names: Vec<String> = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.unwrap().into_owned() {
            Block::InterfaceDescription(interface) => {
                let name = interface.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                names.extend(name);
            }
            Block::EnhancedPacket(packet) => {
                // The 802.11 header follows radiotap, whose length is in its third byte.
                let start = usize::from(packet.data[2]) + 4;
                let to = packet.data[start..start + 6].to_vec();
                frames.push((names[packet.interface_id as usize].clone(), to));
            }
            _ => {}
        }
    }
    frames
}

#[test]
fn a_capture_tells_ports_apart_and_a_frame_keeps_its_destination() {
    let scenario = Scenario::parse(TWO_RADIOS, "", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let capture = Shared::default();
    let lines = Shared::default();
    let points = CapturePoints::Nodes([1, 2].into());
    let mut writer = Capture::new(capture.clone(), &config, &points).unwrap();
    let mut events = EventLines::new(lines.clone(), &config);
    let mut tell = |node, what| {
        let event = Event { at: Instant::from_nanos(5), node, what };
        writer.observe(&event).unwrap();
        events.observe(&event).unwrap();
    };

    // While the relay's frame for b is on one channel, it sends to all on two others.
    let frame = &[0xC2; 9];
    tell(1, What::Sent { channel: 1, to: Some(node_id(2)), frame });
    tell(1, What::Sent { channel: 0, to: None, frame });
    tell(1, What::Sent { channel: 2, to: None, frame });
    tell(2, What::Heard { channel: 1, from: 1, frame, power: None });

    let everyone = vec![0xFF; 6];
    let to_b = vec![0x02, b'n', b'c', b'm', 0, 3];
    let expected = [("r up", &to_b), ("r air", &everyone), ("r cable", &everyone), ("b up", &to_b)];
    assert_eq!(
        captured(&capture.0.take()),
        expected.map(|(name, to)| (name.to_owned(), to.clone()))
    );
    let lines = String::from_utf8(lines.0.take()).unwrap();
    let on: Vec<&str> = lines
        .lines()
        .map(|line| line.split("\"channel\":\"").nth(1).unwrap().split('"').next().unwrap())
        .collect();
    assert_eq!(on, ["up", "air", "cable", "up"]);
}

#[test]
fn a_console_counts_the_frames_of_all_channels_and_names_them() {
    let scenario = Scenario::parse(TWO_RADIOS, "", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let mut sim = Simulation::new(config.clone()).unwrap();
    let schemes = Schemes::read("braid", ServiceKind::Tunnel).unwrap();
    let told = Told::default();
    sim.observe(Box::new(Console::new(&scenario, &config, &schemes, told.clone())));
    sim.run_for(Duration::from_secs(5));
    sim.finish().unwrap();

    let told = told.0.take();
    let Some(Message::Meta(meta)) = told.first() else { panic!("{told:?}") };
    let ports = |from: u16, to: u16| {
        let link = meta.links.iter().position(|link| (link.from, link.to) == (from, to)).unwrap();
        (link, meta.links[link].ports.clone())
    };
    assert_eq!(ports(1, 2).1, ["air", "cable"]);
    let (up, on) = ports(3, 2);
    assert_eq!(on, ["up"]);
    let mut keys = told.iter().filter_map(|message| match message {
        Message::Key(key) => Some(key),
        _ => None,
    });
    let heard = keys.next_back().unwrap().links.heard[up].unwrap();
    assert!(heard.0 > 5, "{heard:?}");
}

/// Messages that a console got.
#[derive(Clone, Default)]
struct Told(Rc<RefCell<Vec<Message>>>);

impl Sink for Told {
    fn tell(&mut self, message: &Message) -> io::Result<()> {
        self.0.borrow_mut().push(message.clone());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Two nodes that a radio and a cable join.
const ROOF: &str = r#"
name = "roof"
sealed = false
nodes = ["a", "b"]
medium = { phy = "802.11a", bit_rate = "6M" }
channel = [{ name = "cable", bit_rate = "54M" }]
link = [
    { from = "a", to = "b", loss = 0.1 },
    { from = "a", to = "b", wired = true, rate = "54M", channel = "cable" },
]
protocol.link = { quick_hello_s = 0.1 }
"#;

/// Runs what `text` adds to the roof, whose cable is pulled `after_s` after the links are measured.
fn pulled(text: &str, scheme: &str, after_s: u64, is_seen: bool) -> Outcome {
    let scenario = Scenario::parse(&format!("{ROOF}{text}"), "", Path::new("")).unwrap();
    let mut config = SimulationConfig::from_scenario(&scenario).unwrap();
    let at =
        Instant::default() + ncmesh_sim::settling_time(&config.link) + Duration::from_secs(after_s);
    config.outages =
        [0, 1].map(|node| Outage { at, node, channel: 1, is_on: false, is_seen }).into();
    let limit = Duration::from_secs(300);
    run(&scenario, config, scheme, limit, vec![], |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_connection_loses_nothing_when_the_cable_is_pulled() {
    let text = "flow = [{ from = \"a\", to = \"b\", protocol = \"tcp\", size = \"27MB\", \
                seconds = 200 }]";
    for (scheme, is_seen) in [("braid", true), ("braid", false), ("forward", true)] {
        let outcome = pulled(text, scheme, 5, is_seen);
        let flow = &outcome.flows().unwrap().flows[0];
        let tcp = flow.tcp.as_ref().unwrap();
        println!("{scheme} {is_seen}: {tcp:?}");
        assert!(tcp.bytes == 27_000_000 && flow.corrupt == Some(0), "{scheme}: {flow:?}");
        // It began by the cable, and ended by the radio.
        let took = tcp.finished_s.unwrap();
        assert!(took > 6.0, "{scheme} {is_seen}: {took} s");
    }
}

#[test]
fn a_stream_lacks_two_seconds_at_most_when_the_cable_is_pulled() {
    let text = "stream = [{ group = \"tv\", from = \"a\", receivers = [{ node = \"b\" }], \
                layers = [{ name = \"base\", rate = \"500k\" }], warm_up_s = 5, seconds = 40 }]";
    for scheme in ["delta", "multirate", "stream_tree"] {
        for is_seen in [true, false] {
            let outcome = pulled(text, scheme, 15, is_seen);
            let receiver = &outcome.streams().unwrap().streams[0].receivers[0];
            let whole = receiver.whole_base_s.unwrap();
            println!("{scheme} {is_seen}: {whole} of 40 s, {:?}", receiver.layers);
            assert!(whole >= 38 && receiver.corrupt == 0, "{scheme} {is_seen}: {receiver:?}");
        }
    }
}

/// Two nodes that a slow radio joins directly, and two cables over a third one.
const DETOUR: &str = r#"
name = "detour"
sealed = false
nodes = ["a", "switch", "b"]
medium = { phy = "802.11b", bit_rate = "1M" }
channel = [
    { name = "north", phy = "802.11a", bit_rate = "54M" },
    { name = "south", phy = "802.11a", bit_rate = "54M" },
]
link = [
    { from = "a", to = "b", loss = 0.0 },
    { from = "a", to = "switch", wired = true, channel = "north" },
    { from = "switch", to = "b", wired = true, channel = "south" },
]
protocol.link = { quick_hello_s = 0.1 }
flow = [{ from = "a", to = "b", warm_up_s = 5, seconds = 3 }]
"#;

/// A node reaches another over a relay with one radio, or over one with two on two channels whose
/// links lose a tenth.
const TWO_RELAYS: &str = r#"
name = "relays"
sealed = false
nodes = ["a", "one", "two", "b"]
medium = { phy = "802.11b", bit_rate = "2M" }
channel = [{ name = "up" }]
link = [
    { from = "a", to = "one", loss = 0.0 },
    { from = "one", to = "b", loss = 0.0 },
    { from = "a", to = "two", loss = 0.1 },
    { from = "two", to = "b", loss = 0.1, channel = "up" },
]
protocol.link = { quick_hello_s = 0.1 }
flow = [{ from = "a", to = "b", warm_up_s = 5, seconds = 20 }]
"#;

/// Returns the first hop from the first node to the last once links are measured.
fn first_hop(text: &str) -> usize {
    let scenario = Scenario::parse(text, "", Path::new("")).unwrap();
    let config = SimulationConfig::from_scenario(&scenario).unwrap();
    let nodes = config.names.len();
    let mut sim = Simulation::new(config).unwrap();
    sim.run_for(Duration::from_secs(20));
    let last = node_id(nodes - 1);
    let topology = sim.host(0).stack().unwrap().topology();
    let hop = topology.next_hop(node_id(0), last, Metric::Unicast).unwrap();
    (0..nodes).find(|node| node_id(*node) == hop).unwrap()
}

#[test]
fn two_quick_hops_are_taken_rather_than_a_slow_one() {
    assert_eq!(first_hop(DETOUR), 1);
    for scheme in ["forward", "braid"] {
        let carried = throughput(&outcome_of(DETOUR, scheme, 300));
        println!("{scheme}: {carried}");
        assert!(carried > 5e6, "{scheme}: {carried} by cables, where the radio has 1 Mbit/s");
    }
}

#[test]
fn a_relay_on_two_channels_is_preferred_to_one_on_one() {
    assert_eq!(first_hop(TWO_RELAYS), 2);
    let alone = TWO_RELAYS.replace("    { from = \"a\", to = \"two\", loss = 0.1 },\n", "");
    assert_ne!(alone, TWO_RELAYS);
    for scheme in ["forward", "braid"] {
        let one = throughput(&outcome_of(&alone, scheme, 300));
        let two = throughput(&outcome_of(TWO_RELAYS, scheme, 300));
        println!("{scheme}: {one} over one radio, {two} over two");
        assert!(two > 1.2 * one, "{scheme}: {one} over one radio, {two} over two");
    }
}
