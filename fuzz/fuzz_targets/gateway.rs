//! Arbitrary packets from the host and from the mesh at the tunnel's gateway, and those of
//! measurements at the node's.
#![no_main]

use ipnet::IpNet;
use libfuzzer_sys::fuzz_target;
use ncmesh_engine::time::{Duration, Instant};
use ncmesh_engine::tunnel::PacketError;
use ncmesh_host::gateway::{Gateway, Mesh};
use ncmesh_host::measure::{MAX_RUNS, Measurements, RunSettings, is_measurement};
use ncmesh_node::config::TunnelConfig;
use ncmesh_wire::NodeId;

const MTU: usize = 1280;
const CONFIG: &str = r#"
address = ["10.44.0.1/24", "fd44::1/64"]
queue = 2
accept = ["192.168.0.0/16"]
routes = { "0.0.0.0/0" = 5, "10.0.0.0/8" = "six", "::/0" = 5, "fd00::/8" = 7 }
"#;

/// Network in which node 5 accepts packets, the queue for node 6 is full, and node 7 is
/// unreachable. All announce the same.
struct ThreeNodes;

impl Mesh for ThreeNodes {
    fn version(&self) -> u64 {
        1
    }

    fn each_announced(&self, take: &mut dyn FnMut(NodeId, IpNet)) {
        for node in [5, 6, 7].map(NodeId) {
            for prefix in ["192.168.0.0/17", "192.168.7.0/24", "8.8.8.8/32"] {
                take(node, prefix.parse().expect("it is valid"));
            }
        }
    }

    fn nearest(&self, nodes: &[NodeId]) -> Option<NodeId> {
        nodes.iter().find(|node| **node != NodeId(7)).copied()
    }

    fn named(&self, name: &str) -> Option<NodeId> {
        (name == "six").then_some(NodeId(6))
    }

    fn below_low_watermark(&self, to: NodeId) -> bool {
        to != NodeId(6)
    }

    fn send(&mut self, to: NodeId, packet: &[u8]) -> Result<(), PacketError> {
        assert!(packet.len() <= MTU);
        if to == NodeId(7) { Err(PacketError::NoPath(to)) } else { Ok(()) }
    }
}

fuzz_target!(|packets: Vec<(bool, bool, Vec<u8>)>| {
    let config: TunnelConfig = toml::from_str(CONFIG).expect("it is valid");
    let mut gateway = Gateway::new(config.gateway(MTU, MTU));
    let mut mesh = ThreeNodes;
    let mut now = Instant::default();
    // Its first token is 1, and that of its run 2.
    let mut measurements = Measurements::new(0);
    let duration = Duration::from_millis(50);
    measurements.echo(NodeId(5), (), now, now + duration);
    let settings = RunSettings { to: NodeId(5), bytes: 9, duration, interval: Some(duration / 5) };
    measurements.begin_run(settings, (), now);
    for (outbound, whole, mut packet) in packets {
        now = now + Duration::from_millis(7);
        if whole {
            state_length(&mut packet);
        }
        if outbound {
            gateway.handle_outbound(packet, &mut mesh, now);
        } else if is_measurement(&packet) {
            let _ = measurements.handle_packet(NodeId(5), &packet, &mut mesh, now);
            measurements.drain(&mut mesh, now);
            assert!(measurements.runs() <= MAX_RUNS);
        } else {
            gateway.handle_inbound(NodeId(5), packet, &mesh, now);
        }
        while let Some(packet) = gateway.poll_inbound() {
            assert!(packet.len() >= 20 && matches!(packet[0] >> 4, 4 | 6));
        }
        assert!(gateway.waiting() <= 2);
    }
});

/// Sets a packet's length field to its length, which random bytes seldom have.
fn state_length(packet: &mut [u8]) {
    let length = packet.len() as u16;
    match packet.first().map(|first| first >> 4) {
        Some(4) if length >= 20 => packet[2..4].copy_from_slice(&length.to_be_bytes()),
        Some(6) if length >= 40 => packet[4..6].copy_from_slice(&(length - 40).to_be_bytes()),
        _ => {}
    }
}
