//! The frames of the engine: data, reports and announcements. Layouts:
//! `docs/reference/wire-format.md`.

use crate::NAME;
use ncmesh_engine::stream::{LAYERS, check_names};
use ncmesh_engine::{Malformed, Summary};
use ncmesh_wire::layout::{Charset, Check, Layout};
use ncmesh_wire::record::{field, group};
use ncmesh_wire::{FlowId, NodeId, Record, Writer, frame, record};

/// Kind of a packet of a stream, sent to one child.
pub(crate) use ncmesh_engine::transmission::DATA;
/// Kind of a report of backlogs and membership.
pub(crate) const REPORT: u8 = 2;
/// Kind of a source's announcement, which is flooded.
pub(crate) const ANNOUNCEMENT: u8 = 3;

/// Frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout::of::<Data<'_>>(
        DATA,
        "data",
        "{flow} layer {stream.layer}, packet {stream.sequence} to {next_hop}",
    ),
    Layout::of::<Report>(REPORT, "report", "of {membership?} streams"),
    Layout::of::<Announcement>(
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

frame! {
    /// A stream as its source announces it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct Announcement {
        /// the stream
        pub flow: FlowId = field("flow", "Flow"),
        /// counts the announcements of this stream
        pub version: u32 = field("stream.version", "Version"),
        /// 0: the stream has ended
        count: u8 = field("stream.layers", "Layers").within(0, LAYERS as u64)
            => layers.len() as u8,
        pub group: String = field("stream.group", "Group").text(Charset::Name),
        /// the base first
        pub layers: Vec<String> as many as count
            = field("stream.layer.name", "Layer").text(Charset::Name),
        check are_names(&group, &layers) => Check::Distinct(&["stream.layer.name"]),
        /// packets of a layer that entered the stream so far, modulo 2^32
        pub sent: Vec<u32> as many as count = field("stream.sent", "Packets sent"),
    }
}

/// Returns whether a stream may have these names. At its end it has no layers.
fn are_names(group: &str, layers: &[String]) -> bool {
    let placeholder = ["base".to_owned()];
    check_names(group, if layers.is_empty() { &placeholder } else { layers }).is_ok()
}

impl Announcement {
    /// Returns the length of its frame body, bytes.
    pub(crate) fn len(&self) -> usize {
        let names: usize = self.layers.iter().map(|name| 1 + name.len()).sum();
        Self::LEN + self.group.len() + names + 4 * self.sent.len()
    }
}

/// Returns what traces show of a frame; `None` if it is malformed.
pub(crate) fn summary(kind: u8, body: &[u8]) -> Option<Summary> {
    let summary = |flow, what| Summary { flow, ..Summary::new(NAME, what) };
    match kind {
        DATA => Some(summary(Some(DataHeader::parse(body).ok()?.0.flow), "data")),
        REPORT => ReportEntry::parse_all(body).ok().map(|_| summary(None, "report")),
        ANNOUNCEMENT => Some(summary(Some(Announcement::parse(body).ok()?.flow), "announcement")),
        _ => None,
    }
}
