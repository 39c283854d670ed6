//! Errors of the coders.

use ncmesh_gf::GfError;

/// Arguments that a coder rejects. A packet that is not innovative is not an error; see
/// [`Absorbed::Redundant`](crate::Absorbed::Redundant).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CodeError {
    /// The generation size is 0 or more than 255.
    #[error("a generation holds 1 to 255 symbols, not {0}")]
    Generation(usize),
    /// The symbol size is 0 or more than 65 535 bytes.
    #[error("a symbol holds 1 to 65535 bytes, not {0}")]
    SymbolSize(usize),
    /// A slice has the wrong length.
    #[error("{what}: {got} bytes where {expected} are needed")]
    Length {
        /// Name of the argument.
        what: &'static str,
        /// The required length, in bytes.
        expected: usize,
        /// The length of the slice, in bytes.
        got: usize,
    },
    /// The source data is longer than a generation.
    #[error("{got} bytes of data in a generation of {capacity}")]
    TooMuchData {
        /// Bytes that a generation holds.
        capacity: usize,
        /// Bytes of source data.
        got: usize,
    },
    /// A coefficient is not an element of the field.
    #[error("coefficient {value} at {index} is not an element of the field")]
    Coefficient {
        /// Index of the coefficient.
        index: usize,
        /// Value of the coefficient.
        value: u8,
    },
    /// Packed coefficients have bits set in the padding of the last byte.
    #[error("the padding of packed coefficients is not zero")]
    Padding,
    /// The density is outside (0, 1].
    #[error("the density must be above 0 and at most 1")]
    Density,
    /// Rows overlap, or do not fit into their slice.
    #[error(transparent)]
    Layout(#[from] GfError),
}

/// Returns `Ok` when the argument `what` has the required length.
pub(crate) fn same_length(
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<(), CodeError> {
    if expected == got { Ok(()) } else { Err(CodeError::Length { what, expected, got }) }
}
