//! Descriptions of the frames of live streams.

use crate::frame::{ANNOUNCEMENT, DATA, REPORT};
use ncmesh_engine::layout::{
    Charset, Check, Count, FlowOf, Layout, Length, Part, bytes, field, float, flow, node, text, u8,
    u16, u32,
};
use ncmesh_engine::stream::LAYERS;

/// Layouts of the frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[PACKET, STATE_REPORT, STREAM];

const FLOW: Part = field(flow("flow", "Flow", "the stream"));

const PACKET: Layout = Layout {
    kind: DATA,
    name: "data",
    variant: None,
    info: "{flow} layer {stream.layer}, packet {stream.sequence} to {next_hop}",
    flow: FlowOf::Id("flow"),
    batch: None,
    parts: &[
        FLOW,
        field(node("next_hop", "Next hop", "the node that is to take it; others ignore it")),
        field(u8("stream.layer", "Layer", "0 is the base").within(0, LAYERS as u64 - 1)),
        field(u32("stream.sequence", "Sequence", "numbers the layer's packets, modulo 2^32")),
        field(
            u8("packet.hops", "Hops left", "hops that it may still go, this one included")
                .at_least(1),
        ),
        field(bytes("packet.bytes", Length::Rest(1, usize::MAX), "Packet", "")),
    ],
};

const STATE_REPORT: Layout = Layout {
    kind: REPORT,
    name: "report",
    variant: None,
    info: "of {membership?} streams",
    flow: FlowOf::None,
    batch: None,
    parts: &[Part::Repeat(
        Count::ToEnd(1, usize::MAX),
        &[Part::Group {
            name: "membership",
            label: "Membership",
            text: "{flow}: {membership.receivers} receivers, parent {parent}",
            parts: &[
                FLOW,
                field(node(
                    "parent",
                    "Parent",
                    "the node that the transmitter wants it from: its neighbour on the \
                     shortest-ETX path from the source. To others it says that they are not",
                )),
                field(u16(
                    "membership.receivers",
                    "Receivers",
                    "reached through the transmitter, itself included (m); 0: it leaves the tree, \
                     which it says three times",
                )),
                field(float(
                    "membership.backlog",
                    "Backlog, packets",
                    "the sum of m times the packets held over its links, and its own Y if it \
                     receives and Y is below 0",
                )),
                field(float(
                    "membership.pressure",
                    "Virtual pressure, packets",
                    "the sum of Y over those receivers, where it is above 0",
                )),
            ],
        }],
    )],
};

const STREAM: Layout = Layout {
    kind: ANNOUNCEMENT,
    name: "announcement",
    variant: None,
    info: "{flow} to group {stream.group}, {stream.layers} layers",
    flow: FlowOf::Id("flow"),
    batch: None,
    parts: &[
        FLOW,
        field(u32("stream.version", "Version", "counts the announcements of this stream")),
        field(u8("stream.layers", "Layers", "0: the stream has ended").within(0, LAYERS as u64)),
        field(text("stream.group", Charset::Name, "Group", "")),
        Part::Repeat(
            Count::Field("stream.layers"),
            &[field(text("stream.layer.name", Charset::Name, "Layer", "the base first"))],
        ),
        Part::Check(Check::Distinct(&["stream.layer.name"])),
        Part::Repeat(
            Count::Field("stream.layers"),
            &[field(u32(
                "stream.sent",
                "Packets sent",
                "packets of a layer that entered the stream so far, modulo 2^32",
            ))],
        ),
    ],
};
