//! Coding vector and payload, with which data packets end.

use ncmesh_code::{Encoder, Shape, draw};
use ncmesh_engine::Malformed;
use ncmesh_wire::Reader;
use ncmesh_wire::layout::{Check, Is, Length, Part};
use ncmesh_wire::record::{Named, bits, field};
use rand_core::RngCore;

/// Bit of a data packet: whether the coding vector is the index of one packet, which is sent as it
/// is.
pub const SYSTEMATIC: Named =
    bits(1, "systematic", "Coding").named(&[(0, "coded"), (1, "systematic")]);

/// How a data packet's payload was made from the packets of its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding<'a> {
    /// The packet of this index, as it is.
    Systematic(u8),
    /// The linear combination with these coefficients, one for each packet of the generation.
    Combined(&'a [u8]),
}

/// Appends an empty coding vector and an empty payload, to be filled in.
pub fn append_coding(shape: Shape, out: &mut Vec<u8>) -> (&mut [u8], &mut [u8]) {
    let start = out.len();
    out.resize(start + shape.generation_size() + shape.symbol_size(), 0);
    out[start..].split_at_mut(shape.generation_size())
}

/// Appends coding vector and payload: the packet of this index as it is, or a fresh combination of
/// all. Returns `None` if there is no such packet.
pub fn write_packet(
    encoder: &Encoder,
    index: Option<u8>,
    rng: &mut impl RngCore,
    out: &mut Vec<u8>,
) -> Option<()> {
    if let Some(index) = index {
        let symbol = encoder.symbol(usize::from(index))?;
        out.push(index);
        out.extend_from_slice(symbol);
        return Some(());
    }

    let (coefficients, payload) = append_coding(encoder.shape(), out);
    draw(encoder.shape().field(), rng, coefficients);
    encoder.encode(coefficients, payload).ok()
}

impl Coding<'_> {
    const COEFFICIENTS: Named = field("coefficients", "Coding vector, GF(2^8)");
    const INDEX: Named = field("index", "Index of the packet");
    const PAYLOAD: Named = field("payload", "Payload").rest(1, u16::MAX as usize);

    /// Parts at the end of a data packet.
    pub const PARTS: &'static [Part] = &[
        Part::When(
            Is(SYSTEMATIC.name, 0),
            &[Self::COEFFICIENTS.bytes(Length::Field("packets"), "a coefficient for each packet")],
        ),
        Part::When(
            Is(SYSTEMATIC.name, 1),
            &[
                Self::INDEX.part::<u8>("the payload is this packet as it is"),
                Part::Check(Check::Below(Self::INDEX.name, "packets")),
            ],
        ),
        Self::PAYLOAD.part::<&[u8]>("one symbol"),
    ];
}

impl<'a> Coding<'a> {
    /// Reads the end of a packet of a generation of `packets`, which is sent as it is or not: its
    /// coding and its payload.
    pub fn parse(
        is_systematic: bool,
        packets: u8,
        mut r: Reader<'a>,
    ) -> Result<(Self, &'a [u8]), Malformed> {
        let coding = if is_systematic {
            let index: u8 = Self::INDEX.read(&mut r)?;
            Self::Systematic(Some(index).filter(|i| *i < packets).ok_or(Malformed)?)
        } else {
            Self::Combined(r.bytes(usize::from(packets))?)
        };
        Ok((coding, Self::PAYLOAD.read(&mut r)?))
    }

    /// Calls `use_vector` with the coding vector, one coefficient for each of the generation's
    /// `packets`. A packet that is sent as it is has a unit vector.
    pub fn with_vector<T>(self, packets: u8, use_vector: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Combined(coefficients) => use_vector(coefficients),
            Self::Systematic(i) => {
                let mut unit = [0; 255];
                unit[usize::from(i)] = 1;
                use_vector(&unit[..usize::from(packets)])
            }
        }
    }
}
