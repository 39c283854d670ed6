use crate::field::Field;
use crate::paths::{Entries, word};
use std::fmt;

/// A way to compute, named after the instructions that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Path {
    /// Machine words; runs anywhere.
    Portable,
}

impl Path {
    /// Every path compiled for this architecture, fastest first.
    pub const ALL: &'static [Self] = &[Self::Portable];

    /// Whether this processor has the path's instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
        }
    }

    pub(crate) fn entries(self, field: Field) -> &'static Entries {
        let of_all: [&'static Entries; 3] = match self {
            Self::Portable => [&word::GF2, &word::GF16, &word::GF256],
        };
        of_all[field as usize]
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
        })
    }
}
