//! A file that this node sends: generations that are ready to code.

use ncmesh_code::Encoder;
use ncmesh_engine::Context;
use ncmesh_transfer::FileSource;
use std::collections::BTreeMap;

/// Most generations that are kept ready to code: those that children are about to finish, and those
/// that others are on already. Fewer are made again and again, more take memory.
const MAX_ENCODERS: usize = 8;

/// A file that this node sends.
#[derive(Debug)]
pub(super) struct Sending {
    /// For each generation, the packets that were sent as they are.
    sent_uncoded: Vec<u8>,
    /// The generations that were used last, ready to code.
    encoders: BTreeMap<u32, Encoder>,
}

impl Sending {
    /// Begins a file that is cut into `generations`.
    pub(super) fn new(generations: u32) -> Self {
        Self { sent_uncoded: vec![0; generations as usize], encoders: BTreeMap::new() }
    }

    /// Takes the next packet of a generation of `packets` that is to be sent as it is.
    pub(super) fn take_uncoded(&mut self, generation: u32, packets: u8) -> Option<u8> {
        let sent = self.sent_uncoded.get_mut(generation as usize)?;
        let index = (*sent < packets).then_some(*sent)?;
        *sent += 1;
        Some(index)
    }

    /// Returns the encoder of a generation of the file; `None` if it cannot be read.
    pub(super) fn encoder(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut FileSource,
        generation: u32,
    ) -> Option<&Encoder> {
        if !self.encoders.contains_key(&generation) {
            // The encoder that is used again is that of the lowest generation, which is done first.
            let is_full = self.encoders.len() >= MAX_ENCODERS;
            let used = if is_full { self.encoders.pop_first() } else { None };
            let encoder = source.encoder(cx, generation, used.map(|(_, encoder)| encoder))?;
            self.encoders.insert(generation, encoder);
        }

        self.encoders.get(&generation)
    }
}
