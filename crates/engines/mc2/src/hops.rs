//! Next hops of a node on a flow's paths, and sets of them.
//!
//! The paper keeps transmission credits for each set J of next hops (3.4). Hops are numbered by
//! their place in DST(n, c), so that a set fits in a byte and indexes arrays.

/// Most next hops of a node. It keeps counts for each of their 2^6 sets.
pub(crate) const MAX_HOPS: usize = 6;

/// A set of next hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HopSet(u8);

impl HopSet {
    /// Returns the set of the first `hops` hops.
    pub(crate) fn all(hops: usize) -> Self {
        (0..hops).collect()
    }

    /// Returns the set of one hop.
    pub(crate) fn single(hop: usize) -> Self {
        [hop].into_iter().collect()
    }

    /// Lists the sets of the first `hops` hops that are not empty, in the order of their index.
    pub(crate) fn nonempty(hops: usize) -> impl Iterator<Item = Self> {
        (1..=Self::all(hops).0).map(Self)
    }

    /// Returns its place in arrays of 2^hops counts; 0 for the empty set.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub(crate) fn contains(self, hop: usize) -> bool {
        self.0 >> hop & 1 == 1
    }

    pub(crate) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Lists its hops in ascending order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_HOPS).filter(move |hop| self.contains(*hop))
    }
}

impl FromIterator<usize> for HopSet {
    /// Collects hops. Numbers that no hop can have are left out.
    fn from_iter<I: IntoIterator<Item = usize>>(hops: I) -> Self {
        let valid = hops.into_iter().filter(|hop| *hop < MAX_HOPS);
        Self(valid.fold(0, |bits, hop| bits | 1 << hop))
    }
}
