//! Ports of a node, and which of them leads to each neighbour.
//!
//! A port is a radio, a cable or a VPN: a broadcast domain with neighbours, airtime and a queue of
//! its own. A node has one or several. A neighbour that is heard on several ports has one *way* at
//! a time, the port by which frames go to it.

use core::ops::{Index, IndexMut};
use ncmesh_wire::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Most ports of a node. Bounds what is kept for each neighbour and each engine.
pub const MAX_PORTS: usize = 8;

/// One of a node's ports, by its place among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port(u8);

impl Port {
    /// The first port, which every node has.
    pub const FIRST: Self = Self(0);

    /// Returns the port at this place; `None` beyond [`MAX_PORTS`].
    #[must_use]
    pub fn new(place: usize) -> Option<Self> {
        u8::try_from(place).ok().filter(|_| place < MAX_PORTS).map(Self)
    }

    /// Returns its place among the ports of its node.
    #[must_use]
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// Ports by which neighbours are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ways {
    /// Neighbours that are reached by another port than the first.
    others: BTreeMap<NodeId, Port>,
    /// Neighbours that unicast serves much faster than broadcasts.
    by_unicast: BTreeSet<NodeId>,
}

impl Ways {
    /// Returns the port by which frames go to a node: the first for one that is no neighbour.
    #[must_use]
    pub fn port_to(&self, node: NodeId) -> Port {
        self.others.get(&node).copied().unwrap_or_default()
    }

    /// Sets the neighbours that unicast serves much faster than broadcasts.
    pub fn set_by_unicast(&mut self, neighbours: BTreeSet<NodeId>) {
        self.by_unicast = neighbours;
    }
}

impl FromIterator<(NodeId, Port)> for Ways {
    fn from_iter<T: IntoIterator<Item = (NodeId, Port)>>(ways: T) -> Self {
        let others = ways.into_iter().filter(|(_, port)| *port != Port::FIRST);
        Self { others: others.collect(), by_unicast: BTreeSet::new() }
    }
}

static NO_OTHERS: Ways = Ways { others: BTreeMap::new(), by_unicast: BTreeSet::new() };

/// The port that a call to an engine is about, and the way to each neighbour.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// Port that was granted, or on which a frame was heard or sent; the first in other calls.
    pub port: Port,
    /// Ways to the neighbours.
    pub ways: &'a Ways,
}

impl At<'_> {
    /// The port of a node that has one.
    pub const ONLY: At<'static> = At { port: Port::FIRST, ways: &NO_OTHERS };

    /// Returns whether frames to a neighbour go by this port.
    #[must_use]
    pub fn reaches(self, node: NodeId) -> bool {
        self.ways.port_to(node) == self.port
    }

    /// Returns whether a frame for this neighbour alone is to go by unicast: the driver shows that
    /// it carries frames there much faster than broadcasts. Nobody else hears such a frame.
    #[must_use]
    pub fn prefers_unicast(self, node: NodeId) -> bool {
        self.ways.by_unicast.contains(&node)
    }
}

/// A value for each port, such as the frame that is at its MAC.
#[derive(Clone, Debug, Default)]
pub struct PerPort<T> {
    values: [T; MAX_PORTS],
}

impl<T: Clone> PerPort<T> {
    /// Returns the same value for each port.
    #[must_use]
    pub fn of(value: T) -> Self {
        Self { values: core::array::from_fn(|_| value.clone()) }
    }
}

impl<T> PerPort<T> {
    /// Returns the values of all ports that a node may have.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }
}

impl<T> Index<Port> for PerPort<T> {
    type Output = T;

    fn index(&self, port: Port) -> &T {
        &self.values[port.index()]
    }
}

impl<T> IndexMut<Port> for PerPort<T> {
    fn index_mut(&mut self, port: Port) -> &mut T {
        &mut self.values[port.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_reached_by_its_way_and_a_stranger_by_the_first_port() {
        let second = Port::new(1).unwrap();
        let ways: Ways = [(NodeId(2), Port::FIRST), (NodeId(3), second)].into_iter().collect();
        let reached = |port| {
            let at = At { port, ways: &ways };
            [2, 3, 4].map(|node| at.reaches(NodeId(node)))
        };
        assert_eq!(reached(Port::FIRST), [true, false, true]);
        assert_eq!(reached(second), [false, true, false]);
        assert!(At::ONLY.reaches(NodeId(3)));
        assert_eq!(Port::new(MAX_PORTS), None);
    }
}
