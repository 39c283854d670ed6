//! Descriptions of the frames of this engine.

use super::frame::{LAST, PAIR, REPORT, WIDTH};
use ncmesh_engine::layout::{
    Check, Count, FlowOf, INSTANCE, Layout, Length, Part, bits, bytes, field, node, u8, u16, u32,
};
use ncmesh_engine::tunnel::DATA;

const NEEDS: Part = Part::Include(&[
    field(
        u32("needs", "Needs from", "packets before it the sender has, or needs no more")
            .within(0, LAST as u64),
    ),
    field(
        u32(
            "leads",
            "Leads",
            "bits of the packets behind, the next one lowest: 1 if it leads a row of the sender",
        )
        .hex(),
    ),
    field(u8("backlog", "Backlog", "dimensions that the sender has and its next hop lacks")),
    field(u8("room", "Room", "packets that may wait at the sender; 255: as many as may usually")),
]);

const HANDLED: Part = Part::Include(&[
    field(u16("handled", "Handled", "last frame of the node before that the writer had handled")),
    field(u16(
        "ago",
        "Ago",
        "time from then until it wrote this, in 16 microseconds; 65535: longer, or there was none",
    )),
]);

/// A data frame up to its symbol.
const HEAD: Part = Part::Include(&[
    INSTANCE,
    field(node("next_hop", "Next hop", "the node that is to have it")),
    field(u16("frame", "Frame number", "of those that the sender sent of this flow")),
    NEEDS,
    Part::Byte(&[
        bits("feeds", 1, "Feeds", "the sender's next hop sends on what it gets"),
        bits("ends", 2, "Ends", "the sender is the destination"),
        bits("asks", 4, "Asks", "the next hop is to report"),
        bits("collides", 8, "Collides", "what the sender sends collides at its next hop"),
        bits("more", 16, "More", "further packets wait at the sender, or on the way to it"),
    ]),
    HANDLED,
    field(
        u32("oldest", "Oldest packet", "packets before it come no more from the sender")
            .within(0, LAST as u64),
    ),
    field(u8("offset", "Offset", "of the first packet in the combination from the oldest")),
    field(
        u8("further", "Further packets", "behind the first one in the combination")
            .within(0, WIDTH as u64 - 1),
    ),
    field(bytes(
        "vector",
        Length::Field("further"),
        "Coefficients",
        "of the further packets; that of the first one is 1",
    )),
]);

/// Layouts of the frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[
    Layout {
        kind: DATA,
        name: "data",
        variant: None,
        info: "{packet.source} to {packet.destination} by {next_hop}, oldest {oldest}",
        flow: FlowOf::Ends("packet.source", "packet.destination"),
        batch: None,
        parts: &[
            HEAD,
            field(bytes(
                "payload",
                Length::Rest(0, usize::MAX),
                "Payload",
                "combination of symbols: packets, each behind its length (2) and check (4); zeros. \
                 If empty, the frame only asks",
            )),
        ],
    },
    Layout {
        kind: REPORT,
        name: "report",
        variant: None,
        info: "{child} to {parent} by {next_hop}, needs {needs}",
        flow: FlowOf::Ends("packet.source", "packet.destination"),
        batch: None,
        parts: &[
            INSTANCE,
            field(node("next_hop", "Next hop", "the node that takes it or passes it on")),
            field(node("parent", "Parent", "the node that it is for")),
            field(node("child", "Child", "the node that wrote it")),
            Part::Check(Check::Differ("parent", "child")),
            field(u16("frame", "Frame number", "of those that the child sent of this flow")),
            NEEDS,
            Part::Byte(&[
                bits("feeds", 1, "Feeds", "the child's next hop sends on what it gets"),
                bits("ends", 2, "Ends", "the child is the destination"),
                bits("collides", 8, "Collides", "what the child sends collides at its next hop"),
                bits("more", 16, "More", "further packets wait at the child, or on the way to it"),
            ]),
            HANDLED,
        ],
    },
    Layout {
        kind: PAIR,
        name: "pair",
        variant: None,
        info: "{part+}",
        flow: FlowOf::Ends("packet.source", "packet.destination"),
        batch: None,
        parts: &[
            field(u8("parts", "Parts", "packets of two flows, xored").within(2, 2)),
            Part::Repeat(
                Count::Field("parts"),
                &[Part::Group {
                    name: "part",
                    label: "Part",
                    text: "{packet.source} to {packet.destination} by {next_hop}, oldest {oldest}",
                    parts: &[HEAD],
                }],
            ),
            Part::Check(Check::Distinct(&["packet.source", "packet.destination"])),
            field(bytes(
                "payload",
                Length::Rest(1, usize::MAX),
                "Payload",
                "the symbol of one flow xored with that of the other",
            )),
        ],
    },
];
