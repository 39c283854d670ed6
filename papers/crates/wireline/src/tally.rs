//! Counters that are updated in every slot.

use crate::outcome::Extent;
use ncmesh_engine::stream::LAYERS;
use ncmesh_engine_multirate::Packets;

/// Packets of each layer in a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total(pub(crate) [u64; LAYERS]);

impl Total {
    pub(crate) fn add(&mut self, packets: Packets) {
        for (total, more) in self.0.iter_mut().zip(packets.0) {
            *total += u64::from(more);
        }
    }

    /// Returns the packets per slot of each layer since `before`, `slots` slots ago.
    pub(crate) fn rates(&self, before: &Self, slots: u64) -> [f64; LAYERS] {
        let rate = |layer| (self.0[layer] - before.0[layer]) as f64 / slots as f64;
        std::array::from_fn(rate)
    }
}

/// Largest and last length of a queue, and the sum of its lengths after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lengths {
    most: f64,
    sum: f64,
    last: f64,
}

impl Lengths {
    pub(crate) fn add(&mut self, length: f64, is_averaged: bool) {
        self.most = self.most.max(length);
        self.last = length;

        // The largest length counts from the start, the mean after the warm-up.
        if is_averaged {
            self.sum += length;
        }
    }

    pub(crate) fn extent(&self, slots: u64) -> Extent {
        Extent { max: self.most, mean: self.sum / slots as f64, end: self.last }
    }
}
