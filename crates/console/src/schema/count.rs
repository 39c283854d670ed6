//! Numbers of 64 bits, as strings.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ts_rs::TS;

/// A number of 64 bits, written as a string of decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, TS)]
#[ts(type = "string")]
pub struct Count(pub u64);

impl Count {
    /// Returns how much a counter has grown since `before`; `None` if it fell, or grew by more than
    /// a tick can say.
    #[must_use]
    pub fn growth_since(self, before: Self) -> Option<u32> {
        self.0.checked_sub(before.0).and_then(|grown| u32::try_from(grown).ok())
    }

    /// Adds the growth of a tick.
    pub(crate) fn grow(&mut self, by: u32) {
        self.0 = self.0.saturating_add(u64::from(by));
    }
}

impl From<u64> for Count {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| D::Error::custom("not a number of 64 bits"))
    }
}
