//! Which address is reached through which node.

use crate::config::Target;
use ipnet::IpNet;
use ncmesh_wire::NodeId;
use std::net::IpAddr;

/// What a lookup finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This node.
    Node(NodeId),
    /// A node whose name nobody has, or more than one.
    Unknown,
    /// No route leads there.
    NoRoute,
}

/// Routes by longest prefix.
#[derive(Debug)]
pub(super) struct Routes {
    /// Longest prefixes first.
    entries: Vec<(IpNet, Target, Option<NodeId>)>,
    /// Of which version of the mesh the names were looked up.
    version: Option<u64>,
}

impl Routes {
    pub(super) fn new(routes: &[(IpNet, Target)]) -> Self {
        let entry = |(prefix, target): &(IpNet, Target)| (*prefix, target.clone(), None);
        let mut entries: Vec<_> = routes.iter().map(entry).collect();
        entries.sort_by_key(|(prefix, ..)| std::cmp::Reverse(prefix.prefix_len()));
        Self { entries, version: None }
    }

    /// Looks names up by `named`, where the mesh is not of the version known.
    pub(super) fn refresh(&mut self, version: u64, named: impl Fn(&str) -> Option<NodeId>) {
        if self.version == Some(version) {
            return;
        }
        self.version = Some(version);
        for (_, target, node) in &mut self.entries {
            *node = match target {
                Target::Id(id) => Some(*id),
                Target::Name(name) => named(name),
            };
        }
    }

    /// Where an address is.
    pub(super) fn find(&self, address: IpAddr) -> Next {
        match self.entries.iter().find(|(prefix, ..)| prefix.contains(&address)) {
            Some((_, _, Some(node))) => Next::Node(*node),
            Some(_) => Next::Unknown,
            None => Next::NoRoute,
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
        assert_eq!(find(&routes, "9.9.9.9"), Next::Node(NodeId(1)));
        assert_eq!(find(&routes, "10.8.0.1"), Next::Node(NodeId(2)));
        assert_eq!(find(&routes, "10.7.0.1"), Next::Unknown);
        assert_eq!(find(&routes, "fd00::9"), Next::Node(NodeId(3)));
        assert_eq!(find(&routes, "2001:db8::1"), Next::NoRoute);
        let barn = |name: &str| (name == "barn").then_some(NodeId(9));
        routes.refresh(1, barn);
        assert_eq!(find(&routes, "10.7.0.1"), Next::Unknown, "the mesh is as it was");
        routes.refresh(2, barn);
        assert_eq!(find(&routes, "10.7.0.1"), Next::Node(NodeId(9)));
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
            let expected = longest.map_or(Next::NoRoute, |(_, node)| Next::Node(NodeId(*node)));
            prop_assert_eq!(routes.find(address), expected);
        }
    }
}
