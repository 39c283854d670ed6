//! Which node an address is reached through.

use ipnet::IpNet;
use ncmesh_wire::NodeId;
use std::net::IpAddr;

/// Node that a route leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By id.
    Id(NodeId),
    /// By name, or by id where no node has the name.
    Name(String),
}

/// What a lookup finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextHop {
    /// This node.
    Node(NodeId),
    /// A node by a name that no node has, or more than one.
    UnknownName,
    /// No route leads there.
    NoRoute,
}

/// Routing table with lookup by longest prefix.
#[derive(Debug)]
pub(super) struct Routes {
    /// Longest prefixes first.
    entries: Vec<Route>,
    /// Version of the mesh for which names were resolved.
    version: Option<u64>,
}

#[derive(Debug)]
struct Route {
    prefix: IpNet,
    target: Target,
    /// The target, if it could be resolved.
    node: Option<NodeId>,
}

impl Routes {
    pub(super) fn new(routes: &[(IpNet, Target)]) -> Self {
        let route = |(prefix, target): &(IpNet, Target)| Route {
            prefix: *prefix,
            target: target.clone(),
            node: None,
        };
        let mut entries: Vec<_> = routes.iter().map(route).collect();
        entries.sort_by_key(|route| std::cmp::Reverse(route.prefix.prefix_len()));
        Self { entries, version: None }
    }

    /// Resolves names by `named`, unless that was done for this version of the mesh.
    pub(super) fn refresh(&mut self, version: u64, named: impl Fn(&str) -> Option<NodeId>) {
        if self.version == Some(version) {
            return;
        }
        self.version = Some(version);
        for route in &mut self.entries {
            route.node = match &route.target {
                Target::Id(id) => Some(*id),
                Target::Name(name) => named(name),
            };
        }
    }

    /// Returns the next hop for an address.
    pub(super) fn find(&self, address: IpAddr) -> NextHop {
        match self.entries.iter().find(|route| route.prefix.contains(&address)) {
            Some(Route { node: Some(node), .. }) => NextHop::Node(*node),
            Some(_) => NextHop::UnknownName,
            None => NextHop::NoRoute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn routes(all: &[(&str, Target)]) -> Routes {
        let all: Vec<_> = all.iter().map(|(p, t)| (p.parse().unwrap(), t.clone())).collect();
        Routes::new(&all)
    }

    #[test]
    fn the_longest_prefix_decides_and_names_follow_the_mesh() {
        let id = |id| Target::Id(NodeId(id));
        let mut routes = routes(&[
            ("0.0.0.0/0", id(1)),
            ("10.0.0.0/8", id(2)),
            ("10.7.0.0/16", Target::Name("barn".into())),
            ("fd00::/8", id(3)),
        ]);
        let find = |routes: &Routes, address: &str| routes.find(address.parse().unwrap());
        routes.refresh(1, |_| None);
        assert_eq!(find(&routes, "9.9.9.9"), NextHop::Node(NodeId(1)));
        assert_eq!(find(&routes, "10.8.0.1"), NextHop::Node(NodeId(2)));
        assert_eq!(find(&routes, "10.7.0.1"), NextHop::UnknownName);
        assert_eq!(find(&routes, "fd00::9"), NextHop::Node(NodeId(3)));
        assert_eq!(find(&routes, "2001:db8::1"), NextHop::NoRoute);
        let barn = |name: &str| (name == "barn").then_some(NodeId(9));
        routes.refresh(1, barn);
        assert_eq!(find(&routes, "10.7.0.1"), NextHop::UnknownName, "the mesh is as it was");
        routes.refresh(2, barn);
        assert_eq!(find(&routes, "10.7.0.1"), NextHop::Node(NodeId(9)));
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
            let all: std::collections::BTreeMap<_, _> = prefixes
                .iter()
                .map(|((bits, len), node)| (net(*bits & 0xc000_0000, *len), *node))
                .collect();
            let list: Vec<_> = all.iter().map(|(p, n)| (*p, Target::Id(NodeId(*n)))).collect();
            let mut routes = Routes::new(&list);
            routes.refresh(1, |_| None);
            let address = IpAddr::from(std::net::Ipv4Addr::from(address));
            let covering = all.iter().filter(|(prefix, _)| prefix.contains(&address));
            let longest = covering.max_by_key(|(prefix, _)| prefix.prefix_len());
            let expected = longest.map(|(_, node)| NextHop::Node(NodeId(*node)));
            let expected = expected.unwrap_or(NextHop::NoRoute);
            prop_assert_eq!(routes.find(address), expected);
        }
    }
}
