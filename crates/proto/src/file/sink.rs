//! A receiver's part: decoders for the batches that are not complete, and what to tell the source.

use super::batches::BatchSet;
use super::frame::{Ack, Coding, Data};
use super::manifest::{Manifest, ReceiverState, Refusal};
use super::merkle;
use super::storage::{Storage, StorageError};
use crate::time::Instant;
use ncmesh_code::Decoder;
use ncmesh_wire::NodeId;
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
    acks_sent: u32,
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
    /// No memory is left for another batch.
    Full,
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
            acks_sent: 0,
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

    /// A data packet of this file was heard. Batches under way may take `room` bytes more.
    pub(super) fn handle_data(
        &mut self,
        data: &Data<'_>,
        room: usize,
        storage: &mut dyn Storage,
    ) -> Sunk {
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
        let Some(decoder) = self.decoder(batch, room) else { return Sunk::Full };
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

    /// The next acknowledgment to the source; each is newer than those before.
    pub(super) fn acknowledge(&mut self, me: NodeId, epoch: u64, max_bits: usize) -> Ack {
        self.acks_sent += 1;
        let (first_missing, bits) = self.have.to_wire(max_bits);
        Ack {
            flow: self.manifest.flow,
            receiver: me,
            version: (epoch, self.acks_sent),
            state: self.state(),
            first_missing,
            bits,
        }
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

    /// Ends reception; memory for batches under way is given back.
    pub(super) fn end(&mut self, phase: SinkPhase, now: Instant) {
        self.phase = phase;
        self.finished = Some(now);
        self.decoders = BTreeMap::new();
        self.spare = Vec::new();
    }

    /// The decoder of a batch under way or begun now. Where there is no room, the batch with the least in it
    /// is forgotten; `None` where there is none.
    fn decoder(&mut self, batch: u32, room: usize) -> Option<&mut Decoder> {
        let shape = self.manifest.geometry.shape(batch);
        if !self.decoders.contains_key(&batch) {
            if self.spare.is_empty() && room < self.batch_memory() {
                let poorest = self.decoders.iter().min_by_key(|(_, d)| d.rank()).map(|(b, _)| *b);
                let forgotten = self.decoders.remove(&poorest?)?;
                self.recycle(forgotten);
            }
            let fits = self.spare.iter().position(|d| d.shape() == shape);
            let spare = fits.or_else(|| self.spare.len().checked_sub(1));
            let decoder = spare.map(|i| self.spare.swap_remove(i)).filter(|d| d.shape() == shape);
            self.decoders.insert(batch, decoder.unwrap_or_else(|| Decoder::new(shape)));
        }
        self.decoders.get_mut(&batch)
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
