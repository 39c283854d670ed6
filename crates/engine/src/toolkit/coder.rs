//! Generation of a tunnel's flow at one node, and packets as its symbols.
//!
//! Packets of different lengths become symbols of one size: length, bytes, zeros. A relay only
//! recodes; the destination decodes. Both are a [`Coder`], so that an engine need not care which of
//! them it has.

use ncmesh_code::{Combination, Decoder, Field, Recoder, Shape};
use rand_core::RngCore;

/// Bytes of the length field before a packet in its symbol.
pub const PREFIX: usize = 2;

/// Returns the symbol of a packet: its length, its bytes, and zeros up to `size` bytes. The packet
/// must fit.
pub fn symbol_of(packet: &[u8], size: usize) -> Vec<u8> {
    let mut symbol = (packet.len() as u16).to_be_bytes().to_vec();
    symbol.extend_from_slice(packet);
    symbol.resize(size, 0);
    symbol
}

/// Linear combinations of one generation over GF(2^8).
#[derive(Debug)]
pub enum Coder {
    /// For a relay, which only recodes.
    Recoder(Recoder),
    /// For the destination, which decodes.
    Decoder(Decoder),
}

impl Coder {
    /// Returns an empty coder for a generation of up to `generation_size` packets with symbols of
    /// `size` bytes. Returns `None` if there is no such code.
    pub fn new(generation_size: u8, size: usize, decodes: bool) -> Option<Self> {
        let shape = Shape::new(Field::Gf256, usize::from(generation_size), size).ok()?;
        let decoder = || Self::Decoder(Decoder::new(shape));
        Some(if decodes { decoder() } else { Self::Recoder(Recoder::new(shape)) })
    }

    /// Returns the rank: the number of innovative combinations taken.
    pub fn rank(&self) -> usize {
        match self {
            Self::Recoder(coder) => coder.rank(),
            Self::Decoder(coder) => coder.rank(),
        }
    }

    /// Takes a combination. Returns whether it was innovative, or `None` if its shape is another
    /// one.
    pub fn absorb(&mut self, vector: &[u8], payload: &[u8]) -> Option<bool> {
        let absorbed = match self {
            Self::Recoder(coder) => coder.absorb(vector, payload),
            Self::Decoder(coder) => coder.absorb(vector, payload),
        };
        Some(absorbed.ok()?.is_innovative())
    }

    fn shape(&self) -> Shape {
        match self {
            Self::Recoder(coder) => coder.shape(),
            Self::Decoder(coder) => coder.shape(),
        }
    }

    /// Returns a random combination: coding vector and payload. Returns `None` if there is nothing
    /// yet.
    pub fn combine(&self, rng: &mut impl RngCore) -> Option<Combination> {
        let shape = self.shape();
        let (mut vector, mut payload) =
            (vec![0; shape.generation_size()], vec![0; shape.symbol_size()]);
        let combined = match self {
            Self::Recoder(coder) => coder.recode(rng, &mut vector, &mut payload),
            Self::Decoder(coder) => coder.recode(rng, &mut vector, &mut payload),
        };
        combined.ok()?.then_some((vector, payload))
    }

    /// Returns the innovative combinations that were taken, in the order in which they came.
    pub fn rows(&self) -> impl Iterator<Item = Combination> + '_ {
        let shape = self.shape();
        (0..self.rank()).filter_map(move |row| {
            let mut weights = vec![0; self.rank()];
            weights[row] = 1;
            let (mut vector, mut payload) =
                (vec![0; shape.generation_size()], vec![0; shape.symbol_size()]);
            let taken = match self {
                Self::Recoder(coder) => coder.recode_with(&weights, &mut vector, &mut payload),
                Self::Decoder(coder) => coder.recode_with(&weights, &mut vector, &mut payload),
            };
            taken.ok().map(|()| (vector, payload))
        })
    }

    /// Returns the symbol at this place of the generation, if the coder decodes and has decoded it.
    pub fn symbol(&mut self, place: u8) -> Option<&[u8]> {
        let Self::Decoder(coder) = self else { return None };
        coder.symbol(usize::from(place))
    }

    /// Returns the packet at this place, if it is decoded. It is empty if its length field exceeds
    /// the symbol.
    pub fn packet(&mut self, place: u8) -> Option<Vec<u8>> {
        let (len, packet) = self.symbol(place)?.split_first_chunk()?;
        Some(packet.get(..usize::from(u16::from_be_bytes(*len))).unwrap_or_default().to_vec())
    }
}
