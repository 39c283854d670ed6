//! Descriptions of the frames of file multicast.

use super::frame::{ACK, ANNOUNCE, REPORT, RankReport, RankedHeader};
use ncmesh_engine::layout::{
    Charset, Check, Count, FlowOf, Is, Layout, Length, Part, VERSION, bits, bytes, field, flow,
    node, scaled, text, u8, u16, u32, u64,
};
use ncmesh_engine::transmission::DATA;

/// Layouts of the frames of all file schemes.
pub const LAYOUTS: &[Layout] = &[ANNOUNCEMENT, PACKET, ACKNOWLEDGMENT, TREE_REPORT];

/// Layouts of the frames of file schemes that send by rank.
pub const LAYOUTS_BY_RANK: &[Layout] = &[ANNOUNCEMENT, RANKED_PACKET, ACKNOWLEDGMENT, RANK_REPORT];

const PHASES: &[(u64, &str)] = &[(0, "open"), (1, "ended"), (2, "withdrawn")];

/// Codes of [`ReceiverState`](ncmesh_engine::file::ReceiverState).
const STATES: &[(u64, &str)] = &[
    (0, "invited"),
    (1, "active"),
    (2, "complete"),
    (3, "lost"),
    (16, "refused: name not allowed"),
    (17, "refused: no space"),
    (18, "refused: inbox not writable"),
    (19, "refused: cancelled"),
    (20, "refused: does not match its hash"),
    (21, "refused: busy"),
    (22, "refused: no inbox"),
    (23, "refused: source not allowed"),
];

const FLOW: Part = field(flow("flow", "Flow", "the transfer"));

const ANNOUNCEMENT: Layout = Layout {
    kind: ANNOUNCE,
    name: "announcement",
    variant: None,
    info: "{flow} {announcement.phase}, {announcement.receivers} receivers",
    flow: FlowOf::Id("flow"),
    batch: None,
    parts: &[
        FLOW,
        VERSION,
        Part::Byte(&[
            bits("announcement.may_join", 0x80, "Others may join", "nodes not listed may join"),
            bits("announcement.phase", 0x7F, "Phase", "").named(PHASES),
        ]),
        field(u64("announcement.size", "Size, bytes", "of the file; at most 2^44")),
        field(u8("announcement.generation", "Packets of a full batch", "k, 1 to 255")),
        field(u16("announcement.symbol_size", "Symbol size, bytes", "payload of a packet")),
        Part::Check(Check::Cut([
            "announcement.size",
            "announcement.generation",
            "announcement.symbol_size",
            "announcement.batches",
        ])),
        field(bytes(
            "announcement.root",
            Length::Fixed(32),
            "Root of the hash tree",
            "over the batches",
        )),
        field(bytes(
            "announcement.hash",
            Length::Fixed(32),
            "BLAKE3 of the file",
            "of the whole file",
        )),
        field(text("announcement.name", Charset::Utf8, "Name", "of the file")),
        field(u16("announcement.receivers", "Receivers", "how many follow")),
        Part::Repeat(
            Count::Field("announcement.receivers"),
            &[Part::Group {
                name: "receiver",
                label: "Receiver",
                text: "Receiver {receiver.node}: {receiver.state}",
                parts: &[
                    field(node("receiver.node", "Node", "")),
                    field(
                        u8("receiver.state", "State", "how the source sees the receiver")
                            .named(STATES),
                    ),
                ],
            }],
        ),
    ],
};

/// Which turn of the source a frame belongs to.
const TURN: Part = Part::Include(&[
    field(
        u16(
            "incarnation",
            "Incarnation",
            "tells the source's starts apart: the four 16-bit parts of its epoch, xored",
        )
        .hex(),
    ),
    field(u32(
        "turn",
        "Turn",
        "counts the source's turns to batches, and turns begun anew, within an incarnation; \
         compared modulo 2^32",
    )),
    field(u32("batch", "Batch", "its number, from 0")),
]);

const PACKET: Layout = Layout {
    kind: DATA,
    name: "data",
    variant: None,
    info: "{flow} batch {batch}, {systematic}",
    flow: FlowOf::Id("flow"),
    batch: Some("batch"),
    parts: &[
        FLOW,
        TURN,
        field(u8("packets", "Packets of the batch", "").at_least(1)),
        Part::Byte(&[
            bits("has_poll", 0x10, "Poll", "a poll follows"),
            bits("is_tree", 0x08, "Tree", "packets go down a tree"),
            bits("has_belts", 0x04, "Belts", "the list of forwarders says who is upstream"),
            bits("has_piggyback", 0x02, "Piggyback", "a piggyback follows"),
            bits("systematic", 0x01, "Coding", "").named(&[(0, "coded"), (1, "systematic")]),
        ]),
        Part::Check(Check::Excludes("has_belts", "is_tree")),
        Part::Check(Check::Implies("is_tree", "systematic")),
        Part::Check(Check::Implies("has_poll", "is_tree")),
        field(u8("forwarders", "Forwarders", "how many nodes follow")),
        Part::Repeat(
            Count::Field("forwarders"),
            &[Part::Group {
                name: "forwarder",
                label: "Forwarder",
                text: "Node {forwarder.node}",
                parts: &[
                    field(node(
                        "forwarder.node",
                        "Node",
                        "forwarders in order of increasing ETX from the source; of a tree every \
                         node but the source",
                    )),
                    Part::When(
                        Is("is_tree", 0),
                        &[field(scaled("forwarder.credit", (2, 256), "TX_credit", ""))],
                    ),
                    Part::When(Is("is_tree", 1), &[field(node("parent", "Parent", "in the tree"))]),
                ],
            }],
        ),
        Part::When(
            Is("has_belts", 1),
            &[
                REVISION,
                field(bytes(
                    "upstream",
                    Length::Square("forwarders"),
                    "Forwarders upstream of each, a row of bits each",
                    "n rows of n bits without gaps, most significant first, for n forwarders. Bit \
                     *j* of row *i*, both from 0: forwarder *j* is upstream of forwarder *i*. \
                     Zero bits to a whole byte",
                )),
            ],
        ),
        Part::When(Is("is_tree", 1), &[REVISION]),
        Part::When(
            Is("has_poll", 1),
            &[field(u32(
                "poll",
                "Poll",
                "children of the transmitter are to report, and name this number; from 1",
            ))],
        ),
        Part::When(
            Is("has_piggyback", 1),
            &[
                field(node("piggyback.receiver", "Acknowledgment of receiver", "see below")),
                field(u32("piggyback.serial", "Acknowledgment serial", "see below").hex()),
            ],
        ),
        CODED,
    ],
};

/// Coding vector and payload.
const CODED: Part = Part::Include(&[
    Part::When(
        Is("systematic", 0),
        &[field(bytes(
            "coefficients",
            Length::Field("packets"),
            "Coding vector, GF(2^8)",
            "a coefficient for each packet",
        ))],
    ),
    Part::When(
        Is("systematic", 1),
        &[
            field(u8("index", "Index of the packet", "the payload is this packet as it is")),
            Part::Check(Check::Below("index", "packets")),
        ],
    ),
    field(bytes("payload", Length::Rest(1, 65_535), "Payload", "one symbol")),
]);

const REVISION: Part = field(u8(
    "revision",
    "Revision of the plan",
    "counts the source's plans within a turn, modulo 2^8",
));

const ACKNOWLEDGMENT: Layout = Layout {
    kind: ACK,
    name: "acknowledgment",
    variant: None,
    info: "{flow} of {receiver.node} to {next_hop}: {receiver.state}, \
           complete below batch {first_missing}",
    flow: FlowOf::Id("flow"),
    batch: None,
    parts: &[
        field(node("next_hop", "Next hop", "the node that passes it on; others ignore it")),
        FLOW,
        field(node("receiver.node", "Node", "the receiver that acknowledges")),
        VERSION,
        field(u8("receiver.state", "State", "of the receiver").named(STATES)),
        field(u32(
            "first_missing",
            "First missing batch",
            "the lowest batch that is not complete; the number of batches if all are",
        )),
        field(bytes(
            "bits",
            Length::Rest(0, usize::MAX),
            "Complete batches behind it",
            "a bit for each, most significant first, 1 complete; without zero bytes at the end",
        )),
    ],
};

const TREE_REPORT: Layout = Layout {
    kind: REPORT,
    name: "report",
    variant: None,
    info: "{flow} batch {batch} to parent {parent}",
    flow: FlowOf::Id("flow"),
    batch: Some("batch"),
    parts: &[
        field(node("parent", "Parent", "the node that is told; others ignore it")),
        FLOW,
        TURN,
        field(u32(
            "poll",
            "Poll",
            "the newest poll of the parent that was heard; 0 if it is told unasked",
        )),
        field(bytes(
            "held",
            Length::Rest(0, 32),
            "Packets held",
            "a bit for each packet of the batch, most significant first, 1 held; without zero \
             bytes at the end",
        )),
    ],
};

const NUMBER: Part = field(u16(
    "frame_number",
    "Frame number",
    "counts the frames of the transfer that the node sent, modulo 2^16",
));

/// What a node wants, before the list of its ranks.
const WANTS: Part = Part::Include(&[
    field(u32(
        "first_wanted",
        "First wanted batch",
        "the lowest batch that the node wants from its parent; 2^32 - 1 if it wants none",
    )),
    field(u8(
        "backlog",
        "Backlog",
        "batches below the first wanted one that the node holds whole and a child of it wants; of \
         the child with fewest",
    )),
]);

const RANKS: &str = "a byte for the first wanted batch and each behind it: how many independent \
                     combinations the node holds; 255 if it does not want the batch. Batches \
                     behind the list are wanted, and nothing of them is held; behind a list of \
                     the greatest length they are as the node said before";

const RANKED_PACKET: Layout = Layout {
    kind: DATA,
    name: "data",
    variant: None,
    info: "{flow} batch {batch}, {systematic}, rank {rank}",
    flow: FlowOf::Id("flow"),
    batch: Some("batch"),
    parts: &[
        FLOW,
        field(u32("batch", "Batch", "its number, from 0")),
        field(u8("packets", "Packets of the batch", "").at_least(1)),
        Part::Byte(&[
            bits("feeds", 0x10, "Feeds", "a child of the transmitter has children"),
            bits("forwards", 0x08, "Forwards", "the transmitter has children"),
            bits("receives", 0x04, "Receives", "the transmitter receives the file itself"),
            bits("polls", 0x02, "Poll", "children of the transmitter are to report"),
            bits("systematic", 0x01, "Coding", "").named(&[(0, "coded"), (1, "systematic")]),
        ]),
        field(u8("rank", "Rank", "independent combinations of the batch that the transmitter has")),
        NUMBER,
        field(node(
            "parent",
            "Parent",
            "the node that the transmitter has the file from; itself if there is none",
        )),
        WANTS,
        field(u8("ranks.count", "Ranks", "how many follow").within(0, RankedHeader::LISTED as u64)),
        field(bytes("ranks", Length::Field("ranks.count"), "Ranks held", RANKS)),
        CODED,
    ],
};

const RANK_REPORT: Layout = Layout {
    kind: REPORT,
    name: "report",
    variant: None,
    info: "{flow} of {child} to parent {parent}: wants batch {first_wanted}",
    flow: FlowOf::Id("flow"),
    batch: None,
    parts: &[
        field(node("next_hop", "Next hop", "the node that takes it or passes it on")),
        field(node("parent", "Parent", "the node that is told")),
        field(node("child", "Child", "the node that tells")),
        FLOW,
        NUMBER,
        Part::Byte(&[
            bits("feeds", 0x10, "Feeds", "a child of the child has children"),
            bits("forwards", 0x08, "Forwards", "the child has children"),
            bits("receives", 0x04, "Receives", "the child receives the file itself"),
        ]),
        WANTS,
        field(bytes("ranks", Length::Rest(0, RankReport::LISTED), "Ranks held", RANKS)),
    ],
};
