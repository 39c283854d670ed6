//! Types that settings have.

use super::{Range, Setting, read};
use crate::path::expand;
use crate::wording::{did_you_mean, in_words};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use toml::{Spanned, Value as Toml};

/// Type of a value in TOML, named as JSON Schema does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number.
    Whole,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Text in quotes.
    Text,
    /// A list.
    List,
    /// A table of keys and values.
    Table,
}

/// Why a value is not one of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It is of another type. The text says what it must be, with an example.
    Type(&'static str),
    /// It is not one of those that are allowed, which the text names.
    Value(String),
    /// It is none of the names. The text asks for the one that was meant, or is empty.
    Choice(String),
    /// Something in it is wrong. The text says what, and what is allowed.
    Problem(String),
}

/// Type of a setting.
pub trait Value: Sized {
    /// Types of TOML that a value may have.
    const KINDS: &'static [Kind];
    /// Names to choose from; empty if any text goes.
    const CHOICES: &'static [&'static str] = &[];

    /// Returns the range of the type, if it is one of numbers.
    #[must_use]
    fn range() -> Option<Range> {
        None
    }

    /// Reads a value, the range of which was checked.
    ///
    /// # Errors
    /// [`Mismatch`] says what it must be.
    fn from_toml(value: Toml) -> Result<Self, Mismatch>;

    /// Returns the value as a file would have it; `None` if it is none that a file can have.
    fn to_toml(&self) -> Option<Toml>;

    /// Returns the number that must be within the setting's range; `None` if there is none.
    fn number(&self) -> Option<f64> {
        None
    }

    /// Reads the value of a setting from a file.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    fn read<'de, D: Deserializer<'de>>(
        setting: &Setting<Self>,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        read(setting, deserializer)
    }

    /// Reads the value of a setting that may be left out from a file.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_some<'de, D: Deserializer<'de>>(
        setting: &Setting<Option<Self>>,
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        read(setting, deserializer)
    }
}

/// Returns the number of a value.
pub(super) fn number(value: &Toml) -> Option<f64> {
    match value {
        Toml::Integer(number) => Some(*number as f64),
        Toml::Float(number) => Some(*number),
        _ => None,
    }
}

/// Returns a value as errors show it: on one line, a long one in part.
pub(super) fn shown(value: &Toml) -> String {
    let text = match value {
        Toml::Float(number) => shown_number(*number),
        Toml::String(text) => format!("{text:?}"),
        other => other.to_string().split_whitespace().collect::<Vec<_>>().join(" "),
    };

    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Returns a number as errors show it.
pub(super) fn shown_number(number: f64) -> String {
    if number.is_nan() {
        "nan".into()
    } else if number.is_finite() && number.abs() >= MANY_DIGITS {
        format!("{number:e}")
    } else {
        number.to_string()
    }
}

/// Returns what a value is, for errors.
pub(super) fn found(value: &Toml) -> String {
    match value {
        Toml::Integer(_) | Toml::Float(_) => format!("the number `{}`", shown(value)),
        Toml::String(_) => format!("the text {}", shown(value)),
        Toml::Array(_) => "a list".into(),
        Toml::Table(_) => "a table".into(),
        Toml::Boolean(_) | Toml::Datetime(_) => value.to_string(),
    }
}

/// Returns the name of `choices` that a value is.
///
/// # Errors
/// [`Mismatch`] if it is none of them.
pub fn choice(value: &Toml, choices: &[&'static str]) -> Result<&'static str, Mismatch> {
    let Toml::String(text) = value else { return Err(Mismatch::Type(TEXT)) };
    let found = choices.iter().find(|name| *name == text);
    let question = || Mismatch::Choice(did_you_mean(text, choices.iter().copied()));
    found.copied().ok_or_else(question)
}

/// Reads one of the names to choose from, where it is no setting of a section.
///
/// # Errors
/// serde's list of the names.
pub fn read_choice<'de, T: Value, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
    T::from_toml(Toml::String(text.clone().into_owned()))
        .map_err(|_| D::Error::unknown_variant(&text, T::CHOICES))
}

/// Reads a value of a type that serde knows.
///
/// # Errors
/// [`Mismatch`] with serde's message, in the user's words.
pub fn from_serde<T: DeserializeOwned>(value: Toml) -> Result<T, Mismatch> {
    value.try_into().map_err(|error: toml::de::Error| {
        Mismatch::Problem(in_words(None, error.message()).into_owned())
    })
}

/// Most characters of a value that an error shows.
const LONGEST_SHOWN: usize = 80;
/// Numbers from here on are shown with an exponent.
const MANY_DIGITS: f64 = 1e15;

const WHOLE: &str = "a whole number such as 3";
const NUMBER: &str = "a number such as 0.5";
const TEXT: &str = "text in quotes such as \"a\"";
const BOOLEAN: &str = "true or false";
const LIST: &str = "a list such as [\"a\", \"b\"]";

macro_rules! whole_numbers {
    ($($type:ty, $most:expr);*) => {
        $(impl Value for $type {
            const KINDS: &'static [Kind] = &[Kind::Whole];

            fn range() -> Option<Range> {
                Some(Range::within(0..=$most))
            }

            fn from_toml(value: Toml) -> Result<Self, Mismatch> {
                let number = value.as_integer().ok_or(Mismatch::Type(WHOLE))?;
                number.try_into().map_err(|_| Mismatch::Type(WHOLE))
            }

            fn to_toml(&self) -> Option<Toml> {
                i64::try_from(*self).ok().map(Toml::Integer)
            }

            #[allow(clippy::cast_lossless, reason = "not lossless for every type here")]
            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }
        })*
    };
}

// Whole numbers of TOML have 64 bits with a sign.
whole_numbers!(u8, u8::MAX; u16, u16::MAX; u32, u32::MAX; u64, i64::MAX; usize, i64::MAX);

impl Value for f64 {
    const KINDS: &'static [Kind] = &[Kind::Number];

    fn range() -> Option<Range> {
        Some(Range::finite())
    }

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        number(&value).ok_or(Mismatch::Type(NUMBER))
    }

    fn to_toml(&self) -> Option<Toml> {
        Some(Toml::Float(*self))
    }

    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Value for bool {
    const KINDS: &'static [Kind] = &[Kind::Boolean];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        value.as_bool().ok_or(Mismatch::Type(BOOLEAN))
    }

    fn to_toml(&self) -> Option<Toml> {
        Some(Toml::Boolean(*self))
    }
}

impl Value for String {
    const KINDS: &'static [Kind] = &[Kind::Text];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        let Toml::String(text) = value else { return Err(Mismatch::Type(TEXT)) };
        Ok(text)
    }

    fn to_toml(&self) -> Option<Toml> {
        Some(Toml::String(self.clone()))
    }
}

/// A path with `~` and variables expanded.
impl Value for PathBuf {
    const KINDS: &'static [Kind] = String::KINDS;

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        expand(&String::from_toml(value)?).map_err(Mismatch::Problem)
    }

    fn to_toml(&self) -> Option<Toml> {
        self.to_str().map(Into::into)
    }
}

macro_rules! parsed {
    ($($type:ty, $allowed:literal);*) => {
        $(impl Value for $type {
            const KINDS: &'static [Kind] = String::KINDS;

            fn from_toml(value: Toml) -> Result<Self, Mismatch> {
                String::from_toml(value)?.parse().map_err(|_| Mismatch::Value($allowed.into()))
            }

            fn to_toml(&self) -> Option<Toml> {
                Some(Toml::String(self.to_string()))
            }
        })*
    };
}

parsed!(
    Ipv4Addr, "an IPv4 address, for instance \"10.1.255.255\"";
    Ipv6Addr, "an IPv6 address, for instance \"ff12::6e63:6d\"";
    SocketAddr, "an address and a port, for instance \"127.0.0.1:7180\""
);

impl<T: Value> Value for Option<T> {
    const KINDS: &'static [Kind] = T::KINDS;
    const CHOICES: &'static [&'static str] = T::CHOICES;

    fn range() -> Option<Range> {
        T::range()
    }

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        T::from_toml(value).map(Some)
    }

    fn to_toml(&self) -> Option<Toml> {
        self.as_ref()?.to_toml()
    }

    fn number(&self) -> Option<f64> {
        self.as_ref()?.number()
    }

    fn read<'de, D: Deserializer<'de>>(
        setting: &Setting<Self>,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        T::read_some(setting, deserializer)
    }
}

/// Keeps the place of a value in its file.
impl<T: Value> Value for Spanned<T> {
    const KINDS: &'static [Kind] = T::KINDS;
    const CHOICES: &'static [&'static str] = T::CHOICES;

    fn range() -> Option<Range> {
        T::range()
    }

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        T::from_toml(value).map(|value| Self::new(0..0, value))
    }

    fn to_toml(&self) -> Option<Toml> {
        self.get_ref().to_toml()
    }

    fn number(&self) -> Option<f64> {
        self.get_ref().number()
    }

    fn read<'de, D: Deserializer<'de>>(
        setting: &Setting<Self>,
        deserializer: D,
    ) -> Result<Self, D::Error> {
        let value = Spanned::<Toml>::deserialize(deserializer)?;
        let span = value.span();
        let read = setting.from_toml(value.into_inner()).map_err(D::Error::custom)?;
        Ok(Self::new(span, read.into_inner()))
    }

    fn read_some<'de, D: Deserializer<'de>>(
        setting: &Setting<Option<Self>>,
        deserializer: D,
    ) -> Result<Option<Self>, D::Error> {
        let value = Spanned::<Toml>::deserialize(deserializer)?;
        let span = value.span();
        let read = setting.from_toml(value.into_inner()).map_err(D::Error::custom)?;
        Ok(read.map(|read| Self::new(span, read.into_inner())))
    }
}

impl<T: DeserializeOwned> Value for Vec<T> {
    const KINDS: &'static [Kind] = &[Kind::List];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        if value.is_array() { from_serde(value) } else { Err(Mismatch::Type(LIST)) }
    }

    /// An empty list is as good as none.
    fn to_toml(&self) -> Option<Toml> {
        None
    }
}
