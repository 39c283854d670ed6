//! The relay of a generation: keeps innovative packets and sends combinations of them.

use crate::basis::{Absorbed, Basis};
use crate::error::CodeError;
use crate::shape::Shape;
use crate::store::Store;
use ncmesh_gf::Kernels;
use rand_core::RngCore;

/// Keeps the innovative packets of one generation and combines them into fresh packets.
#[derive(Clone, Debug)]
pub struct Recoder {
    store: Store,
    basis: Basis,
}

impl Recoder {
    /// Creates a recoder without packets.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let kernels = Kernels::best(shape.field());
        Self {
            store: Store::new(shape, kernels),
            basis: Basis::new(kernels, shape.generation_size()),
        }
    }

    /// Returns the shape of the generation.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.store.shape()
    }

    /// Drops all packets, for the next generation.
    pub fn clear(&mut self) {
        self.store.clear();
        self.basis.clear();
    }

    /// Returns the rank, the number of linearly independent packets held: 0 to `k`.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.basis.rank()
    }

    /// Takes a packet, its coding vector of `k` coefficients and its payload of `symbol_size`
    /// bytes, and keeps it if it is innovative.
    ///
    /// # Errors
    /// [`CodeError::Length`] for slices of other lengths, [`CodeError::Coefficient`] for a value
    /// that is not an element of the field. The recoder does not change then.
    pub fn absorb(&mut self, coefficients: &[u8], payload: &[u8]) -> Result<Absorbed, CodeError> {
        self.shape().check_lengths(coefficients.len(), payload.len())?;
        self.shape().check_elements(coefficients)?;
        let Some(number) = self.basis.insert(coefficients)? else {
            return Ok(Absorbed::Redundant);
        };
        self.store.put(number, coefficients, payload);
        Ok(Absorbed::Innovative)
    }

    /// Writes a fresh packet, a random combination of the packets held: its coding vector of `k`
    /// coefficients and its payload of `symbol_size` bytes. Returns `false`, and writes nothing,
    /// at rank 0.
    ///
    /// # Errors
    /// [`CodeError::Length`] for slices of other lengths.
    pub fn recode(
        &self,
        rng: &mut (impl RngCore + ?Sized),
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<bool, CodeError> {
        self.store.recode(rng, coefficients, payload)
    }

    /// Writes `n` fresh packets at once, which costs much less than `n` calls: `n * k` coefficients
    /// and `n * symbol_size` bytes of payload. Returns `false`, and writes nothing, at rank 0.
    ///
    /// # Errors
    /// [`CodeError::Length`] for slices of other lengths.
    pub fn recode_many(
        &self,
        rng: &mut (impl RngCore + ?Sized),
        coefficients: &mut [u8],
        payloads: &mut [u8],
    ) -> Result<bool, CodeError> {
        self.store.recode_many(rng, coefficients, payloads)
    }

    /// Writes the combination with the given weights, one for each packet held, in order of
    /// arrival.
    ///
    /// # Errors
    /// [`CodeError::Length`] unless there are [`Recoder::rank`] weights and the outputs have the
    /// right lengths, [`CodeError::Coefficient`] for a weight that is not an element of the field.
    pub fn recode_with(
        &self,
        weights: &[u8],
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), CodeError> {
        self.store.recode_with(weights, coefficients, payload)
    }
}
