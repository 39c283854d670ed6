//! Buffer of a forwarder that codes: fresh combinations go out as its credit allows (Pacifier,
//! III-A.2; MORE).
//!
//! The credit counter rises by the forwarder's TX_credit with each packet heard from upstream, and
//! falls by one with each packet sent. The forwarder sends while it is positive. So it sends, on
//! average, as many packets as its children need, without hearing from them.

use crate::multicast::frame::{Data, append_coding};
use ncmesh_code::{Recoder, Shape};
use ncmesh_engine::Malformed;
use rand_core::RngCore;

/// Innovative packets of one batch, and the credit to send combinations of them.
#[derive(Debug)]
pub(super) struct CodedBuffer {
    recoder: Recoder,
    /// Packets that may be sent. The last one sent may take it below zero; the next packets from
    /// upstream make up for that first.
    credit: f64,
}

impl CodedBuffer {
    pub(super) fn new(shape: Shape) -> Self {
        Self { recoder: Recoder::new(shape), credit: 0.0 }
    }

    /// Empties the buffer for another batch of the same shape.
    pub(super) fn clear(&mut self) {
        self.recoder.clear();
        self.credit = 0.0;
    }

    /// Takes a packet in if it is innovative.
    pub(super) fn absorb(&mut self, data: &Data<'_>) -> Result<(), Malformed> {
        let absorbed = data
            .coding
            .with_vector(data.header.packets, |vector| self.recoder.absorb(vector, data.payload));
        absorbed.map(|_| ()).map_err(|_| Malformed)
    }

    /// Allows `credit` packets more.
    pub(super) fn add_credit(&mut self, credit: f64) {
        self.credit += credit;
    }

    /// Takes all credit away: this node is no forwarder of the batch any more.
    pub(super) fn stop(&mut self) {
        self.credit = 0.0;
    }

    /// Returns whether a packet may be sent, and there is something to combine.
    pub(super) fn is_ready(&self) -> bool {
        self.credit > 0.0 && self.recoder.rank() > 0
    }

    /// Appends the coding vector and payload of a fresh combination and pays for it. Returns
    /// whether there was anything to combine.
    pub(super) fn fill(&mut self, rng: &mut impl RngCore, out: &mut Vec<u8>) -> bool {
        let (coefficients, payload) = append_coding(self.recoder.shape(), out);
        let is_filled = matches!(self.recoder.recode(rng, coefficients, payload), Ok(true));
        self.credit -= 1.0;
        is_filled
    }
}
