//! Descriptions of the frames of CORE and its baseline.

use crate::frame::{COUNT, FEEDBACK, MAX_GENERATION_SIZE, MAX_LINK_REPORTS, MAX_WINDOW, RELAYED};
use ncmesh_engine::layout::{
    Check, Count, FlowOf, INSTANCE, Is, Layout, Length, Part, bits, bytes, field, node, u8, u16,
    u32,
};
use ncmesh_engine::tunnel::DATA;

/// Layouts of the frames of this engine and of its baseline.
pub(crate) const LAYOUTS: &[Layout] = &[PACKETS, POLL, ANSWER, RELAYED_ANSWER];

const ENDS: FlowOf = FlowOf::Ends("packet.source", "packet.destination");

/// Generation that a part or a count belongs to.
const GENERATION: Part = Part::Include(&[
    INSTANCE,
    field(node(
        "next_hop",
        "Next hop",
        "the node that is to send it on, or is its destination; others overhear it",
    )),
    field(u32("core.generation", "Generation", "its number, from 0")),
    field(
        u8(
            "core.older_open",
            "Older generations open",
            "generations before this one that the source has not given up; older ones will never \
             be complete",
        )
        .within(0, MAX_WINDOW as u64 - 1),
    ),
    Part::Check(Check::AtMost("core.older_open", "core.generation")),
    field(
        u8("core.generation_size", "Generation size", "packets a generation has at most")
            .within(1, MAX_GENERATION_SIZE as u64),
    ),
    field(u8("core.count", "Packets by now", "packets the generation has").at_least(1)),
    Part::Check(Check::AtMost("core.count", "core.generation_size")),
    Part::Byte(&[bits("core.closed", 0x01, "Closed", "the generation gets no more packets")]),
    field(
        u16(
            "core.symbol_size",
            "Symbol size, bytes",
            "length of a packet with its own length (2) and check (4) before it and zeros behind",
        )
        .at_least(3),
    ),
]);

const PACKETS: Layout = Layout {
    kind: DATA,
    name: "data",
    variant: Some((Is("core.parts", 2), "coded")),
    info: "{core.part+}",
    flow: ENDS,
    batch: Some("core.generation"),
    parts: &[
        field(u16(
            "core.serial",
            "Serial",
            "counts the transmitter's data frames; who hears some knows how many were sent",
        )),
        field(
            u8("core.parts", "Parts", "a packet of one flow, or those of two, xored").within(1, 2),
        ),
        Part::Repeat(
            Count::Field("core.parts"),
            &[Part::Group {
                name: "core.part",
                label: "Part",
                text: "{packet.source} to {packet.destination} generation {core.generation}",
                parts: &[
                    GENERATION,
                    field(bytes(
                        "coefficients",
                        Length::Prefixed(1, 255),
                        "Coding vector, GF(2^8)",
                        "coefficients of the first packets; those of the others are zero",
                    )),
                    Part::Check(Check::AtMost("coefficients", "core.generation_size")),
                ],
            }],
        ),
        Part::Check(Check::Distinct(&["packet.source", "packet.destination"])),
        field(bytes(
            "payload",
            Length::Rest(0, usize::MAX),
            "Payload",
            "the combination, or that of one flow xored with that of the other; without the zeros \
             at its end",
        )),
        Part::Check(Check::AtMostGreatest("payload", "core.symbol_size")),
    ],
};

const NUMBER: Part = field(u16(
    "core.number",
    "Number",
    "counts the transmitter's questions and answers modulo 2^16",
));

const POLL: Layout = Layout {
    kind: COUNT,
    name: "count",
    variant: None,
    info: "{packet.source} to {packet.destination} generation {core.generation}",
    flow: ENDS,
    batch: Some("core.generation"),
    parts: &[
        field(u16("core.serial", "Serial", "of the transmitter's last data frame")),
        NUMBER,
        field(
            u8("core.again", "Again", "1 if it asked before and no answer came, else 0")
                .within(0, 1),
        ),
        GENERATION,
    ],
};

const REQUESTS: &[(u64, &str)] = &[(0, "stop"), (1, "more"), (2, "next generation")];

/// What a node answers.
const SAID: Part = Part::Include(&[
    INSTANCE,
    field(node("next_hop", "Next hop", "the node that is answered")),
    field(u32("core.generation", "Generation", "")),
    NUMBER,
    field(
        u8(
            "core.request",
            "Request",
            "stop: all there is has arrived; next generation: the destination has this one",
        )
        .named(REQUESTS),
    ),
    field(u8(
        "core.missing_alone",
        "Packets missing, alone",
        "packets that are missing, if they come alone",
    )),
    field(u8(
        "core.missing_combined",
        "Packets missing, combined",
        "the same if they come combined with the flow they last were combined with; 255: not \
         known",
    )),
    field(u16("core.progress", "Progress", "ranks of the node and of those behind it, summed")),
    field(bytes(
        "core.missing_numbers",
        Length::Prefixed(0, MAX_GENERATION_SIZE as usize),
        "Numbers of missing packets",
        "of `cope` only",
    )),
    field(
        u8("core.links", "Links", "how many transmitters it reports on")
            .within(0, MAX_LINK_REPORTS as u64),
    ),
    Part::Repeat(
        Count::Field("core.links"),
        &[Part::Group {
            name: "core.link",
            label: "Link",
            text: "Link from {core.transmitter}: {core.received} of {core.sent} received",
            parts: &[
                field(node("core.transmitter", "Transmitter", "")),
                field(u16("core.received", "Received", "data frames heard of it")),
                field(u16("core.sent", "Sent", "data frames that it sent meanwhile")),
                Part::Check(Check::AtMost("core.received", "core.sent")),
            ],
        }],
    ),
]);

const ANSWER: Layout = Layout {
    kind: FEEDBACK,
    name: "feedback",
    variant: None,
    info: "{packet.source} to {packet.destination} generation {core.generation}: {core.request}",
    flow: ENDS,
    batch: Some("core.generation"),
    parts: &[SAID],
};

const RELAYED_ANSWER: Layout = Layout {
    kind: RELAYED,
    name: "relayed feedback",
    info: "{packet.source} to {packet.destination} generation {core.generation}: {core.request}, \
           by {core.author}",
    parts: &[
        field(node("core.passes_on", "Passed on by", "the node that passes it on, or is answered")),
        field(node("core.author", "Author", "the node that says so, not the one that is answered")),
        SAID,
        Part::Check(Check::Differ("core.author", "next_hop")),
    ],
    ..ANSWER
};
