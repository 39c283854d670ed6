//! Generations that a receiver has a part of: decodes them, within a limit of memory.
//!
//! Packets of any generation are welcome at any time; each generation that is begun has a decoder.
//! Decoders take memory, and hostile packets could begin a generation each. So all transfers
//! together have a limit: the one that uses most gives up its least complete generation.
//!
//! A generation that was decoded to something false is disputed until the true packets among those
//! that come are found ([`dispute`](ncmesh_engine::toolkit::dispute)). Where packets go as they
//! are, it begins anew: they are all asked for again, and one that comes again tells nothing more.

#[cfg(test)]
mod tests;

use super::frame::Data;
use super::packet_set::PacketSet;
use ncmesh_code::Decoder;
use ncmesh_engine::blame::Given;
use ncmesh_engine::file::check::{GenerationId, Nonce};
use ncmesh_engine::file::{Begun, Geometry};
use ncmesh_engine::storage::Storage;
use ncmesh_engine::time::Instant;
use ncmesh_engine::toolkit::dispute::{Dispute, Origin};
use ncmesh_transfer::FileSink;
use ncmesh_transfer::frame::Check;
use ncmesh_transfer::sink::{SinkOutcome, SinkPhase, is_genuine};
use ncmesh_wire::{FlowId, NodeId};
use rand_core::RngCore;
use std::collections::BTreeMap;

/// Most empty decoders kept for the next generations, so that they need not be allocated anew.
const MAX_SPARE: usize = 4;

/// The generations under way of all files that this node receives.
#[derive(Debug)]
pub(super) struct Receptions {
    files: BTreeMap<FlowId, Decoders>,
    /// Whether packets are coded on their way.
    are_coded: bool,
    /// Most bytes that they take together.
    limit: usize,
}

/// The generations under way of one file.
#[derive(Debug)]
struct Decoders {
    geometry: Geometry,
    begun: BTreeMap<u32, Generation>,
    /// Empty decoders for further generations.
    spare: Vec<Decoder>,
}

/// A generation under way.
#[derive(Debug)]
struct Generation {
    decoder: Decoder,
    /// Senders of the packets that the decoder holds, in the order in which they came.
    origins: Vec<Origin>,
    /// Packets of a generation that was false. The decoder is empty then.
    dispute: Option<Dispute>,
}

/// A data packet as a receiver heard it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received<'a> {
    pub origin: Origin,
    pub data: &'a Data<'a>,
    pub now: Instant,
}

/// True and false packets of a generation, by sender.
pub(super) type GivenBy = BTreeMap<NodeId, Given>;

/// Outcome of a look for the true packets of a disputed generation.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub given: GivenBy,
    /// Whether a check was not the source's.
    pub is_misled: bool,
}

impl Receptions {
    /// Returns an empty table, whose generations take at most `limit` bytes.
    pub(super) fn new(are_coded: bool, limit: usize) -> Self {
        Self { files: BTreeMap::new(), are_coded, limit }
    }

    /// Makes sure that there is memory for a packet of `generation`: the transfer that uses most
    /// gives up memory until it fits. Returns whether it does.
    pub(super) fn reserve(&mut self, sink: &FileSink, generation: u32) -> bool {
        let file = self.files.get(&sink.manifest.flow);
        let is_begun = file.is_some_and(|file| file.begun.contains_key(&generation));
        let has_spare = file.is_some_and(|file| !file.spare.is_empty());
        if !sink.wants(generation) || is_begun || has_spare {
            return true;
        }

        // Each round frees one generation or ends.
        let needed = memory_of_generation(&sink.manifest.geometry);
        while self.memory().saturating_add(needed) > self.limit {
            let largest = self.files.values_mut().max_by_key(|file| file.memory());
            if !largest.is_some_and(Decoders::release_memory) {
                return false;
            }
        }
        true
    }

    /// Returns the bytes that generations under way take, about.
    fn memory(&self) -> usize {
        self.files.values().map(Decoders::memory).sum()
    }

    /// Handles a data packet of the file of `sink`. `found` tells what a dispute shows by it.
    pub(super) fn handle_data(
        &mut self,
        sink: &mut FileSink,
        received: Received<'_>,
        rng: &mut impl RngCore,
        storage: &mut dyn Storage,
        found: &mut Found,
    ) -> SinkOutcome {
        let Received { origin, data, now } = received;
        sink.heard_at = now;
        let generation = data.header.generation;
        let g = sink.manifest.geometry;
        if !sink.wants(generation) {
            sink.redundant += u64::from(sink.have.contains(generation));
            return SinkOutcome::Quiet;
        }

        // The header is not trusted: it must agree with the geometry that was announced.
        let fits = generation < g.generations()
            && data.header.packets == g.packets(generation)
            && data.payload.len() == usize::from(g.symbol_size());
        if !fits {
            return SinkOutcome::Malformed;
        }

        // An innovative packet raises the rank; at full rank the generation can be decoded.
        let file = self.files.entry(sink.manifest.flow).or_insert_with(|| Decoders::new(g));
        let held = file.generation(generation);

        let packets = data.header.packets;
        if let Some(dispute) = &mut held.dispute {
            data.coding.with_vector(packets, |vector| dispute.take(origin, vector, data.payload));
            return self.settle(sink, generation, rng, storage, found);
        }

        let decoder = &mut held.decoder;
        let absorbed =
            data.coding.with_vector(packets, |vector| decoder.absorb(vector, data.payload));
        let is_complete = decoder.is_complete();
        match absorbed {
            Err(_) => return SinkOutcome::Malformed,
            Ok(absorbed) if absorbed.is_innovative() => {
                sink.innovative += 1;
                held.origins.push(origin);
            }
            Ok(_) => {
                sink.redundant += 1;
                return SinkOutcome::Quiet;
            }
        }

        if !is_complete {
            return SinkOutcome::Quiet;
        }
        file.finish_generation(sink, generation, self.are_coded, storage)
    }

    /// Looks for the true packets of a generation if it is disputed and it is time, and hands it
    /// over if they are found.
    pub(super) fn settle(
        &mut self,
        sink: &mut FileSink,
        generation: u32,
        rng: &mut impl RngCore,
        storage: &mut dyn Storage,
        found: &mut Found,
    ) -> SinkOutcome {
        let of = GenerationId { flow: sink.manifest.flow, generation };
        let Some(dispute) = self.dispute(of).filter(|dispute| dispute.is_due()) else {
            return SinkOutcome::Quiet;
        };
        let settled =
            dispute.settle(rng, |symbols| is_genuine(&sink.manifest, generation, symbols));
        found.is_misled = dispute.take_misled();
        let Some(settled) = settled else { return SinkOutcome::Quiet };
        found.given = settled.given;
        if let Some(file) = self.files.get_mut(&of.flow) {
            file.begun.remove(&generation);
        }
        sink.handle_whole(generation, &settled.symbols, storage)
    }

    fn dispute(&mut self, of: GenerationId) -> Option<&mut Dispute> {
        self.files.get_mut(&of.flow)?.begun.get_mut(&of.generation)?.dispute.as_mut()
    }

    /// Returns whether a check of a generation would help.
    pub(super) fn wants_check(&mut self, of: GenerationId) -> bool {
        self.dispute(of).is_some_and(|dispute| dispute.wants_check())
    }

    /// Begins a question for a check of a generation, with a nonce that was drawn just now.
    pub(super) fn ask(&mut self, of: GenerationId, nonce: Nonce) {
        if let Some(dispute) = self.dispute(of) {
            dispute.ask(nonce);
        }
    }

    /// Judges the packets of a generation by a check. Returns whether any were judged.
    pub(super) fn judge(&mut self, check: &Check) -> bool {
        let dispute = self.dispute(check.of);
        dispute.is_some_and(|dispute| dispute.judge(check.of, check.nonce, &check.sums))
    }

    /// Forgets the generations under way of a file.
    pub(super) fn forget(&mut self, flow: FlowId) {
        self.files.remove(&flow);
    }

    /// Returns the packets of `generation` that need not be sent to this receiver again; `None` if
    /// it needs nothing of the generation any more.
    pub(super) fn held_packets(&self, sink: &FileSink, generation: u32) -> Option<PacketSet> {
        if !sink.wants(generation) {
            return None;
        }

        let mut held = PacketSet::default();
        let file = self.files.get(&sink.manifest.flow);
        if let Some(held_generation) = file.and_then(|file| file.begun.get(&generation)) {
            let decoder = &held_generation.decoder;
            let packets = 0..sink.manifest.geometry.packets(generation);
            // Combinations may say what a packet is that never came by itself.
            packets.filter(|i| decoder.is_determined(usize::from(*i))).for_each(|i| held.insert(i));
        }

        Some(held)
    }

    /// Returns the first generation of a file of which there is a part here.
    pub(super) fn begun(&self, flow: FlowId) -> Option<Begun> {
        let file = self.files.get(&flow)?;
        let (generation, held) = file.begun.first_key_value()?;
        let packets = file.geometry.packets(*generation).into();
        Some(Begun { generation: *generation, rank: held.decoder.rank() as u32, packets })
    }
}

impl Decoders {
    fn new(geometry: Geometry) -> Self {
        Self { geometry, begun: BTreeMap::new(), spare: Vec::new() }
    }

    /// Decodes a generation that has all its packets, and hands it over.
    fn finish_generation(
        &mut self,
        sink: &mut FileSink,
        generation: u32,
        are_coded: bool,
        storage: &mut dyn Storage,
    ) -> SinkOutcome {
        let Some(held) = self.begun.remove(&generation) else { return SinkOutcome::Quiet };
        let Generation { mut decoder, origins, .. } = held;
        let outcome = match decoder.decode() {
            None => SinkOutcome::Quiet,
            Some(symbols) => sink.handle_whole(generation, symbols, storage),
        };
        // Packets that are not coded prove nothing together, so no dispute can tell which are
        // false.
        if outcome == SinkOutcome::GenerationForged && are_coded {
            let dispute = Some(Dispute::new(&decoder, &origins));
            decoder.clear();
            self.begun.insert(generation, Generation { decoder, origins: Vec::new(), dispute });
            return outcome;
        }

        // The decoder serves another generation. A false one that begins anew gets an empty one.
        if sink.phase == SinkPhase::Receiving && self.spare.len() < MAX_SPARE {
            decoder.clear();
            self.spare.push(decoder);
        }
        outcome
    }

    /// Returns a generation, which begins now if nothing is here of it.
    fn generation(&mut self, generation: u32) -> &mut Generation {
        let shape = self.geometry.shape(generation);
        let spare = &mut self.spare;
        self.begun.entry(generation).or_insert_with(|| {
            let fitting = spare.iter().position(|decoder| decoder.shape() == shape);
            let reused = fitting.map(|i| spare.swap_remove(i));
            let decoder = reused.unwrap_or_else(|| {
                // The last generation may be smaller than the others. A spare decoder of another
                // shape goes, so that the memory in use does not grow.
                spare.pop();
                Decoder::new(shape)
            });
            Generation { decoder, origins: Vec::new(), dispute: None }
        })
    }

    /// Returns the bytes that its generations under way take, about.
    fn memory(&self) -> usize {
        let disputed = self.begun.iter().filter(|(_, held)| held.dispute.is_some());
        let disputes =
            disputed.map(|(generation, _)| Dispute::memory(self.geometry.shape(*generation)));
        let decoders = self.begun.len() + self.spare.len();
        decoders * memory_of_generation(&self.geometry) + disputes.sum::<usize>()
    }

    /// Frees the memory of one generation: a spare decoder, or else the generation with the lowest
    /// rank, which is then received anew. Returns whether there was any.
    fn release_memory(&mut self) -> bool {
        if self.spare.pop().is_some() {
            return true;
        }
        let lowest = self.begun.iter().min_by_key(|(_, held)| held.decoder.rank());
        let lowest = lowest.map(|(generation, _)| *generation);
        lowest.is_some_and(|generation| self.begun.remove(&generation).is_some())
    }
}

fn memory_of_generation(g: &Geometry) -> usize {
    usize::from(g.generation()) * (usize::from(g.symbol_size()) + 64)
}
