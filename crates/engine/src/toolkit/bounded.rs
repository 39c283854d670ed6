//! Bounded tables: what peers can make a node keep never exceeds a limit.

use crate::time::Duration;
use std::collections::BTreeMap;

/// Most flows for which a tunnel scheme keeps state.
pub const MAX_FLOWS: usize = 32;
/// Silence after which a tunnel scheme forgets a flow.
pub const IDLE: Duration = Duration::from_secs(60);

/// Makes a place for `key` in a table of at most `most` entries. If the table is full, removes and
/// returns the entry of the lowest `rank`, such as the one that was silent longest; of several, the
/// one with the lowest key.
pub fn make_room<K: Ord + Clone, V, R: Ord>(
    table: &mut BTreeMap<K, V>,
    key: &K,
    most: usize,
    rank: impl Fn(&V) -> R,
) -> Option<(K, V)> {
    if table.len() < most || table.contains_key(key) {
        return None;
    }

    // A linear search: tables are small, and full seldom.
    let evicted = table.iter().min_by_key(|(_, entry)| rank(entry)).map(|(key, _)| key.clone())?;
    table.remove_entry(&evicted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_table_stays_bounded_and_loses_the_lowest_rank(
            inserts in prop::collection::vec((0..40u16, 0..1000u32), 1..200),
            most in 1..20usize,
        ) {
            let mut table = BTreeMap::new();
            for (key, rank) in inserts {
                let lowest = table.values().copied().min();
                let full = table.len() == most && !table.contains_key(&key);
                let evicted = make_room(&mut table, &key, most, |rank| *rank);
                prop_assert_eq!(evicted.map(|(_, rank)| rank), lowest.filter(|_| full));
                table.insert(key, rank);
                prop_assert!(table.len() <= most);
            }
        }
    }
}
