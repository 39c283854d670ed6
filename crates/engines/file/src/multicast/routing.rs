//! How a data packet says who is to forward it.

use ncmesh_engine::Malformed;
use ncmesh_engine::topology::Paths;
use ncmesh_wire::{NodeId, Reader, Writer};
use std::collections::BTreeSet;

/// The longest list of nodes there is.
pub(super) const MAX_LISTED: usize = 255;
/// Credits come in these parts of one.
const CREDIT_UNIT: f64 = 256.0;

/// How a scheme's packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// By credit; upstream of a forwarder is whoever stands before it in the list (Pacifier, III-A.2).
    Ordered,
    /// By credit; each forwarder is told who is upstream of it (MORE with several receivers; II-A).
    Belts,
    /// Down a tree, uncoded; each node repeats a packet until its children have it.
    HopByHop(Cast),
}

/// How a node sends to its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// To all at once; they report what they have.
    Broadcast,
    /// To its one child, with the MAC's acknowledgment and repetitions.
    Unicast,
}

/// A forwarder and what it owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarder {
    /// The node.
    pub node: NodeId,
    /// Its TX_credit (Pacifier, eq. 4), in 1/256.
    pub credit: u16,
}

/// Who forwards a batch, and whose packets make them do so. The source is upstream of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routing {
    /// In order of increasing ETX from the source.
    Ordered(Vec<Forwarder>),
    /// With, for each forwarder, those upstream of it.
    Belts(Vec<Forwarder>, Upstream),
    /// Each node of a tree but the source, with the one before it.
    Tree(Vec<Hop>),
}

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node.
    pub node: NodeId,
    /// From whom it gets packets.
    pub parent: NodeId,
}

/// Which forwarders of a list are upstream of which: a bit for each pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    listed: usize,
    bits: Vec<u8>,
}

impl Forwarder {
    /// A forwarder that sends `credit` packets for each one it has from upstream.
    #[must_use]
    pub fn new(node: NodeId, credit: f64) -> Self {
        let units = (credit * CREDIT_UNIT).round().min(f64::from(u16::MAX));
        Self { node, credit: units as u16 }
    }

    /// Its TX_credit.
    #[must_use]
    pub fn tx_credit(self) -> f64 {
        f64::from(self.credit) / CREDIT_UNIT
    }
}

impl Forwarding {
    /// Whether packets go from node to node of a tree, each hop repeated until it succeeds.
    #[must_use]
    pub fn is_hop_by_hop(self) -> bool {
        matches!(self, Self::HopByHop(_))
    }

    /// Bytes of a data packet besides its payload at most, where `listed` nodes are in its list and its batch
    /// has `packets`.
    pub(super) const fn overhead(self, listed: usize, packets: usize) -> usize {
        let kind = match self {
            Self::Ordered => packets,
            Self::Belts => 1 + Upstream::len(listed) + packets,
            Self::HopByHop(_) => 1 + 4 + 1,
        };
        6 + 2 + 4 + 4 + 1 + 1 + 1 + 4 * listed + 6 + kind
    }
}

impl Upstream {
    /// None of `listed` forwarders is upstream of another.
    #[must_use]
    pub fn none(listed: usize) -> Self {
        Self { listed, bits: vec![0; Self::len(listed)] }
    }

    /// The forwarder at place `other` is upstream of the one at place `of`.
    ///
    /// # Panics
    /// Where there is no such place.
    pub fn insert(&mut self, of: usize, other: usize) {
        assert!(of < self.listed && other < self.listed, "a place in the list");
        let bit = of * self.listed + other;
        self.bits[bit / 8] |= 0x80 >> (bit % 8);
    }

    /// Whether the forwarder at place `other` is upstream of the one at place `of`.
    #[must_use]
    pub fn contains(&self, of: usize, other: usize) -> bool {
        let bit = of * self.listed + other;
        of < self.listed && other < self.listed && self.bits[bit / 8] & (0x80 >> (bit % 8)) != 0
    }

    const fn len(listed: usize) -> usize {
        (listed * listed).div_ceil(8)
    }
}

impl Default for Routing {
    fn default() -> Self {
        Self::Ordered(Vec::new())
    }
}

impl Routing {
    /// The union of the paths from a root to those of `receivers` it reaches.
    #[must_use]
    pub fn tree(paths: &Paths, receivers: &[NodeId]) -> Self {
        let mut nodes = BTreeSet::new();
        for receiver in receivers {
            nodes.extend(paths.path_to(*receiver).iter().map(|n| (paths.distance(*n), *n)));
        }
        let hop = |(_, node)| Some(Hop { node, parent: paths.parent(node)? });
        Self::Tree(nodes.into_iter().filter_map(hop).collect())
    }

    /// Whether it says what packets forwarded so need to say.
    #[must_use]
    pub fn is_for(&self, forwarding: Forwarding) -> bool {
        matches!(
            (self, forwarding),
            (Self::Ordered(_), Forwarding::Ordered)
                | (Self::Belts(..), Forwarding::Belts)
                | (Self::Tree(_), Forwarding::HopByHop(_))
        )
    }

    /// How many nodes it lists.
    #[must_use]
    pub fn listed(&self) -> usize {
        match self {
            Self::Ordered(forwarders) | Self::Belts(forwarders, _) => forwarders.len(),
            Self::Tree(hops) => hops.len(),
        }
    }

    /// The nodes that forward.
    #[must_use]
    pub fn forwarders(&self) -> BTreeSet<NodeId> {
        match self {
            Self::Ordered(listed) | Self::Belts(listed, _) => {
                listed.iter().map(|f| f.node).collect()
            }
            Self::Tree(hops) => {
                let parents = hops.iter().map(|hop| hop.parent);
                parents.filter(|node| self.lists(*node)).collect()
            }
        }
    }

    /// What `me` may send for a packet of `sender`, in a transfer of `source`; `None` where it is not from
    /// upstream, or nothing is sent by credit.
    #[must_use]
    pub fn credit(&self, me: NodeId, sender: NodeId, source: NodeId) -> Option<f64> {
        let place = self.place(me)?;
        let other = self.place(sender);
        let (listed, is_upstream) = match self {
            Self::Ordered(listed) => (listed, other.is_some_and(|other| other < place)),
            Self::Belts(listed, upstream) => {
                (listed, other.is_some_and(|other| upstream.contains(place, other)))
            }
            Self::Tree(_) => return None,
        };
        (is_upstream || sender == source).then(|| listed[place].tx_credit())
    }

    /// From whom `node` gets packets, in a tree.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        let Self::Tree(hops) = self else { return None };
        let hop = hops.iter().find(|hop| hop.node == node);
        hop.map(|hop| hop.parent).filter(|parent| *parent != node)
    }

    /// Whom `node` sends to, in a tree.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let hops: &[Hop] = if let Self::Tree(hops) = self { hops } else { &[] };
        let is_child = move |hop: &&Hop| hop.parent == node && hop.node != node;
        hops.iter().filter(is_child).map(|hop| hop.node)
    }

    /// Whether `node` is listed.
    #[must_use]
    pub fn lists(&self, node: NodeId) -> bool {
        self.place(node).is_some()
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        match self {
            Self::Ordered(listed) | Self::Belts(listed, _) => {
                listed.iter().position(|f| f.node == node)
            }
            Self::Tree(hops) => hops.iter().position(|hop| hop.node == node),
        }
    }

    /// Appends the list, and behind it what else the nodes listed need to know.
    pub(super) fn write(&self, revision: u8, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.u8(self.listed() as u8);
        match self {
            Self::Ordered(listed) | Self::Belts(listed, _) => listed.iter().for_each(|f| {
                w.node(f.node).u16(f.credit);
            }),
            Self::Tree(hops) => hops.iter().for_each(|hop| {
                w.node(hop.node).node(hop.parent);
            }),
        }
        match self {
            Self::Ordered(_) => {}
            Self::Belts(_, upstream) => {
                w.u8(revision).bytes(&upstream.bits);
            }
            Self::Tree(_) => {
                w.u8(revision);
            }
        }
    }

    /// Reads forwarders in order.
    pub(super) fn parse_ordered(r: &mut Reader<'_>) -> Result<(Self, u8), Malformed> {
        Ok((Self::Ordered(parse_forwarders(r)?), 0))
    }

    /// Reads belts and their revision.
    pub(super) fn parse_belts(r: &mut Reader<'_>) -> Result<(Self, u8), Malformed> {
        let forwarders = parse_forwarders(r)?;
        let (listed, revision) = (forwarders.len(), r.u8()?);
        let bits = r.bytes(Upstream::len(listed))?.to_vec();
        Ok((Self::Belts(forwarders, Upstream { listed, bits }), revision))
    }

    /// Reads a tree and its revision.
    pub(super) fn parse_tree(r: &mut Reader<'_>) -> Result<(Self, u8), Malformed> {
        let listed = usize::from(r.u8()?);
        let mut hops = Vec::with_capacity(listed);
        for _ in 0..listed {
            hops.push(Hop { node: r.node()?, parent: r.node()? });
        }
        Ok((Self::Tree(hops), r.u8()?))
    }
}

fn parse_forwarders(r: &mut Reader<'_>) -> Result<Vec<Forwarder>, Malformed> {
    let listed = usize::from(r.u8()?);
    let mut forwarders = Vec::with_capacity(listed);
    for _ in 0..listed {
        forwarders.push(Forwarder { node: r.node()?, credit: r.u16()? });
    }
    Ok(forwarders)
}
