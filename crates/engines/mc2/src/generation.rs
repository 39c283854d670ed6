//! One generation at one node: combinations of its packets, and the credits announced to the node
//! (MC2, 3.2, 3.4).
//!
//! The coder is the toolkit's. Credits are this engine's own: they say how much each of several
//! next hops is to pass on, which the ranks that `cascade` and `braid` go by do not.

use crate::frame::MIN_PAYLOAD;
use ncmesh_engine::toolkit::coder::Coder;
use rand_core::RngCore;
use std::borrow::Cow;

/// Credits that a complete node accepts for each packet of a generation. The first of each is for
/// the packet itself, the others are answers to requests.
const MAX_CREDITS_PER_PACKET: u32 = 4;

/// Dimensions of a flow's generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GenerationShape {
    /// Most packets of a generation, the length of coding vectors.
    pub generation_size: u8,
    /// Length of a combination, bytes.
    pub symbol_size: usize,
}

/// One generation at one node.
#[derive(Debug)]
pub(crate) struct Generation {
    coder: Coder,
    symbol_size: usize,
    /// Packets that it has, once it is closed; 0 before.
    pub packets: u8,
    /// The same of the generation before it, which this node may have nothing of.
    pub packets_before: u8,
    /// Credits that previous hops announced to this node.
    pub announced: u32,
    /// Ones among them that this node has accepted.
    accepted: u32,
    /// Serial number of the latest request that this node answered.
    pub answered: Option<u8>,
}

impl Generation {
    /// Returns an empty generation; `None` if there can be none of this shape.
    pub(crate) fn new(shape: GenerationShape, is_destination: bool) -> Option<Self> {
        Some(Self {
            coder: Coder::new(shape.generation_size, shape.symbol_size, is_destination)?,
            symbol_size: shape.symbol_size,
            packets: 0,
            packets_before: 0,
            announced: 0,
            accepted: 0,
            answered: None,
        })
    }

    /// Returns the number of linearly independent combinations that are here.
    pub(crate) fn rank(&self) -> usize {
        self.coder.rank()
    }

    /// Returns whether its rank is known to be full.
    pub(crate) fn is_complete(&self) -> bool {
        self.packets > 0 && self.rank() >= usize::from(self.packets)
    }

    /// Returns whether the destination, which has handed up `delivered` packets of it, lacks some.
    ///
    /// As long as it does not know how many packets there are, it lacks some if a later generation
    /// has begun, or if it has combinations that it cannot decode.
    pub(crate) fn lacks_packets(&self, has_later: bool, delivered: usize) -> bool {
        if self.packets > 0 { !self.is_complete() } else { has_later || self.rank() > delivered }
    }

    /// Takes in a combination; zeros at the end of its payload may be left out. Returns whether it
    /// was innovative; `None` if it has another shape.
    pub(crate) fn absorb(&mut self, coding_vector: &[u8], payload: &[u8]) -> Option<bool> {
        self.coder.absorb(coding_vector, &padded(payload, self.symbol_size))
    }

    /// Appends a random combination to a frame: its coding vector, and its payload without the
    /// zeros at the end. Returns `None` if there is nothing to combine.
    pub(crate) fn recode(&self, rng: &mut impl RngCore, out: &mut Vec<u8>) -> Option<()> {
        let (vector, payload) = self.coder.combine(rng)?;
        let used = payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        out.extend_from_slice(&vector);
        out.extend_from_slice(&payload[..used.max(MIN_PAYLOAD).min(payload.len())]);
        Some(())
    }

    /// Returns the number of announced credits that this node can accept now and could not before.
    ///
    /// A credit needs a packet to back it, or the node would send more than it received. A node
    /// with the complete generation accepts more: what it sends is as good as what the source
    /// sends, and no packet could raise its rank. The answer to a request reaches it as a credit
    /// without an innovative packet.
    pub(crate) fn accept_credits(&mut self) -> u32 {
        let rank = self.rank() as u32;
        let limit = if self.is_complete() { MAX_CREDITS_PER_PACKET * rank } else { rank };
        let new = self.announced.min(limit).saturating_sub(self.accepted);
        self.accepted += new;
        new
    }

    /// Returns the packet at `index` if it is decoded. It is empty if it was decoded to
    /// something else than was sent.
    pub(crate) fn packet(&mut self, index: u8) -> Option<Vec<u8>> {
        self.coder.packet(index)
    }
}

/// Restores the zeros that were not sent.
fn padded(payload: &[u8], symbol_size: usize) -> Cow<'_, [u8]> {
    if payload.len() >= symbol_size {
        return payload.into();
    }
    let mut symbol = payload.to_vec();
    symbol.resize(symbol_size, 0);
    symbol.into()
}
