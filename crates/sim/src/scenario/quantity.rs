//! Numbers with decimal or binary multipliers: bit rates such as `11M` and `5.5M`, sizes such as
//! `2.3MB` and `64KiB`.
//!
//! A value in a scenario is a whole TOML number or a string. A string is a decimal number, a
//! multiplier and, for sizes, the unit `B`. The product must be a whole number.

use ncmesh_engine::settings::{Kind, Mismatch, Toml, Value};
use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// A whole number, written in digits or with a multiplier: k, M, G (powers of 1000) or Ki, Mi, Gi
/// (powers of 1024). The caller knows the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(pub u64);

const MULTIPLIERS: [(&str, u64); 8] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("", 1),
];

impl Quantity {
    /// Reads `text`, which may end in `unit`. Returns `None` if it is not a number, negative, not
    /// whole after multiplication, or above 2^53.
    pub fn parse(text: &str, unit: &str) -> Option<Self> {
        // The unit comes last, the multiplier before it. The longer multipliers are tried first,
        // and the empty one always matches.
        let text = text.trim();
        let text = text.strip_suffix(unit).unwrap_or(text);
        let (digits, factor) = MULTIPLIERS
            .iter()
            .find_map(|(name, factor)| Some((text.strip_suffix(name)?, *factor)))?;

        // The parser of numbers would accept signs, exponents and names such as `inf`.
        if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return None;
        }

        let value = digits.parse::<f64>().ok()? * factor as f64;
        let whole = value.round();
        // 2.3 * 10^6 is not exact in binary, so a whole product may be off by a rounding error.
        ((value - whole).abs() < 1e-6 && whole < 9e15).then_some(Self(whole as u64))
    }
}

/// Bit rates that are understood.
const BIT_RATE: &str = "a bit rate such as 2000000, \"2M\" or \"5.5M\", in bit/s";
/// Sizes that are understood.
const SIZE: &str = "a size such as 2300000, \"2.3MB\" or \"64KiB\", in bytes";

/// Bit rates that radios may have, in words.
pub(super) const ALLOWED_BIT_RATES: &str = "a quantity from 1 kbit/s to 10 Gbit/s";
/// Rates that traffic may have, in words.
pub(super) const ALLOWED_RATES: &str = "a quantity above 0, bit/s";

/// A bit rate, bit/s.
#[derive(Clone, Copy)]
pub(super) struct BitRate(pub(super) u64);

/// A size, bytes.
#[derive(Clone, Copy)]
pub(super) struct Size(pub(super) u64);

/// Makes a type that a quantity of this unit is read as the type of a setting.
macro_rules! quantities {
    ($($type:ident, $unit:literal, $expecting:ident;)*) => {
        $(impl Value for $type {
            const KINDS: &'static [Kind] = &[Kind::Number, Kind::Text];

            fn from_toml(value: Toml) -> Result<Self, Mismatch> {
                let read = value.deserialize_any(Reader { unit: $unit, expecting: $expecting });
                let wrong = |_| Mismatch::Value($expecting.into());
                read.map(|quantity| Self(quantity.0)).map_err(wrong)
            }

            fn to_toml(&self) -> Option<Toml> {
                self.0.to_toml()
            }

            fn number(&self) -> Option<f64> {
                self.0.number()
            }
        })*
    };
}

quantities! {
    BitRate, "", BIT_RATE;
    Size, "B", SIZE;
}

struct Reader {
    unit: &'static str,
    expecting: &'static str,
}

impl Visitor<'_> for Reader {
    type Value = Quantity;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Quantity, E> {
        let invalid = |_| E::invalid_value(Unexpected::Signed(value), &self);
        u64::try_from(value).map(Quantity).map_err(invalid)
    }

    // A table from Python may have 2e6 where a file has 2000000.
    fn visit_f64<E: Error>(self, value: f64) -> Result<Quantity, E> {
        let whole = (0.0..9e15).contains(&value) && value.fract() == 0.0;
        let invalid = || E::invalid_value(Unexpected::Float(value), &self);
        whole.then_some(Quantity(value as u64)).ok_or_else(invalid)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        let invalid = || E::invalid_value(Unexpected::Str(text), &self);
        Quantity::parse(text, self.unit).ok_or_else(invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multipliers_are_understood() {
        let cases = [
            ("11M", 11_000_000),
            ("5.5M", 5_500_000),
            ("2.3MB", 2_300_000),
            ("64KiB", 65_536),
            ("7", 7),
            ("1k", 1_000),
        ];
        for (text, value) in cases {
            assert_eq!(Quantity::parse(text, "B"), Some(Quantity(value)), "{text}");
        }
        for text in ["", "M", "-1", "1.5", "1e9", "inf", "nan", "1 M", "0x10", "99999999G", "1..2"]
        {
            assert_eq!(Quantity::parse(text, "B"), None, "{text}");
        }
        assert_eq!(Quantity::parse("2M", ""), Some(Quantity(2_000_000)));
        for text in ["2MB", "2B", "2Mbit", "2Mbit/s", "2Mb"] {
            assert_eq!(Quantity::parse(text, ""), None, "{text}");
        }
        for text in ["2Mbit", "2Mb", "2MBB", "2Mbit/s"] {
            assert_eq!(Quantity::parse(text, "B"), None, "{text}");
        }
    }
}
