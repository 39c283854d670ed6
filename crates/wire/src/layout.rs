//! Descriptions of frame bodies, as data.
//!
//! An engine writes and parses its frames in code. Beside that code it describes them: a [`Layout`]
//! for each kind of frame, a list of [`Part`]s in the order of the bytes. The tables of
//! `docs/reference/wire-format.md` and the Wireshark dissector are generated from the layouts.
//! X interprets a body by its layout; tests hold it against the engines' own
//! parsers, so that a description cannot drift from the code.
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
    /// Where the flow of the frame is read from.
    pub flow: FlowOf,
    /// Field that names the batch or generation.
    pub batch: Option<&'static str>,
    /// The fields, in the order of the bytes.
    pub parts: &'static [Part],
}

/// Fields that name the flow of a frame. [`find`] says how fields are named.
#[derive(Clone, Copy, Debug)]
pub enum FlowOf {
    /// The frame belongs to no flow.
    None,
    /// A flow id.
    Id(&'static str),
    /// The flow of a tunnel: its source and its destination.
    Ends(&'static str, &'static str),
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
        /// What it is.
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
    /// What it is, in a few words.
    pub label: &'static str,
    /// What a reader of the wire format needs to know about it. May be empty.
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
    /// What a reader of the wire format needs to know.
    pub doc: &'static str,
}

/// What must hold of the fields before it.
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
    /// batches. The last name is that of their number.
    Cut([&'static str; 4]),
    /// The field has for each node its next hops, a bit each, at most this many. They lead in no
    /// circle, and from the second node nowhere.
    Acyclic(&'static str, u32),
}

// ---- constructors, so that layouts read as tables

/// Returns a field as a part.
#[must_use]
pub const fn field(field: Field) -> Part {
    Part::Field(field)
}

const fn of(name: &'static str, label: &'static str, doc: &'static str, shape: Shape) -> Field {
    Field { name, label, doc, shape }
}

const fn number(
    name: &'static str,
    label: &'static str,
    doc: &'static str,
    (bytes, mask): (usize, u8),
) -> Field {
    let number = Number { bytes, mask, plus: 0, min: 0, max: u64::MAX, hex: false, names: &[] };
    of(name, label, doc, Shape::Number(number))
}

/// Returns a number of one byte.
#[must_use]
pub const fn u8(name: &'static str, label: &'static str, doc: &'static str) -> Field {
    number(name, label, doc, (1, 0))
}

/// Returns a number of two bytes.
#[must_use]
pub const fn u16(name: &'static str, label: &'static str, doc: &'static str) -> Field {
    number(name, label, doc, (2, 0))
}

/// Returns a node id.
#[must_use]
pub const fn node(name: &'static str, label: &'static str, doc: &'static str) -> Field {
    number(name, label, doc, (2, 0))
}

/// Returns a number of four bytes.
#[must_use]
pub const fn u32(name: &'static str, label: &'static str, doc: &'static str) -> Field {
    number(name, label, doc, (4, 0))
}

/// Returns a number of eight bytes.
#[must_use]
pub const fn u64(name: &'static str, label: &'static str, doc: &'static str) -> Field {
    number(name, label, doc, (8, 0))
}

/// Returns a field of the bits `mask` of a [`Part::Byte`].
#[must_use]
pub const fn bits(name: &'static str, mask: u8, label: &'static str, doc: &'static str) -> Field {
    number(name, label, doc, (1, mask))
}

/// Returns a number of `bytes` bytes in units of 1/`unit`.
#[must_use]
pub const fn scaled(
    name: &'static str,
    (bytes, unit): (usize, u32),
    label: &'static str,
    doc: &'static str,
) -> Field {
    of(name, label, doc, Shape::Scaled { bytes, unit })
}

/// Returns an IEEE 754 number of four bytes.
#[must_use]
pub const fn float(name: &'static str, label: &'static str, doc: &'static str) -> Field {
    of(name, label, doc, Shape::Float)
}

/// Returns a flow id.
#[must_use]
pub const fn flow(name: &'static str, label: &'static str, doc: &'static str) -> Field {
    of(name, label, doc, Shape::Flow)
}

/// Returns bytes.
#[must_use]
pub const fn bytes(
    name: &'static str,
    length: Length,
    label: &'static str,
    doc: &'static str,
) -> Field {
    of(name, label, doc, Shape::Bytes(length))
}

/// Returns text behind its length.
#[must_use]
pub const fn text(
    name: &'static str,
    charset: Charset,
    label: &'static str,
    doc: &'static str,
) -> Field {
    of(name, label, doc, Shape::Text(charset))
}

impl Field {
    const fn with(self, change: Number) -> Self {
        Self { shape: Shape::Number(change), ..self }
    }

    const fn number(self) -> Number {
        match self.shape {
            Shape::Number(number) => number,
            // Only numbers have bounds and names; a test reads every layout.
            _ => Number { bytes: 0, mask: 0, plus: 0, min: 0, max: 0, hex: false, names: &[] },
        }
    }

    /// Bounds a number.
    #[must_use]
    pub const fn within(self, min: u64, max: u64) -> Self {
        self.with(Number { min, max, ..self.number() })
    }

    /// Bounds a number from below.
    #[must_use]
    pub const fn at_least(self, min: u64) -> Self {
        self.with(Number { min, ..self.number() })
    }

    /// Shows a number in hexadecimal digits.
    #[must_use]
    pub const fn hex(self) -> Self {
        self.with(Number { hex: true, ..self.number() })
    }

    /// Adds a constant to what the bits say.
    #[must_use]
    pub const fn plus(self, plus: u64) -> Self {
        self.with(Number { plus, ..self.number() })
    }

    /// Names all values of a number.
    #[must_use]
    pub const fn named(self, names: &'static [(u64, &'static str)]) -> Self {
        self.with(Number { names, ..self.number() })
    }
}

/// Version of what an originator tells: parts that announcements and link states have.
pub const VERSION: Part = Part::Include(&[
    field(u64("originator_epoch", "Epoch of the originator", "of the version, see above")),
    field(u32("number", "Number", "of the version")),
]);

/// Instance of a tunnel's flow, as `FlowInstance` writes it.
pub const INSTANCE: Part = Part::Include(&[
    field(node("packet.source", "Source", "of the flow")),
    field(node("packet.destination", "Destination", "of the flow")),
    field(
        u32(
            "instance",
            "Incarnation of the flow",
            "a later start of the source, or of the flow, has a higher one",
        )
        .hex(),
    ),
    Part::Check(Check::Differ("packet.source", "packet.destination")),
]);
