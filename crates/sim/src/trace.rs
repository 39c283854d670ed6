//! The trace hash: two runs with the same hash did the same, frame by frame.

use crate::observe::{Event, What};

/// Hashes everything that happens on the air.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    hasher: blake3::Hasher,
    /// What is not hashed yet: much at once is hashed many times faster than a little each time.
    waiting: Vec<u8>,
    events: u64,
}

/// As much as the hasher's vector units take at once.
const ENOUGH: usize = 64 * 1024;

/// What is hashed.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Sent = 1,
    Heard = 2,
    Reported = 3,
}

impl Trace {
    pub(crate) fn observe(&mut self, event: &Event<'_>) {
        match event.what {
            What::Sent { frame, .. } => self.record(Mark::Sent, event, frame),
            What::Heard { .. } => self.record(Mark::Heard, event, &[]),
            What::Reported { result, .. } => self.record(Mark::Reported, event, &[result as u8]),
            What::Happened(_) => {}
        }
    }

    fn record(&mut self, mark: Mark, event: &Event<'_>, bytes: &[u8]) {
        self.events += 1;
        let mut head = [0u8; 17];
        head[0] = mark as u8;
        head[1..9].copy_from_slice(&event.at.as_nanos().to_be_bytes());
        head[9..13].copy_from_slice(&(event.node as u32).to_be_bytes());
        head[13..17].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.waiting.extend_from_slice(&head);
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= ENOUGH {
            self.hasher.update(&self.waiting);
            self.waiting.clear();
        }
    }

    pub(crate) fn hash(&self) -> String {
        self.hasher.clone().update(&self.waiting).finalize().to_hex().to_string()
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }
}
