//! Coding vector and payload, with which data packets end.

use ncmesh_code::Shape;
use ncmesh_engine::Malformed;
use ncmesh_wire::Reader;

/// Flag: the coding vector is the index of one packet, which is sent as it is.
pub(super) const SYSTEMATIC: u8 = 1;

/// How a data packet's payload was made from the packets of its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding<'a> {
    /// The packet of this index, as it is.
    Systematic(u8),
    /// The linear combination with these coefficients, one for each packet of the batch.
    Combined(&'a [u8]),
}

/// Appends an empty coding vector and an empty payload, to be filled in.
pub(crate) fn append_coding(shape: Shape, out: &mut Vec<u8>) -> (&mut [u8], &mut [u8]) {
    let start = out.len();
    out.resize(start + shape.generation_size() + shape.symbol_size(), 0);
    out[start..].split_at_mut(shape.generation_size())
}

impl<'a> Coding<'a> {
    /// Reads the end of a packet of a batch of `packets`, which is sent as it is or not: its coding
    /// and its payload.
    pub(super) fn parse(
        is_systematic: bool,
        packets: u8,
        mut r: Reader<'a>,
    ) -> Result<(Self, &'a [u8]), Malformed> {
        let coding = if is_systematic {
            Self::Systematic(Some(r.u8()?).filter(|i| *i < packets).ok_or(Malformed)?)
        } else {
            Self::Combined(r.bytes(usize::from(packets))?)
        };
        let payload = r.rest();
        if payload.is_empty() || payload.len() > usize::from(u16::MAX) {
            return Err(Malformed);
        }
        Ok((coding, payload))
    }

    /// Calls `use_vector` with the coding vector, one coefficient for each of the batch's
    /// `packets`. A packet that is sent as it is has a unit vector.
    pub(crate) fn with_vector<T>(self, packets: u8, use_vector: impl FnOnce(&[u8]) -> T) -> T {
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
