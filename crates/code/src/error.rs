use ncmesh_gf::GfError;

/// What the coder refuses. A packet that brings nothing new is no error; see
/// [`Absorbed::Redundant`](crate::Absorbed::Redundant).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CodeError {
    /// A generation of no symbols, or of more than 255.
    #[error("a generation holds 1 to 255 symbols, not {0}")]
    Generation(usize),
    /// A symbol of no bytes, or of more than 65 535.
    #[error("a symbol holds 1 to 65535 bytes, not {0}")]
    SymbolSize(usize),
    /// A slice of the wrong length.
    #[error("{what}: {got} bytes where {expected} are needed")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Its length as it has to be, in bytes.
        expected: usize,
        /// Its length as it is, in bytes.
        got: usize,
    },
    /// More source data than a generation holds.
    #[error("{got} bytes of data in a generation of {capacity}")]
    TooMuchData {
        /// Bytes that a generation holds.
        capacity: usize,
        /// Bytes given.
        got: usize,
    },
    /// A coefficient that is no element of the field.
    #[error("coefficient {value} at {index} is no element of the field")]
    Coefficient {
        /// Where it stands.
        index: usize,
        /// What it is.
        value: u8,
    },
    /// Packed coefficients with bits set in the padding of the last byte.
    #[error("the padding of packed coefficients is not zero")]
    Padding,
    /// A density outside (0, 1].
    #[error("a density lies above 0 and at most at 1")]
    Density,
    /// Rows that overlap, or do not fit into the slice given for them.
    #[error(transparent)]
    Layout(#[from] GfError),
}

/// `Ok` when the slice `what` has the length that it needs.
pub(crate) fn same_length(
    what: &'static str,
    expected: usize,
    got: usize,
) -> Result<(), CodeError> {
    if expected == got { Ok(()) } else { Err(CodeError::Length { what, expected, got }) }
}
