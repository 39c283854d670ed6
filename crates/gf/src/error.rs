use std::fmt;

/// What a kernel or a row table refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GfError {
    /// Two lengths (in bytes or in rows) that must agree do not.
    Length {
        /// The length that the call needs.
        expected: usize,
        /// The length that it was given.
        got: usize,
    },
    /// Rows of this length and stride do not fit into the bytes given, or
    /// they overlap (`stride < length`).
    Layout {
        /// Bytes in one row.
        length: usize,
        /// Bytes from the start of a row to the start of the next.
        stride: usize,
        /// Rows asked for.
        count: usize,
        /// Bytes available.
        available: usize,
    },
    /// A row or column number past the end of its table.
    Index {
        /// The number asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
}

impl fmt::Display for GfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { expected, got } => write!(f, "length {got} where {expected} is needed"),
            Self::Layout { length, stride, count, available } => write!(
                f,
                "{count} rows of {length} bytes at stride {stride} do not fit into {available} bytes"
            ),
            Self::Index { index, count } => write!(f, "number {index} in a table of {count}"),
        }
    }
}

impl std::error::Error for GfError {}

/// `Ok` when `got == expected`.
pub(crate) fn same_length(expected: usize, got: usize) -> Result<(), GfError> {
    if expected == got { Ok(()) } else { Err(GfError::Length { expected, got }) }
}

/// `Ok` when `index < count`.
pub(crate) fn within(index: usize, count: usize) -> Result<(), GfError> {
    if index < count { Ok(()) } else { Err(GfError::Index { index, count }) }
}
