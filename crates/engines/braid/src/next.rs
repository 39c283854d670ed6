//! The next frame of a flow, and how it goes.

/// The frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A packet as it is.
    Plain(u32),
    /// A combination of what the next hop lacks.
    Repair,
    /// No packet, only a question.
    Ask,
}

/// How a data frame goes to the next hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carriage {
    /// How a packet that goes alone may go by unicast; `None` if it may not.
    pub alone: Option<Unicast>,
    /// Whether frames go by unicast anyway, because that is much faster. What the next hop passes
    /// on is then not heard here either.
    pub prefers_unicast: bool,
}

/// How a packet that goes alone may go by unicast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unicast {
    /// Least chance that a frame and its acknowledgment arrive in a quiet channel.
    pub least_chance: f64,
    /// Whether the MAC was seen to acknowledge unicast frames. If it may not tell what became of
    /// one, the next hop is asked as well.
    pub is_acknowledged: bool,
}
