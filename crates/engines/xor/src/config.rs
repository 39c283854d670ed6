//! Settings of the engine: `[xor]` in configuration files.

use super::packet::MAX_HOPS;
use ncmesh_engine::settings::{Mismatch, Toml, from_serde};
use ncmesh_engine::time::Duration;
use ncmesh_wire::NodeId;
use std::collections::BTreeSet;

ncmesh_engine::settings! {
    /// Settings of XOR coding.
    #[derive(Clone, Debug, PartialEq)]
    pub struct XorConfig {
        /// Whether relays code. Without it packets are sent as they are, and are held only if
        /// `hold_time_s` is set.
        pub coding: bool = true;
        /// Time for which a relay holds a packet for one of the opposite direction (the paper's
        /// `NCBufTimeout`).
        pub hold_time_s: Option<f64> = None, absent "the time that the relay finds to pay",
            within 0..=1, unit "s";
        /// Longest hold time that a relay tries when it measures.
        // Twice the best time in the paper (V-B).
        pub max_hold_time_s: f64 = 0.003, within 0..=1, unit "s";
        /// Whether a packet whose hold time is over may still be coded while it waits for the
        /// channel.
        pub late: bool = true;
        /// Whether packets that are not coded go by unicast, which the MAC acknowledges and
        /// repeats. Otherwise everything is broadcast (the paper's pseudo-unicast).
        pub unicast: bool = true;
        /// Share of coded packets that a neighbour must decode for coding to go on. With 0, coding
        /// always goes on and nothing is reported.
        // Below this share, repetitions cost more than coding saves.
        pub min_decoded: f64 = 0.6, within 0..=1;
        /// Length that the shorter of two packets must have to be coded, as a share of the longer
        /// one's. Coding saves the airtime of the shorter packet only.
        // A coded packet has no MAC acknowledgment. The airtime of a TCP acknowledgment is not
        // worth that.
        pub min_overlap: f64 = 0.5, within 0..=1;
        /// Whether a node asks for packets that it missed, and passes later ones on only after
        /// them.
        pub recover: bool = true;
        /// Most frames that a node queues and holds. A packet that is coded with one of them takes
        /// no extra place.
        pub queue: usize = 64, within 1..=10_000, unit "packets";
        /// Packets that a node keeps for decoding.
        // All packets that the neighbours of a busy node may have in their queues.
        pub cache: usize = 512, within 1..=100_000, unit "packets";
        /// Paths that replace the shortest ones: node ids from end to end, used in both directions.
        pub routes: Vec<Vec<u16>> = Vec::new(), absent "shortest paths", read routes,
            allowed "a list of paths of 2 to 17 nodes each";
    }
}

impl XorConfig {
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

fn routes(value: Toml) -> Result<Vec<Vec<u16>>, Mismatch> {
    let routes: Vec<Vec<u16>> = from_serde(value)?;
    match routes.iter().find(|route| !is_route(route)) {
        None => Ok(routes),
        Some(route) => {
            let most = MAX_HOPS + 1;
            let must = format!("must be 2 to {most} nodes, none of them twice");
            Err(Mismatch::Problem(format!("{route:?} {must}")))
        }
    }
}

fn is_route(route: &[u16]) -> bool {
    let distinct: BTreeSet<u16> = route.iter().copied().collect();
    (2..=MAX_HOPS + 1).contains(&route.len()) && distinct.len() == route.len()
}
