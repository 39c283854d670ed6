//! Generations of a transfer that a node holds, and those that it lacks.
//!
//! Every node on the way decodes a generation once it is whole and checks it against the hash tree
//! of the announcement. One that is false is disputed: its packets are kept, and more are taken
//! from the parent alone, until the true ones among them are found
//! ([`dispute`](ncmesh_engine::toolkit::dispute)), with the help of checks of the source
//! ([`check`](ncmesh_engine::file::check)). Nothing of it is passed on meanwhile. A node may
//! pass combinations on before its generation is whole, and a false packet with them; the next
//! nodes find out as it does.

use super::frame::Data;
use super::sending::Sending;
use ncmesh_code::{CodeError, Decoder};
use ncmesh_engine::blame::Given;
use ncmesh_engine::file::check::Nonce;
use ncmesh_engine::file::{GenerationSet, Manifest};
use ncmesh_engine::toolkit::dispute::{Dispute, Origin};
use ncmesh_transfer::frame::{Check, append_coding};
use ncmesh_transfer::sink::is_genuine;
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::collections::{BTreeMap, BTreeSet};

/// Most generations of a transfer that are disputed at a time. Others that are false begin again.
const MOST_DISPUTED: usize = 16;

/// Part that a node has in a transfer.
#[derive(Debug)]
pub(super) enum Role {
    /// It has the file.
    Source(Sending),
    /// It wants the file; the generations that are complete.
    Receiver(GenerationSet),
    /// It wants what its children want.
    Relay,
}

/// Generations of a transfer that a node holds.
#[derive(Debug)]
pub(super) struct Held {
    pub manifest: Manifest,
    pub role: Role,
    generations: BTreeMap<u32, Generation>,
    /// Generations that were false when they were whole, and are taken from the parent alone.
    spoiled: BTreeSet<u32>,
    /// Whether a check was not the source's, since that was last asked.
    is_misled: bool,
}

/// A generation that a node holds a part of, or all.
#[derive(Debug)]
enum Generation {
    Open {
        decoder: Box<Decoder>,
        /// Senders of its packets, in the order in which they came.
        origins: Vec<Origin>,
    },
    Disputed(Dispute),
}

impl Generation {
    fn is_disputed(&self) -> bool {
        matches!(self, Self::Disputed(_))
    }
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
    /// Its generation is disputed.
    Disputed,
}

impl Held {
    pub(super) fn new(manifest: Manifest, role: Role) -> Self {
        Self {
            manifest,
            role,
            generations: BTreeMap::new(),
            spoiled: BTreeSet::new(),
            is_misled: false,
        }
    }

    pub(super) fn is_source(&self) -> bool {
        matches!(self.role, Role::Source(_))
    }

    pub(super) fn is_relay(&self) -> bool {
        matches!(self.role, Role::Relay)
    }

    /// Returns the number of generations.
    pub(super) fn len(&self) -> u32 {
        self.manifest.geometry.generations()
    }

    /// Returns the number of packets of a generation; 0 if there is no such generation.
    pub(super) fn packets(&self, generation: u32) -> u8 {
        let g = &self.manifest.geometry;
        if generation < g.generations() { g.packets(generation) } else { 0 }
    }

    /// Returns how many independent combinations of a generation are held.
    pub(super) fn rank(&self, generation: u32) -> u8 {
        if self.is_source() {
            return self.packets(generation);
        }
        self.open(generation).map_or(0, |decoder| decoder.rank() as u8)
    }

    /// Returns the same as it is told to the parent: of a disputed generation, what is missing
    /// until the true packets are looked for again is wanted.
    pub(super) fn told_rank(&self, generation: u32) -> u8 {
        match self.generations.get(&generation) {
            Some(Generation::Disputed(dispute)) => {
                let lacks = dispute.lacks().min(u8::MAX.into()) as u8;
                self.packets(generation).saturating_sub(lacks)
            }
            _ => self.rank(generation),
        }
    }

    fn open(&self, generation: u32) -> Option<&Decoder> {
        match self.generations.get(&generation)? {
            Generation::Open { decoder, .. } => Some(decoder),
            Generation::Disputed(_) => None,
        }
    }

    /// Returns whether a generation is held whole, to be passed on.
    pub(super) fn is_whole(&self, generation: u32) -> bool {
        self.is_source() || self.open(generation).is_some_and(Decoder::is_complete)
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
    pub(super) fn absorb(&mut self, sender: NodeId, packet: &Data<'_>) -> Taken {
        let generation = packet.header.generation;
        let packets = packet.header.packets;
        if packets != self.packets(generation) {
            return Taken::Malformed;
        }

        // Its first packet begins a generation.
        let shape = self.manifest.geometry.shape(generation);
        let begin = || {
            let decoder = Box::new(Decoder::new(shape));
            Generation::Open { decoder, origins: Vec::new() }
        };

        // The sender of each packet is kept, to find the one that gave a false packet.
        let origin = Origin { sender, is_vouched: packet.header.rank >= packets };
        let payload = packet.payload;
        match self.generations.entry(generation).or_insert_with(begin) {
            Generation::Open { decoder, origins } => {
                let absorbed =
                    packet.coding.with_vector(packets, |vector| decoder.absorb(vector, payload));
                let Ok(absorbed) = absorbed else { return Taken::Malformed };
                if !absorbed.is_innovative() {
                    return Taken::Redundant;
                }
                origins.push(origin);
                if decoder.is_complete() { Taken::Whole } else { Taken::Innovative }
            }
            Generation::Disputed(dispute) => {
                packet.coding.with_vector(packets, |vector| dispute.take(origin, vector, payload));
                Taken::Disputed
            }
        }
    }

    /// Returns the packets of a generation that is whole, one after the other.
    pub(super) fn decode(&mut self, generation: u32) -> Option<&[u8]> {
        match self.generations.get_mut(&generation)? {
            Generation::Open { decoder, .. } => decoder.decode(),
            Generation::Disputed(_) => None,
        }
    }

    /// Notes that a whole generation is not what was announced: it is disputed.
    pub(super) fn spoil(&mut self, generation: u32) {
        self.spoiled.insert(generation);
        let disputed = self.generations.values().filter(|held| held.is_disputed()).count();
        if let Some(Generation::Open { decoder, origins }) = self.generations.remove(&generation)
            && disputed < MOST_DISPUTED
        {
            let dispute = Dispute::new(&decoder, &origins);
            self.generations.insert(generation, Generation::Disputed(dispute));
        }
    }

    /// Returns whether the packets of a disputed generation may come from a node that tells nothing
    /// true.
    pub(super) fn is_stubborn(&self, generation: u32) -> bool {
        let held = self.generations.get(&generation);
        matches!(held, Some(Generation::Disputed(dispute)) if dispute.is_stubborn())
    }

    /// Begins a question for a check of the packets of a disputed generation. Returns its nonce.
    pub(super) fn ask(&mut self, generation: u32, rng: &mut impl RngCore) -> Option<Nonce> {
        match self.generations.get_mut(&generation)? {
            Generation::Disputed(dispute) if dispute.wants_check() => {
                let nonce = Nonce::draw(rng);
                dispute.ask(nonce);
                Some(nonce)
            }
            _ => None,
        }
    }

    /// Judges the packets of a disputed generation by a check that this node asked for. Returns
    /// whether any was judged.
    pub(super) fn judge(&mut self, check: &Check) -> bool {
        let generation = check.of.generation;
        let Some(Generation::Disputed(dispute)) = self.generations.get_mut(&generation) else {
            return false;
        };
        dispute.judge(check.of, check.nonce, &check.sums)
    }

    /// Returns whether a check has misled this node since the last call.
    pub(super) fn take_misled(&mut self) -> bool {
        core::mem::take(&mut self.is_misled)
    }

    /// Returns whether it is time to look for the true packets of a disputed generation.
    pub(super) fn is_due(&self, generation: u32) -> bool {
        let held = self.generations.get(&generation);
        matches!(held, Some(Generation::Disputed(dispute)) if dispute.is_due())
    }

    /// Looks for the true packets of a disputed generation. Returns what each sender
    /// gave of it if they were found; the generation is whole then.
    pub(super) fn settle(
        &mut self,
        generation: u32,
        rng: &mut impl RngCore,
    ) -> Option<BTreeMap<NodeId, Given>> {
        let manifest = &self.manifest;
        let held = self.generations.get_mut(&generation)?;
        let Generation::Disputed(dispute) = held else { return None };
        let settled = dispute.settle(rng, |symbols| is_genuine(manifest, generation, symbols));
        self.is_misled |= dispute.take_misled();
        let settled = settled?;
        let mut decoder = Box::new(Decoder::new(manifest.geometry.shape(generation)));
        decoder.load(&settled.symbols).ok()?;
        let held = Generation::Open { decoder, origins: Vec::new() };
        self.generations.insert(generation, held);
        Some(settled.given)
    }

    /// Notes that a whole generation is what was announced.
    pub(super) fn complete(&mut self, generation: u32) {
        self.spoiled.remove(&generation);
        if let Some(Generation::Open { origins, .. }) = self.generations.get_mut(&generation) {
            *origins = Vec::new();
        }
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
        let disputed = self.generations.iter().filter(|(_, held)| held.is_disputed());
        let shape = |generation| self.manifest.geometry.shape(generation);
        let disputes: usize = disputed.map(|(number, _)| Dispute::memory(shape(*number))).sum();
        self.generations.len() * self.memory_of_generation() + disputes
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
        let Some(held) = self.open(generation) else { return Ok(false) };
        let (vector, payload) = append_coding(held.shape(), out);
        held.recode(rng, vector, payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{DataHeader, Wants};
    use ncmesh_engine::file::Geometry;
    use ncmesh_engine::toolkit::hop::Handled;
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
        for generation in 0..geometry.generations() {
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
                handled: Handled::default(),
                wants,
            };
            let packet = Data { header, coding: Coding::Systematic(0), payload: &[1; 200] };
            assert_eq!(held.absorb(parent, &packet), Taken::Innovative);
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
