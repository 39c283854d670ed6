//! Sets of generations: which generations of a file are complete.

/// Set of generation numbers below a fixed count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationSet {
    words: Vec<u64>,
    len: u32,
    count: u32,
}

impl GenerationSet {
    /// Returns a set with none of `len` generations.
    #[must_use]
    pub fn none(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize], len, count: 0 }
    }

    /// Returns a set with all of `len` generations.
    #[must_use]
    pub fn all(len: u32) -> Self {
        Self::first(len, len)
    }

    /// Returns a set with the first `count` of `len` generations.
    fn first(len: u32, count: u32) -> Self {
        let mut set = Self::none(len);
        set.count = count;
        set.words[..(count / 64) as usize].fill(u64::MAX);

        // The last word may have bits beyond the first generations, which must stay clear.
        if !count.is_multiple_of(64) {
            set.words[(count / 64) as usize] = (1 << (count % 64)) - 1;
        }
        set
    }

    /// Returns the number of generations of the file.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Returns whether no generation is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of generations in the set.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns whether every generation is in the set.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count == self.len
    }

    /// Returns whether `generation` is in the set.
    #[must_use]
    pub fn contains(&self, generation: u32) -> bool {
        generation < self.len
            && self.words[(generation / 64) as usize] >> (generation % 64) & 1 == 1
    }

    /// Adds `generation`. Returns whether it was new. Ignores a number beyond the last generation.
    pub fn insert(&mut self, generation: u32) -> bool {
        // Numbers may come from the network: the count must stay that of the bits.
        if generation >= self.len || self.contains(generation) {
            return false;
        }
        self.words[(generation / 64) as usize] |= 1 << (generation % 64);
        self.count += 1;
        true
    }

    /// Returns the generations in the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).filter(|b| self.contains(*b))
    }

    /// Returns the lowest generation that is not in the set; the number of generations if all are.
    #[must_use]
    pub fn first_missing(&self) -> u32 {
        let word = self.words.iter().position(|w| *w != u64::MAX);
        word.map_or(self.len, |i| (i as u32 * 64 + self.words[i].trailing_ones()).min(self.len))
    }

    /// Returns the set as it goes over the air: the first missing generation, and a bit for each
    /// generation after it, the most significant bit first. Trailing zero bytes are left out.
    /// Generations that do not fit `max_bytes` count as missing.
    #[must_use]
    pub fn to_wire(&self, max_bytes: usize) -> (u32, Vec<u8>) {
        // Everything before the first missing generation is there, so bits begin behind it.
        let first = self.first_missing();
        let behind = self.len.saturating_sub(first + 1);
        let bytes = (behind.div_ceil(8) as usize).min(max_bytes);
        let mut bits = vec![0u8; bytes];
        for i in 0..(bytes as u32 * 8).min(behind) {
            if self.contains(first + 1 + i) {
                bits[(i / 8) as usize] |= 0x80 >> (i % 8);
            }
        }

        // Zeros at the end say nothing, and are left out.
        while bits.last() == Some(&0) {
            bits.pop();
        }
        (first, bits)
    }

    /// Reads what [`to_wire`](Self::to_wire) wrote. Ignores numbers beyond `len`.
    #[must_use]
    pub fn from_wire(len: u32, first: u32, bits: &[u8]) -> Self {
        // The sender may be wrong or hostile: `first` is bounded here, each bit by `insert`.
        let mut set = Self::first(len, first.min(len));
        for (i, byte) in bits.iter().enumerate() {
            for bit in (0..8u32).filter(|bit| byte & (0x80 >> bit) != 0) {
                set.insert(first.saturating_add(1 + i as u32 * 8 + bit));
            }
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn generations_that_do_not_fit_count_as_missing() {
        let mut set = GenerationSet::all(100);
        set = GenerationSet::from_wire(100, 0, &set.to_wire(0).1);
        assert!(set.is_empty());
        let full = GenerationSet::all(100);
        assert_eq!(full.to_wire(0), (100, vec![]));
        assert!(GenerationSet::from_wire(100, 100, &[]).is_full());
        assert!(GenerationSet::from_wire(10, u32::MAX, &[0xFF; 9]).is_full());
    }

    proptest! {
        #[test]
        fn sets_survive_the_wire(
            len in 0u32..700,
            chosen in prop::collection::vec(0u32..700, 0..300),
        ) {
            let mut set = GenerationSet::none(len);
            for b in chosen {
                let new = b < len && !set.contains(b);
                prop_assert_eq!(set.insert(b), new);
            }
            prop_assert_eq!(set.iter().count() as u32, set.count());
            let missing = (0..len).find(|b| !set.contains(*b)).unwrap_or(len);
            prop_assert_eq!(set.first_missing(), missing);
            let (first, bits) = set.to_wire(100);
            prop_assert_eq!(GenerationSet::from_wire(len, first, &bits), set);
        }
    }
}
