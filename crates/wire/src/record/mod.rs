//! Declarations of frames: one list of fields gives the struct, its reader, its writer, its length
//! and its layout.
//!
//! ```
//! use ncmesh_wire::record::{bits, field};
//! use ncmesh_wire::{NodeId, frame};
//!
//! frame! {
//!     /// A node asks another one for packets.
//!     #[derive(Debug, PartialEq, Eq)]
//!     pub struct Request {
//!         /// the node that answers
//!         pub to: NodeId = field("request.to", "To"),
//!         /// the node that asks
//!         pub by: NodeId = field("request.by", "By"),
//!         check differ(to, by),
//!         byte {
//!             /// whether it asked before
//!             pub again: bool = bits(0x80, "request.again", "Again"),
//!         }
//!         /// how many packets follow
//!         count: u8 = field("request.count", "Packets").within(1, 64) => missing.len() as u8,
//!         /// number of a packet
//!         pub missing: Vec<u32> as many as count = field("request.missing", "Missing"),
//!     }
//! }
//!
//! let request = Request { to: NodeId(2), by: NodeId(1), again: true, missing: vec![7] };
//! let mut body = Vec::new();
//! request.write(&mut body);
//! assert_eq!(body, [0, 2, 0, 1, 0x80, 1, 0, 0, 0, 7]);
//! assert_eq!(Request::parse(&body), Ok(request));
//! assert!(Request::parse(&body[1..]).is_err());
//! ```
//!
//! An entry is a field in the order of the bytes. Its doc comment is its text in the tables of the
//! wire format, so it has no capital and no full stop; [`field`] and [`bits`] give its name in the
//! dissector, its label, and its bounds. These are the entries:
//!
//! | entry | meaning |
//! | --- | --- |
//! | `name: T = field(..)` | a [`Value`] |
//! | `name: T` | a [`Record`]; with `= group(..)` one that is shown as a group |
//! | `Needs { a, b }` | a record of these values, which the struct has among its own |
//! | `name: T = field(..) => expr` | not in the struct; written as `expr` |
//! | `byte { .. }` | bits of one byte; those that no field has are zero |
//! | `name: T as long as n = field(..)` | bytes, as many as the field `n` says |
//! | `name: Vec<T> as many as n = ..` | as many items as the field `n` says |
//! | `name: Vec<T> to the end(min, max) = ..` | items to the end of the body |
//! | `name: Option<T> where c = ..` | there only if `c` is set; with `where not c`, if it is not |
//! | `name: T as By { a }` | read and written by a `By` of the earlier fields `a`, see below |
//! | `check differ(a, b)` | a rule of well-formed frames; also `at_most`, `excludes`, `implies` |
//! | `check expr => Check::..` | any other rule: the expression over what was read, and its words |
//!
//! [`record!`](crate::record!) declares a part of frames, [`frame!`](crate::frame!) a whole body.
//!
//! Bytes on the air are packed, and structs are made for those who use them, so the two do not
//! always look alike. `impl Type as PATTERN => EXPRESSION { entries }` declares the format of a
//! struct that exists: the pattern takes it apart for the writer, the expression puts it together
//! for the reader. It is left out if it is the pattern. With `impl Type with flag: bool as ..`
//! there is one field more than the struct has; then `read_with` returns the struct and the field,
//! and `put_with` takes both.
//!
//! A part that no list of fields can describe implements [`Record`] by hand, such as the nodes of a
//! route of which a receiver knows some. If its form depends on earlier fields, a struct of these
//! has a constant `PARTS` and methods `read(self, r)` and `put(self, value, w)`; `a, b as By { c }`
//! reads two fields, a pair, and `put` takes both.
//!
//! # Why it is made like this
//!
//! A declaration reads as the struct that it makes, and a line of it as a row of the wire format.
//! It expands to ordinary code, which stops at the first field that is not as it must be, and
//! allocates nothing but the struct's own vectors.
//!
//! Others were looked at. `binrw` and `deku` derive readers and writers from attributes, but know
//! no names, texts and bounds that a document could be made of; those would stand beside theirs, as
//! attributes of our own. `zerocopy` wants structs of constant length. `Repr` of smoltcp is a
//! struct with a reader and a writer by hand. A derive of our own would be a crate of procedural
//! macros, for which every build waits.

mod entries;
mod value;

use crate::cursor::{Reader, Truncated, Writer};
use crate::id::NodeId;
use crate::layout::{Charset, Field, Is, Layout, Length, Number, Part, Shape};

/// A frame body that does not follow its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl From<Truncated> for Malformed {
    fn from(_: Truncated) -> Self {
        Self
    }
}

/// Part of a frame body, or all of it.
pub trait Record<'a>: Sized {
    /// Its description.
    const PARTS: &'static [Part];

    /// Bytes that every one of them has.
    const LEN: usize = fixed_len(Self::PARTS);

    /// Reads it from the front of a body.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are missing, or it is not as its description says.
    fn read(r: &mut Reader<'a>) -> Result<Self, Malformed>;

    /// Appends it to a body.
    fn put(&self, w: &mut Writer<'_>);

    /// Reads a whole body.
    ///
    /// # Errors
    /// [`Malformed`] also if bytes are left over.
    fn from_body(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut r = Reader::new(body);
        let record = Self::read(&mut r)?;
        if r.remaining() > 0 { Err(Malformed) } else { Ok(record) }
    }
}

/// Value of one field of a frame.
pub trait Value<'a>: Sized {
    /// How it is written.
    const KIND: Kind;

    /// Reads it from the front of a body.
    ///
    /// # Errors
    /// [`Malformed`] if bytes are missing, or the field may not have this value.
    fn read(r: &mut Reader<'a>, how: &Named) -> Result<Self, Malformed>;

    /// Appends it to a body.
    fn put(&self, w: &mut Writer<'_>, how: &Named);
}

/// Value of one field of a byte.
pub trait Bits: Sized {
    /// Names of all its values, if they have names.
    const NAMES: &'static [(u64, &'static str)] = &[];

    /// Returns the value of these bits, if it is one.
    fn from_bits(bits: u8) -> Option<Self>;

    /// Returns its bits.
    fn to_bits(&self) -> u8;
}

/// Ways to write a value. What else there is to say stands in the field: its bounds, or whether
/// bytes are a text.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Big-endian number, with its length in bytes.
    Number(usize),
    /// One byte whose values have names.
    Choice(&'static [(u64, &'static str)]),
    /// IEEE 754 number.
    Float,
    /// Flow id.
    Flow,
    /// Bytes of a fixed number.
    Array(usize),
    /// Bytes with a length, or to the end.
    Bytes,
}

/// Name of a field, its label, and what its values may be.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Name in the dissector, without `ncmesh.` before it.
    pub name: &'static str,
    label: &'static str,
    mask: u8,
    plus: u8,
    min: u64,
    max: u64,
    hex: bool,
    names: &'static [(u64, &'static str)],
    /// Parts of one; 0 for a number that counts whole ones.
    unit: u32,
    /// Number that stands for none.
    none: Option<u64>,
    length: Length,
    charset: Option<Charset>,
}

/// Returns a field of this name and label.
#[must_use]
pub const fn field(name: &'static str, label: &'static str) -> Named {
    bits(0, name, label)
}

/// Returns a field of the bits `mask` of a byte.
#[must_use]
pub const fn bits(mask: u8, name: &'static str, label: &'static str) -> Named {
    // The whole range of a number is allowed until a frame declares less.
    Named {
        name,
        label,
        mask,
        plus: 0,
        min: 0,
        max: u64::MAX,
        hex: false,
        names: &[],
        unit: 0,
        none: None,
        length: Length::Rest(0, usize::MAX),
        charset: None,
    }
}

impl Named {
    /// Bounds a number.
    #[must_use]
    pub const fn within(self, min: u64, max: u64) -> Self {
        Self { min, max, ..self }
    }

    /// Bounds a number from below.
    #[must_use]
    pub const fn at_least(self, min: u64) -> Self {
        Self { min, ..self }
    }

    /// Shows a number in hexadecimal digits.
    #[must_use]
    pub const fn hex(self) -> Self {
        Self { hex: true, ..self }
    }

    /// Adds a constant to what bits say.
    #[must_use]
    pub const fn plus(self, plus: u8) -> Self {
        Self { plus, ..self }
    }

    /// Names the values of bits.
    #[must_use]
    pub const fn named(self, names: &'static [(u64, &'static str)]) -> Self {
        Self { names, ..self }
    }

    /// Counts a number in units of 1/`unit`.
    #[must_use]
    pub const fn scaled(self, unit: u32) -> Self {
        Self { unit, ..self }
    }

    /// Lets a number stand for none.
    #[must_use]
    pub const fn none(self, number: u64) -> Self {
        Self { none: Some(number), ..self }
    }

    /// Bounds the length of bytes that go to the end of the body.
    #[must_use]
    pub const fn rest(self, min: usize, max: usize) -> Self {
        Self { length: Length::Rest(min, max), ..self }
    }

    /// Puts a byte with their length before bytes, between two bounds.
    #[must_use]
    pub const fn prefixed(self, min: usize, max: usize) -> Self {
        Self { length: Length::Prefixed(min, max), ..self }
    }

    /// Puts a byte with its length before a text.
    #[must_use]
    pub const fn text(self, charset: Charset) -> Self {
        Self { charset: Some(charset), ..self }
    }

    // ---- layout

    /// Returns the field as part of a layout.
    #[must_use]
    pub const fn part<'a, T: Value<'a>>(self, doc: &'static str) -> Part {
        // The order of the arms matters: a unit makes a number scaled, a charset makes bytes a
        // text.
        let shape = match (T::KIND, self.charset) {
            (Kind::Number(bytes), _) if self.unit > 0 => Shape::Scaled { bytes, unit: self.unit },
            (Kind::Number(bytes), _) => Shape::Number(self.number(bytes, &[])),
            (Kind::Choice(names), _) => Shape::Number(self.number(1, names)),
            (Kind::Float, _) => Shape::Float,
            (Kind::Flow, _) => Shape::Flow,
            (Kind::Array(len), _) => Shape::Bytes(Length::Fixed(len)),
            (Kind::Bytes, Some(charset)) => Shape::Text(charset),
            (Kind::Bytes, None) => Shape::Bytes(self.length),
        };

        Part::Field(self.shaped(shape, doc))
    }

    /// Returns a field of bytes as part of a layout.
    #[must_use]
    pub const fn bytes(self, length: Length, doc: &'static str) -> Part {
        Part::Field(self.shaped(Shape::Bytes(length), doc))
    }

    /// Returns a field of bits for a layout.
    #[must_use]
    pub const fn bit<T: Bits>(self, doc: &'static str) -> Field {
        let names = if self.names.is_empty() { T::NAMES } else { self.names };
        self.shaped(Shape::Number(self.number(1, names)), doc)
    }

    const fn shaped(self, shape: Shape, doc: &'static str) -> Field {
        Field { name: self.name, label: self.label, doc, shape }
    }

    const fn number(self, bytes: usize, names: &'static [(u64, &'static str)]) -> Number {
        let Self { mask, plus, min, max, hex, .. } = self;
        Number { bytes, mask, plus: plus as u64, min, max, hex, names }
    }

    // ---- reading and writing

    /// Reads the field.
    ///
    /// # Errors
    /// [`Malformed`] as [`Value::read`].
    #[inline]
    pub fn read<'a, T: Value<'a>>(&self, r: &mut Reader<'a>) -> Result<T, Malformed> {
        T::read(r, self)
    }

    /// Appends the field.
    #[inline]
    pub fn put<'a, T: Value<'a>>(&self, value: &T, w: &mut Writer<'_>) {
        value.put(w, self);
    }

    /// Returns the bits of a byte that are this field's.
    #[must_use]
    pub const fn mask(&self) -> u8 {
        self.mask
    }

    /// Reads the field from its byte.
    ///
    /// # Errors
    /// [`Malformed`] if it may not have this value.
    #[inline]
    pub fn read_bits<T: Bits>(&self, byte: u8) -> Result<T, Malformed> {
        let bits = ((byte & self.mask) >> self.mask.trailing_zeros()).wrapping_add(self.plus);
        self.judge(bits.into())?;
        T::from_bits(bits).ok_or(Malformed)
    }

    /// Returns the bits of the field at their place in the byte.
    #[inline]
    pub fn place<T: Bits>(&self, value: &T) -> u8 {
        let bits = value.to_bits().wrapping_sub(self.plus);
        bits << self.mask.trailing_zeros() & self.mask
    }

    #[inline]
    fn judge(&self, number: u64) -> Result<(), Malformed> {
        if (self.min..=self.max).contains(&number) { Ok(()) } else { Err(Malformed) }
    }
}

/// Name and label of a record that is shown as a group, and one line about it.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    name: &'static str,
    label: &'static str,
    text: &'static str,
}

/// Returns a group. The text about it has the form of [`Layout::info`].
#[must_use]
pub const fn group(name: &'static str, label: &'static str, text: &'static str) -> Group {
    Group { name, label, text }
}

impl Group {
    /// Returns the record as part of a layout.
    #[must_use]
    pub const fn part<'a, T: Record<'a>>(self, _doc: &'static str) -> Part {
        Part::Group { name: self.name, label: self.label, text: self.text, parts: T::PARTS }
    }

    /// Reads the record.
    ///
    /// # Errors
    /// [`Malformed`] as [`Record::read`].
    #[inline]
    pub fn read<'a, T: Record<'a>>(&self, r: &mut Reader<'a>) -> Result<T, Malformed> {
        T::read(r)
    }

    /// Appends the record.
    #[inline]
    pub fn put<'a, T: Record<'a>>(&self, record: &T, w: &mut Writer<'_>) {
        record.put(w);
    }
}

impl Layout {
    /// Returns the layout of a kind of frame whose body is a `T`.
    #[must_use]
    pub const fn of<T: Record<'static>>(kind: u8, name: &'static str, info: &'static str) -> Self {
        Self::new(kind, name, info, T::PARTS)
    }

    /// Returns the layout of a kind of frame whose body has these parts.
    #[must_use]
    pub const fn new(
        kind: u8,
        name: &'static str,
        info: &'static str,
        parts: &'static [Part],
    ) -> Self {
        Self { kind, name, variant: None, info, parts }
    }

    /// Gives it another name if a condition holds.
    #[must_use]
    pub const fn or_if(self, is: Is, name: &'static str) -> Self {
        Self { variant: Some((is, name)), ..self }
    }
}

// ---- what the macro calls

/// Number that checks compare: of bytes their length.
pub trait Quantity {
    /// Returns it.
    fn quantity(&self) -> u64;
}

macro_rules! quantities {
    ($($type:ty: $quantity:expr;)+) => {$(
        impl Quantity for $type {
            #[inline]
            fn quantity(&self) -> u64 {
                $quantity(self)
            }
        }
    )+};
}

quantities! {
    bool: |is: &Self| (*is).into();
    u8: |number: &Self| (*number).into();
    u16: |number: &Self| (*number).into();
    u32: |number: &Self| (*number).into();
    NodeId: |node: &Self| node.0.into();
    [u8]: |bytes: &Self| bytes.len() as u64;
}

/// Returns a doc comment as a text.
#[must_use]
pub const fn text(doc: &'static str) -> &'static str {
    doc.trim_ascii()
}

/// Reads `count` items. Allocates for as many as the bytes that are left can hold at most.
///
/// # Errors
/// That of the first item that is malformed.
#[inline]
pub fn many<'a, T>(
    r: &mut Reader<'a>,
    count: usize,
    read: impl Fn(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut items = Vec::with_capacity(count.min(r.remaining()));
    for _ in 0..count {
        items.push(read(r)?);
    }
    Ok(items)
}

/// Reads items to the end of the body, at most `max`. A body with more has bytes left over then.
///
/// # Errors
/// That of the first item that is malformed; [`Malformed`] if there are less than `min` of them.
#[inline]
pub fn to_end<'a, T>(
    r: &mut Reader<'a>,
    min: usize,
    max: usize,
    read: impl Fn(&mut Reader<'a>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut items = Vec::new();
    while r.remaining() > 0 && items.len() < max {
        items.push(read(r)?);
    }
    if items.len() < min { Err(Malformed) } else { Ok(items) }
}

/// Returns the bytes that are always there.
#[must_use]
pub const fn fixed_len(parts: &[Part]) -> usize {
    // A loop by index, because a `const fn` cannot use `for`.
    let mut len = 0;
    let mut at = 0;
    while at < parts.len() {
        len += match &parts[at] {
            Part::Field(field) => match field.shape {
                Shape::Number(number) => number.bytes,
                Shape::Scaled { bytes, .. } => bytes,
                Shape::Float => 4,
                Shape::Flow => 6,
                Shape::Bytes(Length::Fixed(len)) => len,
                // The length byte is always there, the bytes behind it are not.
                Shape::Bytes(Length::Prefixed(..)) | Shape::Text(_) => 1,
                Shape::Bytes(Length::Field(_) | Length::Square(_) | Length::Rest(..)) => 0,
            },
            Part::Byte(_) => 1,
            Part::Group { parts, .. } | Part::Include(parts) => fixed_len(parts),
            // Only bytes that every frame of the kind has are counted.
            Part::Repeat(..) | Part::When(..) | Part::Route(_) | Part::Check(_) => 0,
        };
        at += 1;
    }

    len
}
