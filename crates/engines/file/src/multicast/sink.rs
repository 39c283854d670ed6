//! A receiver's part: decoders for the batches that are not complete, and what to tell the source.

use super::data::{Coding, Data};
use super::frame::Ack;
use super::packets::PacketSet;
use ncmesh_code::Decoder;
use ncmesh_engine::file::BatchSet;
use ncmesh_engine::file::merkle;
use ncmesh_engine::file::{Manifest, ReceiverState, Refusal};
use ncmesh_engine::storage::{Storage, StorageError};
use ncmesh_engine::time::Instant;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

/// A file this node receives.
#[derive(Debug)]
pub(super) struct Sink {
    pub manifest: Manifest,
    pub phase: SinkPhase,
    pub have: BatchSet,
    pub started: Instant,
    pub finished: Option<Instant>,
    decoders: BTreeMap<u32, Decoder>,
    spare: Vec<Decoder>,
    /// When its source or a packet of it was last heard, or it was last asked for.
    pub heard_at: Instant,
    /// Innovative packets taken in.
    pub innovative: u64,
    /// Packets that brought nothing new.
    pub redundant: u64,
    /// Batches that decoded to something else than was announced.
    pub bad_batches: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SinkPhase {
    /// The driver is asked whether and where to put it.
    Asking,
    Receiving,
    /// Every batch is written; the driver verifies the whole.
    Verifying,
    Done,
    /// Withdrawn by its source.
    Withdrawn,
    Refused(Refusal),
}

/// What became of a data packet at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sunk {
    /// Nothing to tell the source.
    Quiet,
    /// The packet does not fit the file.
    Malformed,
    /// A batch is complete and written.
    BatchDone,
    /// A batch was not what was announced.
    BatchBad,
    /// The batch could not be written.
    Failed(Refusal),
}

impl Sink {
    /// A receiver of `manifest`.
    pub(super) fn new(manifest: Manifest, now: Instant) -> Self {
        Self {
            phase: SinkPhase::Asking,
            have: BatchSet::none(manifest.geometry.batches()),
            started: now,
            finished: None,
            decoders: BTreeMap::new(),
            spare: Vec::new(),
            heard_at: now,
            innovative: 0,
            redundant: 0,
            bad_batches: 0,
            manifest,
        }
    }

    /// The driver gives the file a place, where `have` is already complete.
    pub(super) fn accept(&mut self, have: BatchSet) {
        self.phase = if have.is_full() { SinkPhase::Verifying } else { SinkPhase::Receiving };
        self.have = have;
    }

    /// Bytes of batches under way, about.
    pub(super) fn memory(&self) -> usize {
        (self.decoders.len() + self.spare.len()) * self.batch_memory()
    }

    fn batch_memory(&self) -> usize {
        let g = &self.manifest.geometry;
        usize::from(g.generation()) * (usize::from(g.symbol_size()) + 64)
    }

    /// Bytes that a packet of `batch` takes beyond those in use: none unless it begins a batch.
    pub(super) fn needs(&self, batch: u32) -> usize {
        let begins = self.phase == SinkPhase::Receiving
            && !self.have.contains(batch)
            && !self.decoders.contains_key(&batch);
        if begins && self.spare.is_empty() { self.batch_memory() } else { 0 }
    }

    /// Gives memory back: that of a batch complete, or else forgets the batch with the least in it. Says
    /// whether there was any.
    pub(super) fn give_back(&mut self) -> bool {
        if self.spare.pop().is_some() {
            return true;
        }
        let poorest = self.decoders.iter().min_by_key(|(_, d)| d.rank()).map(|(b, _)| *b);
        poorest.is_some_and(|batch| self.decoders.remove(&batch).is_some())
    }

    /// A data packet of this file was heard.
    pub(super) fn handle_data(
        &mut self,
        data: &Data<'_>,
        now: Instant,
        storage: &mut dyn Storage,
    ) -> Sunk {
        self.heard_at = now;
        let batch = data.header.batch;
        let g = self.manifest.geometry;
        if self.phase != SinkPhase::Receiving || self.have.contains(batch) {
            self.redundant += u64::from(self.have.contains(batch));
            return Sunk::Quiet;
        }
        if batch >= g.batches()
            || data.header.packets != g.packets(batch)
            || data.payload.len() != usize::from(g.symbol_size())
        {
            return Sunk::Malformed;
        }
        let decoder = self.decoder(batch);
        match absorb(decoder, data) {
            Some(true) => {}
            Some(false) => {
                self.redundant += 1;
                return Sunk::Quiet;
            }
            None => return Sunk::Malformed,
        }
        let complete = decoder.is_complete();
        self.innovative += 1;
        if complete { self.finish_batch(batch, storage) } else { Sunk::Quiet }
    }

    /// An acknowledgment to the source.
    pub(super) fn acknowledge(&self, me: NodeId, version: (u64, u32), max_bits: usize) -> Ack {
        let (first_missing, bits) = self.have.to_wire(max_bits);
        Ack {
            flow: self.manifest.flow,
            receiver: me,
            version,
            state: self.state(),
            first_missing,
            bits,
        }
    }

    /// Which packets of `batch` are here; `None` where none is wanted any more.
    pub(super) fn holds(&self, batch: u32) -> Option<PacketSet> {
        if self.phase != SinkPhase::Receiving || self.have.contains(batch) {
            return None;
        }
        let mut held = PacketSet::default();
        if let Some(decoder) = self.decoders.get(&batch) {
            let packets = 0..self.manifest.geometry.packets(batch);
            packets.filter(|i| decoder.is_determined(usize::from(*i))).for_each(|i| held.insert(i));
        }
        Some(held)
    }

    /// How this receiver stands.
    pub(super) fn state(&self) -> ReceiverState {
        match self.phase {
            SinkPhase::Asking => ReceiverState::Invited,
            SinkPhase::Receiving | SinkPhase::Verifying => ReceiverState::Active,
            SinkPhase::Done => ReceiverState::Complete,
            SinkPhase::Withdrawn => ReceiverState::Refused(Refusal::Cancelled),
            SinkPhase::Refused(why) => ReceiverState::Refused(why),
        }
    }

    /// How many batches are begun and not complete.
    #[cfg(test)]
    pub(super) fn batches_under_way(&self) -> usize {
        self.decoders.len()
    }

    /// Whether reception goes on.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, SinkPhase::Asking | SinkPhase::Receiving | SinkPhase::Verifying)
    }

    /// Whether batches are missing: an end of the transfer leaves this receiver without the file.
    pub(super) fn lacks_something(&self) -> bool {
        matches!(self.phase, SinkPhase::Asking | SinkPhase::Receiving)
    }

    /// Ends reception; memory for batches under way is given back.
    pub(super) fn end(&mut self, phase: SinkPhase, now: Instant) {
        self.phase = phase;
        self.finished = Some(now);
        self.decoders = BTreeMap::new();
        self.spare = Vec::new();
    }

    /// The decoder of a batch under way or begun now.
    fn decoder(&mut self, batch: u32) -> &mut Decoder {
        let shape = self.manifest.geometry.shape(batch);
        let spare = &mut self.spare;
        self.decoders.entry(batch).or_insert_with(|| {
            let fits = spare.iter().position(|d| d.shape() == shape);
            let reused = fits.map(|i| spare.swap_remove(i));
            reused.unwrap_or_else(|| {
                spare.pop();
                Decoder::new(shape)
            })
        })
    }

    fn recycle(&mut self, mut decoder: Decoder) {
        if self.spare.len() < 4 {
            decoder.clear();
            self.spare.push(decoder);
        }
    }

    fn finish_batch(&mut self, batch: u32, storage: &mut dyn Storage) -> Sunk {
        let g = self.manifest.geometry;
        let Some(mut decoder) = self.decoders.remove(&batch) else { return Sunk::Quiet };
        let outcome = match decoder.decode() {
            None => Sunk::Quiet,
            Some(symbols) => {
                let (data, rest) = symbols.split_at(g.data_len(batch));
                let hash = merkle::leaf(data);
                if !merkle::verify(&self.manifest.root, batch, hash, &rest[..32 * g.depth()]) {
                    Sunk::BatchBad
                } else {
                    match storage.write(self.manifest.flow, batch, g.offset(batch), data, &hash) {
                        Ok(()) => Sunk::BatchDone,
                        Err(StorageError::NoSpace) => Sunk::Failed(Refusal::NoSpace),
                        Err(_) => Sunk::Failed(Refusal::Unwritable),
                    }
                }
            }
        };
        match outcome {
            Sunk::BatchDone => {
                self.have.insert(batch);
            }
            Sunk::BatchBad => self.bad_batches += 1,
            _ => {}
        }
        self.recycle(decoder);
        if self.have.is_full() {
            self.phase = SinkPhase::Verifying;
        }
        outcome
    }
}

/// Sees to it that batches under way may take `bytes` more within `limit`: the transfer that uses most gives back.
/// Says whether they may.
pub(super) fn make_memory(sinks: &mut BTreeMap<FlowId, Sink>, bytes: usize, limit: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    loop {
        let used: usize = sinks.values().map(Sink::memory).sum();
        if used.saturating_add(bytes) <= limit {
            return true;
        }
        if !sinks.values_mut().max_by_key(|sink| sink.memory()).is_some_and(Sink::give_back) {
            return false;
        }
    }
}

/// Whether the packet was innovative; `None` if it does not fit.
fn absorb(decoder: &mut Decoder, data: &Data<'_>) -> Option<bool> {
    let before = decoder.rank();
    let absorbed = match data.coding {
        Coding::Combined(coefficients) => decoder.absorb(coefficients, data.payload),
        Coding::Systematic(i) => {
            let mut unit = [0; 255];
            unit[usize::from(i)] = 1;
            decoder.absorb(&unit[..usize::from(data.header.packets)], data.payload)
        }
    };
    absorbed.is_ok().then(|| decoder.rank() > before)
}
