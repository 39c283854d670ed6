//! Packets overheard of flows that this node has no part in (CORE, section 4).
//!
//! They are kept to take apart combined packets that may come later.

use crate::combined::Packet;
use crate::frame::{GenerationHeader, GenerationId};
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::bounded::make_room;
use ncmesh_engine::toolkit::coder::Coder;
use std::collections::BTreeMap;

/// Most generations that are kept. The one that was silent longest makes room.
const MAX_GENERATIONS: usize = 16;

#[derive(Debug)]
struct OverheardGeneration {
    coder: Coder,
    heard_at: Instant,
}

/// Overheard packets, by generation.
#[derive(Debug, Default)]
pub(crate) struct Overheard {
    generations: BTreeMap<GenerationId, OverheardGeneration>,
}

impl Overheard {
    /// Keeps a packet. Returns whether it was innovative, or `None` if it has another shape than
    /// the packets before.
    pub(crate) fn keep(
        &mut self,
        header: &GenerationHeader,
        (vector, payload): &Packet,
        now: Instant,
    ) -> Option<bool> {
        if !self.generations.contains_key(&header.id) {
            make_room(&mut self.generations, &header.id, MAX_GENERATIONS, |g| g.heard_at);
            let symbol_size = usize::from(header.symbol_size);
            let coder = Coder::new(header.generation_size, symbol_size, false)?;
            let generation = OverheardGeneration { coder, heard_at: now };
            self.generations.insert(header.id, generation);
        }

        // Redundant packets count as a sign of life, too.
        let generation = self.generations.get_mut(&header.id)?;
        generation.heard_at = now;
        generation.coder.absorb(vector, payload)
    }

    /// Returns what is kept of a generation.
    pub(crate) fn get(&self, generation: &GenerationId) -> Option<&Coder> {
        self.generations.get(generation).map(|generation| &generation.coder)
    }

    /// Returns the number of generations kept.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.generations.len()
    }
}
