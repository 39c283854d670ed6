//! A forwarder's batch where packets are coded: combinations go out as credit allows (Pacifier, III-A; MORE).

use super::data::{Coding, Data};
use super::relay::Relayed;
use ncmesh_code::{Recoder, Shape};
use rand_core::RngCore;

/// What a forwarder holds of a batch, and what it may send.
#[derive(Debug)]
pub(super) struct Coded {
    recoder: Recoder,
    /// May go negative: what was sent beyond it is owed (III-A.2).
    credit: f64,
}

impl Coded {
    pub(super) fn new(shape: Shape) -> Self {
        Self { recoder: Recoder::new(shape), credit: 0.0 }
    }

    /// Flushes the buffer for another batch.
    pub(super) fn clear(&mut self) {
        self.recoder.clear();
        self.credit = 0.0;
    }

    pub(super) fn absorb(&mut self, data: &Data<'_>) -> Relayed {
        let absorbed = match data.coding {
            Coding::Combined(coefficients) => self.recoder.absorb(coefficients, data.payload),
            Coding::Systematic(i) => {
                let mut unit = [0; 255];
                unit[usize::from(i)] = 1;
                let packets = usize::from(data.header.packets);
                self.recoder.absorb(&unit[..packets], data.payload)
            }
        };
        absorbed.map_or(Relayed::Malformed, |_| Relayed::Taken)
    }

    /// May send `credit` packets more.
    pub(super) fn earn(&mut self, credit: f64) {
        self.credit += credit;
    }

    /// Forwards nothing more of this batch.
    pub(super) fn stop(&mut self) {
        self.credit = 0.0;
    }

    pub(super) fn is_ready(&self) -> bool {
        self.credit > 0.0 && self.recoder.rank() > 0
    }

    /// Appends coding vector and payload of a fresh combination, and pays for it.
    pub(super) fn fill(&mut self, rng: &mut impl RngCore, out: &mut Vec<u8>) -> bool {
        let shape = self.recoder.shape();
        let start = out.len();
        out.resize(start + shape.generation_size() + shape.symbol_size(), 0);
        let (coefficients, payload) = out[start..].split_at_mut(shape.generation_size());
        let sent = matches!(self.recoder.recode(rng, coefficients, payload), Ok(true));
        self.credit -= 1.0;
        sent
    }
}
