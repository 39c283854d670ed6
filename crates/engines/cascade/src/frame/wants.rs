//! Generations that a node still wants from upstream.

/// Rank that stands for a generation that is not wanted.
pub(crate) const UNWANTED: u8 = 255;

/// Most ranks in a list.
pub(crate) const MOST_RANKS: usize = 200;

/// Lowest generation wanted, of a node that wants none.
const NONE: u32 = u32::MAX;

/// Generations that a node still wants from upstream, and what it does with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wants {
    /// Lowest generation that is wanted; `u32::MAX` if none is.
    pub first: u32,
    /// Ranks held of that one and of those behind it, in order; [`UNWANTED`] if one is not wanted.
    /// Generations behind the list are wanted, and nothing is held of them, unless it is cut.
    pub ranks: Vec<u8>,
    /// Whether the list ends for lack of room. Generations behind it are as they were before.
    pub is_cut: bool,
    /// Generations below `first` that it holds whole and that a child of it wants; of the child
    /// that lacks fewest.
    pub backlog: u8,
    /// Whether it receives the file itself.
    pub receives: bool,
    /// Whether it has children.
    pub forwards: bool,
    /// Whether one of its children has children.
    pub feeds: bool,
}

impl Default for Wants {
    /// Wants everything and has nothing.
    fn default() -> Self {
        Self {
            first: 0,
            ranks: Vec::new(),
            is_cut: false,
            backlog: 0,
            receives: false,
            forwards: false,
            feeds: false,
        }
    }
}

impl Wants {
    /// Returns the wants of a node that needs nothing more.
    pub(crate) fn nothing() -> Self {
        Self { first: NONE, ..Self::default() }
    }

    /// Returns the wants of a node that holds `ranks` of the generation `first` and those behind,
    /// for a frame that lists at most `room` of them.
    pub(crate) fn from(first: u32, ranks: impl Iterator<Item = u8>, room: usize) -> Self {
        let mut ranks: Vec<u8> = ranks.take(room).collect();
        let is_cut = ranks.len() == room;
        while !is_cut && ranks.last() == Some(&0) {
            ranks.pop();
        }
        Self { first, ranks, is_cut, ..Self::default() }
    }

    /// Returns the first generation behind the list of which it says nothing.
    pub(crate) fn listed_until(&self) -> u32 {
        if self.is_cut { self.first.saturating_add(self.ranks.len() as u32) } else { u32::MAX }
    }

    /// Adds to a list that is cut what was known `before` of the generations behind it.
    pub(crate) fn complete(&mut self, before: &Self) {
        if !self.is_cut {
            return;
        }
        let listed = before.first.saturating_add(before.ranks.len() as u32);
        let end = listed.min(self.first.saturating_add(MOST_RANKS as u32));
        for generation in self.listed_until()..end {
            self.ranks.push(before.rank(generation).unwrap_or(UNWANTED));
        }
    }

    /// Returns the lowest generation that is wanted, if one is.
    pub(crate) fn lowest(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// Returns the rank held of a generation, if it is wanted.
    pub(crate) fn rank(&self, generation: u32) -> Option<u8> {
        let place = generation.checked_sub(self.first)?;
        let rank = self.ranks.get(place as usize).copied().unwrap_or(0);
        (rank != UNWANTED && self.first != NONE).then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_are_those_of_the_list_and_zero_behind_it(
            first in 0..1000u32,
            ranks in prop::collection::vec(prop_oneof![0..3u8, Just(UNWANTED)], 0..20),
        ) {
            let wants = Wants::from(first, ranks.iter().copied(), 20);
            prop_assert!(!wants.is_cut && wants.ranks.last() != Some(&0));
            for (generation, rank) in (first..).zip(&ranks) {
                prop_assert_eq!(wants.rank(generation), (*rank != UNWANTED).then_some(*rank));
            }
            prop_assert_eq!(wants.rank(first + ranks.len() as u32), Some(0));
            prop_assert!((0..first).all(|generation| wants.rank(generation).is_none()));
        }
    }

    #[test]
    fn a_list_that_is_cut_leaves_what_was_known_behind_it() {
        let from = |first, ranks: &[u8], room| Wants::from(first, ranks.iter().copied(), room);
        let before = from(2, &[1, UNWANTED, 3, UNWANTED, 5], 200);
        let mut wants = from(3, &[UNWANTED, 4, 0, 0], 2);
        wants.complete(&before);
        assert_eq!((wants.first, &wants.ranks[..]), (3, &[UNWANTED, 4, UNWANTED, 5][..]));
        // A list with room left says all, however long it is.
        let mut all = from(3, &[7; 20], 200);
        all.complete(&from(3, &[9; 30], 200));
        assert_eq!(all.ranks, [7; 20]);
        // One far away says nothing of what is here, and a list has an end.
        let mut near = from(0, &[1, 1], 2);
        near.complete(&from(u32::MAX - 9, &[1; 9], 200));
        assert_eq!(near.ranks.len(), MOST_RANKS);
    }

    #[test]
    fn nothing_is_wanted_of_a_node_that_wants_nothing() {
        let wants = Wants::nothing();
        assert_eq!((wants.lowest(), wants.rank(0), wants.rank(u32::MAX)), (None, None, None));
        assert_eq!(Wants::default().rank(7), Some(0));
    }
}
