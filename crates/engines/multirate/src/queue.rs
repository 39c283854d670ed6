//! Packets of a queue by layer, and their strict priority (IV-F): enhancement layers are dropped
//! first and served last.

use ncmesh_engine::stream::LAYERS;
use std::ops::{AddAssign, SubAssign};

/// Number of packets of each layer, the base first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets(pub [u32; LAYERS]);

impl Packets {
    /// Returns the packets of all layers.
    #[must_use]
    pub fn total(self) -> u32 {
        self.0.iter().fold(0, |sum, layer| sum.saturating_add(*layer))
    }

    /// Returns at most `most` of these, the base first: the packets that are served.
    #[must_use]
    pub fn lowest(self, most: u32) -> Self {
        self.taken(0..LAYERS, most)
    }

    /// Returns at most `most` of these, the highest layer first: the packets that are dropped.
    #[must_use]
    pub fn highest(self, most: u32) -> Self {
        self.taken((0..LAYERS).rev(), most)
    }

    /// Returns at most `most` of these, from the layers in `order`.
    fn taken(self, order: impl Iterator<Item = usize>, mut most: u32) -> Self {
        let mut taken = Self::default();
        for layer in order {
            taken.0[layer] = self.0[layer].min(most);
            most -= taken.0[layer];
        }
        taken
    }
}

impl AddAssign for Packets {
    fn add_assign(&mut self, more: Self) {
        for (layer, packets) in self.0.iter_mut().zip(more.0) {
            *layer = layer.saturating_add(packets);
        }
    }
}

impl SubAssign for Packets {
    fn sub_assign(&mut self, less: Self) {
        for (layer, packets) in self.0.iter_mut().zip(less.0) {
            *layer = layer.saturating_sub(packets);
        }
    }
}
