//! Versions and their order.

use crate::word::{self, Misnamed};
use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Version of a release.
///
/// Versions are ordered as by Gluon's autoupdater, which does it as Debian does: numbers by value,
/// letters before other characters, and `~` before the end, so that `1.0~rc1` comes before `1.0`.
/// `1.0` and `1.00` are the same version in two spellings, so equality is [`Version::is_same`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(String);

impl Version {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns how this version compares with another one.
    #[must_use]
    pub fn order(&self, other: &Self) -> Ordering {
        let mut a = self.0.as_bytes();
        let mut b = other.0.as_bytes();
        while !a.is_empty() || !b.is_empty() {
            // Up to the next number, character by character.
            while starts_with_text(a) || starts_with_text(b) {
                let by_rank = rank(a.first()).cmp(&rank(b.first()));
                if by_rank != Ordering::Equal {
                    return by_rank;
                }
                a = &a[1..];
                b = &b[1..];
            }

            // Numbers by value: without leading zeros the longer one is the larger one.
            let (number_a, number_b);
            (number_a, a) = number(a);
            (number_b, b) = number(b);
            let by_length = number_a.len().cmp(&number_b.len());
            let by_value = by_length.then_with(|| number_a.cmp(number_b));
            if by_value != Ordering::Equal {
                return by_value;
            }
        }
        Ordering::Equal
    }

    /// Returns whether both stand for the same version.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }

    /// Returns whether this version is newer than another one.
    #[must_use]
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Greater
    }
}

fn starts_with_text(text: &[u8]) -> bool {
    text.first().is_some_and(|c| !c.is_ascii_digit())
}

/// Returns the place of a character in the order; of the end for none.
fn rank(c: Option<&u8>) -> i32 {
    match c {
        Some(b'~') => -2,
        None => -1,
        Some(c) if c.is_ascii_digit() => 0,
        Some(c) if c.is_ascii_alphabetic() => i32::from(*c),
        Some(c) => i32::from(*c) + 256,
    }
}

/// Splits the number at the beginning, without its leading zeros, from the rest.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let is_digit = |c: &u8| c.is_ascii_digit();
    let end = text.iter().position(|c| !is_digit(c)).unwrap_or(text.len());
    let start = text[..end].iter().position(|c| *c != b'0').unwrap_or(end);
    (&text[start..end], &text[end..])
}

impl FromStr for Version {
    type Err = Misnamed;

    fn from_str(text: &str) -> Result<Self, Misnamed> {
        word::word("a version", text)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Version {
    type Error = Misnamed;

    fn try_from(text: String) -> Result<Self, Misnamed> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_in_the_order_of_gluons_autoupdater() {
        let order = [
            "0.9", "1.0~rc1", "1.0", "1.0a", "1.0+1", "1.0.1", "1.2", "1.10", "2023.1", "2023.1.1",
            "2023.2", "a", "v1", "v2",
        ];
        for (at, low) in order.iter().enumerate() {
            for high in &order[at + 1..] {
                assert!(version(high).is_newer_than(&version(low)), "{low} {high}");
                assert!(!version(low).is_newer_than(&version(high)), "{low} {high}");
            }
        }
        assert!(version("1.0").is_same(&version("1.00")));
        assert!(version("1.010").is_same(&version("01.10")));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "-1", ".1", "1 2", "1/2", "1\n", "é", &"1".repeat(65)] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_order_is_total(
            a in "[a-c0-2][a-b0-2.~+]{0,5}", b in "[a-c0-2][a-b0-2.~+]{0,5}",
            c in "[a-c0-2][a-b0-2.~+]{0,5}",
        ) {
            let [a, b, c] = [a, b, c].map(|text| version(&text));
            prop_assert_eq!(a.order(&b), b.order(&a).reverse());
            if a.order(&b) != Ordering::Greater && b.order(&c) != Ordering::Greater {
                prop_assert_ne!(a.order(&c), Ordering::Greater);
            }
        }
    }
}
