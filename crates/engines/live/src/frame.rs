//! Frames of the engines. Layout in bytes: `docs/reference/wire-format.md`.

use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::time::Duration;
use ncmesh_engine::toolkit::live::{ANNOUNCEMENT, Timed};
use ncmesh_engine::{Malformed, Summary};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::record::{field, group};
use ncmesh_wire::{FlowId, NodeId, Record, Writer, frame, record};

/// Kind of a packet of a stream.
pub(crate) use ncmesh_engine::transmission::DATA;
/// Kind of a report: where a node wants a stream from, and what it has.
pub(crate) const REPORT: u8 = 2;

/// Frames of the scheme over a tree.
pub(crate) const TREE_LAYOUTS: &[Layout] = &[
    DATA_LAYOUT,
    Layout::of::<Report>(REPORT, "report", "{flow}: {membership.receivers} receivers by {parent}"),
    ANNOUNCEMENT_LAYOUT,
];
/// Frames of the scheme that floods.
pub(crate) const SMF_LAYOUTS: &[Layout] = &[DATA_LAYOUT, ANNOUNCEMENT_LAYOUT];

const DATA_LAYOUT: Layout =
    Layout::of::<Data<'_>>(DATA, "data", "{flow} layer {stream.layer}, packet {stream.sequence}");
const ANNOUNCEMENT_LAYOUT: Layout = Layout::of::<Timed>(
    ANNOUNCEMENT,
    "announcement",
    "{flow} to group {stream.group}, {stream.layers} layers",
);

/// Unit of the ages of packets.
const AGE_UNIT: Duration = Duration::from_micros(250);

record! {
    /// Everything in a data frame before its packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Header {
        /// the stream
        pub flow: FlowId = field("flow", "Flow"),
        /// 0 is the base
        pub layer: u8 = field("stream.layer", "Layer").within(0, LAYERS as u64 - 1),
        /// numbers the layer's packets
        pub number: u32 = field("stream.sequence", "Sequence"),
        /// of the packet, in quarters of a millisecond
        age: u16 = field("age.first", "Age of the first"),
    }
}

record! {
    /// A data frame.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Data<'a> {
        pub header: Header,
        pub packet: &'a [u8] = field("packet.bytes", "Packet").rest(1, usize::MAX),
    }
}

record! {
    /// One layer at a node.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Got {
        /// number of the newest packet that came from the parent, and one; 0: none came
        pub end: u32 = field("got.end", "End"),
        /// bits of the packets before that one, the latest lowest: 1 if the node has it
        pub before: u64 = field("got.before", "Packets before"),
    }
}

frame! {
    /// A report of one stream.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Report {
        /// the stream
        pub flow: FlowId = field("flow", "Flow"),
        /// the neighbour that the node wants the stream from
        pub parent: NodeId = field("parent", "Parent"),
        /// reached through the node, itself included; 0: it leaves the tree
        pub receivers: u16 = field("membership.receivers", "Receivers"),
        /// how many follow
        count: u8 = field("stream.layers", "Layers").within(0, LAYERS as u64)
            => layers.len() as u8,
        /// what it has of each layer, the base first
        pub layers: Vec<Got> as many as count = group("got", "Layer", "to {got.end}"),
    }
}

impl Header {
    /// Length of the header, bytes.
    pub(crate) const LEN: usize = <Self as Record>::LEN;

    /// Returns the header of a packet of this age.
    pub(crate) fn new(flow: FlowId, layer: usize, number: u32, age: Duration) -> Self {
        let units = age.as_nanos() / AGE_UNIT.as_nanos();
        Self { flow, layer: layer as u8, number, age: units.min(u16::MAX.into()) as u16 }
    }

    /// Returns the age of the packet.
    pub(crate) fn age(&self) -> Duration {
        AGE_UNIT * u32::from(self.age)
    }
}

impl<'a> Data<'a> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.put(&mut Writer::new(out));
    }

    /// Reads a data frame.
    ///
    /// # Errors
    /// [`Malformed`] if it is not as its declaration says.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        Self::from_body(body)
    }
}

impl Got {
    /// Packets before the newest one of which it tells.
    pub(crate) const WIDTH: u32 = 64;

    /// Returns whether the node has a packet; `None` if it does not say.
    pub(crate) fn has(&self, number: u32) -> Option<bool> {
        let behind = self.end.checked_sub(number)?.checked_sub(1)?;
        match behind {
            0 => Some(true),
            1..=Self::WIDTH => Some(self.before >> (behind - 1) & 1 == 1),
            _ => None,
        }
    }
}

/// Returns what traces show of a frame; `None` if it is malformed.
pub(crate) fn summary(scheme: &'static str, kind: u8, body: &[u8]) -> Option<Summary> {
    let summary = |flow, what| Summary { flow: Some(flow), ..Summary::new(scheme, what) };
    match kind {
        DATA => Some(summary(Data::parse(body).ok()?.header.flow, "data")),
        REPORT => Some(summary(Report::parse(body).ok()?.flow, "report")),
        ANNOUNCEMENT => Some(summary(Timed::parse(body).ok()?.flow, "announcement")),
        _ => None,
    }
}
