//! The usable links of the mesh in flat arrays, and which of them changed lately.
//!
//! Each node has a slot, a number below the count of nodes. Links are lists of slots and
//! deliveries, ordered by node, so that paths do not depend on the order in which states arrived.
//! The log of changes tells the holder of older paths whether any link has changed that matters.

use super::Metric;
use litemap::LiteMap;
use ncmesh_wire::NodeId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Fixed-point units of ETX, so that every machine compares paths alike.
pub(super) const ETX_UNIT: f64 = (1u64 << 40) as f64;
/// Highest cost of a link. A path through 2^16 such links does not overflow.
const WORST_LINK: u128 = u128::MAX >> 16;
/// Most changes that are remembered.
const LOG: usize = 1024;

/// Whether paths lead from the root or to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    From,
    To,
}

/// Slot of a node in the graph.
pub(super) type Slot = u32;

/// A link that appeared, vanished, or got another delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// Version of the topology with the change.
    version: u64,
    pub from: NodeId,
    pub to: NodeId,
}

/// A link, seen from one of its ends: what is at the other, its delivery, and that of the link in
/// the opposite direction, 0 if there is none. A search of paths meets every link, so it must not
/// look for the opposite one.
#[derive(Clone, Copy, Debug)]
struct Link {
    node: NodeId,
    slot: Slot,
    delivery: f64,
    back: f64,
}

/// Usable links of a mesh.
#[derive(Debug)]
pub(super) struct Graph {
    slots: LiteMap<NodeId, Slot>,
    nodes: Vec<NodeId>,
    /// Links from each slot, in ascending order of receivers.
    out: Vec<Vec<Link>>,
    /// The same links to each slot, in ascending order of senders.
    into: Vec<Vec<Link>>,
    log: VecDeque<Change>,
    /// Changes after this version are all in the log.
    complete_from: u64,
    /// Changes since somebody asked for a link or a path.
    unasked: AtomicUsize,
}

impl Graph {
    /// Returns a graph without links, of this version of the topology.
    pub(super) fn new(version: u64) -> Self {
        Self {
            slots: LiteMap::new(),
            nodes: Vec::new(),
            out: Vec::new(),
            into: Vec::new(),
            log: VecDeque::new(),
            complete_from: version,
            unasked: AtomicUsize::new(0),
        }
    }

    /// Sets the delivery of a link in `version` of the topology; `None` removes it.
    pub(super) fn set(&mut self, from: NodeId, to: NodeId, delivery: Option<f64>, version: u64) {
        let from_slot = self.slot_or_new(from);
        let to_slot = self.slot_or_new(to);
        let back = self.delivery(to_slot, from_slot);

        let link = |node, slot| Link { node, slot, delivery: delivery.unwrap_or(0.0), back };

        // A link stands in four places: with its ends, and as the way back of the opposite link.
        let changed = put(&mut self.out[from_slot as usize], link(to, to_slot));
        put(&mut self.into[to_slot as usize], link(from, from_slot));
        put_back(&mut self.out[to_slot as usize], link(from, from_slot));
        put_back(&mut self.into[from_slot as usize], link(to, to_slot));

        *self.unasked.get_mut() += usize::from(changed);

        // The log lets paths be mended instead of computed again. It is bounded.
        if changed && version > self.complete_from {
            if self.log.len() == LOG
                && let Some(oldest) = self.log.pop_front()
            {
                self.complete_from = oldest.version;
            }
            self.log.push_back(Change { version, from, to });
        }
    }

    /// Notes that somebody asked for a link or a path.
    pub(super) fn note_question(&self) {
        self.unasked.store(0, Ordering::Relaxed);
    }

    /// Returns whether it is worth to keep this graph up to date. If so much has changed since the
    /// last question that the log does not tell which paths still hold, the next one can as well
    /// have a new graph.
    pub(super) fn is_of_use(&self) -> bool {
        self.unasked.load(Ordering::Relaxed) <= LOG
    }

    /// Returns the version of the latest change in the log.
    pub(super) fn changed_at(&self) -> Option<u64> {
        self.log.back().map(|change| change.version)
    }

    /// Returns the links that changed after `version`; `None` if that is too long ago.
    pub(super) fn changes_after(&self, version: u64) -> Option<impl Iterator<Item = Change> + '_> {
        let newer = self.log.iter().rev().take_while(move |change| change.version > version);
        (version >= self.complete_from).then_some(newer.copied())
    }

    /// Returns the number of slots.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the slot of a node that has or had a link.
    pub(super) fn slot(&self, node: NodeId) -> Option<Slot> {
        self.slots.get(&node).copied()
    }

    /// Returns the node of a slot.
    pub(super) fn node(&self, slot: Slot) -> NodeId {
        self.nodes[slot as usize]
    }

    /// Returns the links from a slot: neighbour and delivery, in ascending order of neighbours.
    pub(super) fn links_from(&self, slot: Slot) -> impl Iterator<Item = (NodeId, f64)> + '_ {
        self.out[slot as usize].iter().map(|link| (link.node, link.delivery))
    }

    /// Returns the steps that a search of paths takes from a slot, and their costs.
    pub(super) fn steps(
        &self,
        at: Slot,
        direction: Direction,
        metric: Metric,
    ) -> impl Iterator<Item = (Slot, u128)> + '_ {
        let links = match direction {
            Direction::From => &self.out,
            Direction::To => &self.into,
        };
        links[at as usize].iter().filter_map(move |link| {
            Some((link.slot, cost(metric.success(link.delivery, link.back))?))
        })
    }

    /// Returns the cost of a link; `None` if nothing can pass it.
    pub(super) fn cost(&self, from: NodeId, to: NodeId, metric: Metric) -> Option<u128> {
        let from = self.slot(from)?;
        let to = self.slot(to)?;
        cost(metric.success(self.delivery(from, to), self.delivery(to, from)))
    }

    /// Returns the delivery of a link; 0 if there is none.
    fn delivery(&self, from: Slot, to: Slot) -> f64 {
        let links = &self.out[from as usize];
        find(links, self.node(to)).map_or(0.0, |index| links[index].delivery)
    }

    fn slot_or_new(&mut self, node: NodeId) -> Slot {
        *self.slots.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.out.push(Vec::new());
            self.into.push(Vec::new());
            (self.nodes.len() - 1) as Slot
        })
    }
}

/// Returns where the link with `node` is in a list, or where it belongs.
fn find(links: &[Link], node: NodeId) -> Result<usize, usize> {
    links.binary_search_by_key(&node, |link| link.node)
}

/// Sets a link in a list of links, or removes it if it delivers nothing. Returns whether that
/// changed anything.
fn put(links: &mut Vec<Link>, link: Link) -> bool {
    let is_there = link.delivery > 0.0;
    match find(links, link.node) {
        Ok(at) if links[at].delivery == link.delivery => return false,
        Ok(at) if is_there => links[at] = link,
        Ok(at) => drop(links.remove(at)),
        Err(at) if is_there => links.insert(at, link),
        Err(_) => return false,
    }

    true
}

/// Notes what a link delivers at the one in the opposite direction, if there is one.
fn put_back(links: &mut [Link], link: Link) {
    if let Ok(at) = find(links, link.node) {
        links[at].back = link.delivery;
    }
}

/// Returns the cost of a link that delivers this share; `None` if nothing can pass it.
fn cost(delivery: f64) -> Option<u128> {
    if delivery <= 0.0 {
        return None;
    }
    let units = ETX_UNIT / delivery + 0.5;
    // Processors convert to 64 bits; to more, only a function does.
    let cost = if units < u64::MAX as f64 { u128::from(units as u64) } else { units as u128 };
    Some(cost.min(WORST_LINK))
}
