//! What a node sends next of a flow.

/// What to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A packet as it is.
    Plain(u32),
    /// A combination of what the next hop lacks.
    Repair,
    /// No packet, only a question.
    Ask,
}
