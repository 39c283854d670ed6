//! The usable links of the mesh in flat arrays, and which of them changed lately.
//!
//! Each node has a slot, a number below the count of nodes. Links are lists of slots and
//! deliveries, ordered by node, so that paths do not depend on the order in which states arrived.
//! The log of changes tells the holder of older paths whether any link has changed that matters.

use super::Metric;
use super::ports::{CHANNELS, NO_CHANNEL, Pace};
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

/// Slot of a node in the graph. There are no more nodes than ids.
pub(super) type Slot = u16;

/// A link that appeared, vanished, or got another delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// Version of the topology with the change.
    version: u64,
    pub from: NodeId,
    pub to: NodeId,
}

/// The ports of a link, as its ends tell them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OnPorts {
    /// Channels of the sender and of the receiver, each by the numbers of that node.
    pub sender: u8,
    pub receiver: u8,
    /// How long frames take.
    pub pace: Pace,
}

/// A link, seen from one of its ends: what is at the other, its delivery, and that of the link in
/// the opposite direction, 0 if there is none. A search of paths meets every link, so it must not
/// look for the opposite one.
#[derive(Clone, Copy, Debug)]
struct Link {
    node: NodeId,
    slot: Slot,
    /// Channels at this end and at the other.
    near: u8,
    far: u8,
    pace: Pace,
    delivery: f64,
    back: f64,
}

/// A step of a search of paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub to: Slot,
    pub cost: u128,
    /// Channels at the end where it begins and where it leads to.
    pub near: u8,
    pub far: u8,
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
    /// Usual pace of the mesh, at which a frame counts as one transmission.
    usual: Pace,
    /// Whether the ends of some link tell their ports.
    tells_ports: bool,
}

impl Graph {
    /// Returns a graph without links, of this version of the topology, in which frames usually go
    /// at this pace.
    pub(super) fn new(version: u64, usual: Pace) -> Self {
        Self {
            usual,
            tells_ports: false,
            slots: LiteMap::new(),
            nodes: Vec::new(),
            out: Vec::new(),
            into: Vec::new(),
            log: VecDeque::new(),
            complete_from: version,
            unasked: AtomicUsize::new(0),
        }
    }

    /// Sets the delivery of a link in `version` of the topology; `None` removes it. The ports of a
    /// link stay the same in one graph.
    pub(super) fn set(
        &mut self,
        from: NodeId,
        to: NodeId,
        delivery: Option<f64>,
        on: OnPorts,
        version: u64,
    ) {
        let from_slot = self.slot_or_new(from);
        let to_slot = self.slot_or_new(to);
        let back = self.delivery(to_slot, from_slot);
        self.tells_ports |=
            on.pace != Pace::UNKNOWN || on.sender != NO_CHANNEL || on.receiver != NO_CHANNEL;

        let delivery = delivery.unwrap_or(0.0);
        let OnPorts { sender, receiver, pace } = on;
        let to_receiver =
            Link { node: to, slot: to_slot, near: sender, far: receiver, pace, delivery, back };
        let to_sender =
            Link { node: from, slot: from_slot, near: receiver, far: sender, ..to_receiver };

        // A link stands in four places: with its ends, and as the way back of the opposite link.
        let changed = put(&mut self.out[from_slot as usize], to_receiver);
        put(&mut self.into[to_slot as usize], to_sender);
        put_back(&mut self.out[to_slot as usize], to_sender);
        put_back(&mut self.into[from_slot as usize], to_receiver);

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
    ) -> impl Iterator<Item = Step> + '_ {
        let links = match direction {
            Direction::From => &self.out,
            Direction::To => &self.into,
        };
        links[at as usize].iter().filter_map(move |link| {
            let success = metric.success(link.delivery, link.back);
            let cost = cost(success, link.pace.over(self.usual))?;
            Some(Step { to: link.slot, cost, near: link.near, far: link.far })
        })
    }

    /// Returns the number of channels that the nodes of this graph tell apart, with that of nodes
    /// that tell none.
    pub(super) fn channels(&self) -> usize {
        if self.tells_ports { CHANNELS } else { 1 }
    }

    /// Returns the cost of a link in a mesh whose nodes tell no ports; `None` if nothing can pass
    /// it.
    pub(super) fn cost(&self, from: NodeId, to: NodeId, metric: Metric) -> Option<u128> {
        let from = self.slot(from)?;
        let to = self.slot(to)?;
        cost(metric.success(self.delivery(from, to), self.delivery(to, from)), 1.0)
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

/// Returns the cost of a link that delivers this share of frames, which take `airtime` times as
/// long as usual; `None` if nothing can pass it.
fn cost(delivery: f64, airtime: f64) -> Option<u128> {
    if delivery <= 0.0 {
        return None;
    }
    let units = ETX_UNIT * airtime / delivery + 0.5;
    // Processors convert to 64 bits; to more, only a function does.
    let cost = if units < u64::MAX as f64 { u128::from(units as u64) } else { units as u128 };
    Some(cost.clamp(1, WORST_LINK))
}
