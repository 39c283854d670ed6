//! What a node has of one generation.

use ncmesh_code::{Decoder, Field, Recoder, Shape};
use rand_core::RngCore;

/// Packets of one generation, combined.
#[derive(Debug)]
pub(super) struct Generation {
    coder: Coder,
    /// Packets it has, once that is settled; 0 before.
    pub size: u8,
    /// Credits that those before announced.
    pub announced: u32,
    /// Of them, those taken in: no more than there are packets to back them.
    pub accepted: u32,
    /// The latest request answered here.
    pub answered: Option<u8>,
}

#[derive(Debug)]
enum Coder {
    /// At the source and relays.
    Recoder(Recoder),
    /// At the destination.
    Decoder(Decoder),
}

impl Generation {
    /// Nothing of a generation with room for `room` packets of `symbol` bytes. `None` where there is no such.
    pub(super) fn new(room: u8, symbol: usize, is_destination: bool) -> Option<Self> {
        let shape = Shape::new(Field::Gf256, usize::from(room), symbol).ok()?;
        let coder = if is_destination {
            Coder::Decoder(Decoder::new(shape))
        } else {
            Coder::Recoder(Recoder::new(shape))
        };
        Some(Self { coder, size: 0, announced: 0, accepted: 0, answered: None })
    }

    pub(super) fn rank(&self) -> usize {
        match &self.coder {
            Coder::Recoder(coder) => coder.rank(),
            Coder::Decoder(coder) => coder.rank(),
        }
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

    /// Takes a combination in. Says whether it was innovative; `None` if it is of another shape.
    pub(super) fn absorb(&mut self, coefficients: &[u8], payload: &[u8]) -> Option<bool> {
        let absorbed = match &mut self.coder {
            Coder::Recoder(coder) => coder.absorb(coefficients, payload),
            Coder::Decoder(coder) => coder.absorb(coefficients, payload),
        };
        Some(absorbed.ok()?.is_innovative())
    }

    /// Appends a random combination: its coding vector and its payload.
    pub(super) fn combine(&self, rng: &mut impl RngCore, out: &mut Vec<u8>) -> Option<()> {
        let Coder::Recoder(coder) = &self.coder else { return None };
        let (room, symbol) = (coder.shape().generation(), coder.shape().symbol_size());
        let start = out.len();
        out.resize(start + room + symbol, 0);
        let (coefficients, payload) = out[start..].split_at_mut(room);
        coder.recode(rng, coefficients, payload).ok()?.then_some(())
    }

    /// Credits announced that packets back now and did not before.
    pub(super) fn accept(&mut self) -> u32 {
        let backed = self.announced.min(self.rank() as u32);
        let new = backed.saturating_sub(self.accepted);
        self.accepted += new;
        new
    }

    /// The packet of this place, if it is known by now; empty if it says that it is longer than it can be.
    pub(super) fn packet(&mut self, place: u8) -> Option<Vec<u8>> {
        let Coder::Decoder(coder) = &mut self.coder else { return None };
        let symbol = coder.symbol(usize::from(place))?;
        let (len, packet) = symbol.split_first_chunk()?;
        Some(packet.get(..usize::from(u16::from_be_bytes(*len))).unwrap_or_default().to_vec())
    }
}
