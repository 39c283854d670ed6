//! How a data packet says who is to forward it.

use super::frame::Malformed;
use ncmesh_wire::{NodeId, Reader, Writer};

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
    /// Bytes of a data packet besides its payload at most, where `listed` nodes are in its list and its batch
    /// has `packets`.
    pub(super) const fn overhead(self, listed: usize, packets: usize) -> usize {
        let upstream = match self {
            Self::Ordered => 0,
            Self::Belts => 1 + Upstream::len(listed),
        };
        6 + 2 + 4 + 4 + 1 + 1 + 1 + 4 * listed + upstream + 6 + packets
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
    /// Whose kind it is.
    #[must_use]
    pub fn forwarding(&self) -> Forwarding {
        match self {
            Self::Ordered(_) => Forwarding::Ordered,
            Self::Belts(..) => Forwarding::Belts,
        }
    }

    /// How many nodes it lists.
    #[must_use]
    pub fn listed(&self) -> usize {
        self.forwarders().len()
    }

    /// The nodes that forward.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.forwarders().iter().map(|f| f.node)
    }

    /// What `me` may send for a packet of `sender`, in a transfer of `source`; `None` where it is not from
    /// upstream.
    #[must_use]
    pub fn credit(&self, me: NodeId, sender: NodeId, source: NodeId) -> Option<f64> {
        let place = self.place(me)?;
        let is_upstream = sender == source
            || match (self, self.place(sender)) {
                (_, None) => false,
                (Self::Ordered(_), Some(other)) => other < place,
                (Self::Belts(_, upstream), Some(other)) => upstream.contains(place, other),
            };
        is_upstream.then(|| self.forwarders()[place].tx_credit())
    }

    /// Whether `node` is listed.
    #[must_use]
    pub fn lists(&self, node: NodeId) -> bool {
        self.place(node).is_some()
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        self.forwarders().iter().position(|f| f.node == node)
    }

    fn forwarders(&self) -> &[Forwarder] {
        match self {
            Self::Ordered(forwarders) | Self::Belts(forwarders, _) => forwarders,
        }
    }

    /// Appends the list, and behind it, where the list does not say it, who is upstream of whom.
    pub(super) fn write(&self, revision: u8, out: &mut Vec<u8>) {
        let mut w = Writer::new(out);
        w.u8(self.listed() as u8);
        for f in self.forwarders() {
            w.node(f.node).u16(f.credit);
        }
        if let Self::Belts(_, upstream) = self {
            w.u8(revision).bytes(&upstream.bits);
        }
    }

    /// Reads what [`write`](Self::write) wrote: the routing and its revision.
    pub(super) fn parse(kind: Forwarding, r: &mut Reader<'_>) -> Result<(Self, u8), Malformed> {
        let listed = usize::from(r.u8()?);
        let mut forwarders = Vec::with_capacity(listed);
        for _ in 0..listed {
            forwarders.push(Forwarder { node: r.node()?, credit: r.u16()? });
        }
        Ok(match kind {
            Forwarding::Ordered => (Self::Ordered(forwarders), 0),
            Forwarding::Belts => {
                let revision = r.u8()?;
                let bits = r.bytes(Upstream::len(listed))?.to_vec();
                (Self::Belts(forwarders, Upstream { listed, bits }), revision)
            }
        })
    }
}
