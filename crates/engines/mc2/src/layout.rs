//! Descriptions of the frames of MC2.

use crate::frame::{MAX_ACKS, MAX_ANNOUNCED, MAX_GENERATION_SIZE, MIN_PAYLOAD, REPORT, REQUEST};
use crate::hops::MAX_HOPS;
use crate::paths::MAX_NODES;
use ncmesh_engine::layout::{
    Check, Count, FlowOf, INSTANCE, Layout, Length, Part, bits, bytes, field, node, u8, u16, u32,
};
use ncmesh_engine::tunnel::DATA;

/// Layouts of the frames of this engine.
pub(crate) const LAYOUTS: &[Layout] = &[PACKETS, STATE_REPORT, PACKET_REQUEST];

const ENDS: FlowOf = FlowOf::Ends("packet.source", "packet.destination");

/// State of the flow at the sender.
const STATE: Part = Part::Include(&[
    field(u16("mc2.credits", "Credits", "that the sender holds")),
    field(u32(
        "mc2.done",
        "Done with generations before",
        "generations before this one the destination is done with; of others 0",
    )),
    field(
        u8("mc2.acks", "Acknowledgments", "how many nodes before it the sender acknowledges")
            .within(0, MAX_ACKS as u64),
    ),
    Part::Repeat(
        Count::Field("mc2.acks"),
        &[Part::Group {
            name: "mc2.ack",
            label: "Acknowledgment",
            text: "Of {mc2.ack.node}, frame {mc2.ack.latest} the latest",
            parts: &[
                field(node("mc2.ack.node", "Node", "whose frames it heard")),
                field(u16("mc2.ack.latest", "Latest frame", "its serial")),
                field(
                    u32(
                        "mc2.ack.before",
                        "Frames before it",
                        "heard of the 32 before it; bit i is the frame i + 1 before",
                    )
                    .hex(),
                ),
            ],
        }],
    ),
]);

/// The nodes of the flow, with their next hops.
const PATHS: Part = Part::Include(&[
    field(
        u8("mc2.nodes", "Nodes of the flow", "the source first, the destination second")
            .within(2, MAX_NODES as u64),
    ),
    Part::Repeat(
        Count::Field("mc2.nodes"),
        &[Part::Group {
            name: "mc2.path",
            label: "Node of the flow",
            text: "Node {mc2.node}",
            parts: &[
                field(node("mc2.node", "Node", "")),
                field(
                    u16("mc2.next_hops", "Next hops, a bit each", "bit i is the i-th node").hex(),
                ),
            ],
        }],
    ),
    Part::Check(Check::Distinct(&["mc2.node"])),
    Part::Check(Check::Acyclic("mc2.next_hops", MAX_HOPS as u32)),
]);

/// Credits that the sender gave to its next hops.
const ANNOUNCED: Part = Part::Include(&[
    field(
        u8("mc2.announced.generations", "Generations announced", "")
            .within(0, MAX_ANNOUNCED as u64),
    ),
    field(u8("mc2.announced.hops", "Next hops", "of the sender").within(0, MAX_HOPS as u64)),
    Part::Repeat(
        Count::Field("mc2.announced.generations"),
        &[Part::Group {
            name: "mc2.announced",
            label: "Credits announced",
            text: "Credits of generation {mc2.announced.generation}",
            parts: &[
                field(u32("mc2.announced.generation", "Generation", "")),
                Part::Repeat(
                    Count::Field("mc2.announced.hops"),
                    &[field(u16("mc2.announced.credits", "Credits", "given to a next hop so far"))],
                ),
            ],
        }],
    ),
]);

const PACKETS: Layout = Layout {
    kind: DATA,
    name: "data",
    variant: None,
    info: "{mc2.node} to {mc2.node#2} generation {mc2.generation}",
    flow: FlowOf::Ends("mc2.node", "mc2.node#2"),
    batch: Some("mc2.generation"),
    parts: &[
        field(
            u32(
                "instance",
                "Incarnation of the flow",
                "a later start of the source, or of the flow, has a higher one",
            )
            .hex(),
        ),
        PATHS,
        field(u8("mc2.revision", "Revision of the paths", "counts the source's choices of paths")),
        field(u16("mc2.serial", "Serial", "counts the sender's data frames of this flow")),
        Part::Byte(&[
            bits("mc2.waits_for_ack", 0x02, "Waits for that", "the sender sends no more before"),
            bits("mc2.wants_ack", 0x01, "Asks for acknowledgments", ""),
        ]),
        STATE,
        ANNOUNCED,
        field(u32("mc2.generation", "Generation", "of this frame")),
        field(
            u8("mc2.generation_size", "Generation size", "packets a generation has at most")
                .within(1, MAX_GENERATION_SIZE as u64),
        ),
        field(u8("mc2.packets", "Packets", "packets it has, 0 while it may grow")),
        Part::Check(Check::AtMost("mc2.packets", "mc2.generation_size")),
        field(u8("mc2.packets_before", "Packets of the generation before", "")),
        Part::Check(Check::AtMost("mc2.packets_before", "mc2.generation_size")),
        field(u16("mc2.symbol_size", "Symbol size, bytes", "length of a combination")),
        field(bytes(
            "coefficients",
            Length::Field("mc2.generation_size"),
            "Coding vector, GF(2^8)",
            "",
        )),
        field(bytes(
            "payload",
            Length::Rest(MIN_PAYLOAD, 65_535),
            "Payload",
            "a combination of packets, each with its length (2) and check (4) before it and \
             zeros behind; without the zeros at its end",
        )),
        Part::Check(Check::AtMost("payload", "mc2.symbol_size")),
    ],
};

const STATE_REPORT: Layout = Layout {
    kind: REPORT,
    name: "report",
    variant: None,
    info: "{packet.source} to {packet.destination}",
    flow: ENDS,
    batch: None,
    parts: &[INSTANCE, STATE],
};

const PACKET_REQUEST: Layout = Layout {
    kind: REQUEST,
    name: "request",
    variant: None,
    info: "{packet.source} to {packet.destination} by {next_hop}: \
           {mc2.request.missing} packets of generation {mc2.generation}",
    flow: ENDS,
    batch: Some("mc2.generation"),
    parts: &[
        INSTANCE,
        field(node("next_hop", "Next hop", "the node that answers it or sends it on")),
        field(u32("mc2.generation", "Generation", "")),
        field(u8(
            "mc2.request.serial",
            "Serial",
            "counts the destination's requests for this generation",
        )),
        field(u8("mc2.request.missing", "Packets missing", "").at_least(1)),
    ],
};
