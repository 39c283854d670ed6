//! Settings of pairwise coding.

use super::frame::MAX_HOPS;
use ncmesh_engine::time::Duration;
use ncmesh_wire::NodeId;
use serde::Deserialize;
use std::collections::BTreeSet;

/// `[xor]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct XorConfig {
    /// Whether relays code; without it packets are sent as they are, held only where `hold_time_s` says so.
    pub coding: bool,
    /// How long a relay holds a packet for one of the opposite direction (NCBufTimeout), 0 to 1 s; absent: it
    /// finds out for itself.
    pub hold_time_s: Option<f64>,
    /// The longest that it holds one where it finds out for itself, 0 to 1 s.
    pub max_hold_time_s: f64,
    /// Whether a packet whose hold time is over may still be coded while it waits for the channel.
    pub late: bool,
    /// Whether packets that are not coded go by unicast, which the MAC acknowledges and repeats; otherwise all
    /// is broadcast (pseudo-unicast).
    pub unicast: bool,
    /// The share of coded packets that a neighbour must decode for coding to go on, 0 to 1; 0: always.
    pub min_decoded: f64,
    /// How long the shorter of two packets must be for them to be coded, as a share of the longer one's length, 0
    /// to 1: what coding saves is the shorter one's airtime.
    pub min_overlap: f64,
    /// Whether a node asks for packets that it missed, and hands on what came after them when they have come.
    pub recover: bool,
    /// Frames a node queues and holds at most, 1 to 10,000. A packet that is coded with one of them takes no room.
    pub queue: usize,
    /// Packets a node keeps for decoding, 1 to 100,000.
    pub cache: usize,
    /// Paths that packets take in the place of the shortest ones, by node id from end to end, each in both
    /// directions.
    pub routes: Vec<Vec<u16>>,
}

impl Default for XorConfig {
    fn default() -> Self {
        Self {
            coding: true,
            hold_time_s: None,
            // Twice what the paper finds best.
            max_hold_time_s: 0.003,
            late: true,
            unicast: true,
            // Below, what is sent again costs more than coding saves.
            min_decoded: 0.6,
            // A coded packet is not acknowledged: to save the airtime of TCP's acknowledgments is not worth that.
            min_overlap: 0.5,
            recover: true,
            queue: 64,
            // What all neighbours of a busy node may have in their queues.
            cache: 512,
            routes: Vec::new(),
        }
    }
}

impl XorConfig {
    /// Checks the values.
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

    /// The fixed hold time, if there is one.
    pub(super) fn hold_time(&self) -> Option<Duration> {
        self.hold_time_s.map(Duration::from_secs_f64)
    }

    /// The paths as nodes.
    pub(super) fn paths(&self) -> Vec<Vec<NodeId>> {
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
