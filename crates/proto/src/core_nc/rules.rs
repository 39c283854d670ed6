//! What CORE and its baseline do differently.

use crate::time::Duration;
use serde::Deserialize;

/// The three relays of section 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relay {
    /// Sends on what it receives, as it is; leaves requests to the source.
    NonRecoding,
    /// Combines anew what it has; leaves requests to the source.
    Recoding,
    /// Combines anew, knows its rank, stops the node before it and answers requests itself.
    #[default]
    Core,
}

/// When a relay combines packets of two flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Xor {
    Never,
    /// Where that takes fewer transmissions by what receivers are measured to overhear.
    WherePaying,
    /// Where both receivers can decode a packet with at least this probability (Katti et al.; the 80 % rule).
    WhereDecodable(f64),
}

/// How an engine works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub relay: Relay,
    /// Packets of a flow are combined with each other.
    pub coded: bool,
    pub xor: Xor,
    pub extra: f64,
    /// Packets that are asked for by number at once.
    pub wanted: u8,
    pub room: u8,
    pub window: u8,
    pub synchronise: bool,
    pub queue: usize,
    pub flush_ms: u32,
    pub hold_ms: u32,
    pub request_ms: u32,
    pub requests: u32,
}

impl Rules {
    /// Whether packets are sent as they came, by this node as a relay.
    pub(crate) fn verbatim(&self) -> bool {
        !self.coded || self.relay == Relay::NonRecoding
    }

    /// Whether relays answer for themselves.
    pub(crate) fn answers(&self) -> bool {
        self.coded && self.relay == Relay::Core
    }

    pub(crate) fn flush(&self) -> Duration {
        Duration::from_millis(u64::from(self.flush_ms))
    }

    pub(crate) fn hold(&self) -> Duration {
        Duration::from_millis(u64::from(self.hold_ms))
    }

    pub(crate) fn wait(&self) -> Duration {
        Duration::from_millis(u64::from(self.request_ms))
    }
}
