//! Settings of medium access.

/// Radios that must not send in the same slot of slotted access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Two radios conflict if either can hear the other.
    Audible,
    /// As `Audible`, and two radios also conflict if a third can hear both.
    SharedHearer,
}

/// Order in which radios are asked to send in a slot of slotted access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotOrder {
    /// A random order, drawn for each slot.
    Random,
    /// By descending weight ([`Medium::set_weight`](crate::Medium::set_weight)), and among equal
    /// weights in random order.
    Weight,
}

/// Medium access protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacConfig {
    /// CSMA/CA, the distributed coordination function of IEEE 802.11.
    Dcf {
        /// Unicast frames of at least this length, MAC overhead included, use RTS and CTS, bytes.
        /// No frame does if `None`.
        rts_threshold_bytes: Option<usize>,
        /// Greatest number of transmissions of a data frame after RTS and CTS
        /// (dot11LongRetryLimit). The retry limit then holds for its RTS alone. If `None`, it holds
        /// for both together.
        long_retry_limit: Option<u32>,
    },
    /// Slotted access: a maximal set of radios without conflict sends in each slot.
    Slotted {
        /// Length of a slot, ns. A longer frame also takes the following slots.
        slot_ns: u64,
        /// Radios that must not send together.
        conflict: Conflict,
        /// Order in which radios are asked.
        order: SlotOrder,
    },
}
