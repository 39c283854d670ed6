//! What CORE and its baseline do differently.

use super::redundancy::Redundancy;
use ncmesh_engine::time::Duration;
use ncmesh_engine::tunnel::RelayMode;

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
    pub relay: RelayMode,
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
