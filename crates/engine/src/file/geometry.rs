//! Geometry of a file: how it is cut into generations and packets.
//!
//! A generation is up to k packets that are coded together (Pacifier, III-A.1). It
//! carries a part of the file and, behind it, the generation's branch of the hash tree. The more
//! generations there are, the longer the branch, and the less space is left for data. So the depth
//! of the tree is the smallest one whose generations hold the whole file.

use ncmesh_code::{Field, Shape};

/// Size of the largest file, bytes: 16 TiB.
const MAX_SIZE: u64 = 1 << 44;
/// Most levels of the hash tree, for 2^24 generations. A receiver keeps a bit for each generation
/// of an announced file, so this bounds what a false announcement can cost it.
const MAX_DEPTH: usize = 24;
/// Bytes of each level of a generation's branch.
const BRANCH_LEVEL: usize = 32;

/// File that is cut into generations of up to `generation` packets of `symbol_size` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    size: u64,
    generation: u8,
    symbol_size: u16,
    depth: usize,
    generations: u32,
}

/// Reason why a file cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// It is over 16 TiB, or needs more generations than can be numbered.
    #[error("the file is too large: at most 16 TiB in at most 2^24 generations")]
    TooLarge,
    /// Packets are so small that the hashes leave no space for data.
    #[error("packets of {0} bytes in generations of {1} leave no room for data; use larger ones")]
    TooSmall(u16, u8),
}

impl Geometry {
    /// Cuts `size` bytes into generations of `generation` packets of `symbol_size` bytes.
    ///
    /// # Errors
    /// [`GeometryError`] if there would be too many generations, or no space in them.
    pub fn new(size: u64, generation: u8, symbol_size: u16) -> Result<Self, GeometryError> {
        if size > MAX_SIZE {
            return Err(GeometryError::TooLarge);
        }

        let capacity = usize::from(generation) * usize::from(symbol_size);

        // Each generation carries its branch of the hash tree. A deeper tree has more generations
        // but leaves less room in each, so the depth is the first one whose tree holds all of them.
        for depth in 0..=MAX_DEPTH {
            let room = capacity.saturating_sub(BRANCH_LEVEL * depth);
            if room == 0 {
                return Err(GeometryError::TooSmall(symbol_size, generation));
            }
            let generations = size.div_ceil(room as u64);
            if generations <= 1 << depth {
                let generations =
                    u32::try_from(generations).map_err(|_| GeometryError::TooLarge)?;
                return Ok(Self { size, generation, symbol_size, depth, generations });
            }
        }

        Err(GeometryError::TooLarge)
    }

    /// Returns the size of the file, bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the packets of a full generation (k).
    #[must_use]
    pub fn generation(&self) -> u8 {
        self.generation
    }

    /// Returns the payload of a packet, bytes.
    #[must_use]
    pub fn symbol_size(&self) -> u16 {
        self.symbol_size
    }

    /// Returns the number of generations; an empty file has none.
    #[must_use]
    pub fn generations(&self) -> u32 {
        self.generations
    }

    /// Returns the levels of the hash tree above the generations.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the offset of `generation` in the file, bytes.
    #[must_use]
    pub fn offset(&self, generation: u32) -> u64 {
        u64::from(generation) * self.full_len() as u64
    }

    /// Returns the bytes of the file that `generation` carries.
    #[must_use]
    pub fn data_len(&self, generation: u32) -> usize {
        let left = self.size.saturating_sub(self.offset(generation));
        left.min(self.full_len() as u64) as usize
    }

    /// Returns the packets of `generation`; the last generation may have fewer than the others.
    #[must_use]
    pub fn packets(&self, generation: u32) -> u8 {
        let bytes = self.data_len(generation) + BRANCH_LEVEL * self.depth;
        bytes.div_ceil(usize::from(self.symbol_size)) as u8
    }

    /// Returns the shape of the code of `generation`: GF(2^8), one symbol for each packet.
    #[must_use]
    pub fn shape(&self, generation: u32) -> Shape {
        let packets = usize::from(self.packets(generation));
        let size = usize::from(self.symbol_size);
        Shape::new(Field::Gf256, packets.max(1), size)
            .expect("sizes were checked when the file was cut")
    }

    /// Returns the bytes of the file that a full generation carries.
    fn full_len(&self) -> usize {
        usize::from(self.generation) * usize::from(self.symbol_size) - BRANCH_LEVEL * self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_and_tiny_files() {
        let empty = Geometry::new(0, 32, 1400).unwrap();
        assert_eq!(empty.generations(), 0);
        let tiny = Geometry::new(1, 32, 1400).unwrap();
        assert_eq!((tiny.generations(), tiny.packets(0), tiny.data_len(0)), (1, 1, 1));
    }

    #[test]
    fn absurd_sizes_are_refused() {
        assert_eq!(Geometry::new(u64::MAX, 32, 1400), Err(GeometryError::TooLarge));
        assert_eq!(Geometry::new(1 << 40, 1, 1400), Err(GeometryError::TooLarge));
        assert_eq!(Geometry::new(1, 0, 1400), Err(GeometryError::TooSmall(1400, 0)));
        assert_eq!(Geometry::new(1000, 1, 1), Err(GeometryError::TooSmall(1, 1)));
    }

    proptest! {
        #[test]
        fn generations_cover_the_file(size in 0u64..5_000_000, k in 1u8..=255, symbol in 64u16..2000) {
            let Ok(g) = Geometry::new(size, k, symbol) else { return Ok(()) };
            let mut at = 0;
            for b in 0..g.generations() {
                prop_assert_eq!(g.offset(b), at);
                prop_assert!(g.data_len(b) > 0 && g.packets(b) >= 1 && g.packets(b) <= k);
                let room = usize::from(g.packets(b)) * usize::from(symbol);
                prop_assert!(g.data_len(b) + 32 * g.depth() <= room);
                at += g.data_len(b) as u64;
            }
            prop_assert_eq!(at, size);
            prop_assert!(u64::from(g.generations()) <= 1 << g.depth());
        }
    }
}
