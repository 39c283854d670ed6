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
//! wire format; [`field`](crate::record::field) and [`bits`](crate::record::bits) give its name in
//! the dissector, its label, and its bounds. These are the entries:
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
//! | `check differ(a, b)` | a rule that a well-formed frame keeps, one of [`Check`](crate::layout::Check) |
//! | `check expr => Check::..` | any other rule: the expression over what was read, and its words |
//!
//! [`record!`](crate::record!) declares a part of frames, [`frame!`](crate::frame!) a whole body.
//!
//! Bytes on the air are packed, and structs are made for those who use them, so the two do not
//! always look alike. `impl Type as PATTERN => EXPRESSION { entries }` declares the format of a
//! struct that exists: the pattern takes it apart for the writer, the expression puts it together
//! for the reader. It is left out if it is the pattern. With `impl Type with flag: bool as ..` there
//! is one field more than the struct has; then `read_with` returns the struct and the field, and
//! `put_with` takes both.
//!
//! What no list of fields can say, as the nodes of a route of which a receiver knows some,
//! implements [`Record`] by hand. If its form depends on earlier fields, a struct of these has a
//! constant `PARTS` and methods `read(self, r)` and `put(self, value, w)`; `a, b as By { c }` reads
//! two fields, a pair, and `put` takes both.
//!
//! # Why it is made like this
//!
//! A macro by example reads a list that looks like a struct, and what it expands to is ordinary
//! code that stops at the first field that is not as it must be and allocates nothing but the
//! struct's own vectors. `binrw` and `deku` derive as much from attributes, but know neither bounds
//! nor names nor texts, which would be attributes of our own beside theirs; `zerocopy` wants
//! structs of constant length; `Repr` of smoltcp is written by hand, twice. A derive of our own
//! would be a crate of procedural macros, which every build waits for.

use crate::cursor::{Reader, Truncated, Writer};
use crate::id::{FlowId, NodeId, RadioAddress, StartId};
use crate::layout::{Charset, Field, FlowOf, Is, Layout, Length, Number, Part, Shape};

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

/// What one field of a frame holds.
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

/// What one field of a byte holds.
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
    /// Big-endian number of so many bytes.
    Number(usize),
    /// One byte whose values have names.
    Choice(&'static [(u64, &'static str)]),
    /// IEEE 754 number.
    Float,
    /// Flow id.
    Flow,
    /// So many bytes.
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
        Self { kind, name, variant: None, info, flow: FlowOf::None, batch: None, parts }
    }

    /// Says where the flow of a frame is read from.
    #[must_use]
    pub const fn of_flow(self, flow: FlowOf) -> Self {
        Self { flow, ..self }
    }

    /// Names the field that has the batch or generation.
    #[must_use]
    pub const fn of_batch(self, batch: &'static str) -> Self {
        Self { batch: Some(batch), ..self }
    }

    /// Gives it another name if a condition holds.
    #[must_use]
    pub const fn or_if(self, is: Is, name: &'static str) -> Self {
        Self { variant: Some((is, name)), ..self }
    }
}

// ---- values

macro_rules! numbers {
    ($($type:ty: $bytes:literal, $read:ident, $number:expr, $from:expr;)+) => {$(
        impl Value<'_> for $type {
            const KIND: Kind = Kind::Number($bytes);

            #[inline]
            fn read(r: &mut Reader<'_>, how: &Named) -> Result<Self, Malformed> {
                let number = r.$read()?;
                how.judge(number.into())?;
                Ok($from(number))
            }

            #[inline]
            fn put(&self, w: &mut Writer<'_>, _how: &Named) {
                w.$read($number(*self));
            }
        }
    )+};
}

numbers! {
    bool: 1, u8, u8::from, |number: u8| number != 0;
    u8: 1, u8, u8::from, u8::from;
    u16: 2, u16, u16::from, u16::from;
    u32: 4, u32, u32::from, u32::from;
    u64: 8, u64, u64::from, u64::from;
    NodeId: 2, u16, |node: Self| node.0, NodeId;
    StartId: 8, u64, |start: Self| start.0, StartId;
    RadioAddress: 4, u32, |at: Self| u32::from_be_bytes(at.0),
        |at: u32| RadioAddress(at.to_be_bytes());
}

impl Value<'_> for Option<u8> {
    const KIND: Kind = Kind::Number(1);

    #[inline]
    fn read(r: &mut Reader<'_>, how: &Named) -> Result<Self, Malformed> {
        let number: u8 = how.read(r)?;
        Ok(Some(number).filter(|number| how.none != Some((*number).into())))
    }

    #[inline]
    fn put(&self, w: &mut Writer<'_>, how: &Named) {
        w.u8(self.unwrap_or(how.none.map_or(0, |none| none as u8)));
    }
}

impl Value<'_> for f32 {
    const KIND: Kind = Kind::Float;

    fn read(r: &mut Reader<'_>, _how: &Named) -> Result<Self, Malformed> {
        let number = Self::from_bits(r.u32()?);
        if number.is_finite() { Ok(number) } else { Err(Malformed) }
    }

    fn put(&self, w: &mut Writer<'_>, _how: &Named) {
        w.u32(self.to_bits());
    }
}

impl Value<'_> for FlowId {
    const KIND: Kind = Kind::Flow;

    #[inline]
    fn read(r: &mut Reader<'_>, _how: &Named) -> Result<Self, Malformed> {
        Ok(r.flow()?)
    }

    #[inline]
    fn put(&self, w: &mut Writer<'_>, _how: &Named) {
        w.flow(*self);
    }
}

impl<const N: usize> Value<'_> for [u8; N] {
    const KIND: Kind = Kind::Array(N);

    #[inline]
    fn read(r: &mut Reader<'_>, _how: &Named) -> Result<Self, Malformed> {
        Ok(r.array()?)
    }

    #[inline]
    fn put(&self, w: &mut Writer<'_>, _how: &Named) {
        w.bytes(self);
    }
}

impl<'a> Value<'a> for &'a [u8] {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn read(r: &mut Reader<'a>, how: &Named) -> Result<Self, Malformed> {
        if how.charset.is_some() {
            return Ok(r.short_bytes()?);
        }
        let (len, min, max) = match how.length {
            Length::Prefixed(min, max) => (r.u8()?.into(), min, max),
            Length::Rest(min, max) => (r.remaining(), min, max),
            Length::Fixed(len) => (len, len, len),
            Length::Field(_) | Length::Square(_) => return Err(Malformed),
        };
        if (min..=max).contains(&len) { Ok(r.bytes(len)?) } else { Err(Malformed) }
    }

    #[inline]
    fn put(&self, w: &mut Writer<'_>, how: &Named) {
        match how.length {
            _ if how.charset.is_some() => w.short_bytes(self),
            Length::Prefixed(..) => w.short_bytes(self),
            Length::Rest(_, max) => w.bytes(&self[..self.len().min(max)]),
            Length::Fixed(_) | Length::Field(_) | Length::Square(_) => w.bytes(self),
        };
    }
}

impl Value<'_> for Vec<u8> {
    const KIND: Kind = Kind::Bytes;

    #[inline]
    fn read(r: &mut Reader<'_>, how: &Named) -> Result<Self, Malformed> {
        Ok(how.read::<&[u8]>(r)?.to_vec())
    }

    #[inline]
    fn put(&self, w: &mut Writer<'_>, how: &Named) {
        how.put(&self.as_slice(), w);
    }
}

/// Text, which is UTF-8.
impl Value<'_> for String {
    const KIND: Kind = Kind::Bytes;

    fn read(r: &mut Reader<'_>, _how: &Named) -> Result<Self, Malformed> {
        let text = core::str::from_utf8(r.short_bytes()?).map_err(|_| Malformed)?;
        Ok(text.to_owned())
    }

    fn put(&self, w: &mut Writer<'_>, _how: &Named) {
        w.short_bytes(self.as_bytes());
    }
}

impl Bits for bool {
    #[inline]
    fn from_bits(bits: u8) -> Option<Self> {
        Some(bits != 0)
    }

    #[inline]
    fn to_bits(&self) -> u8 {
        (*self).into()
    }
}

impl Bits for u8 {
    #[inline]
    fn from_bits(bits: u8) -> Option<Self> {
        Some(bits)
    }

    #[inline]
    fn to_bits(&self) -> u8 {
        *self
    }
}

/// Declares an enum of one byte, or of some bits, whose values have names in the wire format.
#[macro_export]
macro_rules! choice {
    (
        $(#[$attr:meta])* $vis:vis enum $name:ident {
            $($(#[$doc:meta])* $variant:ident = $code:literal, $text:literal;)+
        }
    ) => {
        $(#[$attr])*
        $vis enum $name {
            $($(#[$doc])* $variant = $code,)+
        }

        impl $crate::record::Bits for $name {
            const NAMES: &'static [(u64, &'static str)] = &[$(($code, $text)),+];

            fn from_bits(bits: u8) -> Option<Self> {
                match bits {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }

            fn to_bits(&self) -> u8 {
                *self as u8
            }
        }

        $crate::choice!(@value $name);
    };
    (@value $name:ident) => {
        impl $crate::record::Value<'_> for $name {
            const KIND: $crate::record::Kind =
                $crate::record::Kind::Choice(<Self as $crate::record::Bits>::NAMES);

            fn read(
                r: &mut $crate::Reader<'_>,
                _how: &$crate::record::Named,
            ) -> Result<Self, $crate::Malformed> {
                <Self as $crate::record::Bits>::from_bits(r.u8()?).ok_or($crate::Malformed)
            }

            fn put(&self, w: &mut $crate::Writer<'_>, _how: &$crate::record::Named) {
                w.u8($crate::record::Bits::to_bits(self));
            }
        }
    };
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

/// Reads items to the end of the body.
///
/// # Errors
/// That of the first item that is malformed; [`Malformed`] if there are less than `min` of them, or
/// more than `max`.
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
                Shape::Bytes(Length::Prefixed(..)) | Shape::Text(_) => 1,
                Shape::Bytes(Length::Field(_) | Length::Square(_) | Length::Rest(..)) => 0,
            },
            Part::Byte(_) => 1,
            Part::Group { parts, .. } | Part::Include(parts) => fixed_len(parts),
            Part::Repeat(..) | Part::When(..) | Part::Route(_) | Part::Check(_) => 0,
        };
        at += 1;
    }
    len
}

/// Declares a whole frame body: a [`record!`](crate::record!) with `parse` and `write`.
#[macro_export]
macro_rules! frame {
    ($(#[$attr:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? { $($entries:tt)* }) => {
        $crate::record! { $(#[$attr])* $vis struct $name $(<$life>)? { $($entries)* } }
        $crate::frame! { @body $vis $name $(<$life>)? }
    };
    ($vis:vis impl $name:ident $(<$life:lifetime>)? as $($rest:tt)*) => {
        $crate::record! { impl $name $(<$life>)? as $($rest)* }
        $crate::frame! { @body $vis $name $(<$life>)? }
    };
    (@body $vis:vis $name:ident $(<$life:lifetime>)?) => {
        impl $(<$life>)? $name $(<$life>)? {
            /// Appends the frame body.
            $vis fn write(&self, out: &mut Vec<u8>) {
                $crate::Record::put(self, &mut $crate::Writer::new(out));
            }

            /// Reads a frame body.
            ///
            /// # Errors
            /// [`Malformed`](ncmesh_wire::Malformed) if it is not as its declaration says.
            $vis fn parse(body: &$($life)? [u8]) -> Result<Self, $crate::Malformed> {
                $crate::Record::from_body(body)
            }
        }
    };
}

/// Declares a part of frame bodies; [the module](crate::record) says how.
#[macro_export]
macro_rules! record {
    // ---- heads: [kind and definition] [lifetime] [reader, writer] {fields} {names}

    ($(#[$attr:meta])* $vis:vis struct $name:ident { $($entries:tt)* }) => {
        $crate::record! {
            @next [struct $(#[$attr])* $vis struct $name; $name] ['r] [r w] {} {} {} {} {} {}
            $($entries)*
        }
    };
    ($(#[$attr:meta])* $vis:vis struct $name:ident<$life:lifetime> { $($entries:tt)* }) => {
        $crate::record! {
            @next [struct $(#[$attr])* $vis struct $name<$life>; $name<$life>]
            [$life] [r w] {} {} {} {} {} {}
            $($entries)*
        }
    };
    (impl $type:ident as $name:ident { $($pattern:tt)* } { $($entries:tt)* }) => {
        $crate::record! {
            @next [impl $type; $name { $($pattern)* } => $name { $($pattern)* }]
            ['r] [r w] {} {} {} {} {} {}
            $($entries)*
        }
    };
    (
        impl $type:ident as $name:ident { $($pattern:tt)* } => $built:ident { $($build:tt)* }
        { $($entries:tt)* }
    ) => {
        $crate::record! {
            @next [impl $type; $name { $($pattern)* } => $built { $($build)* }]
            ['r] [r w] {} {} {} {} {} {}
            $($entries)*
        }
    };
    (impl $type:ident<$life:lifetime> as $name:ident { $($pattern:tt)* } { $($entries:tt)* }) => {
        $crate::record! {
            @next [impl $type<$life>; $name { $($pattern)* } => $name { $($pattern)* }]
            [$life] [r w] {} {} {} {} {} {}
            $($entries)*
        }
    };

    (
        impl $type:ident with $with:ident: $with_type:ty as
            $name:ident { $($pattern:tt)* } $(=> $built:ident { $($build:tt)* })?
        { $($entries:tt)* }
    ) => {
        $crate::record! {
            @next [with $type $with $with_type; $name { $($pattern)* } $(=> $built { $($build)* })?]
            ['r] [r w] {} {} {} {} {} {}
            $($entries)*
        }
    };

    // ---- the end

    (
        @next [with $type:ident $with:ident $with_type:ty; $name:ident { $($pattern:tt)* }]
        $($rest:tt)*
    ) => {
        $crate::record! {
            @next [
                with $type $with $with_type;
                $name { $($pattern)* } => $name { $($pattern)* }
            ]
            $($rest)*
        }
    };
    (
        @next [
            with $type:ident $with:ident $with_type:ty;
            $taken:ident { $($pattern:tt)* } => $built:ident { $($build:tt)* }
        ]
        [$life:lifetime] [$r:ident $w:ident] $fields:tt $names:tt {$($consts:tt)*} {$($parts:tt)*}
        {$($read:tt)*} {$($write:tt)*}
    ) => {
        impl $type {
            /// Its description.
            pub(crate) const PARTS: &'static [$crate::layout::Part] = {
                $($consts)*
                &[$($parts)*]
            };

            fn read_with(
                $r: &mut $crate::Reader<'_>,
            ) -> Result<(Self, $with_type), $crate::Malformed> {
                use $crate::record::Quantity as _;
                $($read)*
                Ok(($built { $($build)* }, $with))
            }

            fn put_with(&self, $with: $with_type, $w: &mut $crate::Writer<'_>) {
                let $taken { $($pattern)* } = self;
                let $with = &$with;
                $($write)*
            }
        }
    };
    (
        @next [struct $(#[$attr:meta])* $vis:vis struct $name:ident $(<$_:lifetime>)?; $type:ty]
        [$life:lifetime] $rw:tt {$($fields:tt)*} {$($names:tt)*} $consts:tt $parts:tt $read:tt
        $write:tt
    ) => {
        $(#[$attr])*
        $vis struct $name $(<$_>)? {
            $($fields)*
        }

        $crate::record! {
            @end [impl $type; Self { $($names)* } => Self { $($names)* }]
            [$life] $rw $consts $parts $read $write
        }
    };
    (
        @next [impl $($head:tt)*] [$life:lifetime] $rw:tt $fields:tt $names:tt $consts:tt $parts:tt
        $read:tt $write:tt
    ) => {
        $crate::record! { @end [impl $($head)*] [$life] $rw $consts $parts $read $write }
    };
    (
        @end [impl $type:ty; $taken:ident { $($pattern:tt)* } => $built:ident { $($build:tt)* }]
        [$life:lifetime] [$r:ident $w:ident] {$($consts:tt)*} {$($parts:tt)*} {$($read:tt)*}
        {$($write:tt)*}
    ) => {
        impl<$life> $crate::Record<$life> for $type {
            const PARTS: &'static [$crate::layout::Part] = {
                $($consts)*
                &[$($parts)*]
            };

            #[inline]
            fn read($r: &mut $crate::Reader<$life>) -> Result<Self, $crate::Malformed> {
                #[allow(unused_imports, reason = "only checks compare quantities")]
                use $crate::record::Quantity as _;
                $($read)*
                Ok($built { $($build)* })
            }

            #[inline]
            fn put(&self, $w: &mut $crate::Writer<'_>) {
                let $taken { $($pattern)* } = self;
                $($write)*
            }
        }
    };

    // ---- a byte of bits

    (
        @next $head:tt $life:tt [$r:ident $w:ident] {$($fields:tt)*} {$($names:tt)*}
        {$($consts:tt)*} {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        byte { $(
            $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty = $mark:expr $(=> $value:expr)?
        ),+ $(,)? }
        $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w]
            {$($fields)* $($(#[doc = $doc])* $vis $name: $type,)+}
            {$($names)* $($name,)+}
            {$($consts)* $($crate::record! { @const $name $mark })+}
            {$($parts)* $crate::layout::Part::Byte(&[$(
                ($mark).bit::<$type>($crate::record::text(concat!($($doc),*)))
            ),+]),}
            {$($read)*
                let byte = $r.u8()?;
                if byte & !(0 $(| const { $mark }.mask())+) != 0 {
                    return Err($crate::Malformed);
                }
                $(let $name = const { $mark }.read_bits::<$type>(byte)?;)+
            }
            {$($write)*
                $($(let $name: &$type = &$value;)?)+
                $w.u8(0 $(| const { $mark }.place::<$type>($name))+);
            }
            $($rest)*
        }
    };

    // ---- rules

    (
        @next $head:tt $life:tt $rw:tt $fields:tt $names:tt $consts:tt $parts:tt $read:tt $write:tt
        check differ($a:ident, $b:ident), $($rest:tt)*
    ) => {
        $crate::record! {
            @check $head $life $rw $fields $names $consts $parts $read $write
            [$a.quantity() != $b.quantity()] [$crate::layout::Check::Differ($a, $b)] $($rest)*
        }
    };
    (
        @next $head:tt $life:tt $rw:tt $fields:tt $names:tt $consts:tt $parts:tt $read:tt $write:tt
        check at_most($a:ident, $b:ident), $($rest:tt)*
    ) => {
        $crate::record! {
            @check $head $life $rw $fields $names $consts $parts $read $write
            [$a.quantity() <= $b.quantity()] [$crate::layout::Check::AtMost($a, $b)] $($rest)*
        }
    };
    (
        @next $head:tt $life:tt $rw:tt $fields:tt $names:tt $consts:tt $parts:tt $read:tt $write:tt
        check excludes($a:ident, $b:ident), $($rest:tt)*
    ) => {
        $crate::record! {
            @check $head $life $rw $fields $names $consts $parts $read $write
            [$a.quantity() == 0 || $b.quantity() == 0]
            [$crate::layout::Check::Excludes($a, $b)] $($rest)*
        }
    };
    (
        @next $head:tt $life:tt $rw:tt $fields:tt $names:tt $consts:tt $parts:tt $read:tt $write:tt
        check implies($a:ident, $b:ident), $($rest:tt)*
    ) => {
        $crate::record! {
            @check $head $life $rw $fields $names $consts $parts $read $write
            [$a.quantity() == 0 || $b.quantity() != 0]
            [$crate::layout::Check::Implies($a, $b)] $($rest)*
        }
    };
    (
        @next $head:tt $life:tt $rw:tt $fields:tt $names:tt $consts:tt $parts:tt $read:tt $write:tt
        check $holds:expr => $check:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @check $head $life $rw $fields $names $consts $parts $read $write
            [$holds] [$check] $($rest)*
        }
    };
    (
        @check $head:tt $life:tt $rw:tt $fields:tt $names:tt $consts:tt {$($parts:tt)*}
        {$($read:tt)*} $write:tt [$($holds:tt)*] [$($check:tt)*] $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life $rw $fields $names $consts
            {$($parts)* $crate::layout::Part::Check($($check)*),}
            {$($read)* if !($($holds)*) { return Err($crate::Malformed); }}
            $write
            $($rest)*
        }
    };

    // ---- fields whose form depends on an earlier one

    (
        @next $head:tt $life:tt [$r:ident $w:ident] {$($fields:tt)*} {$($names:tt)*}
        {$($consts:tt)*} {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty as long as $len:ident
            = $mark:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w]
            {$($fields)* $(#[doc = $doc])* $vis $name: $type,}
            {$($names)* $name,}
            {$($consts)* $crate::record! { @const $name $mark }}
            {$($parts)* ($mark).bytes(
                $crate::layout::Length::Field($len),
                $crate::record::text(concat!($($doc),*)),
            ),}
            {$($read)* let $name: $type = $r.bytes(usize::from($len))?.into();}
            {$($write)* $w.bytes(&$name[..usize::from(*$len)]);}
            $($rest)*
        }
    };
    (
        @next $head:tt $life:tt [$r:ident $w:ident] {$($fields:tt)*} {$($names:tt)*}
        $consts:tt {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $(#[doc = $doc:literal])* $vis:vis $name:ident : Vec<$type:ty> as many as $count:ident
            = $mark:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w]
            {$($fields)* $(#[doc = $doc])* $vis $name: Vec<$type>,}
            {$($names)* $name,}
            $consts
            {$($parts)* $crate::layout::Part::Repeat(
                $crate::layout::Count::Field($count),
                &[($mark).part::<$type>($crate::record::text(concat!($($doc),*)))],
            ),}
            {$($read)* let $name = $crate::record::many($r, usize::from($count), |$r| {
                const { $mark }.read::<$type>($r)
            })?;}
            {$($write)*
                let items = $name.iter().take(usize::from(*$count));
                items.for_each(|item| const { $mark }.put::<$type>(item, $w));
            }
            $($rest)*
        }
    };
    (
        @next $head:tt $life:tt [$r:ident $w:ident] {$($fields:tt)*} {$($names:tt)*}
        $consts:tt {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $(#[doc = $doc:literal])* $vis:vis $name:ident : Vec<$type:ty>
            to the end($min:expr, $max:expr) $(= $mark:expr)?, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w]
            {$($fields)* $(#[doc = $doc])* $vis $name: Vec<$type>,}
            {$($names)* $name,}
            $consts
            {$($parts)* $crate::layout::Part::Repeat(
                $crate::layout::Count::ToEnd($min, $max),
                $crate::record! { @items $type, concat!($($doc),*) $(, $mark)? },
            ),}
            {$($read)* let $name = $crate::record::to_end($r, $min, $max, |$r| {
                $crate::record! { @read $r $type $(, $mark)? }
            })?;}
            {$($write)* $name.iter().for_each(|item| {
                $crate::record! { @put item $w $type $(, $mark)? }
            });}
            $($rest)*
        }
    };
    (
        @next $head:tt $life:tt $rw:tt $fields:tt $names:tt $consts:tt $parts:tt $read:tt $write:tt
        $(#[doc = $doc:literal])* $vis:vis $name:ident : Option<$type:ty> where not $there:ident
            $(= $mark:expr)?, $($rest:tt)*
    ) => {
        $crate::record! {
            @where [0 !$there] [$(#[doc = $doc])* $vis $name $there $type $(, $mark)?]
            $head $life $rw $fields $names $consts $parts $read $write
            $($rest)*
        }
    };
    (
        @next $head:tt $life:tt $rw:tt $fields:tt $names:tt $consts:tt $parts:tt $read:tt $write:tt
        $(#[doc = $doc:literal])* $vis:vis $name:ident : Option<$type:ty> where $there:ident
            $(= $mark:expr)?, $($rest:tt)*
    ) => {
        $crate::record! {
            @where [1 $there] [$(#[doc = $doc])* $vis $name $there $type $(, $mark)?]
            $head $life $rw $fields $names $consts $parts $read $write
            $($rest)*
        }
    };
    (
        @where [$is:literal $($holds:tt)*]
        [$(#[doc = $doc:literal])* $vis:vis $name:ident $there:ident $type:ty $(, $mark:expr)?]
        $head:tt $life:tt [$r:ident $w:ident] {$($fields:tt)*} {$($names:tt)*} $consts:tt
        {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w]
            {$($fields)* $(#[doc = $doc])* $vis $name: Option<$type>,}
            {$($names)* $name,}
            $consts
            {$($parts)* $crate::layout::Part::When(
                $crate::layout::Is($there, $is),
                $crate::record! { @items $type, concat!($($doc),*) $(, $mark)? },
            ),}
            {$($read)* let $name = if $($holds)* {
                Some($crate::record! { @read $r $type $(, $mark)? }?)
            } else {
                None
            };}
            {$($write)* if let Some(item) = $name {
                $crate::record! { @put item $w $type $(, $mark)? }
            }}
            $($rest)*
        }
    };

    // ---- fields that something else reads and writes

    (
        @next $head:tt $life:tt [$r:ident $w:ident] {$($fields:tt)*} {$($names:tt)*}
        $consts:tt {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty
            as $by:ident { $($of:ident),* }, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w]
            {$($fields)* $(#[doc = $doc])* $vis $name: $type,}
            {$($names)* $name,}
            $consts
            {$($parts)* $crate::layout::Part::Include($by::PARTS),}
            {$($read)* let $name = $by { $($of),* }.read($r)?;}
            {$($write)* $by { $($of: *$of),* }.put($name, $w);}
            $($rest)*
        }
    };
    (
        @next $head:tt $life:tt [$r:ident $w:ident] $fields:tt $names:tt
        $consts:tt {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $a:ident, $b:ident as $by:ident { $($of:ident),* }, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w] $fields $names $consts
            {$($parts)* $crate::layout::Part::Include($by::PARTS),}
            {$($read)* let ($a, $b) = $by { $($of),* }.read($r)?;}
            {$($write)* $by { $($of: *$of),* }.put($a, $b, $w);}
            $($rest)*
        }
    };

    // ---- fields

    (
        @next $head:tt $life:tt [$r:ident $w:ident] $fields:tt $names:tt
        {$($consts:tt)*} {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $(#[doc = $doc:literal])* $name:ident : $type:ty = $mark:expr => $value:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w] $fields $names
            {$($consts)* $crate::record! { @const $name $mark }}
            {$($parts)* ($mark).part::<$type>($crate::record::text(concat!($($doc),*))),}
            {$($read)* let $name = const { $mark }.read::<$type>($r)?;}
            {$($write)*
                let $name: &$type = &$value;
                const { $mark }.put::<$type>($name, $w);
            }
            $($rest)*
        }
    };
    (
        @next $head:tt $life:tt [$r:ident $w:ident] {$($fields:tt)*} {$($names:tt)*}
        {$($consts:tt)*} {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty = $mark:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w]
            {$($fields)* $(#[doc = $doc])* $vis $name: $type,}
            {$($names)* $name,}
            {$($consts)* $crate::record! { @const $name $mark }}
            {$($parts)* ($mark).part::<$type>($crate::record::text(concat!($($doc),*))),}
            {$($read)* let $name = const { $mark }.read::<$type>($r)?;}
            {$($write)* const { $mark }.put::<$type>($name, $w);}
            $($rest)*
        }
    };
    (
        @next $head:tt $life:tt [$r:ident $w:ident] {$($fields:tt)*} {$($names:tt)*}
        $consts:tt {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w]
            {$($fields)* $(#[doc = $doc])* $vis $name: $type,}
            {$($names)* $name,}
            $consts
            {$($parts)* $crate::layout::Part::Include(<$type as $crate::Record>::PARTS),}
            {$($read)* let $name = <$type as $crate::Record>::read($r)?;}
            {$($write)* $crate::Record::put($name, $w);}
            $($rest)*
        }
    };
    (
        @next $head:tt $life:tt [$r:ident $w:ident] $fields:tt $names:tt
        $consts:tt {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        $type:ident { $($field:ident),+ $(,)? }, $($rest:tt)*
    ) => {
        $crate::record! {
            @next $head $life [$r $w] $fields $names $consts
            {$($parts)* $crate::layout::Part::Include(<$type as $crate::Record>::PARTS),}
            {$($read)* let $type { $($field),+ } = <$type as $crate::Record>::read($r)?;}
            {$($write)* $crate::Record::put(&$type { $($field: *$field),+ }, $w);}
            $($rest)*
        }
    };

    // ---- what several entries need

    (@const $name:ident $mark:expr) => {
        #[allow(dead_code, non_upper_case_globals, reason = "named as the field; rules use some")]
        const $name: &str = ($mark).name;
    };
    (@items $type:ty, $doc:expr, $mark:expr) => {
        &[($mark).part::<$type>($crate::record::text($doc))]
    };
    (@items $type:ty, $doc:expr) => {
        <$type as $crate::Record>::PARTS
    };
    (@read $r:ident $type:ty, $mark:expr) => {
        const { $mark }.read::<$type>($r)
    };
    (@read $r:ident $type:ty) => {
        <$type as $crate::Record>::read($r)
    };
    (@put $item:ident $w:ident $type:ty, $mark:expr) => {
        const { $mark }.put::<$type>($item, $w)
    };
    (@put $item:ident $w:ident $type:ty) => {
        $crate::Record::put($item, $w)
    };
}
