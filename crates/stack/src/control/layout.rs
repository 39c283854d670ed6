//! Description of control frames.

use super::{COMPARE, HELLO, PROBE, REQUEST, VERSIONS};
use crate::link::{MAX_ASKED, MAX_LATE};
use crate::route::profile::{EQUATOR, GREENWICH};
use ncmesh_engine::layout::{
    Charset, Check, Count, Field, FlowOf, Is, Layout, Length, Part, bits, bytes, field, node,
    scaled, text, u8, u16, u32, u64,
};
use ncmesh_engine::topology::MAX_PREFIXES;

/// Layouts of the frames of this service.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        kind: HELLO,
        name: "hello",
        variant: None,
        info: "next in {hello.interval} ms, {state.origin?} states",
        flow: FlowOf::None,
        batch: None,
        parts: &[
            field(u16(
                "hello.interval",
                "Interval, ms",
                "the sender sends its next frame within this time; 0 is read as 1",
            )),
            field(u16(
                "hello.short_sent",
                "Short frames",
                "frames of control of up to 500 bytes that it has sent in its start before this \
                 one, modulo 2^16",
            )),
            field(u16("hello.long_sent", "Long frames", "the same of longer ones")),
            field(u16("hello.neighbors", "Neighbours", "that it has heard lately")),
            field(
                u64("hello.digest", "Digest", "of the link states that it knows, see below").hex(),
            ),
            Part::Byte(&[
                bits(
                    "hello.newer",
                    0xC0,
                    "Newer versions",
                    "how many versions the sender understands that are newer than this frame's",
                ),
                bits(
                    "hello.knows_older",
                    0x20,
                    "Knows older",
                    "whether the sender understands the version before this frame's",
                ),
                bits("hello.asks", 0x1F, "Nodes asked", "how many follow")
                    .within(0, MAX_ASKED as u64),
            ]),
            Part::Byte(&[
                bits("hello.has_address", 0x80, "Has an address", "whether one follows the lists"),
                bits("hello.late", 0x7F, "Nodes missed", "how many follow behind those")
                    .within(0, MAX_LATE as u64),
            ]),
            Part::Repeat(
                Count::Field("hello.asks"),
                &[field(node("hello.asked", "Asked", "is to say hello at once"))],
            ),
            Part::Repeat(
                Count::Field("hello.late"),
                &[field(node(
                    "hello.missed",
                    "Missed",
                    "did not send a frame within the time that it promised",
                ))],
            ),
            Part::When(
                Is("hello.has_address", 1),
                &[field(
                    u32(
                        "hello.address",
                        "Address",
                        "of the sender's radio: the IPv4 address that it sends from, or its \
                         number at the channel emulator",
                    )
                    .hex(),
                )],
            ),
            Part::Byte(&[
                bits("proofs.asked", 0xF0, "Proofs asked", "how many nodes follow"),
                bits("proofs.doubted", 0x0F, "Nodes doubted", "how many follow behind those"),
            ]),
            Part::Byte(&[
                bits("proofs.echoes", 0xF0, "Echoes", "how many follow behind those"),
                bits("proofs.vouches", 0x0F, "Vouches", "how many follow behind those"),
            ]),
            Part::Repeat(
                Count::Field("proofs.asked"),
                &[field(node("proofs.of", "Proof of", "is to prove that it is there now"))],
            ),
            Part::Repeat(
                Count::Field("proofs.doubted"),
                &[field(node(
                    "proofs.doubt",
                    "Doubt of",
                    "the same, and others are to vouch for it",
                ))],
            ),
            Part::Repeat(Count::Field("proofs.echoes"), &[ECHO]),
            Part::Repeat(Count::Field("proofs.vouches"), &[VOUCH]),
            Part::Repeat(Count::ToEnd(0, usize::MAX), &[STATE]),
        ],
    },
    Layout {
        kind: PROBE,
        name: "probe",
        variant: None,
        info: "long frame",
        flow: FlowOf::None,
        batch: None,
        parts: &[field(bytes(
            "probe.padding",
            Length::Rest(0, usize::MAX),
            "Padding",
            "zeros; not looked at",
        ))],
    },
    Layout {
        kind: COMPARE,
        name: "compare",
        variant: None,
        info: "with {compare.to}: {range.first?} ranges",
        flow: FlowOf::None,
        batch: None,
        parts: &[
            field(TO),
            Part::Repeat(
                Count::ToEnd(0, usize::MAX),
                &[
                    Part::Include(RANGE),
                    field(u64("range.digest", "Digest", "of the sender's states in it").hex()),
                ],
            ),
        ],
    },
    Layout {
        kind: VERSIONS,
        name: "versions",
        variant: None,
        info: "with {compare.to}: {listed.origin?} states",
        flow: FlowOf::None,
        batch: None,
        parts: &[
            field(TO),
            Part::Repeat(
                Count::ToEnd(0, usize::MAX),
                &[
                    Part::Include(RANGE),
                    field(u8("listed.count", "States", "all that the sender knows in the range")),
                    Part::Repeat(Count::Field("listed.count"), &[LISTED]),
                ],
            ),
        ],
    },
    Layout {
        kind: REQUEST,
        name: "request",
        variant: None,
        info: "to {compare.to}: {wanted?} states",
        flow: FlowOf::None,
        batch: None,
        parts: &[
            field(TO),
            Part::Repeat(
                Count::ToEnd(0, usize::MAX),
                &[field(node("wanted", "Wanted", "node whose whole state the sender asks for"))],
            ),
        ],
    },
];

const TO: Field = node("compare.to", "To", "the only neighbour that handles the frame");

const RANGE: &[Part] = &[
    field(node("range.first", "First node", "of a range of ids")),
    field(node("range.last", "Last node", "of the range")),
];

const LISTED: Part = Part::Group {
    name: "listed",
    label: "State",
    text: "State {listed.base} of {listed.origin}",
    parts: &[
        field(node("listed.origin", "Origin", "the node that the state is of")),
        field(u64("listed.epoch", "Epoch", "of the origin")),
        field(u32("listed.base", "Base", "number of its latest version that goes everywhere")),
    ],
};

const ECHO: Part = Part::Group {
    name: "echo",
    label: "Echo",
    text: "Echo of frame {echo.counter} of {echo.node}",
    parts: &[
        field(node("echo.node", "Node", "a node that the sender hears")),
        field(u64("echo.start", "Start", "first half of its salt").hex()),
        field(u32("echo.counter", "Counter", "highest one heard of that start")),
    ],
};

const VOUCH: Part = Part::Group {
    name: "vouch",
    label: "Vouch",
    text: "Vouch for {vouch.node}",
    parts: &[
        field(node("vouch.node", "Node", "one that has proved to the sender that it is there")),
        field(u64("vouch.start", "Start", "first half of its salt").hex()),
        field(u32("vouch.counter", "Counter", "highest one heard of that start")),
    ],
};

const STATE: Part = Part::Group {
    name: "state",
    label: "Link state",
    text: "Link state {state.number} of {state.origin}",
    parts: &[
        field(node("state.origin", "Origin", "the node that the state is of")),
        Part::Byte(&[
            bits("state.whole", 0x80, "Whole", "whether all links follow"),
            bits("state.urgent", 0x40, "Urgent", "whether it is passed on at once"),
            bits(
                "state.scope",
                0x3F,
                "Scope",
                "how many more times it is passed on; 63 means everywhere",
            ),
        ]),
        field(u32("state.number", "Number", "of the version within the epoch")),
        field(u16(
            "state.since_base",
            "Since base",
            "how many versions ago the latest one was that goes everywhere",
        )),
        Part::When(
            Is("state.whole", 1),
            &[
                field(u64("state.epoch", "Epoch", "of the origin")),
                field(text("state.name", Charset::Any, "Name", "of the origin, see below")),
                field(COUNT),
                Part::When(Is("state.count", 255), &[PROFILE, field(COUNT)]),
            ],
        ),
        Part::When(
            Is("state.whole", 0),
            &[
                field(u16("state.epoch_bits", "Epoch, low bits", "of the origin").hex()),
                field(u16(
                    "state.since",
                    "Since",
                    "how many versions ago the links began to change that follow",
                )),
                field(COUNT),
            ],
        ),
        Part::Repeat(Count::Field("state.count"), &[LINK]),
    ],
};

const COUNT: Field = u8(
    "state.count",
    "Links",
    "how many follow; in a whole state 255 stands before a profile, and their number behind it",
);

const PROFILE: Part = Part::Group {
    name: "profile",
    label: "Profile",
    text: "Profile",
    parts: &[
        Part::Byte(&[
            bits("profile.announces", 0x04, "Announces", "whether prefixes follow"),
            bits("profile.earth", 0x02, "On the Earth", "whether a position in degrees follows"),
            bits("profile.plan", 0x01, "On a plan", "whether a position in metres follows"),
        ]),
        Part::Check(Check::Excludes("profile.earth", "profile.plan")),
        Part::When(
            Is("profile.plan", 1),
            &[
                field(u32("profile.x", "East", "mm from the origin of the plan, plus 2^31")),
                field(u32("profile.y", "North", "the same")),
                field(u32("profile.z", "Up", "the same")),
            ],
        ),
        Part::When(
            Is("profile.earth", 1),
            &[
                field(
                    u32("profile.latitude", "Latitude", "10^-7 degrees from the south pole")
                        .within(0, 2 * EQUATOR as u64),
                ),
                field(
                    u32("profile.longitude", "Longitude", "10^-7 degrees east of 180 degrees west")
                        .within(0, 2 * GREENWICH as u64),
                ),
            ],
        ),
        Part::When(
            Is("profile.announces", 1),
            &[
                field(u8("profile.v4", "IPv4", "how many prefixes follow").within(0, PREFIXES)),
                field(u8("profile.v6", "IPv6", "the same").within(0, PREFIXES)),
                Part::Repeat(Count::Field("profile.v4"), &[PREFIX_V4]),
                Part::Repeat(Count::Field("profile.v6"), &[PREFIX_V6]),
            ],
        ),
    ],
};

/// Most prefixes of each version of IP.
const PREFIXES: u64 = MAX_PREFIXES as u64;

const PREFIX_V4: Part = Part::Group {
    name: "v4",
    label: "Prefix",
    text: "Prefix of IPv4",
    parts: &[
        field(u8("v4.length", "Length", "bits of the address that count").within(0, 32)),
        field(bytes("v4.address", Length::Fixed(4), "Address", "")),
    ],
};

const PREFIX_V6: Part = Part::Group {
    name: "v6",
    label: "Prefix",
    text: "Prefix of IPv6",
    parts: &[
        field(u8("v6.length", "Length", "bits of the address that count").within(0, 128)),
        field(bytes("v6.address", Length::Fixed(16), "Address", "")),
    ],
};

const LINK: Part = Part::Group {
    name: "link",
    label: "Link",
    text: "Link from {link.node}: {link.delivery}",
    parts: &[
        field(node("link.node", "Node", "a node that the origin hears")),
        field(scaled(
            "link.delivery",
            (1, 255),
            "Delivery",
            "share of its frames that arrives at the origin; 0 in a change: not heard any more",
        )),
    ],
};
