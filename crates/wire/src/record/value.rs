//! Numbers, ids, bytes and texts as fields of frames.

use super::{Bits, Kind, Malformed, Named, Value};
use crate::cursor::{Reader, Writer};
use crate::id::{FlowId, LongAddress, NodeId, ShortAddress, StartId};
use crate::layout::Length;

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
    ShortAddress: 4, u32, |at: Self| u32::from_be_bytes(at.0),
        |at: u32| ShortAddress(at.to_be_bytes());
    LongAddress: 8, u64, |at: Self| u64::from_be_bytes(at.0),
        |at: u64| LongAddress(at.to_be_bytes());
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

        // Bounds are checked before bytes are taken, so a body that is too long is refused here.
        let (len, min, max) = match how.length {
            Length::Prefixed(min, max) => (r.u8()?.into(), min, max),
            Length::Rest(min, max) => (r.remaining(), min, max),
            Length::Fixed(len) => (len, len, len),
            // Lengths that other fields give are read by the record, which has those fields.
            Length::Field(_) | Length::Square(_) => return Err(Malformed),
        };

        if (min..=max).contains(&len) { Ok(r.bytes(len)?) } else { Err(Malformed) }
    }

    #[inline]
    fn put(&self, w: &mut Writer<'_>, how: &Named) {
        match how.length {
            // A text has a length byte, however the length was declared.
            _ if how.charset.is_some() => w.short_bytes(self),
            Length::Prefixed(..) => w.short_bytes(self),
            // Readers refuse more than `max`, so more is not written.
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
