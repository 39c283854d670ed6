//! Outcome of offering an item to a bounded table.

/// Outcome of offering a versioned item to a bounded table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is new, or newer than the version in the table, and was taken.
    New,
    /// The table has this version or a later one.
    Known,
    /// It is another item than the one in the table, which stays.
    Disputed,
    /// The table is full and nothing in it can go.
    Full,
}
