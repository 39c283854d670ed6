use crate::basis::{Absorbed, Basis, unit_column};
use crate::error::CodeError;
use crate::shape::Shape;
use crate::store::Store;
use ncmesh_gf::{GfError, Kernels, RowsMut};
use rand_core::RngCore;

/// A receiver: collects packets of one generation until they determine it.
///
/// Arriving packets are reduced in their coefficients only; payloads stay as
/// they came until the end, when one product gives all symbols at once. What
/// is held can also be recoded, so a receiver that forwards needs no
/// [`Recoder`](crate::Recoder) besides.
#[derive(Clone, Debug)]
pub struct Decoder {
    kernels: Kernels,
    store: Store,
    basis: Basis,
    /// The source, symbol after symbol; valid where `solved`.
    symbols: Vec<u8>,
    solved: Vec<bool>,
    /// Where the packet of that number is the symbol itself.
    verbatim: Vec<bool>,
    /// Space for the numbers of the symbols to solve for.
    wanted: Vec<u16>,
}

impl Decoder {
    /// A decoder that holds nothing.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let kernels = Kernels::best(shape.field());
        let k = shape.generation();
        Self {
            kernels,
            store: Store::new(shape, kernels),
            basis: Basis::new(kernels, k),
            symbols: vec![0; shape.capacity()],
            solved: vec![false; k],
            verbatim: vec![false; k],
            wanted: Vec::with_capacity(k),
        }
    }

    /// The shape that this decoder was made for.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.store.shape()
    }

    /// Forgets everything, for the next generation.
    pub fn clear(&mut self) {
        self.store.clear();
        self.basis.clear();
        self.solved.fill(false);
        self.verbatim.fill(false);
    }

    /// How many independent packets are held: 0 to `k`.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.basis.rank()
    }

    /// Whether the rank is full, so that [`Decoder::decode`] gives the source.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.basis.is_complete()
    }

    /// Takes a packet of `k` coefficients and `symbol_size` bytes.
    ///
    /// # Errors
    /// [`CodeError::Length`] for slices of other lengths,
    /// [`CodeError::Coefficient`] for a value that is no element of the field.
    /// The decoder is unchanged then.
    pub fn absorb(&mut self, coefficients: &[u8], payload: &[u8]) -> Result<Absorbed, CodeError> {
        self.shape().check_lengths(coefficients.len(), payload.len())?;
        self.shape().check_elements(coefficients)?;
        let Some(number) = self.basis.insert(coefficients)? else {
            return Ok(Absorbed::Redundant);
        };
        self.store.put(number, coefficients, payload);
        // A source symbol takes the number of its own column, unless that is
        // taken; then it is as good as any other packet.
        self.verbatim[number] = coefficients[number] == 1 && unit_column(coefficients).is_some();
        Ok(Absorbed::Innovative)
    }

    /// Whether source symbol `index` follows from the packets so far.
    #[must_use]
    pub fn is_determined(&self, index: usize) -> bool {
        self.basis.determines(index)
    }

    /// Source symbol `index` (`symbol_size` bytes) as soon as the packets so
    /// far determine it, which may be long before full rank; `None` until then
    /// and past the end. The first call for a symbol computes it.
    pub fn symbol(&mut self, index: usize) -> Option<&[u8]> {
        if !self.is_determined(index) {
            return None;
        }
        if self.verbatim[index] {
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

    /// The whole source, `k * symbol_size` bytes, at full rank; `None` before.
    /// The first call computes it.
    pub fn decode(&mut self) -> Option<&[u8]> {
        if !self.is_complete() {
            return None;
        }
        self.wanted.clear();
        for index in 0..self.shape().generation() {
            if !self.solved[index] && !self.copy_verbatim(index) {
                self.wanted.push(index as u16);
            }
        }
        self.solve().ok()?;
        Some(&self.symbols)
    }

    /// Copies a symbol that came as it is to its place.
    fn copy_verbatim(&mut self, index: usize) -> bool {
        let size = self.shape().symbol_size();
        let came = self.store.payloads().row(index).filter(|_| self.verbatim[index]);
        if let Some(payload) = came {
            self.symbols[index * size..][..size].copy_from_slice(payload);
            self.solved[index] = true;
        }
        came.is_some()
    }

    /// Computes the symbols numbered in `wanted`, which must be determined.
    fn solve(&mut self) -> Result<(), GfError> {
        let (k, size) = (self.shape().generation(), self.shape().symbol_size());
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

    /// Writes a fresh packet from what is held; see
    /// [`Recoder::recode`](crate::Recoder::recode).
    ///
    /// # Errors
    /// As there.
    pub fn recode(
        &self,
        rng: &mut (impl RngCore + ?Sized),
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<bool, CodeError> {
        self.store.recode(rng, coefficients, payload)
    }

    /// Writes several fresh packets from what is held; see
    /// [`Recoder::recode_many`](crate::Recoder::recode_many).
    ///
    /// # Errors
    /// As there.
    pub fn recode_many(
        &self,
        rng: &mut (impl RngCore + ?Sized),
        coefficients: &mut [u8],
        payloads: &mut [u8],
    ) -> Result<bool, CodeError> {
        self.store.recode_many(rng, coefficients, payloads)
    }

    /// Writes the combination with the given weights; see
    /// [`Recoder::recode_with`](crate::Recoder::recode_with).
    ///
    /// # Errors
    /// As there.
    pub fn recode_with(
        &self,
        weights: &[u8],
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), CodeError> {
        self.store.recode_with(weights, coefficients, payload)
    }
}
