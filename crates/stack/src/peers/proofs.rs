//! Proofs of presence, as hellos carry them.

use ncmesh_engine::Malformed;
use ncmesh_wire::{NodeId, Reader, StartId, Writer};

/// Most nodes of each list in a hello: a length has four bits.
pub(crate) const MAX_LISTED: usize = 15;
/// Most starts that one hello vouches for. Each neighbour of a node that asks may do so.
pub(super) const MAX_VOUCHES: usize = 4;
/// Length of the proofs that list nothing, bytes.
pub(crate) const LEAST_LEN: usize = 2;
/// Length of a node that is asked, and of a start that is named, bytes.
const ASK_LEN: usize = 2;
const HEARD_LEN: usize = 2 + 8 + 4;

/// A start, and the highest number of its frames that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    pub node: NodeId,
    pub start: StartId,
    pub counter: u32,
}

/// Proofs that a hello asks for, and those that it gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proofs {
    /// Nodes that are to prove that they are there now.
    pub asked: Vec<NodeId>,
    /// The same, of those that have not done so for long: others are to vouch for them.
    pub doubted: Vec<NodeId>,
    /// Starts of neighbours whose frames the sender hears, current or not. To the node that it
    /// names, an echo proves that the hello was written after that frame.
    pub echoes: Vec<Heard>,
    /// Starts of other neighbours that are current to the sender.
    pub vouches: Vec<Heard>,
}

impl Proofs {
    /// Returns whether nothing is asked or proved.
    pub(crate) fn is_empty(&self) -> bool {
        self.asked.is_empty()
            && self.doubted.is_empty()
            && self.echoes.is_empty()
            && self.vouches.is_empty()
    }

    /// Reads proofs.
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        let halves = |byte: u8| (usize::from(byte >> 4), usize::from(byte & 0xF));
        let ((asked, doubted), (echoes, vouches)) = (halves(r.u8()?), halves(r.u8()?));
        let mut nodes = |count| (0..count).map(|_| r.node()).collect::<Result<_, _>>();
        let (asked, doubted) = (nodes(asked)?, nodes(doubted)?);
        let mut heard = |count| (0..count).map(|_| Heard::read(r)).collect::<Result<_, _>>();
        let (echoes, vouches) = (heard(echoes)?, heard(vouches)?);
        Ok(Self { asked, doubted, echoes, vouches })
    }

    /// Appends what [`read`](Self::read) reads.
    pub(crate) fn write(&self, w: &mut Writer<'_>) {
        let halves = |high: usize, low: usize| (high << 4 | low) as u8;
        w.u8(halves(self.asked.len(), self.doubted.len()));
        w.u8(halves(self.echoes.len(), self.vouches.len()));
        for node in self.asked.iter().chain(&self.doubted) {
            w.node(*node);
        }
        for heard in self.echoes.iter().chain(&self.vouches) {
            w.node(heard.node).u64(heard.start.0).u32(heard.counter);
        }
    }
}

impl Heard {
    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { node: r.node()?, start: StartId(r.u64()?), counter: r.u32()? })
    }
}

/// Room for lists in a hello.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room(usize);

impl Room {
    /// Returns room of `bytes`, beyond the lengths of lists.
    pub(super) fn new(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Takes room for a node that is asked. Returns whether there was any.
    pub(super) fn ask(&mut self) -> bool {
        self.take(ASK_LEN)
    }

    /// Takes room for a start. Returns whether there was any.
    pub(super) fn heard(&mut self) -> bool {
        self.take(HEARD_LEN)
    }

    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}
