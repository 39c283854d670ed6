//! Tests of all that a declaration of a frame gives: reader, writer, length and layout.

use ncmesh_wire::layout::{Charset, Check, Count, Field, Is, Layout, Length, Number, Part, Shape};
use ncmesh_wire::record::{Named, bits, field, fixed_len, group};
use ncmesh_wire::{FlowId, Malformed, NodeId, Reader, Record, Writer, choice, frame, record};
use proptest::prelude::*;

choice! {
    /// Colour.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Colour {
        /// Red.
        Red = 0, "red";
        /// Blue.
        Blue = 2, "blue";
    }
}

record! {
    /// An item of a list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Item {
        /// the least
        low: u8 = field("item.low", "Low"),
        high: u8 = field("item.high", "High"),
        check at_most(low, high),
    }
}

frame! {
    /// A frame with a field of every kind.
    #[derive(Clone, Debug, PartialEq)]
    struct Whole<'a> {
        /// of the
        /// flow
        flow: FlowId = field("flow", "Flow"),
        byte {
            /// high bits
            colour: Colour = bits(0xC0, "colour", "Colour"),
            more: bool = bits(0x01, "more", "More"),
        }
        number: u16 = field("number", "Number").within(3, 500),
        optional: Option<u8> = field("optional", "Optional").none(255),
        credit: u16 = field("credit", "Credit").scaled(256),
        real: f32 = field("real", "Real"),
        hash: [u8; 4] = field("hash", "Hash"),
        name: String = field("name", "Name").text(Charset::Utf8),
        prefixed: Vec<u8> = field("prefixed", "Prefixed").prefixed(1, 3),
        length: u8 = field("length", "Length") => sized.len() as u8,
        sized: &'a [u8] as long as length = field("sized", "Sized"),
        count: u8 = field("count", "Count").within(0, 2) => items.len() as u8,
        items: Vec<Item> as many as count = group("item", "Item", "{item.low}"),
        extra: Option<u32> where more = field("extra", "Extra").hex(),
        plain: Option<Colour> where not more = field("plain", "Plain"),
        rest: &'a [u8] = field("rest", "Rest").rest(1, 4),
    }
}

fn whole() -> Whole<'static> {
    Whole {
        flow: FlowId { source: NodeId(1), serial: 2 },
        colour: Colour::Blue,
        more: true,
        number: 500,
        optional: None,
        credit: 0x180,
        real: 1.5,
        hash: [1, 2, 3, 4],
        name: "n".into(),
        prefixed: vec![9],
        sized: &[7, 8],
        items: vec![Item { low: 1, high: 2 }],
        extra: Some(5),
        plain: None,
        rest: &[6],
    }
}

/// Bytes of [`whole`].
const BYTES: [u8; 35] = [
    0, 1, 0, 0, 0, 2, 0x81, 1, 0xF4, 255, 1, 0x80, 0x3F, 0xC0, 0, 0, 1, 2, 3, 4, 1, b'n', 1, 9, 2,
    7, 8, 1, 1, 2, 0, 0, 0, 5, 6,
];

fn written(frame: &Whole<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frame.write(&mut out);
    out
}

/// Returns the bytes with the one at `at` changed.
fn changed(at: usize, byte: u8) -> [u8; 35] {
    let mut bytes = BYTES;
    bytes[at] = byte;
    bytes
}

#[test]
fn a_frame_is_written_and_read_as_it_is_declared() {
    assert_eq!(written(&whole()), BYTES);
    assert_eq!(Whole::parse(&BYTES), Ok(whole()));
    let plain = Whole { more: false, extra: None, plain: Some(Colour::Red), ..whole() };
    assert_eq!(Whole::parse(&written(&plain)), Ok(plain));
}

#[test]
fn a_frame_that_is_not_as_it_is_declared_is_malformed() {
    for end in 0..BYTES.len() {
        assert_eq!(Whole::parse(&BYTES[..end]), Err(Malformed), "{end} bytes");
    }
    let long = [&BYTES[..], &[0; 4]].concat();
    assert_eq!(Whole::parse(&long), Err(Malformed), "the rest is too long");
    let wrong = [
        ("an unknown bit", 6, 0x83),
        ("a colour without a name", 6, 0x41),
        ("below a bound", 7, 0),
        ("above a bound", 8, 0xF5),
        ("a number that is not finite", 12, 0x7F),
        ("no UTF-8", 21, 0xFF),
        ("no prefixed bytes", 22, 0),
        ("too many items", 27, 3),
        ("an item that breaks its rule", 28, 3),
    ];
    for (why, at, byte) in wrong {
        let mut bytes = changed(at, byte);
        if at == 7 {
            bytes[8] = 2;
        }
        if at == 12 {
            bytes[13] = 0x80;
        }
        assert_eq!(Whole::parse(&bytes), Err(Malformed), "{why}");
    }
}

#[test]
fn lists_are_cut_to_what_their_number_can_say() {
    let items = vec![Item { low: 0, high: 0 }; 257];
    let bytes = written(&Whole { items, ..whole() });
    assert_eq!(bytes.len(), BYTES.len(), "one of 257, as 257 is written as 1");
    let rest = &[1; 9];
    assert_eq!(written(&Whole { rest, ..whole() }).len(), BYTES.len() + 3, "four of nine");
}

#[test]
fn a_frame_describes_itself() {
    // Every frame has this: lengths of bytes, but not what they count.
    assert_eq!(Whole::LEN, 24);
    let layout = Layout::of::<Whole<'_>>(3, "whole", "{flow}").or_if(Is("more", 1), "more");
    assert_eq!((layout.kind, layout.name, layout.info), (3, "whole", "{flow}"));
    let parts = layout.parts;
    let Part::Field(Field { name, label, doc, shape: Shape::Flow }) = parts[0] else {
        panic!("{parts:?}")
    };
    assert_eq!((name, label, doc), ("flow", "Flow", "of the flow"));
    let Part::Byte([colour, more]) = parts[1] else { panic!("{parts:?}") };
    let number = |field: &Field| match field.shape {
        Shape::Number(number) => number,
        other => panic!("{other:?}"),
    };
    assert_eq!(number(colour).names, [(0, "red"), (2, "blue")]);
    assert_eq!((colour.doc, number(more).mask), ("high bits", 1));
    assert!(matches!(
        parts[2],
        Part::Field(Field { shape: Shape::Number(Number { min: 3, max: 500, .. }), .. })
    ));
    let sized = Part::Field(Field {
        name: "sized",
        label: "Sized",
        doc: "",
        shape: Shape::Bytes(Length::Field("length")),
    });
    let debug = |part: &Part| format!("{part:?}");
    assert_eq!(debug(&parts[10]), debug(&sized));
    assert!(matches!(parts[12], Part::Repeat(Count::Field("count"), [Part::Group { .. }])));
    assert!(matches!(parts[13], Part::When(Is("more", 1), [Part::Field(_)])));
    assert!(matches!(parts[14], Part::When(Is("more", 0), [Part::Field(_)])));
    assert!(matches!(Item::PARTS[2], Part::Check(Check::AtMost("item.low", "item.high"))));
}

// ---- structs that look otherwise than their bytes

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    a: u8,
    /// Half of what is on the air.
    half: u8,
}

#[derive(Debug, PartialEq, Eq)]
struct Outer {
    inner: Inner,
    list: Vec<u8>,
}

record! {
    /// Two bytes of an [`Outer`].
    #[derive(Clone, Copy)]
    struct Two {
        a: u8 = field("a", "A"),
        b: u8 = field("b", "B").at_least(2),
    }
}

/// A list that is xored with the field before it.
struct Masked {
    key: u8,
}

impl Masked {
    const LIST: Named = field("list", "List");
    const PARTS: &'static [Part] = &[Self::LIST.part::<Vec<u8>>("xored")];

    fn read(self, r: &mut Reader<'_>) -> Result<Vec<u8>, Malformed> {
        let list: Vec<u8> = Self::LIST.read(r)?;
        Ok(list.into_iter().map(|byte| byte ^ self.key).collect())
    }

    fn put(self, list: &[u8], w: &mut Writer<'_>) {
        for byte in list {
            w.u8(byte ^ self.key);
        }
    }
}

record! {
    impl Outer with flag: bool as Outer { inner: Inner { a, half }, list } => Outer {
        inner: Inner { a, half: key.wrapping_sub(2) },
        list,
    } {
        byte {
            flag: bool = bits(0x10, "flag", "Flag"),
        }
        key: u8 = field("key", "Key") => half + 2,
        a: u8 = field("a", "A"),
        list: Vec<u8> as Masked { key },
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Flat {
    x: u8,
    y: u8,
    z: u8,
}

frame! {
    impl Flat as Flat { x: a, y: b, z } {
        Two { a, b },
        z: u8 = field("z", "Z"),
        other: u8 = field("other", "Other") => z + 1,
        check differ(z, other),
        check a.max(b) < 100 => Check::Below("a", "b"),
    }
}

#[test]
fn a_struct_may_look_otherwise_than_its_bytes() {
    let outer = Outer { inner: Inner { a: 3, half: 5 }, list: vec![0, 1] };
    let mut out = Vec::new();
    outer.put_with(true, &mut Writer::new(&mut out));
    assert_eq!(out, [0x10, 7, 3, 7, 6]);
    assert_eq!(Outer::read_with(&mut Reader::new(&out)), Ok((outer, true)));
    assert_eq!(fixed_len(Outer::PARTS), 3);

    let flat = Flat { x: 1, y: 2, z: 3 };
    let mut out = Vec::new();
    flat.write(&mut out);
    assert_eq!(out, [1, 2, 3, 4]);
    assert_eq!(Flat::parse(&out), Ok(flat));
    for wrong in [[1, 1, 3, 4], [1, 2, 3, 3], [100, 2, 3, 4]] {
        assert_eq!(Flat::parse(&wrong), Err(Malformed), "{wrong:?}");
    }
}

frame! {
    /// A list to the end of its frame.
    #[derive(Debug, PartialEq, Eq)]
    struct Listed {
        items: Vec<Item> to the end(1, 2) = group("item", "Item", "{item.low}"),
    }
}

#[test]
fn a_list_to_the_end_has_bounds() {
    assert!(Listed::parse(&[]).is_err() && Listed::parse(&[1]).is_err());
    let items = vec![Item { low: 1, high: 1 }; 2];
    assert_eq!(Listed::parse(&[1; 4]), Ok(Listed { items }));
    assert!(Listed::parse(&[1; 6]).is_err());
}

proptest! {
    /// A byte string has one meaning: what parses is written as it was.
    #[test]
    fn what_parses_is_written_as_it_was(
        changes in prop::collection::vec((0..35_usize, any::<u8>()), 0..4),
        more in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut bytes = BYTES.to_vec();
        changes.iter().for_each(|(at, byte)| bytes[*at] = *byte);
        bytes.extend(more);
        if let Ok(frame) = Whole::parse(&bytes) {
            prop_assert_eq!(written(&frame), bytes);
        }
    }
}
