//! What a node has of one generation.

use super::frame::LEAST;
use ncmesh_engine::toolkit::coder::Coder;
use rand_core::RngCore;
use std::borrow::Cow;

/// A node takes in no more credits of a generation than this many times its packets: those of answers to requests included.
const ANSWERED: u32 = 4;

/// Packets of one generation, combined.
#[derive(Debug)]
pub(super) struct Generation {
    coder: Coder,
    /// Length of a combination, bytes.
    symbol: usize,
    /// Packets it has, once that is settled; 0 before.
    pub size: u8,
    /// The same of the generation before it, of which this node may have nothing.
    pub size_before: u8,
    /// Credits that those before announced.
    pub announced: u32,
    /// Of them, those taken in: no more than there are packets to back them.
    pub accepted: u32,
    /// The latest request answered here.
    pub answered: Option<u8>,
}

impl Generation {
    /// Nothing of a generation with room for `room` packets of `symbol` bytes. `None` where there is no such.
    pub(super) fn new(room: u8, symbol: usize, is_destination: bool) -> Option<Self> {
        let coder = Coder::new(room, symbol, is_destination)?;
        Some(Self {
            coder,
            symbol,
            size: 0,
            size_before: 0,
            announced: 0,
            accepted: 0,
            answered: None,
        })
    }

    pub(super) fn rank(&self) -> usize {
        self.coder.rank()
    }

    /// Whether it has all packets of the generation, as far as it knows how many they are.
    pub(super) fn is_whole(&self) -> bool {
        self.size > 0 && self.rank() >= usize::from(self.size)
    }

    /// Whether the destination, which handed up `known` packets of it, has to ask for more. Until it knows how many there
    /// are it has to if the next generation `is_over` this one, or what it has is not all known.
    pub(super) fn lacks(&self, is_over: bool, known: usize) -> bool {
        if self.size > 0 { !self.is_whole() } else { is_over || self.rank() > known }
    }

    /// Takes a combination in, of which zeros at the end may be left out. Says whether it was innovative; `None` if it is of
    /// another shape.
    pub(super) fn absorb(&mut self, coefficients: &[u8], payload: &[u8]) -> Option<bool> {
        self.coder.absorb(coefficients, &padded(payload, self.symbol))
    }

    /// Appends a random combination: its coding vector and its payload without the zeros at its end.
    pub(super) fn combine(&self, rng: &mut impl RngCore, out: &mut Vec<u8>) -> Option<()> {
        let (vector, payload) = self.coder.combine(rng)?;
        let used = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        out.extend_from_slice(&vector);
        out.extend_from_slice(&payload[..used.max(LEAST).min(payload.len())]);
        Some(())
    }

    /// Credits announced that packets back now and did not before. Who has the whole generation takes in more, as answers to
    /// requests bring them: what it sends is as good as the sender's, and no packet could add to it.
    pub(super) fn accept(&mut self) -> u32 {
        let packets = self.rank() as u32;
        let most = if self.is_whole() { ANSWERED * packets } else { packets };
        let backed = self.announced.min(most);
        let new = backed.saturating_sub(self.accepted);
        self.accepted += new;
        new
    }

    /// The packet of this place, if it is known by now; empty if it says that it is longer than it can be.
    pub(super) fn packet(&mut self, place: u8) -> Option<Vec<u8>> {
        self.coder.packet(place)
    }
}

fn padded(payload: &[u8], symbol: usize) -> Cow<'_, [u8]> {
    if payload.len() >= symbol {
        return payload.into();
    }
    let mut whole = payload.to_vec();
    whole.resize(symbol, 0);
    whole.into()
}
