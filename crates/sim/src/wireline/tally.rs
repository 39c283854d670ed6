//! What is counted in every slot.

use super::outcome::Extent;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine_multirate::Packets;

/// Packets of each layer, over a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Total(pub(super) [u64; LAYERS]);

impl Total {
    pub(super) fn add(&mut self, packets: Packets) {
        for (total, more) in self.0.iter_mut().zip(packets.0) {
            *total += u64::from(more);
        }
    }

    /// Packets per slot of each layer since `before`, over `slots`.
    pub(super) fn rates(&self, before: &Self, slots: u64) -> [f64; LAYERS] {
        let rate = |layer| (self.0[layer] - before.0[layer]) as f64 / slots as f64;
        std::array::from_fn(rate)
    }
}

/// The largest of a queue's lengths in all slots, and the sum of those after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Lengths {
    most: f64,
    sum: f64,
    last: f64,
}

impl Lengths {
    pub(super) fn add(&mut self, length: f64, is_averaged: bool) {
        self.most = self.most.max(length);
        self.last = length;
        if is_averaged {
            self.sum += length;
        }
    }

    pub(super) fn extent(&self, slots: u64) -> Extent {
        Extent { max: self.most, mean: self.sum / slots as f64, end: self.last }
    }
}
