//! Forwarders of a data packet, as the packet itself lists them.
//!
//! The source decides and lists its decision in every packet ([`Routing`]); other nodes need no
//! state of their own to take part. Which of the three forms the list has depends on the scheme
//! ([`Forwarding`]). Credits, "upstream" and TX_credit are those of Pacifier, III-A.2.

use ncmesh_engine::Malformed;
use ncmesh_engine::topology::Paths;
use ncmesh_wire::layout::{Count, Is, Length, Part};
use ncmesh_wire::record::{Named, field, many};
use ncmesh_wire::{NodeId, Reader, Writer};
use std::collections::BTreeSet;

/// Most nodes that a packet can list; their number is one byte.
pub(super) const MAX_LISTED: usize = 255;
/// Steps of a credit in one transmission.
const CREDIT_UNIT: f64 = 256.0;

/// How a scheme's packets are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// Coded, by credit. Forwarders earlier in the list are upstream of later ones (Pacifier,
    /// III-A.2).
    Ordered,
    /// Coded, by credit. The list says for each pair of forwarders whether one is upstream of the
    /// other (MORE with several receivers; Pacifier, II-A).
    Belts,
    /// Uncoded, down a tree. Each node repeats a packet until its children have it.
    HopByHop(Cast),
}

/// How a node sends to its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// To all at once by broadcast; they report what they have.
    Broadcast,
    /// To its only child by unicast, with the MAC's acknowledgment and retransmissions.
    Unicast,
}

/// A forwarder and its credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forwarder {
    /// The node.
    pub node: NodeId,
    /// Its TX_credit (Pacifier, eq. 4), in 1/256 transmission.
    pub credit: u16,
}

/// Forwarders of a generation, and whose packets make them forward. The source is upstream of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Routing {
    /// In order of increasing ETX from the source.
    Ordered(Vec<Forwarder>),
    /// In order of increasing ETX from the source, with the relation "is upstream of".
    Belts(Vec<Forwarder>, Upstream),
    /// Every node of a tree but the source, each with its parent.
    Tree(Vec<Hop>),
}

/// A node of a tree and its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node.
    pub node: NodeId,
    /// The node that sends to it.
    pub parent: NodeId,
}

/// Relation "is upstream of" between the forwarders of a list: a bit for each ordered pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    listed: usize,
    bits: Vec<u8>,
}

impl Forwarder {
    /// Returns a forwarder that sends `credit` packets for each one it hears from upstream.
    #[must_use]
    pub fn new(node: NodeId, credit: f64) -> Self {
        let units = (credit * CREDIT_UNIT).round().min(f64::from(u16::MAX));
        Self { node, credit: units as u16 }
    }

    /// Returns its TX_credit, transmissions per packet heard from upstream.
    #[must_use]
    pub fn tx_credit(self) -> f64 {
        f64::from(self.credit) / CREDIT_UNIT
    }
}

impl Forwarding {
    /// Returns whether packets go down a tree, each hop repeated until it succeeds.
    #[must_use]
    pub fn is_hop_by_hop(self) -> bool {
        matches!(self, Self::HopByHop(_))
    }
}

impl Upstream {
    /// Returns the relation in which none of `listed` forwarders is upstream of another.
    #[must_use]
    pub fn none(listed: usize) -> Self {
        Self { listed, bits: vec![0; Self::len(listed)] }
    }

    /// Notes that the forwarder at place `other` is upstream of the one at place `of`.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn insert(&mut self, of: usize, other: usize) {
        assert!(of < self.listed && other < self.listed, "a place in the list");
        let bit = of * self.listed + other;
        self.bits[bit / 8] |= 0x80 >> (bit % 8);
    }

    /// Returns whether the forwarder at place `other` is upstream of the one at place `of`.
    #[must_use]
    pub fn contains(&self, of: usize, other: usize) -> bool {
        let bit = of * self.listed + other;
        of < self.listed && other < self.listed && self.bits[bit / 8] & (0x80 >> (bit % 8)) != 0
    }

    /// Returns the length of the relation between that number of forwarders, bytes.
    pub(super) const fn len(listed: usize) -> usize {
        (listed * listed).div_ceil(8)
    }
}

impl Default for Routing {
    fn default() -> Self {
        Self::Ordered(Vec::new())
    }
}

impl Routing {
    /// Returns the tree of `paths` from their root to every one of `receivers` that they reach, in
    /// order of increasing distance.
    #[must_use]
    pub fn tree(paths: &Paths, receivers: &[NodeId]) -> Self {
        let mut nodes = BTreeSet::new();
        for receiver in receivers {
            nodes.extend(paths.path_to(*receiver).iter().map(|n| (paths.distance(*n), *n)));
        }
        let hop = |(_, node)| Some(Hop { node, parent: paths.parent(node)? });
        Self::Tree(nodes.into_iter().filter_map(hop).collect())
    }

    /// Returns whether it has the form that packets of this kind of forwarding need.
    #[must_use]
    pub fn is_for(&self, forwarding: Forwarding) -> bool {
        matches!(
            (self, forwarding),
            (Self::Ordered(_), Forwarding::Ordered)
                | (Self::Belts(..), Forwarding::Belts)
                | (Self::Tree(_), Forwarding::HopByHop(_))
        )
    }

    /// Returns the number of nodes it lists.
    #[must_use]
    pub fn listed(&self) -> usize {
        match self {
            Self::Ordered(forwarders) | Self::Belts(forwarders, _) => forwarders.len(),
            Self::Tree(hops) => hops.len(),
        }
    }

    /// Returns the nodes that forward. Leaves of a tree do not.
    #[must_use]
    pub fn forwarders(&self) -> BTreeSet<NodeId> {
        match self {
            Self::Ordered(listed) | Self::Belts(listed, _) => {
                listed.iter().map(|f| f.node).collect()
            }
            // The source is a parent, too, and no forwarder.
            Self::Tree(hops) => {
                let parents = hops.iter().map(|hop| hop.parent);
                parents.filter(|node| self.lists(*node)).collect()
            }
        }
    }

    /// Returns the credit that `me` earns by a packet of `sender`, in a transfer of `source`.
    /// `None` if the packet does not come from upstream, or the routing has no credits.
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

        // The source is upstream of all, and no place among the forwarders says so.
        (is_upstream || sender == source).then(|| listed[place].tx_credit())
    }

    /// Returns the parent of `node`, in a tree.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        let Self::Tree(hops) = self else { return None };
        let hop = hops.iter().find(|hop| hop.node == node);
        hop.map(|hop| hop.parent).filter(|parent| *parent != node)
    }

    /// Returns the children of `node`, in a tree.
    pub fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let hops: &[Hop] = if let Self::Tree(hops) = self { hops } else { &[] };
        let is_child = move |hop: &&Hop| hop.parent == node && hop.node != node;
        hops.iter().filter(is_child).map(|hop| hop.node)
    }

    /// Returns whether `node` is listed.
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
}

/// Format of a routing with its revision in a packet: the list of nodes; then, if the scheme
/// replans within a turn, the plan's revision; then, for belts, the relation.
pub(super) struct Routed {
    pub is_tree: bool,
    pub has_belts: bool,
}

impl Routed {
    const COUNT: Named = field("forwarders", "Forwarders");
    const NODE: Named = field("forwarder.node", "Node");
    const CREDIT: Named = field("forwarder.credit", "TX_credit").scaled(CREDIT_UNIT as u32);
    const PARENT: Named = field("parent", "Parent");
    const REVISION: Named = field("revision", "Revision of the plan");
    const UPSTREAM: Named = field("upstream", "Forwarders upstream of each, a row of bits each");

    pub(super) const PARTS: &'static [Part] = &[
        Self::COUNT.part::<u8>("how many nodes follow"),
        Part::Repeat(
            Count::Field(Self::COUNT.name),
            &[Part::Group {
                name: "forwarder",
                label: "Forwarder",
                text: "Node {forwarder.node}",
                parts: &[
                    Self::NODE.part::<NodeId>(
                        "forwarders in order of increasing ETX from the source; of a tree every \
                         node but the source",
                    ),
                    Part::When(Is("is_tree", 0), &[Self::CREDIT.part::<u16>("")]),
                    Part::When(Is("is_tree", 1), &[Self::PARENT.part::<NodeId>("in the tree")]),
                ],
            }],
        ),
        Part::When(
            Is("has_belts", 1),
            &[
                Self::REVISION.part::<u8>(REVISION_DOC),
                Self::UPSTREAM.bytes(
                    Length::Square(Self::COUNT.name),
                    "n rows of n bits without gaps, most significant first, for n forwarders. Bit \
                     *j* of row *i*, both from 0: forwarder *j* is upstream of forwarder *i*. Zero \
                     bits to a whole byte",
                ),
            ],
        ),
        Part::When(Is("is_tree", 1), &[Self::REVISION.part::<u8>(REVISION_DOC)]),
    ];

    /// Reads a routing and its revision. That of ordered forwarders is always 0.
    pub(super) fn read(self, r: &mut Reader<'_>) -> Result<(Routing, u8), Malformed> {
        let count: u8 = Self::COUNT.read(r)?;
        if self.is_tree {
            let hops = many(r, count.into(), |r| {
                Ok(Hop { node: Self::NODE.read(r)?, parent: Self::PARENT.read(r)? })
            })?;
            return Ok((Routing::Tree(hops), Self::REVISION.read(r)?));
        }

        let forwarders = many(r, count.into(), |r| {
            Ok(Forwarder { node: Self::NODE.read(r)?, credit: Self::CREDIT.read(r)? })
        })?;

        if !self.has_belts {
            return Ok((Routing::Ordered(forwarders), 0));
        }

        let revision = Self::REVISION.read(r)?;
        let listed = forwarders.len();
        let bits = r.bytes(Upstream::len(listed))?.to_vec();
        Ok((Routing::Belts(forwarders, Upstream { listed, bits }), revision))
    }

    pub(super) fn put(self, routing: &Routing, revision: &u8, w: &mut Writer<'_>) {
        w.u8(routing.listed() as u8);
        match routing {
            Routing::Ordered(listed) | Routing::Belts(listed, _) => listed.iter().for_each(|f| {
                w.node(f.node).u16(f.credit);
            }),
            Routing::Tree(hops) => hops.iter().for_each(|hop| {
                w.node(hop.node).node(hop.parent);
            }),
        }

        // The scheme decides which of these fields follow the list.
        match routing {
            Routing::Ordered(_) => {}
            Routing::Belts(_, upstream) => {
                w.u8(*revision).bytes(&upstream.bits);
            }
            Routing::Tree(_) => {
                w.u8(*revision);
            }
        }
    }
}

const REVISION_DOC: &str = "counts the source's plans within a turn, modulo 2^8";
