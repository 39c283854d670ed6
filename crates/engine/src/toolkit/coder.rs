//! What a node has of one generation of a flow, and packets as symbols of it.

use ncmesh_code::{Combination, Decoder, Field, Recoder, Shape};
use rand_core::RngCore;

/// The length of a packet stands before it in its symbol, bytes.
pub const PREFIX: usize = 2;

/// A packet as a symbol of `size` bytes, which have room for it: its length, itself, zeros.
pub fn symbol_of(packet: &[u8], size: usize) -> Vec<u8> {
    let mut symbol = (packet.len() as u16).to_be_bytes().to_vec();
    symbol.extend_from_slice(packet);
    symbol.resize(size, 0);
    symbol
}

/// Combinations of one generation over GF(2^8).
#[derive(Debug)]
pub enum Coder {
    /// Where they are combined anew.
    Recoder(Recoder),
    /// Where packets are taken out.
    Decoder(Decoder),
}

impl Coder {
    /// Nothing of a generation of up to `room` packets, with symbols of `size` bytes. `None` where there is no such.
    pub fn new(room: u8, size: usize, decodes: bool) -> Option<Self> {
        let shape = Shape::new(Field::Gf256, usize::from(room), size).ok()?;
        let decoder = || Self::Decoder(Decoder::new(shape));
        Some(if decodes { decoder() } else { Self::Recoder(Recoder::new(shape)) })
    }

    /// Returns the rank: innovative combinations taken in.
    pub fn rank(&self) -> usize {
        match self {
            Self::Recoder(coder) => coder.rank(),
            Self::Decoder(coder) => coder.rank(),
        }
    }

    /// Takes a combination in. Says whether it was innovative; `None` if it is of another shape.
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

    /// A combination at random: its coding vector and its payload. `None` where there is nothing yet.
    pub fn combine(&self, rng: &mut impl RngCore) -> Option<Combination> {
        let shape = self.shape();
        let (mut vector, mut payload) = (vec![0; shape.generation()], vec![0; shape.symbol_size()]);
        let combined = match self {
            Self::Recoder(coder) => coder.recode(rng, &mut vector, &mut payload),
            Self::Decoder(coder) => coder.recode(rng, &mut vector, &mut payload),
        };
        combined.ok()?.then_some((vector, payload))
    }

    /// The innovative combinations taken in, as they came.
    pub fn rows(&self) -> impl Iterator<Item = Combination> + '_ {
        let shape = self.shape();
        (0..self.rank()).filter_map(move |row| {
            let mut weights = vec![0; self.rank()];
            weights[row] = 1;
            let (mut vector, mut payload) =
                (vec![0; shape.generation()], vec![0; shape.symbol_size()]);
            let taken = match self {
                Self::Recoder(coder) => coder.recode_with(&weights, &mut vector, &mut payload),
                Self::Decoder(coder) => coder.recode_with(&weights, &mut vector, &mut payload),
            };
            taken.ok().map(|()| (vector, payload))
        })
    }

    /// The symbol of this place, if it is known by now and the coder decodes.
    pub fn symbol(&mut self, place: u8) -> Option<&[u8]> {
        let Self::Decoder(coder) = self else { return None };
        coder.symbol(usize::from(place))
    }

    /// The packet of this place, if it is known by now; empty if it says that it is longer than it can be.
    pub fn packet(&mut self, place: u8) -> Option<Vec<u8>> {
        let (len, packet) = self.symbol(place)?.split_first_chunk()?;
        Some(packet.get(..usize::from(u16::from_be_bytes(*len))).unwrap_or_default().to_vec())
    }
}
