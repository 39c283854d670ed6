//! Descriptions of the frames of plain forwarding.

use super::frame::QUEUE;
use ncmesh_engine::layout::{Check, FlowOf, Layout, Length, Part, bytes, field, node, u8, u16};
use ncmesh_engine::tunnel::DATA;

/// Layouts of the frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[DATA_FRAME, QUEUE_FRAME];

const DATA_FRAME: Layout = Layout {
    kind: DATA,
    name: "data",
    variant: None,
    info: "{packet.source} to {packet.destination} by {next_hop}",
    flow: FlowOf::Ends("packet.source", "packet.destination"),
    batch: None,
    parts: &[
        field(node(
            "next_hop",
            "Next hop",
            "the node that is to send it on, or is its destination; others ignore it",
        )),
        field(node("packet.source", "Source", "where it comes from")),
        field(node("packet.destination", "Destination", "where it goes")),
        Part::Check(Check::Differ("packet.source", "packet.destination")),
        field(
            u8(
                "packet.hops",
                "Hops left",
                "hops that it may still go, this one included; 64 at its source",
            )
            .at_least(1),
        ),
        field(bytes("packet.bytes", Length::Rest(1, usize::MAX), "Packet", "")),
    ],
};

const QUEUE_FRAME: Layout = Layout {
    kind: QUEUE,
    name: "queue",
    variant: None,
    info: "wait for {pause} ms",
    flow: FlowOf::None,
    batch: None,
    parts: &[field(u16(
        "pause",
        "Pause",
        "ms for which to send it nothing that it has to pass on; 0: there is room",
    ))],
};
