//! Tests of a gateway alone, with a scripted mesh.

use super::packets::{options_of, segment, udp_v4, udp_v6};
use super::*;
use ncmesh_engine::time::Duration;
use proptest::prelude::*;

const BARN: NodeId = NodeId(5);
const ROOF: NodeId = NodeId(6);
const MTU: usize = 1400;

#[derive(Default)]
pub(super) struct FakeMesh {
    pub(super) version: u64,
    /// Whether no node has a name yet.
    pub(super) nameless: bool,
    pub(super) announced: Vec<(NodeId, IpNet)>,
    /// Nodes that can be reached, the nearest first.
    pub(super) near: Vec<NodeId>,
    pub(super) room: usize,
    /// Node that has no room though others have.
    pub(super) stuck: Option<NodeId>,
    pub(super) cut_off: bool,
    /// Longest packet that it takes, if it takes no longer ones.
    pub(super) longest: Option<usize>,
    pub(super) sent: Vec<(NodeId, Vec<u8>)>,
}

impl Mesh for FakeMesh {
    fn version(&self) -> u64 {
        self.version
    }

    fn each_announced(&self, take: &mut dyn FnMut(NodeId, IpNet)) {
        self.announced.iter().for_each(|(node, prefix)| take(*node, *prefix));
    }

    fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId> {
        self.near.iter().find(|node| nodes.contains(node)).copied()
    }

    fn named(&self, name: &str) -> Option<NodeId> {
        (name == "barn" && !self.nameless).then_some(BARN)
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        self.room > 0 && self.stuck != Some(to)
    }

    fn send(&mut self, to: NodeId, packet: &[u8]) -> Result<(), PacketError> {
        if self.cut_off {
            return Err(PacketError::NoPath(to));
        }
        if let Some(longest) = self.longest.filter(|longest| packet.len() > *longest) {
            return Err(PacketError::TooLong { bytes: packet.len(), longest });
        }
        self.room -= 1;
        self.sent.push((to, packet.into()));
        Ok(())
    }
}

fn config() -> GatewayConfig {
    GatewayConfig {
        addresses: ["10.44.0.1", "fd44::1"].map(|a| a.parse().unwrap()).into(),
        mtu: MTU,
        whole: MTU,
        clamp_mss: true,
        padding: false,
        queue: 4,
        multicast: None,
        accept: Vec::new(),
        announce: Vec::new(),
        routes: [
            ("10.44.0.5/32", Target::Name("barn".into())),
            ("192.168.5.0/24", Target::Name("barn".into())),
            ("10.44.0.6/32", Target::Id(ROOF)),
            ("fd44::5/128", Target::Id(BARN)),
            ("10.99.0.0/16", Target::Name("nobody".into())),
            ("0.0.0.0/0", Target::Id(ROOF)),
        ]
        .map(|(prefix, target)| (prefix.parse().unwrap(), target))
        .into(),
    }
}

fn gateway() -> (Gateway, FakeMesh) {
    (Gateway::new(config()), FakeMesh { room: 100, ..FakeMesh::default() })
}

/// Returns the gateway of a host, to which packets come from another one by way of the barn.
fn far_end(own: &str, other: &str) -> Gateway {
    Gateway::new(GatewayConfig {
        addresses: [own.parse().unwrap()].into(),
        routes: [(other.parse().unwrap(), Target::Id(BARN))].into(),
        ..config()
    })
}

/// A relay on the way has shorter frames than this node, so the device's packets are too long.
#[test]
fn the_host_learns_what_length_a_node_on_the_way_takes() {
    let (mut gateway, mut mesh) = gateway();
    mesh.longest = Some(1300);
    for len in [1280, 1281] {
        gateway.handle_outbound(udp_v4("10.44.0.1", "10.44.0.5", len), &mut mesh, at(0));
    }
    assert_eq!(mesh.sent.len(), 1);
    assert_eq!(drops(&gateway), [(Dropped::TooLong, 1)]);
    let told = gateway.poll_inbound().unwrap();
    assert_eq!(told[20..28], [3, 4, told[22], told[23], 0, 0, 5, 0x14], "1300 bytes");
}

/// IPv6 knows no path for less than 1,280 bytes, and a relay on the way takes less.
#[test]
fn ipv6_packets_that_every_path_carries_go_in_halves_and_arrive_as_they_were() {
    for padding in [false, true] {
        let mut mesh = FakeMesh { room: 100, longest: Some(1201), ..FakeMesh::default() };
        let mut gateway = Gateway::new(GatewayConfig { padding, ..config() });
        let packets: Vec<Vec<u8>> =
            [1161, 1162, 1240].map(|len| udp_v6("fd44::1", "fd44::5", len)).into();
        for packet in &packets {
            gateway.handle_outbound(packet.clone(), &mut mesh, at(0));
        }
        assert_eq!(mesh.sent.len(), 5, "the first one fits");
        assert_eq!(gateway.counters().outbound.packets, 3);
        let halves: Vec<usize> = mesh.sent[1..].iter().map(|(_, half)| half.len()).collect();
        assert_eq!(halves[2..], [643, 643]);
        assert_eq!(halves[..2] == halves[2..], padding, "{halves:?}");

        // Longer ones are refused, and the host is told what IPv6 may be told.
        gateway.handle_outbound(udp_v6("fd44::1", "fd44::5", 1241), &mut mesh, at(0));
        assert_eq!(drops(&gateway), [(Dropped::TooLong, 1)]);
        let told = gateway.poll_inbound().unwrap();
        assert_eq!(told[40..42], [2, 0]);
        assert_eq!(told[44..48], 1280_u32.to_be_bytes());

        let mut there = far_end("fd44::5", "fd44::1/128");
        for (_, packet) in mesh.sent.drain(..) {
            there.handle_inbound(BARN, packet, &FakeMesh::default(), at(1));
        }
        let arrived: Vec<Vec<u8>> = std::iter::from_fn(|| there.poll_inbound()).collect();
        assert_eq!(arrived, packets);
        assert_eq!(there.counters().inbound.packets, 3);
        assert_eq!(drops(&there), []);
    }
}

/// Halves are joined before anything is read, so what they make is judged like any packet.
#[test]
fn a_packet_in_halves_from_an_address_that_is_not_the_node_s_is_spoofed() {
    let (mut gateway, mesh) = gateway();
    let packet = udp_v6("fd44::9", "fd44::1", 1200);
    for half in Halves::default().cut(&packet) {
        gateway.handle_inbound(BARN, half, &mesh, at(0));
    }
    gateway.handle_inbound(BARN, vec![0x22, 0, 0, 1], &mesh, at(0));
    assert_eq!(drops(&gateway), [(Dropped::Malformed, 1), (Dropped::Spoofed, 1)]);

    // One whose other half is lost counts once the next one comes.
    for ms in [0, 6_000] {
        let [first, _] = Halves::default().cut(&packet);
        gateway.handle_inbound(BARN, first, &mesh, at(ms));
    }
    assert!(drops(&gateway).contains(&(Dropped::Halved, 1)));
}

#[test]
fn padded_packets_have_few_lengths_and_arrive_as_they_were() {
    let padding = GatewayConfig { padding: true, ..config() };
    let mut mesh = FakeMesh { room: 100, ..FakeMesh::default() };
    let mut gateway = Gateway::new(padding);
    let packets: Vec<Vec<u8>> =
        [0, 120, 900, 1200, 1380].map(|len| udp_v4("10.44.0.1", "10.44.0.5", len)).into();
    for packet in &packets {
        gateway.handle_outbound(packet.clone(), &mut mesh, at(0));
    }
    let lengths: Vec<usize> = mesh.sent.iter().map(|(_, packet)| packet.len()).collect();
    assert_eq!(lengths, [128, 512, 1024, MTU, MTU]);

    // A node without padding takes the zeros off.
    let mut there = far_end("10.44.0.5", "10.44.0.1/32");
    for (_, packet) in mesh.sent.drain(..) {
        there.handle_inbound(BARN, packet, &FakeMesh::default(), at(1));
    }
    let arrived: Vec<Vec<u8>> = std::iter::from_fn(|| there.poll_inbound()).collect();
    assert_eq!(arrived, packets);

    // Where the mesh takes shorter packets, there is less padding, and nothing is refused for it.
    mesh.longest = Some(1300);
    gateway.handle_outbound(packets[3].clone(), &mut mesh, at(2));
    assert_eq!(mesh.sent[0].1.len(), 1300);
}

fn at(ms: u64) -> Instant {
    Instant::default() + Duration::from_millis(ms)
}

fn drops(gateway: &Gateway) -> Vec<(Dropped, u64)> {
    gateway.counters().drops.iter().map(|(why, n)| (*why, *n)).collect()
}

#[test]
fn a_packet_to_a_group_reaches_members_from_addresses_of_its_node() {
    let multicast = Some(MulticastConfig::default());
    let mut gateway = Gateway::new(GatewayConfig { multicast, ..config() });
    let mut mesh = FakeMesh { room: 100, ..FakeMesh::default() };
    gateway.handle_outbound(udp_v4("10.44.0.1", "239.1.2.3", 9), &mut mesh, at(0));
    let name = "ip-239.1.2.3";
    let sent = udp_v4("10.44.0.1", "239.1.2.3", 9);
    let send = GroupAction::Send { group: name.into(), packet: sent };
    assert_eq!(gateway.poll_group(), Some(send));
    gateway.handle_outbound(udp_v4("10.44.0.1", "239.1.2.3", MTU), &mut mesh, at(0));
    assert_eq!(drops(&gateway), [(Dropped::TooLong, 1)]);

    let packet = udp_v4("10.44.0.5", "239.1.2.3", 9);
    gateway.handle_group_packet(BARN, name, packet.clone(), &mesh);
    assert_eq!(gateway.counters().drops[&Dropped::Multicast], 1);
    // A report of IGMPv2.
    let report = packets::v4(
        "10.44.0.1",
        "239.1.2.3",
        smoltcp::wire::IpProtocol::Igmp,
        &[0x16, 0, 0, 0, 239, 1, 2, 3],
    );
    gateway.handle_outbound(report, &mut mesh, at(0));
    assert_eq!(gateway.groups().collect::<Vec<_>>(), ["239.1.2.3".parse::<IpAddr>().unwrap()]);
    gateway.handle_group_packet(BARN, name, packet.clone(), &mesh);
    assert_eq!(gateway.poll_inbound(), Some(packet.clone()));

    // Another node must not use the address, nor another group bring the packet.
    gateway.handle_group_packet(ROOF, name, packet.clone(), &mesh);
    gateway.handle_group_packet(BARN, "ip-239.1.2.4", packet, &mesh);
    gateway.handle_group_packet(BARN, name, udp_v4("10.44.0.1", "239.1.2.3", 9), &mesh);
    gateway.handle_group_packet(BARN, name, vec![1, 2, 3], &mesh);
    assert_eq!(gateway.poll_inbound(), None);
    let counted = [Dropped::Malformed, Dropped::Multicast, Dropped::Spoofed];
    assert_eq!(counted.map(|why| gateway.counters().drops[&why]), [1, 2, 2]);
}

#[test]
fn packets_go_where_their_route_leads() {
    let (mut gateway, mut mesh) = gateway();
    for (packet, to) in [
        (udp_v4("10.44.0.1", "10.44.0.5", 9), BARN),
        (udp_v4("10.44.0.1", "192.168.5.77", 9), BARN),
        (udp_v4("10.44.0.1", "8.8.8.8", 9), ROOF),
        (udp_v6("fd44::1", "fd44::5", 9), BARN),
    ] {
        gateway.handle_outbound(packet.clone(), &mut mesh, at(0));
        assert_eq!(mesh.sent.pop(), Some((to, packet)));
    }
    assert_eq!(gateway.counters().outbound.packets, 4);
    assert_eq!(drops(&gateway), []);
}

#[test]
fn a_packet_that_cannot_be_carried_is_counted_and_the_host_is_told() {
    let (mut gateway, mut mesh) = gateway();
    let mut long = udp_v4("10.44.0.1", "10.44.0.5", MTU);
    long[6] |= 0x40;
    for (packet, why, answered) in [
        (vec![], Dropped::Malformed, false),
        (vec![0x45; 10], Dropped::Malformed, false),
        (udp_v6("fd44::1", "2001:db8::1", 9), Dropped::NoRoute, true),
        (udp_v4("10.44.0.1", "10.99.0.1", 9), Dropped::NoPath, true),
        (udp_v4("10.44.0.1", "224.0.0.5", 9), Dropped::Multicast, false),
        (udp_v4("10.44.0.1", "255.255.255.255", 9), Dropped::Multicast, false),
        (udp_v6("fe80::1", "ff02::2", 9), Dropped::Multicast, false),
        (long, Dropped::TooLong, true),
    ] {
        let before = gateway.counters().drops.get(&why).copied().unwrap_or(0);
        gateway.handle_outbound(packet, &mut mesh, at(0));
        assert_eq!(gateway.counters().drops[&why], before + 1);
        assert_eq!(gateway.poll_inbound().is_some(), answered, "{why:?}");
    }
    mesh.cut_off = true;
    gateway.handle_outbound(udp_v4("10.44.0.1", "10.44.0.5", 9), &mut mesh, at(0));
    assert_eq!(gateway.counters().drops[&Dropped::NoPath], 2);
    assert_eq!(gateway.poll_inbound().unwrap()[20..22], [3, 1], "host unreachable");
    assert!(mesh.sent.is_empty());
}

#[test]
fn icmp_messages_are_limited() {
    let (mut gateway, mut mesh) = gateway();
    let lost = udp_v6("fd44::1", "2001:db8::1", 9);
    for _ in 0..500 {
        gateway.handle_outbound(lost.clone(), &mut mesh, at(10));
    }
    assert_eq!(gateway.counters().icmp_sent, 100);
    gateway.handle_outbound(lost, &mut mesh, at(1010));
    assert_eq!(gateway.counters().icmp_sent, 101);
}

#[test]
fn a_node_may_send_only_from_addresses_routed_to_it() {
    let (mut gateway, mesh) = gateway();
    for (from, source, taken) in [
        (BARN, "10.44.0.5", true),
        (BARN, "192.168.5.200", true),
        (BARN, "10.44.0.6", false),
        (BARN, "8.8.8.8", false),
        (ROOF, "8.8.8.8", true),
        (ROOF, "192.168.5.200", false),
        // All of IPv4 is behind the roof, except this node itself.
        (ROOF, "10.44.0.1", false),
        (NodeId(9), "10.99.0.1", false),
    ] {
        let packet = udp_v4(source, "10.44.0.1", 30);
        gateway.handle_inbound(from, packet.clone(), &mesh, at(0));
        assert_eq!(gateway.poll_inbound(), taken.then_some(packet), "{source} from {from}");
    }
    gateway.handle_inbound(BARN, vec![0x60; 30], &mesh, at(0));
    assert_eq!(drops(&gateway), [(Dropped::Malformed, 1), (Dropped::Spoofed, 5)]);
    assert_eq!(gateway.counters().inbound, PacketCount { packets: 3, bytes: 150 });
}

#[test]
fn the_segment_size_is_clamped_both_ways_unless_switched_off() {
    let syn = segment(true, 2, &[2, 4, 0x05, 0xb4], b"");
    let routes = vec![("fd00::/64".parse().unwrap(), Target::Id(BARN))];
    for clamp_mss in [true, false] {
        let config = GatewayConfig { clamp_mss, routes: routes.clone(), ..config() };
        let mut gateway = Gateway::new(config);
        let mut mesh = FakeMesh { room: 1, ..FakeMesh::default() };
        gateway.handle_outbound(syn.clone(), &mut mesh, at(0));
        gateway.handle_inbound(BARN, syn.clone(), &mesh, at(0));
        let mss = if clamp_mss { [2, 4, 0x05, 0x3c] } else { [2, 4, 0x05, 0xb4] };
        assert_eq!(options_of(&mesh.sent[0].1), mss);
        assert_eq!(options_of(&gateway.poll_inbound().unwrap()), mss);
        assert_eq!(gateway.counters().clamped, if clamp_mss { 2 } else { 0 });
    }
}

#[test]
fn a_node_without_room_does_not_hold_up_others() {
    let (mut gateway, mut mesh) = gateway();
    mesh.stuck = Some(BARN);
    for ms in 0..20 {
        gateway.handle_outbound(udp_v4("10.44.0.1", "10.44.0.5", 9), &mut mesh, at(ms));
        gateway.handle_outbound(udp_v4("10.44.0.1", "10.44.0.6", 9), &mut mesh, at(ms));
    }
    assert_eq!((mesh.sent.len(), gateway.waiting()), (20, 4));
    assert_eq!(drops(&gateway), [(Dropped::Full, 16)]);
    mesh.stuck = None;
    mesh.room = 2;
    gateway.drain(&mut mesh, at(20));
    assert_eq!((mesh.sent.len(), gateway.waiting()), (22, 2));
    gateway.drain(&mut mesh, at(2018));
    assert_eq!(drops(&gateway), [(Dropped::Full, 16), (Dropped::Late, 1)]);
}

#[test]
fn a_connection_does_not_wait_behind_another() {
    let (mut gateway, mut mesh) = gateway();
    mesh.room = 0;
    let [bulk, other] = [[0x10, 0x20], [0x10, 0x21]].map(|port| {
        let mut packet = udp_v4("10.44.0.1", "10.44.0.5", 100);
        packet[22..24].copy_from_slice(&port);
        packet
    });
    for packet in [&bulk, &bulk, &bulk, &other] {
        gateway.handle_outbound(packet.clone(), &mut mesh, at(0));
    }
    assert_eq!([&bulk, &other].map(|packet| gateway.waiting_like(packet)), [3, 1]);
    mesh.room = 2;
    gateway.drain(&mut mesh, at(1));
    let sent: Vec<_> = mesh.sent.iter().map(|(_, packet)| packet).collect();
    assert!(sent == [&bulk, &other] || sent == [&other, &bulk]);
}

proptest! {
    #[test]
    fn nothing_from_either_side_panics(
        mut bytes in prop::collection::vec(any::<u8>(), 0..2000),
        start in prop::sample::select(vec![0x45_u8, 0x60, 0]),
        honest_length: bool,
    ) {
        if bytes.len() > 40 {
            bytes[0] = start;
            if honest_length {
                let len = bytes.len();
                let (at, len) = if start == 0x45 { (2, len) } else { (4, len - 40) };
                bytes[at..at + 2].copy_from_slice(&(len as u16).to_be_bytes());
            }
        }
        let (mut gateway, mut mesh) = gateway();
        gateway.handle_outbound(bytes.clone(), &mut mesh, at(0));
        gateway.handle_inbound(ROOF, bytes, &mesh, at(0));
        while let Some(packet) = gateway.poll_inbound() {
            prop_assert!(Header::read(&packet).is_ok());
        }
        prop_assert!(mesh.sent.iter().all(|(_, packet)| packet.len() <= MTU));
    }
}
