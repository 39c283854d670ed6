//! The trace hash: two runs with the same hash did the same, frame by frame.
//!
//! The hash (BLAKE3) is over a record for every frame sent, every reception and every report of the
//! MAC: kind, time in ns, node, length and bytes. A reception has no bytes, because the record of
//! the transmission has them.

use crate::observe::{Event, What};

/// Hash over everything that happens on the air.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    hasher: blake3::Hasher,
    /// Records that are not hashed yet. Hashing many at once is several times faster.
    pending: Vec<u8>,
    events: u64,
}

/// Length at which pending records are hashed, bytes: enough to use the hasher's vector units.
const BLOCK: usize = 64 * 1024;

/// Kinds of records, with their bytes in the hash.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Sent = 1,
    Heard = 2,
    Reported = 3,
}

impl Trace {
    pub(crate) fn observe(&mut self, event: &Event<'_>) {
        match event.what {
            What::Sent { frame, .. } => self.record(Kind::Sent, event, frame),
            What::Heard { .. } => self.record(Kind::Heard, event, &[]),
            What::Reported { result, .. } => self.record(Kind::Reported, event, &[result as u8]),
            What::Happened(_) | What::Offered(_) | What::Arrived(_) => {}
        }
    }

    /// Appends a record, and hashes the pending records when there are enough.
    fn record(&mut self, kind: Kind, event: &Event<'_>, bytes: &[u8]) {
        // The length makes records self-delimiting, so no two sequences of records have the same
        // bytes.
        self.events += 1;
        let mut head = [0u8; 17];
        head[0] = kind as u8;
        head[1..9].copy_from_slice(&event.at.as_nanos().to_be_bytes());
        head[9..13].copy_from_slice(&(event.node as u32).to_be_bytes());
        head[13..17].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.pending.extend_from_slice(&head);
        self.pending.extend_from_slice(bytes);

        // Hashing block by block is quicker than by record. The hash of the run is the same.
        if self.pending.len() >= BLOCK {
            self.hasher.update(&self.pending);
            self.pending.clear();
        }
    }

    /// Returns the hash over all records so far, in hexadecimal.
    pub(crate) fn hash(&self) -> String {
        self.hasher.clone().update(&self.pending).finalize().to_hex().to_string()
    }

    /// Returns the number of records so far.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}
