//! Generation of a tunnel's flow at one node, and packets as its symbols.
//!
//! Packets of different lengths become symbols of one size: length, check, bytes, zeros. A relay
//! only recodes; the destination decodes. Both are a [`Coder`], so that an engine need not care
//! which of them it has.
//!
//! The check is a hash of the packet. One wrong combination spoils every packet that is decoded
//! with it, whichever relay made it, so each packet is checked where it ends before a host sees it.

use ncmesh_code::{Combination, Decoder, Field, Recoder, Shape};
use rand_core::RngCore;

/// Bytes before a packet in its symbol: its length and its check.
pub const PREFIX: usize = 2 + CHECK;
/// Bytes of the check. Four billion wrong packets pass it once.
const CHECK: usize = 4;

/// A packet at the front of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpacked<'a> {
    /// The packet; `None` if its check is wrong.
    pub packet: Option<&'a [u8]>,
    /// The rest, behind it.
    pub rest: &'a [u8],
}

/// Returns the largest generation of up to `most` packets with which packets of `packet` bytes fit
/// frames of `mtu` bytes, or `most` if none does. `overhead` is what a frame with a generation of
/// this size keeps from the symbol, bytes: coding vectors grow with the generation.
pub fn generation_with_room(
    most: u8,
    mtu: usize,
    packet: usize,
    overhead: impl Fn(u8) -> usize,
) -> u8 {
    let fits = |size: &u8| mtu >= overhead(*size) + PREFIX + packet;
    (1..=most).rev().find(fits).unwrap_or(most)
}

/// Returns a packet as a symbol carries it: its length, its check, its bytes.
pub fn pack(packet: &[u8]) -> Vec<u8> {
    [&(packet.len() as u16).to_be_bytes()[..], &check(packet), packet].concat()
}

/// Returns the packet at the front of a symbol. Returns `None` if there is none: its length is 0 or
/// exceeds the symbol.
pub fn unpack(symbol: &[u8]) -> Option<Unpacked<'_>> {
    let (len, rest) = symbol.split_first_chunk()?;
    let (said, rest) = rest.split_first_chunk::<CHECK>()?;
    let (packet, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    let is_right = || check(packet) == *said;
    (!packet.is_empty()).then(|| Unpacked { packet: is_right().then_some(packet), rest })
}

/// Returns the symbol of a packet, with zeros up to `size` bytes. The packet must fit.
pub fn symbol_of(packet: &[u8], size: usize) -> Vec<u8> {
    let mut symbol = pack(packet);
    symbol.resize(size, 0);
    symbol
}

fn check(packet: &[u8]) -> [u8; CHECK] {
    let hash = blake3::hash(packet);
    core::array::from_fn(|i| hash.as_bytes()[i])
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
            // A unit vector of weights gives the row itself, without mixing it with others.
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

    /// Returns the packet at this place, if it is decoded. It is empty if its length or its check
    /// is wrong.
    pub fn packet(&mut self, place: u8) -> Option<Vec<u8>> {
        let packet = unpack(self.symbol(place)?).and_then(|unpacked| unpacked.packet);
        Some(packet.unwrap_or_default().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::stream;
    use ncmesh_wire::NodeId;

    /// Golden vector of the wire format.
    #[test]
    fn a_packet_is_packed_and_unpacked() {
        let symbol = symbol_of(b"ncmesh", 14);
        assert_eq!(symbol[..6], [0, 6, 0x81, 0x97, 0xba, 0xa8]);
        assert_eq!(&symbol[6..], b"ncmesh\0\0");
        let unpacked = unpack(&symbol).unwrap();
        assert_eq!((unpacked.packet, unpacked.rest), (Some(&b"ncmesh"[..]), &[0, 0][..]));
        assert_eq!(unpack(unpacked.rest), None);
        assert_eq!(unpack(&symbol[..11]), None);
        for at in 2..12 {
            let mut wrong = symbol.clone();
            wrong[at] ^= 1;
            assert_eq!(unpack(&wrong).unwrap().packet, None, "byte {at}");
        }
    }

    /// A combination whose payload does not belong to its vector, as a relay without scruples or
    /// with bad memory makes it.
    #[test]
    fn no_packet_is_handed_on_that_was_decoded_from_a_wrong_combination() {
        let packets: [&[u8]; 3] = [b"first", b"second", b"third"];
        let mut source = Coder::new(3, 20, false).unwrap();
        for (place, packet) in packets.iter().enumerate() {
            let mut unit = [0; 3];
            unit[place] = 1;
            source.absorb(&unit, &symbol_of(packet, 20));
        }
        let mut rng = stream(1, NodeId(1), "coder", "test");
        for spoilt in [false, true] {
            let mut end = Coder::new(3, 20, true).unwrap();
            while end.rank() < 3 {
                let (vector, mut payload) = source.combine(&mut rng).unwrap();
                payload[9] ^= u8::from(spoilt && end.rank() == 1);
                end.absorb(&vector, &payload);
            }
            for (place, packet) in (0..).zip(packets) {
                let decoded = end.packet(place).unwrap();
                assert!(decoded == packet || (spoilt && decoded.is_empty()), "{decoded:?}");
            }
            let right = (0..3).filter(|place| !end.packet(*place).unwrap().is_empty()).count();
            assert!(if spoilt { right < 3 } else { right == 3 });
        }
    }
}
