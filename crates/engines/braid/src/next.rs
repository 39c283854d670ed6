//! The next frame of a flow, and how it goes.

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

/// Whether a packet that goes alone may go by unicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unicast {
    /// It is one of a pair, which is broadcast.
    No,
    /// The MAC may not tell what became of it, so the next hop is asked as well.
    Unproven,
    /// The MAC acknowledges unicast frames.
    Acknowledged,
}
