//! Descriptions of the frames of XOR coding.

use crate::frame::{MAX_ENTRIES, REPORT, REQUEST};
use ncmesh_engine::layout::{
    Check, Count, Field, FlowOf, Is, Layout, Length, Part, Route, bits, bytes, field, node, u16,
    u32,
};
use ncmesh_engine::toolkit::hop::WINDOW;
use ncmesh_engine::tunnel::DATA;

/// Layouts of the frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[PACKETS, COUNTS, MISSED];

const PACKETS: Layout = Layout {
    kind: DATA,
    name: "data",
    variant: Some((Is("xor.packets", 2), "coded")),
    info: "{xor.packet+}",
    flow: FlowOf::Ends("xor.source", "xor.destination"),
    batch: None,
    parts: &[
        Part::Byte(&[
            bits(
                "xor.more",
                0x80,
                "More for the next hop",
                "the transmitter has another packet for the next hop of this one, or of the \
                 longer of two",
            ),
            bits(
                "xor.other_more",
                0x40,
                "More for the other next hop",
                "the same of the shorter of two packets",
            ),
            bits(
                "xor.packets",
                0x3F,
                "Packets",
                "1: a packet alone; 2: two packets that cross, xored",
            )
            .within(1, 2),
        ]),
        Part::When(Is("xor.packets", 1), ALONE),
        Part::When(Is("xor.packets", 2), CROSSING),
        field(bytes(
            "payload",
            Length::Rest(1, 65_535),
            "Payload",
            "the packet, or two xored, the shorter one padded with zeros",
        )),
        Part::When(Is("xor.packets", 2), &[Part::Check(Check::AtMost("xor.length", "payload"))]),
    ],
};

const ALONE: &[Part] = &[
    Part::Check(Check::Is("xor.other_more", 0)),
    Part::Group {
        name: "xor.packet",
        label: "Packet",
        text: "{xor.source}-{xor.number}",
        parts: &[
            Part::Byte(&[HOP, HOPS]),
            NUMBERS,
            Part::Route(Route {
                crossing: None,
                doc: "source and route: the nodes behind the source, the destination last. The \
                      transmitter is left out unless it is the source",
                ..ROUTE
            }),
        ],
    },
];

const CROSSING: &[Part] = &[
    field(node(
        "xor.next",
        "Next hop",
        "of the longer packet; the transmitter has the shorter one from it",
    )),
    field(node("xor.next", "Next hop", "of the shorter packet, the other way round")),
    field(u16("xor.length", "Length of the shorter packet", "bytes").at_least(1)),
    CROSSING_PACKET,
    CROSSING_PACKET,
    Part::Check(Check::Distinct(&["xor.source", "xor.number"])),
];

/// Either of two packets that cross, the longer one first.
const CROSSING_PACKET: Part = Part::Group {
    name: "xor.packet",
    label: "Packet",
    text: "{xor.source}-{xor.number}",
    parts: &[
        Part::Byte(&[HOP.at_least(1), HOPS]),
        NUMBERS,
        Part::Route(Route {
            crossing: Some("xor.next"),
            doc: "source and route without the three nodes that are known: the one before the \
                  transmitter, the transmitter, and the next hop",
            ..ROUTE
        }),
        field(u32("xor.check", "Check", "the first bytes of the packet's BLAKE3").hex()),
    ],
};

const ROUTE: Route = Route {
    hop: "xor.hop",
    hops: "xor.hops",
    nodes: ["xor.source", "xor.node", "xor.destination"],
    crossing: None,
    doc: "",
};

const HOP: Field =
    bits("xor.hop", 0xF0, "Place of the transmitter", "in the route; 0 is the source");
const HOPS: Field =
    bits("xor.hops", 0x0F, "Hops of the route", "1 to 16, written one lower").plus(1);

/// What follows the byte with place and length of the route.
const NUMBERS: Part = Part::Include(&[
    Part::Check(Check::Below("xor.hop", "xor.hops")),
    field(u32("xor.number", "Number", "that the source gave the packet").hex()),
    field(u16(
        "xor.sequence",
        "Sequence number",
        "the transmitter's number of this packet among those for the same next hop, 1 to 65,535 \
         and then from 1 again; 0: none",
    )),
]);

const COUNTS: Layout = Layout {
    kind: REPORT,
    name: "report",
    variant: None,
    info: "of {neighbour?} neighbours",
    flow: FlowOf::None,
    batch: None,
    parts: &[Part::Repeat(
        Count::ToEnd(1, MAX_ENTRIES),
        &[Part::Group {
            name: "neighbour",
            label: "Neighbour",
            text: "Neighbour {neighbour.node}: {report.decoded} of {report.coded} decoded",
            parts: &[
                field(node("neighbour.node", "Node", "the neighbour that coded")),
                field(u32(
                    "report.coded",
                    "Coded",
                    "its frames with two packets, one of them for the reporting node, heard since \
                     its start; modulo 2^32",
                )),
                field(u32("report.decoded", "Decoded", "those that it could decode")),
            ],
        }],
    )],
};

const MISSED: Layout = Layout {
    kind: REQUEST,
    name: "request",
    variant: None,
    info: "to {request.neighbour}, for {request.missing?} packets",
    flow: FlowOf::None,
    batch: None,
    parts: &[
        field(node("request.neighbour", "Neighbour", "the node that sent them; others ignore it")),
        Part::Repeat(
            Count::ToEnd(1, WINDOW as usize),
            &[field(u16("request.missing", "Missing", "`xor.sequence` of a missing packet"))],
        ),
    ],
};
