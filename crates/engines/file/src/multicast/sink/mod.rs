//! A receiver's part: decodes batches, verifies them, and tells the source what is complete.
//!
//! Packets of any batch are welcome at any time; each batch that is begun has a decoder. A complete
//! batch must prove by its branch of the hash tree that it belongs to the file (see
//! [`merkle`]) before it is written. A forged packet therefore costs at most the batch it was mixed
//! into, which is decoded anew.
//!
//! ```text
//!  Offered --accept--> Receiving --last batch--> Verifying --delivered--> Complete
//!     |  ^                 |  |                      |
//!     |  +-write failed----+  |                      |
//!     +-----------------------+----------------------+--> Refused, Withdrawn
//! ```
//!
//! Decoders take memory, and hostile packets could begin a batch each. So all transfers together
//! have a limit ([`reserve_memory`]): the one that uses most gives up its least complete batch.

#[cfg(test)]
mod tests;

use super::frame::{Ack, Data, Version};
use super::packet_set::PacketSet;
use ncmesh_code::Decoder;
use ncmesh_engine::file::merkle::{self, Hash};
use ncmesh_engine::file::{BatchSet, Begun, Manifest, ReceiverState, Refusal};
use ncmesh_engine::storage::Storage;
use ncmesh_engine::time::Instant;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// Most empty decoders kept for the next batches, so that they need not be allocated anew.
const MAX_SPARE: usize = 4;

/// A file this node receives.
#[derive(Debug)]
pub(super) struct FileSink {
    pub manifest: Manifest,
    pub phase: SinkPhase,
    /// Batches that are complete and written.
    pub have: BatchSet,
    pub started: Instant,
    pub finished: Option<Instant>,
    /// End that was announced while batches are missing, until it is believed or denied.
    pub claimed_end: Option<ClaimedEnd>,
    /// When its source or a data packet of it was last heard.
    pub heard_at: Instant,
    /// When this node last acknowledged it.
    pub acknowledged_at: Option<Instant>,
    /// Data packets that were innovative, and those that were not.
    pub innovative: u64,
    pub redundant: u64,
    /// Batches that were not what the source announced.
    pub bad_batches: u64,
    /// Decoders of the batches under way.
    decoders: BTreeMap<u32, Decoder>,
    /// Empty decoders for further batches.
    spare: Vec<Decoder>,
}

/// End of a transfer that somebody announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClaimedEnd {
    /// When it was announced first.
    pub at: Instant,
    /// Whether it says that this node is done, which this node knows better.
    pub is_of_receiver: bool,
}

/// Phase of a reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SinkPhase {
    /// The driver was asked whether and where to put the file, or to see to its place after a batch
    /// could not be written.
    Offered,
    /// Some batches are missing.
    Receiving,
    /// Every batch is written; the driver verifies the whole.
    Verifying,
    /// The file has its name.
    Complete,
    /// Its source withdrew it, or ended the transfer without this node.
    Withdrawn,
    /// This node does not take it.
    Refused(Refusal),
}

/// Outcome of a data packet at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SinkOutcome {
    /// Taken or not needed; there is nothing to tell the source.
    Quiet,
    /// The packet does not fit the file.
    Malformed,
    /// It completed a batch, which is written.
    BatchWritten,
    /// It completed a batch that is not what the source announced.
    BatchForged,
    /// It completed a batch that could not be written. The reception pauses.
    WriteFailed,
}

impl FileSink {
    pub(super) fn new(manifest: Manifest, now: Instant) -> Self {
        Self {
            phase: SinkPhase::Offered,
            have: BatchSet::none(manifest.geometry.batches()),
            started: now,
            finished: None,
            claimed_end: None,
            heard_at: now,
            acknowledged_at: None,
            innovative: 0,
            redundant: 0,
            bad_batches: 0,
            decoders: BTreeMap::new(),
            spare: Vec::new(),
            manifest,
        }
    }

    /// Begins to receive: the driver has a place for the file, where the batches `have` are already
    /// complete.
    pub(super) fn accept(&mut self, have: BatchSet) {
        self.phase = if have.is_full() { SinkPhase::Verifying } else { SinkPhase::Receiving };
        self.have = have;
    }

    /// Handles a data packet of this file.
    pub(super) fn handle_data(
        &mut self,
        data: &Data<'_>,
        now: Instant,
        storage: &mut dyn Storage,
    ) -> SinkOutcome {
        self.heard_at = now;
        let batch = data.header.batch;
        let g = self.manifest.geometry;
        if self.phase != SinkPhase::Receiving || self.have.contains(batch) {
            self.redundant += u64::from(self.have.contains(batch));
            return SinkOutcome::Quiet;
        }

        // The header is not trusted: it must agree with the geometry that was announced.
        let fits = batch < g.batches()
            && data.header.packets == g.packets(batch)
            && data.payload.len() == usize::from(g.symbol_size());
        if !fits {
            return SinkOutcome::Malformed;
        }

        // An innovative packet raises the rank; at full rank the batch can be decoded.
        let decoder = self.decoder(batch);
        let absorbed = data
            .coding
            .with_vector(data.header.packets, |vector| decoder.absorb(vector, data.payload));
        let is_complete = decoder.is_complete();
        match absorbed {
            Err(_) => return SinkOutcome::Malformed,
            Ok(absorbed) if absorbed.is_innovative() => self.innovative += 1,
            Ok(_) => {
                self.redundant += 1;
                return SinkOutcome::Quiet;
            }
        }
        if is_complete { self.finish_batch(batch, storage) } else { SinkOutcome::Quiet }
    }

    /// Decodes a batch that has all its packets, and takes it.
    fn finish_batch(&mut self, batch: u32, storage: &mut dyn Storage) -> SinkOutcome {
        let Some(mut decoder) = self.decoders.remove(&batch) else { return SinkOutcome::Quiet };
        let outcome = match decoder.decode() {
            None => SinkOutcome::Quiet,
            Some(symbols) => self.handle_whole(batch, symbols, storage),
        };

        // The decoder serves another batch. A forged batch begins anew with an empty one.
        if self.phase == SinkPhase::Receiving && self.spare.len() < MAX_SPARE {
            decoder.clear();
            self.spare.push(decoder);
        }
        outcome
    }

    /// Returns whether a batch is received and still missing.
    pub(super) fn wants(&self, batch: u32) -> bool {
        self.phase == SinkPhase::Receiving && !self.have.contains(batch)
    }

    /// Notes a data packet of this file that was taken elsewhere in this node.
    pub(super) fn note_heard(&mut self, is_innovative: bool, now: Instant) {
        self.heard_at = now;
        self.innovative += u64::from(is_innovative);
        self.redundant += u64::from(!is_innovative);
    }

    /// Verifies and writes a batch, given by its packets one after the other.
    pub(super) fn handle_whole(
        &mut self,
        batch: u32,
        symbols: &[u8],
        storage: &mut dyn Storage,
    ) -> SinkOutcome {
        let outcome = verify_and_write(&self.manifest, batch, symbols, storage);
        match outcome {
            SinkOutcome::BatchWritten => {
                self.have.insert(batch);
            }
            SinkOutcome::BatchForged => self.bad_batches += 1,
            SinkOutcome::WriteFailed => self.pause(),
            _ => {}
        }
        if self.have.is_full() {
            self.phase = SinkPhase::Verifying;
        }
        outcome
    }

    /// Takes no data until the driver accepts again. The source sends none to a receiver that has
    /// not accepted.
    fn pause(&mut self) {
        self.phase = SinkPhase::Offered;
        self.decoders = BTreeMap::new();
        self.spare = Vec::new();
    }

    /// Returns the decoder of a batch, which begins now if it has none.
    fn decoder(&mut self, batch: u32) -> &mut Decoder {
        let shape = self.manifest.geometry.shape(batch);
        let spare = &mut self.spare;
        self.decoders.entry(batch).or_insert_with(|| {
            let fitting = spare.iter().position(|decoder| decoder.shape() == shape);
            let reused = fitting.map(|i| spare.swap_remove(i));
            reused.unwrap_or_else(|| {
                // The last batch may be smaller than the others. A spare decoder of another shape
                // goes, so that the memory in use does not grow.
                spare.pop();
                Decoder::new(shape)
            })
        })
    }

    /// Returns the bytes that its batches under way take, about.
    pub(super) fn memory(&self) -> usize {
        (self.decoders.len() + self.spare.len()) * self.memory_of_batch()
    }

    fn memory_of_batch(&self) -> usize {
        let g = &self.manifest.geometry;
        usize::from(g.generation()) * (usize::from(g.symbol_size()) + 64)
    }

    /// Returns the bytes that a packet of `batch` would take beyond those in use: none unless it
    /// begins a batch and no spare decoder is left.
    pub(super) fn memory_needed(&self, batch: u32) -> usize {
        let begins_batch = self.wants(batch) && !self.decoders.contains_key(&batch);
        if begins_batch && self.spare.is_empty() { self.memory_of_batch() } else { 0 }
    }

    /// Frees the memory of one batch: a spare decoder, or else the batch with the lowest rank,
    /// which is then received anew. Returns whether there was any.
    fn release_memory(&mut self) -> bool {
        if self.spare.pop().is_some() {
            return true;
        }
        let lowest = self.decoders.iter().min_by_key(|(_, d)| d.rank()).map(|(batch, _)| *batch);
        lowest.is_some_and(|batch| self.decoders.remove(&batch).is_some())
    }

    /// Returns an acknowledgment of what is complete, with at most `max_bytes` of batch bits.
    pub(super) fn ack(&self, me: NodeId, version: Version, max_bytes: usize) -> Ack {
        let (first_missing, bits) = self.have.to_wire(max_bytes);
        Ack {
            flow: self.manifest.flow,
            receiver: me,
            version,
            state: self.receiver_state(),
            first_missing,
            bits,
        }
    }

    /// Returns the packets of `batch` that need not be sent to this receiver again; `None` if it
    /// needs nothing of the batch any more.
    pub(super) fn held_packets(&self, batch: u32) -> Option<PacketSet> {
        if !self.wants(batch) {
            return None;
        }
        let mut held = PacketSet::default();
        if let Some(decoder) = self.decoders.get(&batch) {
            let packets = 0..self.manifest.geometry.packets(batch);
            packets.filter(|i| decoder.is_determined(usize::from(*i))).for_each(|i| held.insert(i));
        }
        Some(held)
    }

    /// Returns the first batch of which there is a part here.
    pub(super) fn begun(&self) -> Option<Begun> {
        let (batch, decoder) = self.decoders.first_key_value()?;
        let packets = self.manifest.geometry.packets(*batch).into();
        Some(Begun { batch: *batch, rank: decoder.rank() as u32, packets })
    }

    /// Returns its state in terms of the source.
    pub(super) fn receiver_state(&self) -> ReceiverState {
        match self.phase {
            SinkPhase::Offered => ReceiverState::Invited,
            SinkPhase::Receiving | SinkPhase::Verifying => ReceiverState::Active,
            SinkPhase::Complete => ReceiverState::Complete,
            SinkPhase::Withdrawn => ReceiverState::Refused(Refusal::Cancelled),
            SinkPhase::Refused(why) => ReceiverState::Refused(why),
        }
    }

    /// Returns whether the reception goes on.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, SinkPhase::Offered | SinkPhase::Receiving | SinkPhase::Verifying)
    }

    /// Returns whether batches are missing, so that an end of the transfer leaves this node without
    /// the file.
    pub(super) fn is_incomplete(&self) -> bool {
        matches!(self.phase, SinkPhase::Offered | SinkPhase::Receiving)
    }

    /// Returns whether another file may take its id: nothing proves that its announcement was true.
    pub(super) fn is_unproven(&self) -> bool {
        let is_early = self.is_incomplete() || self.phase == SinkPhase::Withdrawn;
        is_early && self.have.is_empty()
    }

    /// Ends the reception in `phase` and frees the memory of batches under way.
    pub(super) fn end(&mut self, phase: SinkPhase, now: Instant) {
        self.phase = phase;
        self.finished = Some(now);
        self.claimed_end = None;
        self.decoders = BTreeMap::new();
        self.spare = Vec::new();
    }
}

/// Checks that the decoded `symbols` are batch number `batch` of the file, and writes it.
fn verify_and_write(
    manifest: &Manifest,
    batch: u32,
    symbols: &[u8],
    storage: &mut dyn Storage,
) -> SinkOutcome {
    let Some((data, hash)) = genuine(manifest, batch, symbols) else {
        return SinkOutcome::BatchForged;
    };
    let g = &manifest.geometry;
    match storage.write(manifest.flow, batch, g.offset(batch), data, &hash) {
        Ok(()) => SinkOutcome::BatchWritten,
        Err(_) => SinkOutcome::WriteFailed,
    }
}

/// Returns whether the decoded `symbols` are batch number `batch` of the file.
pub(super) fn is_genuine(manifest: &Manifest, batch: u32, symbols: &[u8]) -> bool {
    genuine(manifest, batch, symbols).is_some()
}

/// Returns the data of a batch and its hash, if the decoded `symbols` are that batch of the file.
fn genuine<'a>(manifest: &Manifest, batch: u32, symbols: &'a [u8]) -> Option<(&'a [u8], Hash)> {
    // A batch is file data, then its branch of the hash tree, then zeros.
    let g = &manifest.geometry;
    let (data, rest) = symbols.split_at_checked(g.data_len(batch))?;
    let hash = merkle::leaf(data);
    let branch = rest.get(..32 * g.depth())?;
    merkle::verify(&manifest.root, batch, hash, branch).then_some((data, hash))
}

/// Makes sure that batches under way may take `bytes` more within `limit`: the transfer that uses
/// most gives up memory until they fit. Returns whether they do.
pub(super) fn reserve_memory(
    sinks: &mut BTreeMap<FlowId, FileSink>,
    bytes: usize,
    limit: usize,
) -> bool {
    if bytes == 0 {
        return true;
    }

    // Each round frees one batch or ends.
    loop {
        let used: usize = sinks.values().map(FileSink::memory).sum();
        if used.saturating_add(bytes) <= limit {
            return true;
        }
        let largest = sinks.values_mut().max_by_key(|sink| sink.memory());
        if !largest.is_some_and(FileSink::release_memory) {
            return false;
        }
    }
}
