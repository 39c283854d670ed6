//! Set of packets of one generation, as a bitmap of up to 255 indices.

use ncmesh_wire::record::{Kind, Named, Value};
use ncmesh_wire::{Malformed, Reader, Writer};

/// A set of packet indices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PacketSet([u64; 4]);

impl Value<'_> for PacketSet {
    const KIND: Kind = Kind::Bytes;

    fn read(r: &mut Reader<'_>, how: &Named) -> Result<Self, Malformed> {
        Self::from_wire(how.read(r)?).ok_or(Malformed)
    }

    fn put(&self, w: &mut Writer<'_>, how: &Named) {
        how.put(&self.to_wire(), w);
    }
}

impl PacketSet {
    /// Most bytes of it in a frame.
    pub(crate) const BYTES: usize = 32;

    /// Returns the set of all indices below `packets`.
    pub(crate) fn first_of(packets: u8) -> Self {
        let below = |bits: u32| 1u64.checked_shl(bits).map_or(u64::MAX, |bit| bit - 1);
        Self(std::array::from_fn(|i| below(u32::from(packets).saturating_sub(64 * i as u32))))
    }

    pub(crate) fn insert(&mut self, i: u8) {
        self.0[usize::from(i / 64)] |= 1 << (i % 64);
    }

    pub(crate) fn remove(&mut self, i: u8) {
        self.0[usize::from(i / 64)] &= !(1 << (i % 64));
    }

    pub(crate) fn contains(&self, i: u8) -> bool {
        self.0[usize::from(i / 64)] >> (i % 64) & 1 == 1
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns the lowest index in the set.
    pub(crate) fn lowest(&self) -> Option<u8> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some((word as u32 * 64 + self.0[word].trailing_zeros()) as u8)
    }

    /// Returns the union of both sets.
    pub(crate) fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    /// Returns the intersection of both sets.
    pub(crate) fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    /// Returns the indices in this set that are not in `other`.
    pub(crate) fn without(self, other: Self) -> Self {
        self.zip(other, |a, b| a & !b)
    }

    fn zip(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    /// Encodes the set for a frame: a bit for each index, most significant first, without trailing
    /// zero bytes.
    pub(crate) fn to_wire(self) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            self.0.iter().flat_map(|word| word.reverse_bits().to_be_bytes()).collect();
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes
    }

    /// Decodes what [`to_wire`](Self::to_wire) encoded; `None` if it is longer than a set can be.
    pub(crate) fn from_wire(bytes: &[u8]) -> Option<Self> {
        let mut padded = [0; Self::BYTES];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let mut set = Self::default();
        for (word, bytes) in set.0.iter_mut().zip(padded.chunks_exact(8)) {
            *word = bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)).reverse_bits();
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(numbers: &BTreeSet<u8>) -> PacketSet {
        let mut set = PacketSet::default();
        numbers.iter().for_each(|i| set.insert(*i));
        set
    }

    #[test]
    fn the_first_bit_on_the_wire_is_packet_0() {
        assert_eq!(set(&BTreeSet::from([0, 9])).to_wire(), [0x80, 0x40]);
        assert_eq!(PacketSet::first_of(255).to_wire().len(), 32);
        for packets in 0..=255 {
            assert_eq!(PacketSet::first_of(packets), set(&(0..packets).collect()));
        }
        assert_eq!(PacketSet::from_wire(&[0; 33]), None);
    }

    proptest! {
        #[test]
        fn it_behaves_as_a_set_of_numbers(
            a in prop::collection::btree_set(any::<u8>(), 0..80),
            b in prop::collection::btree_set(any::<u8>(), 0..80),
        ) {
            let x = set(&a);
            let y = set(&b);
            prop_assert_eq!(PacketSet::from_wire(&x.to_wire()), Some(x));
            prop_assert_eq!((x.len() as usize, x.is_empty()), (a.len(), a.is_empty()));
            prop_assert_eq!(x.lowest(), a.first().copied());
            prop_assert_eq!(x.or(y), set(&a.union(&b).copied().collect()));
            prop_assert_eq!(x.and(y), set(&a.intersection(&b).copied().collect()));
            prop_assert_eq!(x.without(y), set(&a.difference(&b).copied().collect()));
            prop_assert!((0..=255).all(|i| x.contains(i) == a.contains(&i)));
        }
    }
}
