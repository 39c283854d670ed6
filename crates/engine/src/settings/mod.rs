//! Settings, each declared once: in the `config.rs` of the part that owns it.
//!
//! [`settings!`](crate::settings!) declares the settings of a section. From the declaration come
//! the struct, its defaults, the reader, the check of ranges with its errors, the tables of the
//! reference and the JSON Schema:
//!
//! ```
//! use ncmesh_engine::settings::Section;
//!
//! ncmesh_engine::settings! {
//!     /// `[example]` in configuration files.
//!     #[derive(Clone, Debug, PartialEq)]
//!     pub struct ExampleConfig {
//!         /// Packets that a node queues. More fill gaps in the channel and delay packets.
//!         pub queue: usize = 64, within 1..=10_000, unit "packets";
//!         /// Payload of a packet.
//!         pub symbol_size: Option<u16> = None, absent "as large as fits", within 64..=65_535,
//!             unit "bytes";
//!         /// Whether relays code.
//!         pub coding: bool = true;
//!     }
//! }
//!
//! let error = toml::from_str::<ExampleConfig>("queue = 0").unwrap_err();
//! assert_eq!(error.message(), "queue = 0: allowed is 1 to 10000 packets");
//! assert_eq!(ExampleConfig::settings()[1].allowed, "64 to 65535 bytes");
//! ```
//!
//! The doc comment is what the reference says of the setting, in Markdown. A setting without
//! `= DEFAULT` is required. The words behind the default are methods of [`Setting`], each with its
//! argument. A section that is a list of names to choose from is declared with
//! [`choices!`](crate::choices!). Other types implement [`Value`].
//!
//! A number must be finite, and fit its type, where no range is declared.

mod declare;
mod parse;
mod range;
mod value;

pub use parse::parse;
pub use range::{Number, Range};
pub use value::{Kind, Mismatch, Value, choice, from_serde, read_choice};

use crate::wording::in_words;
#[doc(hidden)]
pub use serde;
use serde::de::{Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error};
/// A value of TOML.
pub use toml::Value as Toml;

/// Settings that were declared with [`settings!`](crate::settings!).
pub trait Section: DeserializeOwned {
    /// Names of the settings, in the order of their declaration.
    const KEYS: &'static [&'static str];

    /// Returns what is declared of each setting, in that order.
    fn settings() -> Vec<Declared>;

    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// [`Refused`] for the first value that is not.
    fn check(&self) -> Result<(), Refused>;
}

/// Declaration of a setting of type `T`.
#[derive(Clone, Debug)]
pub struct Setting<T> {
    key: &'static str,
    meaning: String,
    default: Option<T>,
    absent: Option<&'static str>,
    range: Option<Range>,
    unit: &'static str,
    allowed: Option<String>,
    kinds: &'static [Kind],
    at_least: Option<&'static str>,
    at_most: Option<&'static str>,
    read: fn(Toml) -> Result<T, Mismatch>,
}

/// Declaration of a setting, for documents, schemas and help.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its name.
    pub key: &'static str,
    /// Effect of the setting, in Markdown.
    pub meaning: String,
    /// Types of TOML that a value may have.
    pub kinds: &'static [Kind],
    /// Names to choose from; empty if any text goes.
    pub choices: &'static [&'static str],
    /// Value that it has if it is left out.
    pub default: Fallback,
    /// Bounds of a number, if it has any.
    pub range: Option<Range>,
    /// Everything that is allowed, in words. Empty if the type says it all.
    pub allowed: String,
}

/// Value of a setting that is left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Fallback {
    /// It must not be left out.
    Required,
    /// This value.
    Value(Toml),
    /// Something that depends on others, in words.
    Words(&'static str),
    /// Nothing: what the setting does is not done.
    Nothing,
}

/// A value that a setting cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not one of those that are allowed.
    #[error("{key} = {value}: allowed is {allowed}")]
    NotAllowed {
        /// Name of the setting.
        key: &'static str,
        /// The value, as it was given.
        value: String,
        /// Allowed values.
        allowed: String,
    },
    /// It is of another type.
    #[error("`{key}` must be {wanted}, not {found}")]
    WrongType {
        /// Name of the setting.
        key: &'static str,
        /// Expected value, with an example.
        wanted: &'static str,
        /// The value, as it was given.
        found: String,
    },
    /// Something in it is wrong.
    #[error("{key}: {problem}")]
    Unusable {
        /// Name of the setting.
        key: &'static str,
        /// The problem, and the allowed values.
        problem: String,
    },
}

impl<T: Value> Setting<T> {
    /// Declares a setting of this name, which means this.
    #[must_use]
    pub fn new(key: &'static str, meaning: &str) -> Self {
        let lines = meaning.split_whitespace().collect::<Vec<_>>();
        Self {
            key,
            meaning: lines.join(" "),
            default: None,
            absent: None,
            range: T::range(),
            unit: "",
            allowed: None,
            kinds: T::KINDS,
            at_least: None,
            at_most: None,
            read: T::from_toml,
        }
    }

    /// Value if it is left out.
    #[must_use]
    pub fn default(mut self, value: T) -> Self {
        self.default = Some(value);
        self
    }

    /// Says in words what holds if it is left out.
    #[must_use]
    pub fn absent(mut self, words: &'static str) -> Self {
        self.absent = Some(words);
        self
    }

    /// Range of the numbers that are allowed, ends included.
    #[must_use]
    pub fn within<N: Number>(mut self, range: std::ops::RangeInclusive<N>) -> Self {
        self.range = Some(Range::within(range));
        self
    }

    /// Allows all finite numbers above this one.
    #[must_use]
    pub fn above<N: Number>(mut self, bound: N) -> Self {
        self.range = Some(Range::above(bound));
        self
    }

    /// Unit of the numbers.
    #[must_use]
    pub fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    /// Name of another setting of the section, whose value this one must not be below.
    #[must_use]
    pub fn at_least(mut self, other: &'static str) -> Self {
        self.at_least = Some(other);
        self
    }

    /// Name of another setting of the section, whose value this one must not exceed.
    #[must_use]
    pub fn at_most(mut self, other: &'static str) -> Self {
        self.at_most = Some(other);
        self
    }

    /// Says in words what is allowed, where neither a range nor the type says it.
    #[must_use]
    pub fn allowed(mut self, words: impl Into<String>) -> Self {
        self.allowed = Some(words.into());
        self
    }

    /// Types of TOML that a value may have, where they are not those of `T`.
    #[must_use]
    pub fn kinds(mut self, kinds: &'static [Kind]) -> Self {
        self.kinds = kinds;
        self
    }

    /// Function that reads the value instead of `T` itself.
    #[must_use]
    pub fn read(mut self, read: fn(Toml) -> Result<T, Mismatch>) -> Self {
        self.read = read;
        self
    }

    /// Returns what is declared, without the type.
    #[must_use]
    pub fn declared(&self) -> Declared {
        let value = self.default.as_ref().and_then(Value::to_toml);
        let default = match (value, self.absent) {
            (_, Some(words)) => Fallback::Words(words),
            (Some(value), None) => Fallback::Value(value),
            (None, None) if self.default.is_some() => Fallback::Nothing,
            (None, None) => Fallback::Required,
        };

        Declared {
            key: self.key,
            meaning: self.meaning.clone(),
            kinds: self.kinds,
            choices: T::CHOICES,
            default,
            range: self.range.clone(),
            allowed: self.in_words(&self.range),
        }
    }

    /// Returns what is allowed within `range`, in words.
    fn in_words(&self, range: &Option<Range>) -> String {
        if let Some(words) = &self.allowed {
            return words.clone();
        }

        if !T::CHOICES.is_empty() {
            let names: Vec<String> = T::CHOICES.iter().map(|name| format!("\"{name}\"")).collect();
            return names.join(", ");
        }

        let Some(range) = range else { return String::new() };
        let words = range.in_words(self.at_least, self.at_most);

        // The other setting has its unit in its own row.
        if self.unit.is_empty() || self.at_most.is_some() {
            words
        } else {
            format!("{words} {}", self.unit)
        }
    }

    fn refused(&self, value: String, allowed: String) -> Refused {
        Refused::NotAllowed { key: self.key, value, allowed }
    }

    /// Reads a value, and checks its range.
    ///
    /// # Errors
    /// [`Refused`] says what is allowed.
    pub fn from_toml(&self, value: Toml) -> Result<T, Refused> {
        // The range is checked first: it is narrower than that of the type, and says more.
        let shown = value::shown(&value);
        if let (Some(number), Some(range)) = (value::number(&value), &self.range)
            && !range.contains(number)
        {
            return Err(self.refused(shown, self.in_words(&self.range)));
        }

        let found = value::found(&value);
        let read = (self.read)(value).map_err(|mismatch| match mismatch {
            Mismatch::Type(wanted) => Refused::WrongType { key: self.key, wanted, found },
            Mismatch::Value(allowed) => self.refused(shown.clone(), allowed),
            Mismatch::Choice(question) => {
                self.refused(shown.clone(), format!("{}{question}", self.in_words(&None)))
            }
            Mismatch::Problem(problem) => Refused::Unusable { key: self.key, problem },
        })?;

        // Text may stand for a number, such as "2M".
        match (read.number(), &self.range) {
            (Some(number), Some(range)) if !range.contains(number) => {
                Err(self.refused(shown, self.in_words(&self.range)))
            }
            _ => Ok(read),
        }
    }

    /// Returns the value if it is left out; `None` if it must not be.
    #[must_use]
    pub fn into_default(self) -> Option<T> {
        self.default
    }

    /// Checks that a value is in its range. `number` returns the values of the other settings of
    /// the section, by their names.
    ///
    /// # Errors
    /// [`Refused`] if it is not.
    pub fn check(&self, value: &T, number: impl Fn(&str) -> Option<f64>) -> Result<(), Refused> {
        let (Some(given), Some(range)) = (value.number(), &self.range) else { return Ok(()) };
        let least = self.at_least.and_then(&number);
        let most = self.at_most.and_then(&number);
        let range = range.narrowed(least, most);
        if range.contains(given) {
            return Ok(());
        }
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let narrowed = || range.in_words(None, None) + &unit;
        let allowed = self.allowed.clone().unwrap_or_else(narrowed);
        Err(self.refused(value::shown_number(given), allowed))
    }
}

impl<'de, T: Value> DeserializeSeed<'de> for &Setting<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::read(self, deserializer)
    }
}

/// Reads the name of one of these settings. An unknown one is an error at its own place.
#[derive(Clone, Copy, Debug)]
pub struct KeyOf(pub &'static [&'static str]);

impl<'de> DeserializeSeed<'de> for KeyOf {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static str, D::Error> {
        let key = String::deserialize(deserializer)?;
        let known = self.0.iter().find(|known| **known == key);
        known.copied().ok_or_else(|| D::Error::unknown_field(&key, self.0))
    }
}

/// Reads a value of a file and checks it: what [`Value::read`] does unless a type has its own way.
///
/// # Errors
/// One line that names the setting and says what is allowed.
pub fn read<'de, T: Value, D: Deserializer<'de>>(
    setting: &Setting<T>,
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Toml::deserialize(deserializer)?;
    setting.from_toml(value).map_err(Error::custom)
}

/// Reads and checks the table of a section.
///
/// # Errors
/// One line that names the setting and says what is allowed.
pub fn from_table<T: Section>(table: &toml::Table) -> Result<T, String> {
    let read = Toml::Table(table.clone()).try_into();
    read.map_err(|error: toml::de::Error| in_words(None, error.message()).into_owned())
}

#[cfg(test)]
mod tests;
