//! The receiver of a generation.
//!
//! The decoder eliminates on coding vectors as packets arrive, and leaves payloads as they are.
//! Once the vectors determine a symbol, one matrix product of the kept payloads gives it. Deferring
//! the payloads turns the many passes of textbook elimination into one product that runs at the
//! speed of the processor's multiplier.

use crate::basis::{Absorbed, Basis, unit_column};
use crate::error::{CodeError, same_length};
use crate::shape::Shape;
use crate::store::Store;
use ncmesh_gf::{GfError, Kernels, RowsMut};
use rand_core::RngCore;

/// Collects packets of one generation until they determine its symbols.
///
/// A decoder can also recode the packets that it holds, so a receiver that forwards needs no
/// separate [`Recoder`](crate::Recoder).
#[derive(Clone, Debug)]
pub struct Decoder {
    kernels: Kernels,
    store: Store,
    basis: Basis,
    /// The source data, symbol after symbol. Only symbols that are `solved` are valid.
    symbols: Vec<u8>,
    solved: Vec<bool>,
    /// Whether packet `i` is the uncoded source symbol `i`.
    uncoded: Vec<bool>,
    /// Numbers of the symbols that the next product computes.
    wanted: Vec<u16>,
}

impl Decoder {
    /// Creates a decoder without packets.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let kernels = Kernels::best(shape.field());
        let k = shape.generation_size();
        Self {
            kernels,
            store: Store::new(shape, kernels),
            basis: Basis::new(kernels, k),
            symbols: vec![0; shape.capacity()],
            solved: vec![false; k],
            uncoded: vec![false; k],
            wanted: Vec::with_capacity(k),
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
        self.solved.fill(false);
        self.uncoded.fill(false);
    }

    /// Returns the rank, the number of linearly independent packets held: 0 to `k`.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.basis.rank()
    }

    /// Returns whether the rank is full, so that [`Decoder::decode`] returns the source data.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.basis.is_complete()
    }

    /// Takes a packet: its coding vector of `k` coefficients and its payload of `symbol_size`
    /// bytes.
    ///
    /// # Errors
    /// [`CodeError::Length`] for slices of other lengths, [`CodeError::Coefficient`] for a value
    /// that is not an element of the field. The decoder does not change then.
    pub fn absorb(&mut self, coefficients: &[u8], payload: &[u8]) -> Result<Absorbed, CodeError> {
        self.shape().check_lengths(coefficients.len(), payload.len())?;
        self.shape().check_elements(coefficients)?;
        let Some(number) = self.basis.insert(coefficients)? else {
            return Ok(Absorbed::Redundant);
        };

        self.store.put(number, coefficients, payload);

        // An uncoded symbol takes the number of its own column, so its payload is the symbol. If
        // that number is taken, the symbol counts as any other packet.
        self.uncoded[number] = coefficients[number] == 1 && unit_column(coefficients).is_some();
        Ok(Absorbed::Innovative)
    }

    /// Takes the source symbols themselves, one after the other, in place of all packets so far.
    ///
    /// # Errors
    /// [`CodeError::Length`] unless there are `k * symbol_size` bytes. The decoder does not change
    /// then.
    pub fn load(&mut self, source: &[u8]) -> Result<(), CodeError> {
        let shape = self.shape();
        same_length("source symbols", shape.capacity(), source.len())?;
        self.clear();

        let mut unit = vec![0; shape.generation_size()];
        for (index, symbol) in source.chunks(shape.symbol_size()).enumerate() {
            unit[index] = 1;
            self.absorb(&unit, symbol)?;
            unit[index] = 0;
        }

        Ok(())
    }

    /// Returns whether the packets so far determine source symbol `index`.
    #[must_use]
    pub fn is_determined(&self, index: usize) -> bool {
        self.basis.determines(index)
    }

    /// Returns source symbol `index` (`symbol_size` bytes) as soon as the packets determine it,
    /// which may be long before full rank. Returns `None` until then, and past the end.
    ///
    /// The first call for a symbol computes it, at the cost of one pass over the payloads held.
    pub fn symbol(&mut self, index: usize) -> Option<&[u8]> {
        if !self.is_determined(index) {
            return None;
        }

        if self.uncoded[index] {
            return self.store.payloads().row(index);
        }

        self.wanted.clear();
        if !self.solved[index] {
            self.wanted.push(index as u16);
            self.solve().ok()?;
        }

        let size = self.shape().symbol_size();
        self.symbols.get(index * size..(index + 1) * size)
    }

    /// Returns the source data, `k * symbol_size` bytes, at full rank, and `None` before.
    ///
    /// The first call computes it.
    pub fn decode(&mut self) -> Option<&[u8]> {
        if !self.is_complete() {
            return None;
        }

        // Symbols that arrived uncoded are copied. Only the others cost multiplications.
        let size = self.shape().symbol_size();
        self.wanted.clear();
        for index in 0..self.shape().generation_size() {
            if self.solved[index] {
                continue;
            }
            let uncoded = self.store.payloads().row(index).filter(|_| self.uncoded[index]);
            if let Some(payload) = uncoded {
                self.symbols[index * size..][..size].copy_from_slice(payload);
                self.solved[index] = true;
            } else {
                self.wanted.push(index as u16);
            }
        }

        self.solve().ok()?;
        Some(&self.symbols)
    }

    /// Computes the symbols whose numbers are in `wanted`. They must be determined.
    fn solve(&mut self) -> Result<(), GfError> {
        let k = self.shape().generation_size();
        let size = self.shape().symbol_size();
        let mut symbols = RowsMut::packed(&mut self.symbols, size, k)?;
        self.kernels.product_at(
            &self.wanted,
            self.basis.solution()?,
            self.store.payloads(),
            &mut symbols,
        )?;

        for &index in &self.wanted {
            self.solved[usize::from(index)] = true;
        }
        Ok(())
    }

    /// Writes a random combination of the packets held, as
    /// [`Recoder::recode`](crate::Recoder::recode) does.
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

    /// Writes several random combinations of the packets held, as
    /// [`Recoder::recode_many`](crate::Recoder::recode_many) does.
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

    /// Writes the combination of the packets held with the given weights, as
    /// [`Recoder::recode_with`](crate::Recoder::recode_with) does.
    ///
    /// # Errors
    /// As for [`Recoder::recode_with`](crate::Recoder::recode_with).
    pub fn recode_with(
        &self,
        weights: &[u8],
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), CodeError> {
        self.store.recode_with(weights, coefficients, payload)
    }
}
