//! Readers for values, whose errors say what is allowed.

use serde::de::{Deserialize, Deserializer, Error};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Reads the whole number of `key` and checks its range.
pub(super) fn ranged<'de, D: Deserializer<'de>, T: TryFrom<i64>>(
    deserializer: D,
    key: &str,
    allowed: RangeInclusive<i64>,
) -> Result<T, D::Error> {
    let value = i64::deserialize(deserializer)?;
    let fits = T::try_from(value).ok().filter(|_| allowed.contains(&value));
    fits.ok_or_else(|| {
        let (min, max) = allowed.into_inner();
        Error::custom(format!("{key} = {value}: allowed is {min} to {max}"))
    })
}

/// Parses the text of `key`.
pub(super) fn parsed<'de, D: Deserializer<'de>, T: FromStr>(
    deserializer: D,
    key: &str,
    allowed: &str,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| Error::custom(format!("{key} = {text:?}: allowed is {allowed}")))
}
