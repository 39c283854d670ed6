//! What CORE and its baseline do differently.

use super::redundancy::Redundancy;
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// The three relays of section 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

impl Relay {
    /// Its name in configuration, commands and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NonRecoding => "non_recoding",
            Self::Recoding => "recoding",
            Self::Core => "core",
        }
    }
}

/// When a relay combines packets of two flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Xor {
    /// Where that takes fewer transmissions by what receivers are measured to overhear.
    WherePaying,
    /// Where both receivers can decode a packet with at least this probability (Katti et al.; the 80 % rule).
    WhereDecodable(f64),
}

/// How an engine works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// What this node is as a relay, of generations that begin now.
    pub relay: Relay,
    /// Packets of a flow are combined with each other.
    pub coded: bool,
    /// Whether this node combines packets of two flows at all, and when.
    pub combines: bool,
    pub xor: Xor,
    pub redundancy: Redundancy,
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
