//! Which node an address is reached through: what the configuration says, and what nodes announce.

use super::{GatewayConfig, Mesh};
use ipnet::IpNet;
use ncmesh_wire::NodeId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Most prefixes that are learned.
const MAX_LEARNED: usize = 4096;

/// Node that a route leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By id.
    Id(NodeId),
    /// By name, or by id where no node has the name.
    Name(String),
}

/// Result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextHop {
    /// This node.
    Node(NodeId),
    /// No node is known: none or several have the name of the route, or no path leads to any of
    /// those that announce the prefix.
    NoNode,
    /// No route leads there.
    NoRoute,
}

/// Where a prefix leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leads {
    /// The addresses.
    pub prefix: IpNet,
    /// The node, if one is known.
    pub node: Option<NodeId>,
    /// Nodes that announce the prefix; none for a route of the configuration.
    pub announced_by: Vec<NodeId>,
}

/// Routing table with lookup by longest prefix.
#[derive(Debug)]
pub(super) struct Routes {
    /// Routes of the configuration. They go before announcements of the same prefix.
    fixed: Vec<(IpNet, Target)>,
    accept: Vec<IpNet>,
    /// Prefixes that are this node's own.
    own: Vec<IpNet>,
    table: BTreeMap<IpNet, Way>,
    /// Lengths of the prefixes in the table, the longest first.
    lengths: Vec<u8>,
    /// Version of the mesh for which the table was made.
    version: Option<u64>,
}

/// Where a prefix of the table leads.
#[derive(Debug, Default)]
struct Way {
    node: Option<NodeId>,
    announced_by: Vec<NodeId>,
    /// Whether no path leads to any node that announces it. A route of the configuration is never
    /// dead: it leads where it was told to.
    is_dead: bool,
}

impl Routes {
    pub(super) fn new(config: &GatewayConfig) -> Self {
        Self {
            fixed: config.routes.clone(),
            accept: config.accept.clone(),
            own: config.announce.clone(),
            table: BTreeMap::new(),
            lengths: Vec::new(),
            version: None,
        }
    }

    /// Uses other settings. Gateways that were chosen stay so if they still can be.
    pub(super) fn use_settings(&mut self, config: &GatewayConfig) {
        let table = core::mem::take(&mut self.table);
        *self = Self { table, ..Self::new(config) };
    }

    /// Makes the table anew, unless that was done for this version of the mesh.
    pub(super) fn refresh(&mut self, mesh: &impl Mesh) {
        let version = mesh.version();
        if self.version == Some(version) {
            return;
        }
        self.version = Some(version);
        let before = core::mem::take(&mut self.table);

        // Routes of the configuration come first, and are never learned over.
        for (prefix, target) in &self.fixed {
            let node = match target {
                Target::Id(id) => Some(*id),
                Target::Name(name) => mesh.named(name),
            };

            self.table.insert(*prefix, Way { node, ..Way::default() });
        }

        // Then the prefixes that nodes announce, as far as this node accepts them. Their number is
        // bounded.
        let mut learned: BTreeMap<IpNet, Vec<NodeId>> = BTreeMap::new();
        mesh.each_announced(&mut |node, prefix| {
            let is_accepted = self.accept.iter().any(|wide| wide.contains(&prefix));
            let is_taken = self.table.contains_key(&prefix) || self.own.contains(&prefix);
            let has_room = learned.len() < MAX_LEARNED || learned.contains_key(&prefix);
            if is_accepted && !is_taken && has_room {
                learned.entry(prefix).or_default().push(node);
            }
        });

        for (prefix, announced_by) in learned {
            // Where several nodes lead to the same network, packets keep to the one that was
            // nearest first: connections would not survive a change of the gateway.
            let node = match *announced_by {
                [only] => Some(only),
                _ => {
                    let kept = before.get(&prefix).and_then(|way| way.node);
                    let is_there = |node| mesh.nearest(&[node]).is_some();
                    let kept = kept.filter(|n| announced_by.contains(n) && is_there(*n));
                    kept.or_else(|| mesh.nearest(&announced_by))
                }
            };

            // A prefix that no node leads to is kept, so that its packets are refused and go
            // nowhere else.
            let is_dead = mesh.nearest(&announced_by).is_none();
            self.table.insert(prefix, Way { node, announced_by, is_dead });
        }

        // The longest prefix wins, so lengths are tried in descending order.
        let lengths: BTreeSet<_> = self.table.keys().map(|p| Reverse(p.prefix_len())).collect();
        self.lengths = lengths.into_iter().map(|Reverse(length)| length).collect();
    }

    /// Returns the next hop for an address.
    pub(super) fn find(&self, address: IpAddr) -> NextHop {
        match self.way(address) {
            Some(Way { node: Some(node), .. }) => NextHop::Node(*node),
            Some(_) => NextHop::NoNode,
            None => NextHop::NoRoute,
        }
    }

    /// Returns whether a node may send packets from an address: it is reached through the node, or
    /// the node is one of several that announce it.
    pub(super) fn may_send(&self, from: NodeId, source: IpAddr) -> bool {
        let way = self.way(source);
        way.is_some_and(|way| way.node == Some(from) || way.announced_by.contains(&from))
    }

    /// Returns where each prefix leads.
    pub(super) fn all(&self) -> impl Iterator<Item = Leads> + '_ {
        self.table.iter().map(|(prefix, way)| Leads {
            prefix: *prefix,
            node: way.node,
            announced_by: way.announced_by.clone(),
        })
    }

    /// Returns the way of the longest prefix that leads somewhere; if none does, of the longest.
    fn way(&self, address: IpAddr) -> Option<&Way> {
        // A length that the address does not have is of the other family.
        let prefixes = self.lengths.iter().filter_map(|len| IpNet::new(address, *len).ok());
        let mut ways = prefixes.filter_map(|prefix| self.table.get(&prefix.trunc()));
        ways.clone().find(|way| !way.is_dead).or_else(|| ways.next())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::FakeMesh;
    use super::*;
    use proptest::prelude::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    fn routes(all: &[(&str, Target)], accept: &[&str]) -> Routes {
        let prefix = |text: &&str| text.parse().unwrap();
        Routes::new(&GatewayConfig {
            addresses: Vec::new(),
            routes: all.iter().map(|(p, t)| (p.parse().unwrap(), t.clone())).collect(),
            accept: accept.iter().map(prefix).collect(),
            announce: vec!["10.1.0.7/32".parse().unwrap()],
            mtu: 1400,
            whole: 1400,
            clamp_mss: false,
            padding: false,
            queue: 1,
            multicast: None,
        })
    }

    fn mesh(version: u64, announced: &[(NodeId, &str)]) -> FakeMesh {
        let announced = announced.iter().map(|(node, p)| (*node, p.parse().unwrap())).collect();
        FakeMesh { version, announced, ..FakeMesh::default() }
    }

    fn find(routes: &Routes, address: &str) -> NextHop {
        routes.find(address.parse().unwrap())
    }

    #[test]
    fn the_longest_prefix_decides_and_names_follow_the_mesh() {
        let id = |id| Target::Id(NodeId(id));
        let mut routes = routes(
            &[
                ("0.0.0.0/0", id(1)),
                ("10.0.0.0/8", id(2)),
                ("10.7.0.0/16", Target::Name("barn".into())),
                ("fd00::/8", id(3)),
            ],
            &[],
        );
        let mut mesh = FakeMesh { version: 1, nameless: true, ..FakeMesh::default() };
        routes.refresh(&mesh);
        assert_eq!(find(&routes, "9.9.9.9"), NextHop::Node(NodeId(1)));
        assert_eq!(find(&routes, "10.8.0.1"), NextHop::Node(NodeId(2)));
        assert_eq!(find(&routes, "10.7.0.1"), NextHop::NoNode);
        assert_eq!(find(&routes, "fd00::9"), NextHop::Node(NodeId(3)));
        assert_eq!(find(&routes, "2001:db8::1"), NextHop::NoRoute);
        mesh.nameless = false;
        routes.refresh(&mesh);
        assert_eq!(find(&routes, "10.7.0.1"), NextHop::NoNode, "the mesh is as it was");
        mesh.version = 2;
        routes.refresh(&mesh);
        assert_eq!(find(&routes, "10.7.0.1"), NextHop::Node(NodeId(5)));
    }

    #[test]
    fn announcements_are_routes_where_they_are_accepted() {
        let mut routes =
            routes(&[("10.1.0.9/32", Target::Id(B))], &["10.1.0.0/16", "192.168.0.0/16"]);
        routes.refresh(&mesh(
            1,
            &[
                (A, "10.1.0.5/32"),
                (A, "192.168.7.0/24"),
                // Not accepted; wider than what is; one that the configuration has; our own.
                (A, "8.8.8.0/24"),
                (A, "10.0.0.0/8"),
                (A, "10.1.0.9/32"),
                (A, "10.1.0.7/32"),
            ],
        ));
        for (address, next) in [
            ("10.1.0.5", NextHop::Node(A)),
            ("192.168.7.9", NextHop::Node(A)),
            ("8.8.8.8", NextHop::NoRoute),
            ("10.2.0.1", NextHop::NoRoute),
            ("10.1.0.9", NextHop::Node(B)),
            ("10.1.0.7", NextHop::NoRoute),
        ] {
            assert_eq!(find(&routes, address), next, "{address}");
        }
        assert!(routes.may_send(A, "192.168.7.1".parse().unwrap()));
        assert!(!routes.may_send(A, "10.1.0.9".parse().unwrap()));
        routes.refresh(&mesh(2, &[]));
        assert_eq!(find(&routes, "10.1.0.5"), NextHop::NoRoute);
        assert_eq!(routes.all().count(), 1);
    }

    #[test]
    fn of_several_gateways_the_nearest_is_kept_while_it_can_be_reached() {
        let mut routes = routes(&[], &["0.0.0.0/0"]);
        let both = [(A, "0.0.0.0/0"), (B, "0.0.0.0/0")];
        let mut mesh = mesh(1, &both);
        mesh.near = vec![B, A];
        routes.refresh(&mesh);
        assert_eq!(find(&routes, "8.8.8.8"), NextHop::Node(B));
        // Answers may come by either.
        assert!([A, B].iter().all(|node| routes.may_send(*node, "8.8.8.8".parse().unwrap())));
        for (version, near, next) in [
            (2, vec![A, B], NextHop::Node(B)),
            (3, vec![A], NextHop::Node(A)),
            (4, vec![B, A], NextHop::Node(A)),
            (5, vec![], NextHop::NoNode),
        ] {
            mesh.version = version;
            mesh.near = near;
            routes.refresh(&mesh);
            assert_eq!(find(&routes, "8.8.8.8"), next, "{version}");
        }
    }

    /// A node that has died stays known for a while, and its prefixes with it.
    #[test]
    fn a_prefix_that_leads_nowhere_hides_no_shorter_one_that_leads_somewhere() {
        let mut routes = routes(&[("10.2.9.0/24", Target::Id(NodeId(9)))], &["10.0.0.0/8"]);
        let announced =
            [(A, "10.2.0.0/16"), (B, "10.2.3.0/24"), (B, "10.2.3.4/32"), (B, "10.2.9.8/32")];
        let mut mesh = mesh(1, &announced);
        for (version, near, nodes) in [
            (1, vec![A, B], [B, B, A, B]),
            (2, vec![A], [A, A, A, NodeId(9)]),
            (3, vec![B], [B, B, A, B]),
            // Where nothing leads anywhere, the longest decides as before.
            (4, vec![], [B, B, A, NodeId(9)]),
        ] {
            mesh.version = version;
            mesh.near = near;
            routes.refresh(&mesh);
            let addresses = ["10.2.3.4", "10.2.3.9", "10.2.7.7", "10.2.9.8"];
            let found = addresses.map(|address| find(&routes, address));
            assert_eq!(found, nodes.map(NextHop::Node), "{version}");
        }
        // Whoever may answer for an address is whom it is reached through.
        mesh.version = 5;
        mesh.near = vec![A];
        routes.refresh(&mesh);
        assert!(routes.may_send(A, "10.2.3.4".parse().unwrap()));
    }

    #[test]
    fn a_node_that_announces_without_end_fills_a_bounded_table() {
        let mut routes = routes(&[], &["10.0.0.0/8"]);
        let host = |i: u32| (A, IpNet::from(IpAddr::from((0x0A00_0000 | i).to_be_bytes())));
        let announced = (0..MAX_LEARNED as u32 + 9).map(host).collect();
        routes.refresh(&FakeMesh { version: 1, announced, ..FakeMesh::default() });
        assert_eq!(routes.all().count(), MAX_LEARNED);
    }

    proptest! {
        #[test]
        fn it_finds_what_a_search_of_all_finds(
            prefixes in prop::collection::btree_map((any::<u32>(), 0_u8..=32), 1_u16..100, 0..20),
            address: u32,
        ) {
            let net = |bits: u32, len| {
                let net = ipnet::Ipv4Net::new(bits.into(), len).unwrap();
                IpNet::from(net.trunc())
            };
            let all: BTreeMap<_, _> = prefixes
                .iter()
                .map(|((bits, len), node)| (net(*bits & 0xc000_0000, *len), *node))
                .collect();
            let mut routes = routes(&[], &["0.0.0.0/0"]);
            routes.fixed = all.iter().map(|(p, n)| (*p, Target::Id(NodeId(*n)))).collect();
            routes.refresh(&mesh(1, &[]));
            let address = IpAddr::from(std::net::Ipv4Addr::from(address));
            let covering = all.iter().filter(|(prefix, _)| prefix.contains(&address));
            let longest = covering.max_by_key(|(prefix, _)| prefix.prefix_len());
            let expected = longest.map(|(_, node)| NextHop::Node(NodeId(*node)));
            let expected = expected.unwrap_or(NextHop::NoRoute);
            prop_assert_eq!(routes.find(address), expected);
        }
    }
}
