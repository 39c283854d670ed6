//! Descriptions of frame bodies, as data.
//!
//! The declaration of a frame ([`record`](mod@crate::record)) gives its [`Layout`], a list of
//! [`Part`]s in the order of the bytes. The tables of the wire format and the Wireshark dissector
//! are made of the layouts.
//!
//! Later parts refer to earlier fields by name. A name means the value that was read last; the
//! value of a field of bytes is its length.

/// Description of one kind of frame.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Kind byte of the frame.
    pub kind: u8,
    /// Name of the kind in traces.
    pub name: &'static str,
    /// Another name that traces use if the condition holds.
    pub variant: Option<(Condition, &'static str)>,
    /// One line about a frame, for lists of frames. `{name}` stands for the first value of a field,
    /// `{name#2}` for the second one, `{name+}` for all, joined with a plus sign, `{name?}` for how
    /// many there are.
    pub info: &'static str,
    /// The fields, in the order of the bytes.
    pub parts: &'static [Part],
}

/// One step through a body.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// One field.
    Field(Field),
    /// One byte with several fields of bits. Other bits are zero.
    Byte(&'static [Field]),
    /// Parts that are shown together. The text has the form of [`Layout::info`].
    Group {
        /// Name of the group.
        name: &'static str,
        /// Its meaning.
        label: &'static str,
        /// One line about it.
        text: &'static str,
        /// Its parts.
        parts: &'static [Part],
    },
    /// Parts that follow each other several times.
    Repeat(Count, &'static [Part]),
    /// Parts that are there only if the condition holds.
    When(Condition, &'static [Part]),
    /// Parts that several layouts have in common.
    Include(&'static [Part]),
    /// Nodes of a route.
    Route(Route),
    /// Condition that a frame fulfils, or it is malformed. It takes no bytes.
    Check(Check),
}

/// One field.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name, unique for what it means; in the dissector behind `ncmesh.`.
    pub name: &'static str,
    /// Its meaning, in a few words.
    pub label: &'static str,
    /// Notes for a reader of the wire format. May be empty.
    pub doc: &'static str,
    /// How it is written.
    pub shape: Shape,
}

/// How a field is written.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Unsigned number, big-endian.
    Number(Number),
    /// Number of `bytes` bytes in units of 1/`unit`.
    Scaled {
        /// Length, bytes.
        bytes: usize,
        /// Parts of one.
        unit: u32,
    },
    /// A finite IEEE 754 number of four bytes.
    Float,
    /// Flow id: source and serial number, six bytes.
    Flow,
    /// Bytes.
    Bytes(Length),
    /// Text behind its length of one byte.
    Text(Charset),
}

/// Unsigned number.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Length, bytes.
    pub bytes: usize,
    /// Bits of the byte that it is in; 0 if it has bytes of its own.
    pub mask: u8,
    /// Difference from the bits to the number that they mean.
    pub plus: u64,
    /// Smallest value.
    pub min: u64,
    /// Greatest value.
    pub max: u64,
    /// Whether it is shown in hexadecimal digits.
    pub hex: bool,
    /// Names of its values; if there are any, no other value is allowed.
    pub names: &'static [(u64, &'static str)],
}

/// How many bytes a field has.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// This many.
    Fixed(usize),
    /// As many as an earlier field says.
    Field(&'static str),
    /// A square of bits without gaps, as many in a row as an earlier field says; filled up to a
    /// whole byte.
    Square(&'static str),
    /// As many as the byte before them says, between two bounds.
    Prefixed(usize, usize),
    /// All to the end of the body, between two bounds.
    Rest(usize, usize),
}

/// Text that is allowed in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Any bytes; a receiver replaces those that are not UTF-8.
    Any,
    /// UTF-8.
    Utf8,
    /// 1 to 63 letters, digits, `.`, `_` and `-`.
    Name,
}

/// How often parts are repeated.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// As often as an earlier field says.
    Field(&'static str),
    /// To the end of the body, at least and at most this often.
    ToEnd(usize, usize),
}

/// Holds if the field has this value.
#[derive(Clone, Copy, Debug)]
pub struct Is(pub &'static str, pub u64);

/// The only condition there is so far.
pub type Condition = Is;

/// Nodes of a route that a packet takes: its source, and those behind it. The transmitter of the
/// frame is at the place `hop`, the source at place 0. Nodes that a receiver knows are left out.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Field with the place of the transmitter.
    pub hop: &'static str,
    /// Field with the number of nodes behind the source.
    pub hops: &'static str,
    /// Names of the source, of nodes behind it, and of the last of those.
    pub nodes: [&'static str; 3],
    /// If absent, the transmitter is left out unless it is the source. If present, the packet
    /// crosses another one at the transmitter, and the nodes before and behind it are left out too:
    /// this field had them earlier, the node behind it in the first packet first.
    pub crossing: Option<&'static str>,
    /// Notes for a reader of the wire format.
    pub doc: &'static str,
}

/// Condition on the fields before it.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// The first value is at most the second.
    AtMost(&'static str, &'static str),
    /// The first value is at most the greatest of the second name.
    AtMostGreatest(&'static str, &'static str),
    /// The first value is below the second.
    Below(&'static str, &'static str),
    /// The values differ.
    Differ(&'static str, &'static str),
    /// No two items have the same values of these fields.
    Distinct(&'static [&'static str]),
    /// If the first value is not 0, neither is the second.
    Implies(&'static str, &'static str),
    /// One of the values is 0.
    Excludes(&'static str, &'static str),
    /// The field has this value.
    Is(&'static str, u64),
    /// A file of this size, in generations of this size, of symbols of this size, can be cut into
    /// generations. The last name is that of their number.
    Cut([&'static str; 4]),
    /// The field has for each node its next hops, a bit each, at most this many. They lead in no
    /// circle, and from the second node nowhere.
    Acyclic(&'static str, u32),
}
