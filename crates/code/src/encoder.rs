//! The source of a generation.
//!
//! A payload is the product of a coding vector and the matrix of source symbols. The matrix is laid
//! out for the kernels, each symbol in an aligned row.

use crate::error::CodeError;
use crate::shape::Shape;
use ncmesh_gf::{Kernels, RowBuffer, Rows, RowsMut};

/// Encodes one generation at a time.
///
/// The packet with a unit vector as its coding vector is the source symbol itself. A source that
/// sends these packets first uses a systematic code (RFC 8406).
#[derive(Clone, Debug)]
pub struct Encoder {
    shape: Shape,
    kernels: Kernels,
    symbols: RowBuffer,
}

impl Encoder {
    /// Creates an encoder whose symbols are all zero.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            kernels: Kernels::best(shape.field()),
            symbols: RowBuffer::new(shape.symbol_size(), shape.generation_size()),
        }
    }

    /// Returns the shape of the generation.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Loads the source data of a generation, symbol after symbol, padded with zero bytes.
    ///
    /// # Errors
    /// [`CodeError::TooMuchData`] for more than [`Shape::capacity`] bytes. The encoder keeps its
    /// former data then.
    pub fn load(&mut self, data: &[u8]) -> Result<(), CodeError> {
        let capacity = self.shape.capacity();
        if data.len() > capacity {
            return Err(CodeError::TooMuchData { capacity, got: data.len() });
        }

        // Every row is written, so that nothing of the former data remains.
        let size = self.shape.symbol_size();
        let mut parts = data.chunks(size);
        for index in 0..self.shape.generation_size() {
            if let Some(symbol) = self.symbols.row_mut(index) {
                let part = parts.next().unwrap_or_default();
                let (taken, padding) = symbol.split_at_mut(part.len());
                taken.copy_from_slice(part);
                padding.fill(0);
            }
        }

        Ok(())
    }

    /// Returns source symbol `index` (`symbol_size` bytes), or `None` past the end.
    #[must_use]
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        self.symbols.row(index)
    }

    /// Writes the payload of the packet with this coding vector of `k` coefficients.
    ///
    /// # Errors
    /// [`CodeError::Length`] for slices of other lengths than `k` and `symbol_size`,
    /// [`CodeError::Coefficient`] for a value that is not an element of the field.
    pub fn encode(&self, coefficients: &[u8], payload: &mut [u8]) -> Result<(), CodeError> {
        self.shape.check_lengths(coefficients.len(), payload.len())?;
        self.encode_many(coefficients, payload)
    }

    /// Writes the payloads of `n` packets, one after the other, from `n` rows of `k` coefficients.
    ///
    /// Four or more packets in one call cost much less each than one: the kernel loads a source
    /// byte once for four packets.
    ///
    /// # Errors
    /// As for [`Encoder::encode`], with lengths `n * k` and `n * symbol_size`.
    pub fn encode_many(&self, coefficients: &[u8], payloads: &mut [u8]) -> Result<(), CodeError> {
        let count = self.shape.check_batch(coefficients.len(), payloads.len())?;
        self.shape.check_elements(coefficients)?;
        let k = self.shape.generation_size();
        let size = self.shape.symbol_size();
        let matrix = Rows::packed(coefficients, k, count)?;
        let mut outputs = RowsMut::packed(payloads, size, count)?;
        Ok(self.kernels.product(matrix, self.symbols.rows(k), &mut outputs)?)
    }
}
