//! Errors of the kernels and the row tables.
//!
//! Every public function checks its slices once, with the helpers here, and then runs unsafe code
//! on pointers. The errors are written by hand, so that the crate has no dependencies.

use std::fmt;

/// Arguments that a kernel or a row table rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GfError {
    /// Two lengths (in bytes or in rows) that must agree do not.
    Length {
        /// The required length.
        expected: usize,
        /// The length of the argument.
        got: usize,
    },
    /// Rows of this length and stride do not fit into the slice, or they overlap
    /// (`stride < length`).
    Layout {
        /// Bytes in one row.
        length: usize,
        /// Bytes from the start of a row to the start of the next.
        stride: usize,
        /// Number of rows.
        count: usize,
        /// Bytes in the slice.
        available: usize,
    },
    /// A row or column number past the end of its table.
    Index {
        /// The row or column number.
        index: usize,
        /// The number of rows or columns.
        count: usize,
    },
}

impl fmt::Display for GfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Length { expected, got } => write!(f, "length {got} where {expected} is needed"),
            Self::Layout { length, stride, count, available } => {
                write!(f, "{count} rows of {length} bytes at stride {stride} ")?;
                write!(f, "do not fit into {available} bytes")
            }
            Self::Index { index, count } => write!(f, "number {index} in a table of {count}"),
        }
    }
}

impl std::error::Error for GfError {}

/// Returns `Ok` when `got == expected`.
pub(crate) fn same_length(expected: usize, got: usize) -> Result<(), GfError> {
    if expected == got { Ok(()) } else { Err(GfError::Length { expected, got }) }
}

/// Returns `Ok` when `index < count`.
pub(crate) fn within(index: usize, count: usize) -> Result<(), GfError> {
    if index < count { Ok(()) } else { Err(GfError::Index { index, count }) }
}
