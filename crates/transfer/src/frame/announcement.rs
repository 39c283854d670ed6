//! Announcement of a file: what it is, how it is cut, and how its receivers fare.

use super::Version;
use ncmesh_engine::Background;
use ncmesh_engine::Malformed;
use ncmesh_engine::file::{Geometry, Manifest, ReceiverState};
use ncmesh_wire::identity::Signature;
use ncmesh_wire::layout::{Charset, Check, Count, Part};
use ncmesh_wire::record::{Group, Named, bits, field, group, many};
use ncmesh_wire::{FlowId, NodeId, Reader, Record, Writer, choice, frame, record};

choice! {
    /// Phase of a transfer, as its source announces it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TransferPhase {
        /// Receivers may still get generations.
        Open = 0, "open";
        /// Every receiver has the file or refused it.
        Ended = 1, "ended";
        /// The source cancelled the transfer.
        Withdrawn = 2, "withdrawn";
    }
}

/// Announcement of one transfer. The source floods a new version when something changed and
/// repeats it from time to time; every node keeps the latest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Tells the announcements of one transfer apart.
    pub version: Version,
    /// How far the transfer is.
    pub phase: TransferPhase,
    /// Whether nodes that are not listed may join.
    pub open_to_all: bool,
    /// Whether its data give way to all else, and its bound on airtime.
    pub background: Option<Background>,
    /// The file.
    pub manifest: Manifest,
    /// State of every receiver, as the source knows it. A receiver that finds a wrong state of
    /// itself here answers with an acknowledgment.
    pub receivers: Vec<(NodeId, ReceiverState)>,
}

impl Announcement {
    /// Returns how many receivers an announcement of `manifest` can list in `mtu` bytes, with a
    /// signature behind it.
    pub fn room_for_receivers(manifest: &Manifest, mtu: usize) -> usize {
        let fixed = Self::LEN + manifest.name.len() + Signature::LEN;
        (mtu.saturating_sub(fixed) / Listed::LEN).min(usize::from(u16::MAX))
    }
}

frame! {
    pub impl Announcement as Announcement {
        version,
        phase,
        open_to_all,
        background,
        manifest: Manifest { flow, name, geometry, root, hash },
        receivers,
    } => Announcement {
        version,
        phase,
        open_to_all,
        background: airtime.and_then(Background::of),
        manifest: Manifest { flow, name, geometry, root, hash },
        receivers,
    } {
        /// the transfer
        flow: FlowId = field("flow", "Flow"),
        version: Version,
        byte {
            /// nodes not listed may join
            open_to_all: bool = bits(0x80, "announcement.may_join", "Others may join"),
            phase: TransferPhase = bits(0x7F, "announcement.phase", "Phase"),
        }
        /// the most that its data take around a node, percent, in the background; 0: as other files
        airtime: Option<u8> = field("announcement.airtime", "Airtime, %").none(0).within(0, 100)
            => background.map(Background::percent),
        geometry: Geometry as Cut {},
        /// over the generations
        root: [u8; 32] = field("announcement.root", "Root of the hash tree"),
        /// of the whole file
        hash: [u8; 32] = field("announcement.hash", "BLAKE3 of the file"),
        /// of the file
        name: String = field("announcement.name", "Name").text(Charset::Utf8),
        /// how many follow
        count: u16 = field("announcement.receivers", "Receivers") => receivers.len() as u16,
        receivers: Vec<(NodeId, ReceiverState)> as Receivers { count },
    }
}

/// The numbers by which a file is cut into generations. The rest of the geometry follows from them,
/// and cannot contradict them.
struct Cut;

impl Cut {
    const SIZE: Named = field("announcement.size", "Size, bytes");
    const GENERATION: Named = field("announcement.generation", "Packets of a full generation");
    const SYMBOL: Named = field("announcement.symbol_size", "Symbol size, bytes");

    const PARTS: &'static [Part] = &[
        Self::SIZE.part::<u64>("of the file; at most 2^44"),
        Self::GENERATION.part::<u8>("k, 1 to 255"),
        Self::SYMBOL.part::<u16>("payload of a packet"),
        Part::Check(Check::Cut([
            Self::SIZE.name,
            Self::GENERATION.name,
            Self::SYMBOL.name,
            "announcement.generations",
        ])),
    ];

    fn read(self, r: &mut Reader<'_>) -> Result<Geometry, Malformed> {
        let size = Self::SIZE.read(r)?;
        let generation = Self::GENERATION.read(r)?;
        Geometry::new(size, generation, Self::SYMBOL.read(r)?).map_err(|_| Malformed)
    }

    fn put(self, geometry: &Geometry, w: &mut Writer<'_>) {
        w.u64(geometry.size()).u8(geometry.generation()).u16(geometry.symbol_size());
    }
}

record! {
    /// A receiver and its state.
    struct Listed {
        node: NodeId = field("receiver.node", "Node"),
        /// how the source sees the receiver
        state: ReceiverState = field("receiver.state", "State"),
    }
}

/// So many receivers.
struct Receivers {
    count: u16,
}

impl Receivers {
    const RECEIVER: Group =
        group("receiver", "Receiver", "Receiver {receiver.node}: {receiver.state}");

    const PARTS: &'static [Part] = &[Part::Repeat(
        Count::Field("announcement.receivers"),
        &[Self::RECEIVER.part::<Listed>("")],
    )];

    fn read(self, r: &mut Reader<'_>) -> Result<Vec<(NodeId, ReceiverState)>, Malformed> {
        many(r, self.count.into(), |r| Listed::read(r).map(|listed| (listed.node, listed.state)))
    }

    fn put(self, receivers: &[(NodeId, ReceiverState)], w: &mut Writer<'_>) {
        for (node, state) in receivers {
            Listed { node: *node, state: *state }.put(w);
        }
    }
}
