//! Proofs of presence, as hellos carry them.

use ncmesh_engine::Malformed;
use ncmesh_wire::layout::{Count, Part};
use ncmesh_wire::record::{bits, field, fixed_len, many};
use ncmesh_wire::{NodeId, Reader, Record, StartId, Writer, record};

/// Most nodes of each list in a hello: a length has four bits.
pub(crate) const MAX_LISTED: usize = 15;
/// Most starts that one hello vouches for. Each neighbour of a node that asks may do so.
pub(super) const MAX_VOUCHES: usize = 4;
/// Length of the proofs that list nothing, bytes.
pub(crate) const LEAST_LEN: usize = Proofs::LEN;
/// Length of a node that is asked, and of a start that is named, bytes.
const ASK_LEN: usize = 2;
const HEARD_LEN: usize = fixed_len(&Heard::parts(["", "", ""], ""));

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
}

record! {
    impl Proofs as Proofs { asked, doubted, echoes, vouches } {
        byte {
            /// how many nodes follow
            asks: u8 = bits(0xF0, "proofs.asked", "Proofs asked") => asked.len() as u8,
            /// how many follow behind those
            doubts: u8 = bits(0x0F, "proofs.doubted", "Nodes doubted") => doubted.len() as u8,
        }
        byte {
            /// how many follow behind those
            echo_count: u8 = bits(0xF0, "proofs.echoes", "Echoes") => echoes.len() as u8,
            /// how many follow behind those
            vouch_count: u8 = bits(0x0F, "proofs.vouches", "Vouches") => vouches.len() as u8,
        }
        /// is to prove that it is there now
        asked: Vec<NodeId> as many as asks = field("proofs.of", "Proof of"),
        /// the same, and others are to vouch for it
        doubted: Vec<NodeId> as many as doubts = field("proofs.doubt", "Doubt of"),
        echoes: Vec<Heard> as Echoes { echo_count },
        vouches: Vec<Heard> as Vouches { vouch_count },
    }
}

impl Heard {
    /// Returns the parts of a start, whose names differ by what is said of it.
    const fn parts(names: [&'static str; 3], node: &'static str) -> [Part; 3] {
        [
            field(names[0], "Node").part::<NodeId>(node),
            field(names[1], "Start").hex().part::<StartId>("first half of its salt"),
            field(names[2], "Counter").part::<u32>("highest one heard of that start"),
        ]
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { node: r.node()?, start: StartId(r.u64()?), counter: r.u32()? })
    }

    fn put(&self, w: &mut Writer<'_>) {
        w.node(self.node).u64(self.start.0).u32(self.counter);
    }
}

/// So many starts of which frames are echoed.
struct Echoes {
    echo_count: u8,
}

impl Echoes {
    const PARTS: &'static [Part] = &[Part::Repeat(
        Count::Field("proofs.echoes"),
        &[Part::Group {
            name: "echo",
            label: "Echo",
            text: "Echo of frame {echo.counter} of {echo.node}",
            parts: &Heard::parts(
                ["echo.node", "echo.start", "echo.counter"],
                "a node that the sender hears",
            ),
        }],
    )];

    fn read(self, r: &mut Reader<'_>) -> Result<Vec<Heard>, Malformed> {
        many(r, self.echo_count.into(), Heard::read)
    }

    fn put(self, echoes: &[Heard], w: &mut Writer<'_>) {
        echoes.iter().for_each(|heard| heard.put(w));
    }
}

/// So many starts for which the sender vouches.
struct Vouches {
    vouch_count: u8,
}

impl Vouches {
    const PARTS: &'static [Part] = &[Part::Repeat(
        Count::Field("proofs.vouches"),
        &[Part::Group {
            name: "vouch",
            label: "Vouch",
            text: "Vouch for {vouch.node}",
            parts: &Heard::parts(
                ["vouch.node", "vouch.start", "vouch.counter"],
                "one that has proved to the sender that it is there",
            ),
        }],
    )];

    fn read(self, r: &mut Reader<'_>) -> Result<Vec<Heard>, Malformed> {
        many(r, self.vouch_count.into(), Heard::read)
    }

    fn put(self, vouches: &[Heard], w: &mut Writer<'_>) {
        vouches.iter().for_each(|heard| heard.put(w));
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
