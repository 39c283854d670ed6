//! Interpreter of layouts.

use super::{Charset, Check, Count, Field, FlowOf, Is, Layout, Length, Number, Part, Route, Shape};
use crate::file::Geometry;
use crate::name::is_node_name;
use crate::transmission::Malformed;
use crate::tunnel::flow_of;
use ncmesh_wire::{FlowId, NodeId, Reader};
use std::collections::BTreeSet;

/// One value of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value<'a> {
    /// Name of its field.
    pub name: &'static str,
    /// What it is.
    pub content: Content<'a>,
}

/// Content of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content<'a> {
    /// Unsigned number.
    Number(u64),
    /// Scaled number, or one with a fraction.
    Real(f64),
    /// Flow id.
    Flow(FlowId),
    /// Bytes, or text.
    Bytes(&'a [u8]),
}

impl Content<'_> {
    /// Returns the number that other parts refer to: of bytes their length.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Real(_) | Self::Flow(_) => 0,
        }
    }
}

/// Finds a value by name: the first one, or of `name#2` the second one.
#[must_use]
pub fn find<'v, 'a>(values: &'v [Value<'a>], name: &str) -> Option<&'v Content<'a>> {
    let (name, nth) = match name.split_once('#') {
        Some((name, nth)) => (name, nth.parse::<usize>().ok()?.checked_sub(1)?),
        None => (name, 0),
    };
    values.iter().filter(|value| value.name == name).nth(nth).map(|value| &value.content)
}

/// Returns the name of the kind in traces, and the flow and batch that a frame belongs to.
#[must_use]
pub fn describe(
    layout: &Layout,
    values: &[Value<'_>],
) -> (&'static str, Option<FlowId>, Option<u32>) {
    let number = |name| find(values, name).map(Content::number);
    let node = |name| Some(NodeId(u16::try_from(number(name)?).ok()?));
    let flow = match layout.flow {
        FlowOf::None => None,
        FlowOf::Id(name) => match find(values, name) {
            Some(Content::Flow(flow)) => Some(*flow),
            _ => None,
        },
        FlowOf::Ends(source, destination) => {
            node(source).zip(node(destination)).map(|(from, to)| flow_of(from, to))
        }
    };
    let name = match layout.variant {
        Some((Is(field, value), name)) if number(field) == Some(value) => name,
        _ => layout.name,
    };
    (name, flow, layout.batch.and_then(number).and_then(|batch| u32::try_from(batch).ok()))
}

/// Reads the body of a frame that `sender` transmitted. Returns its values in the order of the
/// bytes.
///
/// # Errors
/// [`Malformed`] if the body ends before its parts or after them, a value is not allowed, or a
/// check fails.
pub fn read<'a>(
    layout: &Layout,
    sender: NodeId,
    body: &'a [u8],
) -> Result<Vec<Value<'a>>, Malformed> {
    let mut interpreter = Interpreter { sender, rest: Reader::new(body), values: Vec::new() };
    interpreter.parts(layout.parts)?;
    if interpreter.rest.remaining() > 0 { Err(Malformed) } else { Ok(interpreter.values) }
}

struct Interpreter<'a> {
    sender: NodeId,
    rest: Reader<'a>,
    values: Vec<Value<'a>>,
}

impl<'a> Interpreter<'a> {
    fn push(&mut self, name: &'static str, content: Content<'a>) {
        self.values.push(Value { name, content });
    }

    /// Returns the numbers of all values of this name, in the order of the bytes.
    fn numbers(&self, name: &str) -> impl DoubleEndedIterator<Item = u64> {
        let named = self.values.iter().filter(move |value| value.name == name);
        named.map(|value| value.content.number())
    }

    /// Returns the number that was read last under this name.
    fn latest(&self, name: &str) -> Result<u64, Malformed> {
        self.numbers(name).next_back().ok_or(Malformed)
    }

    fn len(&self, name: &str) -> Result<usize, Malformed> {
        usize::try_from(self.latest(name)?).map_err(|_| Malformed)
    }

    fn parts(&mut self, parts: &'static [Part]) -> Result<(), Malformed> {
        parts.iter().try_for_each(|part| self.part(part))
    }

    fn part(&mut self, part: &'static Part) -> Result<(), Malformed> {
        match part {
            Part::Field(field) => self.field(field),
            Part::Byte(fields) => self.byte(fields),
            Part::Group { parts, .. } | Part::Include(parts) => self.parts(parts),
            Part::Repeat(count, parts) => self.repeat(*count, parts),
            Part::When(Is(name, value), parts) => {
                if self.latest(name) == Ok(*value) {
                    self.parts(parts)
                } else {
                    Ok(())
                }
            }
            Part::Route(route) => self.route(route),
            Part::Check(check) => self.check(check),
        }
    }

    fn repeat(&mut self, count: Count, parts: &'static [Part]) -> Result<(), Malformed> {
        match count {
            Count::Field(name) => (0..self.latest(name)?).try_for_each(|_| self.parts(parts)),
            Count::ToEnd(min, max) => {
                let mut items = 0;
                while self.rest.remaining() > 0 {
                    self.parts(parts)?;
                    items += 1;
                }
                if (min..=max).contains(&items) { Ok(()) } else { Err(Malformed) }
            }
        }
    }

    // ---- fields

    fn number(&mut self, bytes: usize) -> Result<u64, Malformed> {
        let bytes = self.rest.bytes(bytes)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn field(&mut self, field: &'static Field) -> Result<(), Malformed> {
        let content = match field.shape {
            Shape::Number(number) => Content::Number(judged(&number, self.number(number.bytes)?)?),
            Shape::Scaled { bytes, unit } => {
                Content::Real(self.number(bytes)? as f64 / f64::from(unit))
            }
            Shape::Float => {
                let number = f32::from_bits(self.rest.u32()?);
                Content::Real(Some(number).filter(|n| n.is_finite()).ok_or(Malformed)?.into())
            }
            Shape::Flow => Content::Flow(self.rest.flow()?),
            Shape::Bytes(length) => Content::Bytes(self.bytes(length)?),
            Shape::Text(charset) => {
                let bytes = self.rest.short_bytes()?;
                let text = core::str::from_utf8(bytes);
                let allowed = match charset {
                    Charset::Any => true,
                    Charset::Utf8 => text.is_ok(),
                    Charset::Name => text.is_ok_and(is_node_name),
                };
                Content::Bytes(Some(bytes).filter(|_| allowed).ok_or(Malformed)?)
            }
        };
        self.push(field.name, content);
        Ok(())
    }

    fn bytes(&mut self, length: Length) -> Result<&'a [u8], Malformed> {
        let (len, bounds) = match length {
            Length::Fixed(len) => (len, 0..=usize::MAX),
            Length::Field(name) => (self.len(name)?, 0..=usize::MAX),
            Length::Square(name) => (self.len(name)?.pow(2).div_ceil(8), 0..=usize::MAX),
            Length::Prefixed(min, max) => (self.rest.u8()?.into(), min..=max),
            Length::Rest(min, max) => (self.rest.remaining(), min..=max),
        };
        if bounds.contains(&len) { Ok(self.rest.bytes(len)?) } else { Err(Malformed) }
    }

    fn byte(&mut self, fields: &'static [Field]) -> Result<(), Malformed> {
        let byte = self.rest.u8()?;
        let mut unknown = byte;
        for field in fields {
            let Shape::Number(number) = &field.shape else { return Err(Malformed) };
            let bits = u64::from((byte & number.mask) >> number.mask.trailing_zeros());
            self.push(field.name, Content::Number(judged(number, bits + number.plus)?));
            unknown &= !number.mask;
        }
        if unknown == 0 { Ok(()) } else { Err(Malformed) }
    }

    fn route(&mut self, route: &'static Route) -> Result<(), Malformed> {
        let (hop, hops) = (self.latest(route.hop)?, self.latest(route.hops)?);
        let [source, behind, destination] = route.nodes;
        // The node behind the transmitter in one packet is the one before it in the other.
        let ends: Option<[u64; 2]> = route.crossing.map(|name| {
            let mut ends: Vec<u64> = self.numbers(name).collect();
            if self.numbers(source).next().is_some() {
                ends.reverse();
            }
            [ends.get(1).copied().unwrap_or(0), ends.first().copied().unwrap_or(0)]
        });
        let sender = u64::from(self.sender.0);
        let mut nodes = BTreeSet::new();
        let mut last = 0;
        for place in 0..=hops {
            last = match ends {
                Some([before, _]) if place + 1 == hop => before,
                Some([_, next]) if place == hop + 1 => next,
                Some(_) if place == hop => sender,
                None if place == hop && hop > 0 => sender,
                _ => self.number(2)?,
            };
            if !nodes.insert(last) {
                return Err(Malformed);
            }
            self.push(if place == 0 { source } else { behind }, Content::Number(last));
        }
        self.push(destination, Content::Number(last));
        Ok(())
    }

    // ---- checks

    fn check(&mut self, check: &Check) -> Result<(), Malformed> {
        let holds = match *check {
            Check::AtMost(a, b) => self.latest(a)? <= self.latest(b)?,
            Check::AtMostGreatest(a, b) => Some(self.latest(a)?) <= self.numbers(b).max(),
            Check::Below(a, b) => self.latest(a)? < self.latest(b)?,
            Check::Differ(a, b) => self.latest(a)? != self.latest(b)?,
            Check::Distinct(names) => self.are_distinct(names),
            Check::Implies(a, b) => self.latest(a)? == 0 || self.latest(b)? != 0,
            Check::Excludes(a, b) => self.latest(a)? == 0 || self.latest(b)? == 0,
            Check::Is(name, value) => self.latest(name)? == value,
            Check::Cut([size, generation, symbol, batches]) => {
                let generation = u8::try_from(self.latest(generation)?).map_err(|_| Malformed)?;
                let symbol = u16::try_from(self.latest(symbol)?).map_err(|_| Malformed)?;
                let cut = Geometry::new(self.latest(size)?, generation, symbol);
                let count = cut.map_err(|_| Malformed)?.batches();
                self.push(batches, Content::Number(count.into()));
                true
            }
            Check::Acyclic(name, most) => {
                are_acyclic(&self.numbers(name).collect::<Vec<_>>(), most)
            }
        };
        if holds { Ok(()) } else { Err(Malformed) }
    }

    /// Returns whether no two items have the same contents under all of `names`.
    fn are_distinct(&self, names: &[&str]) -> bool {
        let column = |name: &&str| {
            let named = self.values.iter().filter(|value| value.name == *name);
            named.map(|value| value.content).collect::<Vec<_>>()
        };
        let columns: Vec<Vec<Content<'_>>> = names.iter().map(column).collect();
        let items = columns.iter().map(Vec::len).min().unwrap_or(0);
        let same = |a: usize, b: usize| columns.iter().all(|column| column[a] == column[b]);
        (0..items).all(|b| (0..b).all(|a| !same(a, b)))
    }
}

/// Returns a number if its field may have it.
fn judged(number: &Number, value: u64) -> Result<u64, Malformed> {
    let is_named = number.names.is_empty() || number.names.iter().any(|(known, _)| *known == value);
    let allowed = (number.min..=number.max).contains(&value) && is_named;
    if allowed { Ok(value) } else { Err(Malformed) }
}

/// Returns whether next hops, a bit for each node, lead in no circle and from the second node
/// nowhere. No node has itself, a node that is not there, or more than `most`.
fn are_acyclic(next_hops: &[u64], most: u32) -> bool {
    let nodes = next_hops.len();
    let plain = |(at, hops): (usize, &u64)| {
        hops.checked_shr(nodes as u32).unwrap_or(0) == 0
            && hops >> at & 1 == 0
            && hops.count_ones() <= most
    };
    if !next_hops.iter().enumerate().all(plain) || next_hops.get(1) != Some(&0) {
        return false;
    }
    // Nodes without next hops go, then those that led to them only, until none is left.
    let mut left: BTreeSet<usize> = (0..nodes).collect();
    while !left.is_empty() {
        let leads_on = |node: &usize| left.iter().any(|other| next_hops[*node] >> other & 1 == 1);
        let Some(end) = left.iter().copied().find(|node| !leads_on(node)) else { return false };
        left.remove(&end);
    }
    true
}
