//! Generations combined with those of other flows, and how packets are taken out of them (CORE,
//! section 4).
//!
//! The exclusive or of a packet of each flow is a packet of one larger generation, which has the
//! packets of both. A receiver eliminates the other flow's packets: those that it overheard, and
//! those that other combined packets tell it. What is left after elimination is a combination of
//! its own generation alone. [`Separator`] finds all of these, in whatever order packets come.

use crate::frame::{GenerationHeader, GenerationId, Part};
use ncmesh_code::{Combination, Field, Separated, Separator};
use ncmesh_engine::toolkit::coder::Coder;
use std::collections::VecDeque;

/// Most generations with which one is combined and whose packets are kept. The oldest makes room.
const MAX_PARTNERS: usize = 4;

/// Coding vector and payload of a packet, each with the full length of its generation.
pub(crate) type Packet = Combination;

/// A generation of this node's flow, combined with one of another flow.
#[derive(Debug)]
struct CombinedGeneration {
    other: GenerationId,
    /// Packets that the other generation has, as far as known.
    other_count: u8,
    own_generation_size: usize,
    own_symbol_size: usize,
    separator: Separator,
}

impl CombinedGeneration {
    /// Returns one without packets; `None` if a size is out of range.
    fn new(own: &GenerationHeader, other: &GenerationHeader) -> Option<Self> {
        let own_size = own.generation_size.into();
        let other_size = other.generation_size.into();
        let payload = usize::from(own.symbol_size.max(other.symbol_size));
        Some(Self {
            other: other.id,
            other_count: other.count,
            own_generation_size: own_size,
            own_symbol_size: usize::from(own.symbol_size),
            separator: Separator::new(Field::Gf256, own_size, other_size, payload).ok()?,
        })
    }

    /// Takes in a packet with its coefficients in both generations. Returns `None` if it does not
    /// fit them, or if what follows is longer than a packet of the own generation can be.
    fn insert(
        &mut self,
        own_vector: &[u8],
        other_vector: &[u8],
        payload: &[u8],
    ) -> Option<Separated> {
        // The shorter flow's symbols count as filled up with zeros.
        let mut padded = payload.to_vec();
        if padded.len() > self.separator.payload_size() {
            return None;
        }
        padded.resize(self.separator.payload_size(), 0);

        match self.separator.insert(own_vector, other_vector, &padded).ok()? {
            // Beyond the own symbols there are only zeros, unless a packet was forged.
            Separated::Wanted((vector, mut payload)) => {
                let beyond = payload.split_off(self.own_symbol_size);
                let fits = beyond.iter().all(|byte| *byte == 0);
                fits.then_some(Separated::Wanted((vector, payload)))
            }
            separated => Some(separated),
        }
    }

    /// Takes in a packet of the other generation alone. Returns the packet of the own generation
    /// that follows from it, if one does.
    fn insert_other(&mut self, (vector, payload): &Packet) -> Option<Packet> {
        let own_vector = vec![0; self.own_generation_size];
        match self.insert(&own_vector, vector, payload)? {
            Separated::Wanted(packet) => Some(packet),
            Separated::Kept | Separated::Redundant => None,
        }
    }
}

/// All generations that one of this node's generations is combined with.
#[derive(Debug, Default)]
pub(crate) struct CombinedGenerations {
    /// The most recent one at the end.
    generations: VecDeque<CombinedGeneration>,
}

impl CombinedGenerations {
    /// Returns whether packets combined with this generation are kept.
    pub(crate) fn contain(&self, other: &GenerationId) -> bool {
        self.generations.iter().any(|generation| generation.other == *other)
    }

    /// Begins to keep packets combined with `other`. Returns `None` if a size is out of range.
    pub(crate) fn begin(&mut self, own: &GenerationHeader, other: &GenerationHeader) -> Option<()> {
        if self.generations.len() >= MAX_PARTNERS {
            self.generations.pop_front();
        }
        self.generations.push_back(CombinedGeneration::new(own, other)?);
        Some(())
    }

    /// Takes in a packet combined with the generation of `other`. Returns `None` if the packet does
    /// not fit the packets before.
    pub(crate) fn insert(
        &mut self,
        own_vector: &[u8],
        other: &Part,
        payload: &[u8],
    ) -> Option<Separated> {
        let generation = self.get_mut(&other.header.id)?;
        generation.other_count = generation.other_count.max(other.header.count);
        generation.insert(own_vector, &other.vector, payload)
    }

    /// Takes in a packet of generation `other` alone. Returns the packet of the own generation that
    /// follows from it, if one does.
    pub(crate) fn insert_other(&mut self, other: &GenerationId, packet: &Packet) -> Option<Packet> {
        self.get_mut(other)?.insert_other(packet)
    }

    /// Returns how many packets of the generation that was combined last are not known.
    pub(crate) fn unknown(&self) -> Option<usize> {
        let generation = self.generations.back()?;
        Some(usize::from(generation.other_count).saturating_sub(generation.separator.rank()))
    }

    fn get_mut(&mut self, other: &GenerationId) -> Option<&mut CombinedGeneration> {
        self.generations.iter_mut().find(|generation| generation.other == *other)
    }
}

/// Takes the own packet out of one combined packet at once, by what is `known` of the other
/// generation, and keeps nothing. This is how COPE decodes.
pub(crate) fn separate_at_once(
    own: &Part,
    other: &Part,
    payload: &[u8],
    known: Option<&Coder>,
) -> Option<Packet> {
    let mut generation = CombinedGeneration::new(&own.header, &other.header)?;
    for packet in known.into_iter().flat_map(Coder::rows) {
        generation.insert_other(&packet);
    }
    match generation.insert(&own.vector, &other.vector, payload)? {
        Separated::Wanted(packet) => Some(packet),
        Separated::Kept | Separated::Redundant => None,
    }
}
