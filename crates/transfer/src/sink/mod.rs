//! A receiver's part: verifies and writes generations, and tells the source what is complete.
//!
//! The carrier hands over a generation that it has decoded. The generation must prove by its branch
//! of the hash tree that it belongs to the file (see [`merkle`]) before it is written. A forged
//! packet therefore costs at most the generation it was mixed into, which is received again.
//!
//! ```text
//!  Offered --accept--> Receiving --last generation--> Verifying --delivered--> Complete
//!     |  ^                 |  |                      |
//!     |  +-write failed----+  |                      |
//!     +-----------------------+----------------------+--> Refused, Withdrawn
//! ```

#[cfg(test)]
mod tests;

use crate::frame::{Ack, Version};
use ncmesh_engine::file::merkle::{self, Hash};
use ncmesh_engine::file::{GenerationSet, Manifest, ReceiverState, Refusal};
use ncmesh_engine::storage::Storage;
use ncmesh_engine::time::Instant;
use ncmesh_wire::NodeId;

/// A file this node receives.
#[derive(Debug)]
pub struct FileSink {
    /// The file.
    pub manifest: Manifest,
    /// How far it is.
    pub phase: SinkPhase,
    /// Generations that are complete and written.
    pub have: GenerationSet,
    pub(crate) started: Instant,
    pub(crate) finished: Option<Instant>,
    /// End that was announced while generations are missing, until it is believed or denied.
    pub(crate) claimed_end: Option<ClaimedEnd>,
    /// When its source or a data packet of it was last heard.
    pub heard_at: Instant,
    /// When this node last acknowledged it.
    pub acknowledged_at: Option<Instant>,
    /// Data packets that were innovative.
    pub innovative: u64,
    /// Data packets that were not.
    pub redundant: u64,
    /// Generations that were not what the source announced.
    pub(crate) bad_generations: u64,
}

/// End of a transfer that somebody announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimedEnd {
    /// When it was announced first.
    pub at: Instant,
    /// Whether it says that this node is done, which this node knows better.
    pub is_of_receiver: bool,
}

/// Phase of a reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkPhase {
    /// The driver was asked whether and where to put the file, or to see to its place after a
    /// generation could not be written.
    Offered,
    /// Some generations are missing.
    Receiving,
    /// Every generation is written; the driver verifies the whole.
    Verifying,
    /// The file has its name.
    Complete,
    /// Its source withdrew it, or ended the transfer without this node.
    Withdrawn,
    /// This node does not take it.
    Refused(Refusal),
}

/// Outcome of a data packet or a generation at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkOutcome {
    /// Taken or not needed; there is nothing to tell the source.
    Quiet,
    /// The packet does not fit the file.
    Malformed,
    /// It completed a generation, which is written.
    GenerationWritten,
    /// It completed a generation that is not what the source announced.
    GenerationForged,
    /// It completed a generation that could not be written. The reception pauses.
    WriteFailed,
}

impl FileSink {
    /// Returns a file that was announced, of which nothing is here.
    #[must_use]
    pub fn new(manifest: Manifest, now: Instant) -> Self {
        Self {
            phase: SinkPhase::Offered,
            have: GenerationSet::none(manifest.geometry.generations()),
            started: now,
            finished: None,
            claimed_end: None,
            heard_at: now,
            acknowledged_at: None,
            innovative: 0,
            redundant: 0,
            bad_generations: 0,
            manifest,
        }
    }

    /// Begins to receive: the driver has a place for the file, where the generations `have` are
    /// already complete.
    pub fn accept(&mut self, have: GenerationSet) {
        self.phase = if have.is_full() { SinkPhase::Verifying } else { SinkPhase::Receiving };
        self.have = have;
    }

    /// Returns whether a generation is received and still missing.
    #[must_use]
    pub fn wants(&self, generation: u32) -> bool {
        self.phase == SinkPhase::Receiving && !self.have.contains(generation)
    }

    /// Notes a data packet of this file.
    pub fn note_heard(&mut self, is_innovative: bool, now: Instant) {
        self.heard_at = now;
        self.innovative += u64::from(is_innovative);
        self.redundant += u64::from(!is_innovative);
    }

    /// Verifies and writes a generation, given by its packets one after the other.
    pub fn handle_whole(
        &mut self,
        generation: u32,
        symbols: &[u8],
        storage: &mut dyn Storage,
    ) -> SinkOutcome {
        let outcome = verify_and_write(&self.manifest, generation, symbols, storage);
        match outcome {
            SinkOutcome::GenerationWritten => {
                self.have.insert(generation);
            }
            SinkOutcome::GenerationForged => self.bad_generations += 1,
            // It takes no data until the driver accepts again. The source sends none to a receiver
            // that has not accepted.
            SinkOutcome::WriteFailed => self.phase = SinkPhase::Offered,
            _ => {}
        }

        if self.have.is_full() {
            self.phase = SinkPhase::Verifying;
        }
        outcome
    }

    /// Returns an acknowledgment of what is complete, with at most `max_bytes` of generation bits.
    pub(crate) fn ack(&self, me: NodeId, version: Version, max_bytes: usize) -> Ack {
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

    /// Returns its state in terms of the source.
    pub(crate) fn receiver_state(&self) -> ReceiverState {
        match self.phase {
            SinkPhase::Offered => ReceiverState::Invited,
            SinkPhase::Receiving | SinkPhase::Verifying => ReceiverState::Active,
            SinkPhase::Complete => ReceiverState::Complete,
            SinkPhase::Withdrawn => ReceiverState::Refused(Refusal::Cancelled),
            SinkPhase::Refused(why) => ReceiverState::Refused(why),
        }
    }

    /// Returns whether the reception goes on.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, SinkPhase::Offered | SinkPhase::Receiving | SinkPhase::Verifying)
    }

    /// Returns whether generations are missing, so that an end of the transfer leaves this node
    /// without the file.
    pub(crate) fn is_incomplete(&self) -> bool {
        matches!(self.phase, SinkPhase::Offered | SinkPhase::Receiving)
    }

    /// Returns whether another file may take its id: nothing proves that its announcement was true.
    pub(crate) fn is_unproven(&self) -> bool {
        let is_early = self.is_incomplete() || self.phase == SinkPhase::Withdrawn;
        is_early && self.have.is_empty()
    }

    /// Ends the reception in `phase`.
    pub(crate) fn end(&mut self, phase: SinkPhase, now: Instant) {
        self.phase = phase;
        self.finished = Some(now);
        self.claimed_end = None;
    }
}

/// Checks that the decoded `symbols` are generation number `generation` of the file, and writes it.
fn verify_and_write(
    manifest: &Manifest,
    generation: u32,
    symbols: &[u8],
    storage: &mut dyn Storage,
) -> SinkOutcome {
    let Some((data, hash)) = genuine(manifest, generation, symbols) else {
        return SinkOutcome::GenerationForged;
    };
    let g = &manifest.geometry;
    match storage.write(manifest.flow, generation, g.offset(generation), data, &hash) {
        Ok(()) => SinkOutcome::GenerationWritten,
        Err(_) => SinkOutcome::WriteFailed,
    }
}

/// Returns whether the decoded `symbols` are generation number `generation` of the file.
#[must_use]
pub fn is_genuine(manifest: &Manifest, generation: u32, symbols: &[u8]) -> bool {
    genuine(manifest, generation, symbols).is_some()
}

/// Returns the data of a generation and its hash, if the decoded `symbols` are that generation of
/// the file.
fn genuine<'a>(
    manifest: &Manifest,
    generation: u32,
    symbols: &'a [u8],
) -> Option<(&'a [u8], Hash)> {
    // A generation is file data, then its branch of the hash tree, then zeros.
    let g = &manifest.geometry;
    let (data, rest) = symbols.split_at_checked(g.data_len(generation))?;
    let hash = merkle::leaf(data);
    let branch = rest.get(..32 * g.depth())?;
    merkle::verify(&manifest.root, generation, hash, branch).then_some((data, hash))
}
