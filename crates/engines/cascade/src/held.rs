//! Generations of a transfer that a node holds, and those that it lacks.
//!
//! Every node on the way decodes a generation once it is whole and checks it against the hash tree
//! of the announcement. One that a forged packet spoiled is dropped and taken anew, then from the
//! parent alone. A node may pass combinations on before its generation is whole, and a forged
//! packet with them; the next nodes find out as it does.

use super::frame::Data;
use super::sending::Sending;
use ncmesh_code::{CodeError, Decoder};
use ncmesh_engine::file::{BatchSet, Manifest};
use ncmesh_transfer::frame::append_coding;
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

/// Part that a node has in a transfer.
#[derive(Debug)]
pub(super) enum Role {
    /// It has the file.
    Source(Sending),
    /// It wants the file; the generations that are complete.
    Receiver(BatchSet),
    /// It wants what its children want.
    Relay,
}

/// Generations of a transfer that a node holds.
#[derive(Debug)]
pub(super) struct Held {
    pub manifest: Manifest,
    pub role: Role,
    generations: BTreeMap<u32, Decoder>,
    /// Generations that were spoiled, and are taken from the parent alone.
    spoiled: BTreeSet<u32>,
}

/// Outcome of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It does not fit the file.
    Malformed,
    /// It says nothing new.
    Redundant,
    /// It raised the rank.
    Innovative,
    /// It made its generation whole.
    Whole,
}

impl Held {
    pub(super) fn new(manifest: Manifest, role: Role) -> Self {
        Self { manifest, role, generations: BTreeMap::new(), spoiled: BTreeSet::new() }
    }

    pub(super) fn is_source(&self) -> bool {
        matches!(self.role, Role::Source(_))
    }

    pub(super) fn is_relay(&self) -> bool {
        matches!(self.role, Role::Relay)
    }

    /// Returns the number of generations.
    pub(super) fn len(&self) -> u32 {
        self.manifest.geometry.batches()
    }

    /// Returns the number of packets of a generation; 0 if there is no such generation.
    pub(super) fn packets(&self, generation: u32) -> u8 {
        let g = &self.manifest.geometry;
        if generation < g.batches() { g.packets(generation) } else { 0 }
    }

    /// Returns how many independent combinations of a generation are held.
    pub(super) fn rank(&self, generation: u32) -> u8 {
        if self.is_source() {
            return self.packets(generation);
        }
        self.generations.get(&generation).map_or(0, |held| held.rank() as u8)
    }

    /// Returns whether a generation is held whole, to be passed on.
    pub(super) fn is_whole(&self, generation: u32) -> bool {
        self.is_source() || self.generations.get(&generation).is_some_and(Decoder::is_complete)
    }

    /// Returns whether this node itself wants a generation.
    pub(super) fn lacks(&self, generation: u32) -> bool {
        match &self.role {
            Role::Receiver(have) => generation < have.len() && !have.contains(generation),
            Role::Source(_) | Role::Relay => false,
        }
    }

    /// Returns the lowest generation that this node itself wants.
    pub(super) fn lowest_lacking(&self) -> Option<u32> {
        match &self.role {
            Role::Receiver(have) => (!have.is_full()).then(|| have.first_missing()),
            Role::Source(_) | Role::Relay => None,
        }
    }

    /// Returns the generations from `lowest` on of which something is held.
    pub(super) fn begun(&self, lowest: u32) -> impl Iterator<Item = u32> + '_ {
        self.generations.range(lowest..).map(|(generation, _)| *generation)
    }

    /// Returns whether packets of a generation are taken from the parent alone.
    pub(super) fn is_spoiled(&self, generation: u32) -> bool {
        self.spoiled.contains(&generation)
    }

    /// Returns whether something of a generation is held.
    pub(super) fn has_begun(&self, generation: u32) -> bool {
        self.generations.contains_key(&generation)
    }

    /// Takes a data packet of a generation that is wanted.
    pub(super) fn absorb(&mut self, packet: &Data<'_>) -> Taken {
        let generation = packet.header.generation;
        let packets = packet.header.packets;
        if packets != self.packets(generation) {
            return Taken::Malformed;
        }
        let shape = self.manifest.geometry.shape(generation);
        let held = self.generations.entry(generation).or_insert_with(|| Decoder::new(shape));
        let absorbed =
            packet.coding.with_vector(packets, |vector| held.absorb(vector, packet.payload));
        match absorbed {
            Err(_) => Taken::Malformed,
            Ok(absorbed) if !absorbed.is_innovative() => Taken::Redundant,
            Ok(_) if held.is_complete() => Taken::Whole,
            Ok(_) => Taken::Innovative,
        }
    }

    /// Returns the packets of a generation that is whole, one after the other.
    pub(super) fn decode(&mut self, generation: u32) -> Option<&[u8]> {
        self.generations.get_mut(&generation)?.decode()
    }

    /// Notes that a whole generation is not what was announced: it begins anew.
    pub(super) fn spoil(&mut self, generation: u32) {
        self.generations.remove(&generation);
        self.spoiled.insert(generation);
    }

    /// Notes that a whole generation is what was announced.
    pub(super) fn complete(&mut self, generation: u32) {
        self.spoiled.remove(&generation);
        if let Role::Receiver(have) = &mut self.role {
            have.insert(generation);
        }
    }

    /// Drops generations that neither this node wants nor, as `is_wanted` says, its children, the
    /// lowest first, until those that are left take no more than `limit` bytes.
    pub(super) fn drop_unwanted(&mut self, limit: usize, is_wanted: impl Fn(u32) -> bool) {
        if self.memory() <= limit {
            return;
        }
        let is_unwanted = |generation: &u32| !self.lacks(*generation) && !is_wanted(*generation);
        let mut unwanted: Vec<u32> = self.begun(0).filter(is_unwanted).collect();
        unwanted.truncate(unwanted.len().saturating_sub(limit / self.memory_of_generation()));
        for generation in unwanted {
            self.generations.remove(&generation);
        }
    }

    /// Returns the last generation of which something is held.
    pub(super) fn last_begun(&self) -> Option<u32> {
        self.generations.last_key_value().map(|(generation, _)| *generation)
    }

    /// Drops the last generation of which something is held: it is wanted last.
    pub(super) fn drop_last(&mut self) {
        self.generations.pop_last();
    }

    /// Returns the bytes that it takes, about.
    pub(super) fn memory(&self) -> usize {
        self.generations.len() * self.memory_of_generation()
    }

    /// Returns the bytes that a generation takes, about: packets as they came, and decoded.
    pub(super) fn memory_of_generation(&self) -> usize {
        let g = &self.manifest.geometry;
        2 * usize::from(g.generation()) * (usize::from(g.symbol_size()) + 64)
    }

    /// Appends coding vector and payload of a random combination of what is held of a generation.
    /// Returns whether there was any.
    pub(super) fn recode(
        &self,
        generation: u32,
        rng: &mut impl RngCore,
        out: &mut Vec<u8>,
    ) -> Result<bool, CodeError> {
        let Some(held) = self.generations.get(&generation) else { return Ok(false) };
        let (vector, payload) = append_coding(held.shape(), out);
        held.recode(rng, vector, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{DataHeader, Wants};
    use ncmesh_engine::file::Geometry;
    use ncmesh_transfer::frame::Coding;
    use ncmesh_wire::{FlowId, NodeId};

    /// A relay that holds the first packet of each of six generations.
    fn relay() -> Held {
        let geometry = Geometry::new(6 * 4 * 100, 4, 200).unwrap();
        let flow = FlowId { source: NodeId(1), serial: 1 };
        let root = [0; 32];
        let hash = [0; 32];
        let mut held =
            Held::new(Manifest { flow, name: "f".into(), geometry, root, hash }, Role::Relay);
        for generation in 0..geometry.batches() {
            let packets = geometry.packets(generation);
            let number = 0;
            let parent = NodeId(1);
            let wants = Wants::nothing();
            let header = DataHeader {
                flow,
                generation,
                packets,
                rank: 1,
                poll: false,
                number,
                parent,
                wants,
            };
            let packet = Data { header, coding: Coding::Systematic(0), payload: &[1; 200] };
            assert_eq!(held.absorb(&packet), Taken::Innovative);
        }
        held
    }

    #[test]
    fn what_nobody_wants_is_kept_within_its_limit_and_the_lowest_goes_first() {
        let mut held = relay();
        let begun = |held: &Held| held.begun(0).collect::<Vec<_>>();
        let all = begun(&held);
        assert!(all.len() >= 4, "{all:?}");
        held.drop_unwanted(held.memory(), |_| false);
        assert_eq!(begun(&held), all);
        held.drop_unwanted(2 * held.memory_of_generation(), |g| g == 1);
        let last = &all[all.len() - 2..];
        assert_eq!(begun(&held), [&[1], last].concat());
        held.drop_unwanted(0, |g| g == 1);
        assert_eq!(begun(&held), [1]);
    }
}
