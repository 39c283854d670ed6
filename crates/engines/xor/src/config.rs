//! Settings of the engine: `[xor]` in configuration files.

use super::packet::MAX_HOPS;
use ncmesh_engine::time::Duration;
use ncmesh_wire::NodeId;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Settings of XOR coding.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XorConfig {
    /// Whether relays code. Without it packets are sent as they are, and are held only if
    /// `hold_time_s` is set.
    pub coding: bool,
    /// Time for which a relay holds a packet for one of the opposite direction (the paper's
    /// `NCBufTimeout`), 0 to 1 s. If absent, the relay measures which time pays.
    pub hold_time_s: Option<f64>,
    /// Longest hold time that a relay tries when it measures, 0 to 1 s.
    pub max_hold_time_s: f64,
    /// Whether a packet whose hold time is over may still be coded while it waits for the channel.
    pub late: bool,
    /// Whether packets that are not coded go by unicast, which the MAC acknowledges and repeats.
    /// Otherwise everything is broadcast (the paper's pseudo-unicast).
    pub unicast: bool,
    /// Share of coded packets that a neighbour must decode for coding to go on, 0 to 1. With 0,
    /// coding always goes on and nothing is reported.
    pub min_decoded: f64,
    /// Length that the shorter of two packets must have to be coded, as a share of the longer
    /// one's, 0 to 1. Coding saves the airtime of the shorter packet only.
    pub min_overlap: f64,
    /// Whether a node asks for packets that it missed, and passes later ones on only after them.
    pub recover: bool,
    /// Most frames that a node queues and holds, 1 to 10,000. A packet that is coded with one of
    /// them takes no extra place.
    pub queue: usize,
    /// Packets that a node keeps for decoding, 1 to 100,000.
    pub cache: usize,
    /// Paths that replace the shortest ones: node ids from end to end, used in both directions.
    pub routes: Vec<Vec<u16>>,
}

impl Default for XorConfig {
    fn default() -> Self {
        Self {
            coding: true,
            hold_time_s: None,
            // Twice the best time in the paper (V-B).
            max_hold_time_s: 0.003,
            late: true,
            unicast: true,
            // Below this share, repetitions cost more than coding saves.
            min_decoded: 0.6,
            // A coded packet has no MAC acknowledgment. The airtime of a TCP acknowledgment is not
            // worth that.
            min_overlap: 0.5,
            recover: true,
            queue: 64,
            // All packets that the neighbours of a busy node may have in their queues.
            cache: 512,
            routes: Vec::new(),
        }
    }
}

impl XorConfig {
    /// Checks that all values are in range.
    ///
    /// # Errors
    /// One line that names the setting and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        for (name, seconds) in [
            ("hold_time_s", self.hold_time_s.unwrap_or(0.0)),
            ("max_hold_time_s", self.max_hold_time_s),
        ] {
            if !(0.0..=1.0).contains(&seconds) {
                return Err(format!("{name} = {seconds}: allowed is 0 to 1 s"));
            }
        }
        for (name, share) in [("min_decoded", self.min_decoded), ("min_overlap", self.min_overlap)]
        {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("{name} = {share}: allowed is 0 to 1"));
            }
        }
        if !(1..=10_000).contains(&self.queue) {
            return Err(format!("queue = {}: allowed is 1 to 10000 packets", self.queue));
        }
        if !(1..=100_000).contains(&self.cache) {
            return Err(format!("cache = {}: allowed is 1 to 100000 packets", self.cache));
        }
        self.routes.iter().try_for_each(|route| check_route(route))
    }

    /// Returns the configured hold time; `None` if the relay is to measure it.
    pub(crate) fn hold_time(&self) -> Option<Duration> {
        self.hold_time_s.map(Duration::from_secs_f64)
    }

    /// Returns the configured paths as nodes.
    pub(crate) fn paths(&self) -> Vec<Vec<NodeId>> {
        let path = |route: &Vec<u16>| route.iter().copied().map(NodeId).collect();
        self.routes.iter().map(path).collect()
    }
}

fn check_route(route: &[u16]) -> Result<(), String> {
    let distinct: BTreeSet<u16> = route.iter().copied().collect();
    if !(2..=MAX_HOPS + 1).contains(&route.len()) || distinct.len() < route.len() {
        let most = MAX_HOPS + 1;
        return Err(format!("routes: {route:?} must be 2 to {most} nodes, none of them twice"));
    }
    Ok(())
}
