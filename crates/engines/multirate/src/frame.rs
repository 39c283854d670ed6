//! The frames of the engine: data, reports and announcements. Layouts:
//! `docs/reference/wire-format.md`.

use crate::NAME;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine::toolkit::live::{ANNOUNCEMENT, Untimed};
use ncmesh_engine::{Malformed, Summary};
use ncmesh_wire::layout::Layout;
use ncmesh_wire::record::{field, group};
use ncmesh_wire::{FlowId, NodeId, Record, Writer, record};

/// Kind of a packet of a stream, sent to one child.
pub(crate) use ncmesh_engine::transmission::DATA;
/// Kind of a report of backlogs and membership.
pub(crate) const REPORT: u8 = 2;

/// Frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout::of::<Data<'_>>(
        DATA,
        "data",
        "{flow} layer {stream.layer}, packet {stream.sequence} to {next_hop}",
    ),
    Layout::of::<Report>(REPORT, "report", "of {membership?} streams"),
    Layout::of::<Untimed>(
        ANNOUNCEMENT,
        "announcement",
        "{flow} to group {stream.group}, {stream.layers} layers",
    ),
];

record! {
    /// Everything in a data frame before its packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct DataHeader {
        /// the stream
        pub flow: FlowId = field("flow", "Flow"),
        /// the node that is to take it; others ignore it
        pub next: NodeId = field("next_hop", "Next hop"),
        /// 0 is the base
        pub layer: u8 = field("stream.layer", "Layer").within(0, LAYERS as u64 - 1),
        /// numbers the layer's packets, modulo 2^32
        pub seq: u32 = field("stream.sequence", "Sequence"),
        /// hops that it may still go, this one included
        pub hops: u8 = field("packet.hops", "Hops left").at_least(1),
    }
}

record! {
    /// A data frame.
    struct Data<'a> {
        header: DataHeader,
        packet: &'a [u8] = field("packet.bytes", "Packet").rest(1, usize::MAX),
    }
}

impl DataHeader {
    /// Length of the header, bytes.
    pub(crate) const LEN: usize = <Self as Record>::LEN;

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.put(&mut Writer::new(out));
    }

    /// Parses the body of a data frame into its header and its packet.
    ///
    /// # Errors
    /// [`Malformed`] if there is no packet, no hop left or no such layer.
    pub(crate) fn parse(body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        Data::from_body(body).map(|data| (data.header, data.packet))
    }
}

record! {
    /// Entry of a report, for one stream: how many receivers the node reaches, and the sum that its
    /// parent subtracts in (25), in two parts for packets and for virtual pressure.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) struct ReportEntry {
        /// the stream
        pub flow: FlowId = field("flow", "Flow"),
        /// the node that the transmitter wants it from: its neighbour on the shortest-ETX path from
        /// the source. To others it says that they are not
        pub parent: NodeId = field("parent", "Parent"),
        /// reached through the transmitter, itself included (m); 0: it leaves the tree, which it
        /// says three times
        pub receivers: u16 = field("membership.receivers", "Receivers"),
        /// the sum of m times the packets held over its links, and its own Y if it receives and Y
        /// is below 0
        pub backlog: f32 = field("membership.backlog", "Backlog, packets"),
        /// the sum of Y over those receivers, where it is above 0
        pub pressure: f32 = field("membership.pressure", "Virtual pressure, packets"),
    }
}

record! {
    /// A report.
    struct Report {
        entries: Vec<ReportEntry> to the end(1, usize::MAX) = group(
            "membership",
            "Membership",
            "{flow}: {membership.receivers} receivers, parent {parent}",
        ),
    }
}

impl ReportEntry {
    /// Length of an entry, bytes.
    pub(crate) const LEN: usize = <Self as Record>::LEN;

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.put(&mut Writer::new(out));
    }

    /// Parses the body of a report.
    ///
    /// # Errors
    /// [`Malformed`] if it has no entry, a part of one, or a number that is not finite.
    pub(crate) fn parse_all(body: &[u8]) -> Result<Vec<Self>, Malformed> {
        Report::from_body(body).map(|report| report.entries)
    }
}

/// Returns what traces show of a frame; `None` if it is malformed.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let summary = |flow, what| Summary { flow, ..Summary::new(NAME, what) };
    match kind {
        DATA => Some(summary(Some(DataHeader::parse(body).ok()?.0.flow), "data")),
        REPORT => ReportEntry::parse_all(body).ok().map(|_| summary(None, "report")),
        ANNOUNCEMENT => Some(summary(Some(Untimed::parse(body).ok()?.flow), "announcement")),
        _ => None,
    }
}
