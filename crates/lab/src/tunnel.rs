//! Tunnels of a lab: each end of a flow has a tunnel device in a network namespace of its own.

use crate::LabError;
use crate::iperf;
use crate::namespaces::{Namespaces, ip};
use ncmesh_node::config::{TUNNEL_MTU_MIN, V6_LEAST};
use ncmesh_sim::scenario::{Flow, Scenario, Transport};
use ncmesh_sim::{Simulation, node_id};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::Ipv4Addr;
use std::time::Duration;
use toml::Table;

/// Networks of the lab's nodes. That of IPv6 is unique local (RFC 4193).
const NETWORK_V4: &str = "10.200.0.0/16";
const NETWORK_V6: &str = "fd6e:636d:6573:6800::/64";

/// Tunnel device of a node, in its namespace.
const DEVICE: &str = "ncmesh0";

/// Network namespaces of the flows' ends, and the settings of their devices.
pub(crate) struct Tunnel {
    pub(crate) scheme: String,
    /// Length of the longest IP packet, bytes.
    pub(crate) mtu: usize,
    /// Namespaces by node.
    ends: BTreeMap<usize, String>,
    _namespaces: Namespaces,
}

impl Tunnel {
    /// Makes the namespaces, after checking that the scheme carries packets as long as the flows
    /// need.
    pub(crate) fn new(
        scheme: &str,
        scenario: &Scenario,
        simulation: &Simulation,
    ) -> Result<Self, LabError> {
        // All nodes have the same MTU, so any of them knows the longest packet. The tunnel device
        // refuses an MTU below its minimum.
        let flows = &scenario.flows;
        let from = flows.first().and_then(|flow| simulation.host(flow.from).stack());
        let mtu = from.and_then(|stack| stack.longest_packet(stack.scheme(scheme)?)).unwrap_or(0);
        let packets = flows.iter().filter_map(|flow| flow.packet);
        let bytes = packets.max().unwrap_or(0).max(TUNNEL_MTU_MIN);
        if bytes > mtu {
            let scheme = scheme.to_owned();
            return Err(LabError::TooLong { bytes, scheme, longest: mtu });
        }

        // A missing program is reported before anything is made. A node may be an end of several
        // flows, and has one namespace.
        iperf::check().map_err(LabError::Iperf)?;
        let mut namespaces = Namespaces::new();
        let mut ends = BTreeMap::new();
        for node in flows.iter().flat_map(|flow| [flow.from, flow.to]) {
            if let Entry::Vacant(place) = ends.entry(node) {
                place.insert(namespaces.add()?);
            }
        }

        Ok(Self { scheme: scheme.to_owned(), mtu, ends, _namespaces: namespaces })
    }

    /// Returns the namespace of a node that is an end of flows.
    pub(crate) fn namespace(&self, node: usize) -> String {
        self.ends.get(&node).cloned().unwrap_or_default()
    }

    /// Gives the kernel's TCP at both ends of a flow the scenario's timing: with `ack_delay_s = 0`
    /// it acknowledges each segment, and `min_rto_s` is its least retransmission timeout. Both are
    /// set on the routes to each other, so they hold for all flows between the two nodes.
    pub(crate) fn set_timing(&self, flow: &Flow) -> Result<(), LabError> {
        let Transport::Tcp(tcp) = &flow.transport else { return Ok(()) };
        let quick = tcp.ack_delay == Some(Duration::ZERO);
        let rto = tcp.min_rto.map(|least| format!("{}ms", least.as_millis()));
        let mut timing = if quick { vec!["quickack", "1"] } else { Vec::new() };
        timing.extend(rto.iter().flat_map(|rto| ["rto_min", rto]));
        if timing.is_empty() {
            return Ok(());
        }
        for (at, to) in [(flow.from, flow.to), (flow.to, flow.from)] {
            let namespace = self.namespace(at);
            let to = address_v4(to).to_string();
            let route = ["-n", &namespace, "route", "replace", &to, "dev", DEVICE];
            ip(&[&route[..], &timing].concat()).map_err(LabError::Namespaces)?;
        }

        Ok(())
    }

    /// Returns the `[tunnel]` section of a node, or `None` if no flow ends there.
    pub(crate) fn section(&self, node: usize) -> Option<Table> {
        let namespace = self.ends.get(&node)?;

        // Nodes take their addresses in these networks by id, and announce them to each other. The
        // kernel does not set up IPv6 on a device with a smaller MTU.
        let v6 = (self.mtu >= V6_LEAST).then_some(NETWORK_V6);
        let address: Vec<&str> = [NETWORK_V4].into_iter().chain(v6).collect();
        Some(Table::from_iter([
            ("scheme".to_owned(), self.scheme.as_str().into()),
            ("namespace".to_owned(), namespace.as_str().into()),
            ("device".to_owned(), DEVICE.into()),
            ("address".to_owned(), address.into()),
        ]))
    }
}

/// Returns the IPv4 address of a node of the lab.
pub(crate) fn address_v4(node: usize) -> Ipv4Addr {
    let [high, low] = node_id(node).0.to_be_bytes();
    Ipv4Addr::new(10, 200, high, low)
}
