use crate::error::{CodeError, same_length};
use crate::shape::Shape;
use ncmesh_gf::{Kernels, RowBuffer, Rows, RowsMut};

/// The source of one generation at a time.
///
/// A symbol itself is the packet whose coefficients are a unit vector; sending
/// those first makes the code systematic.
#[derive(Clone, Debug)]
pub struct Encoder {
    shape: Shape,
    kernels: Kernels,
    symbols: RowBuffer,
}

impl Encoder {
    /// An encoder of all-zero symbols.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            kernels: Kernels::best(shape.field()),
            symbols: RowBuffer::new(shape.symbol_size(), shape.generation()),
        }
    }

    /// The shape that this encoder was made for.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Takes the generation's source data, symbol after symbol, and fills up
    /// with zero bytes.
    ///
    /// # Errors
    /// [`CodeError::TooMuchData`] for more than [`Shape::capacity`] bytes; the
    /// encoder keeps what it had then.
    pub fn load(&mut self, data: &[u8]) -> Result<(), CodeError> {
        let capacity = self.shape.capacity();
        if data.len() > capacity {
            return Err(CodeError::TooMuchData { capacity, got: data.len() });
        }
        let size = self.shape.symbol_size();
        let mut parts = data.chunks(size);
        for index in 0..self.shape.generation() {
            if let Some(symbol) = self.symbols.row_mut(index) {
                let part = parts.next().unwrap_or_default();
                let (taken, padding) = symbol.split_at_mut(part.len());
                taken.copy_from_slice(part);
                padding.fill(0);
            }
        }
        Ok(())
    }

    /// Source symbol `index` (`symbol_size` bytes), or `None` past the end.
    #[must_use]
    pub fn symbol(&self, index: usize) -> Option<&[u8]> {
        self.symbols.row(index)
    }

    /// Writes the payload of the packet with these `k` coefficients.
    ///
    /// # Errors
    /// [`CodeError::Length`] for slices of other lengths than `k` and
    /// `symbol_size`, [`CodeError::Coefficient`] for a value that is no
    /// element of the field.
    pub fn encode(&self, coefficients: &[u8], payload: &mut [u8]) -> Result<(), CodeError> {
        self.shape.check_lengths(coefficients.len(), payload.len())?;
        self.encode_strided(coefficients, payload, self.shape.symbol_size())
    }

    /// Writes the payloads of `n` packets, one after the other, from `n` rows
    /// of `k` coefficients. Four or more packets in one call cost much less
    /// each than one: a source byte is loaded once for four packets.
    ///
    /// # Errors
    /// As for [`Encoder::encode`], with lengths `n * k` and
    /// `n * symbol_size`.
    pub fn encode_many(&self, coefficients: &[u8], payloads: &mut [u8]) -> Result<(), CodeError> {
        self.shape.check_batch(coefficients.len(), payloads.len())?;
        self.encode_strided(coefficients, payloads, self.shape.symbol_size())
    }

    /// As [`Encoder::encode_many`], with the start of each payload `stride`
    /// bytes after that of the one before. The bytes between are left alone.
    ///
    /// # Errors
    /// As for [`Encoder::encode`], and [`CodeError::Layout`] when the payloads
    /// overlap or do not fit.
    pub fn encode_strided(
        &self,
        coefficients: &[u8],
        payloads: &mut [u8],
        stride: usize,
    ) -> Result<(), CodeError> {
        let (k, size) = (self.shape.generation(), self.shape.symbol_size());
        let count = coefficients.len() / k;
        same_length("coefficients", count * k, coefficients.len())?;
        self.shape.check_elements(coefficients)?;
        let matrix = Rows::packed(coefficients, k, count)?;
        let mut outputs = RowsMut::new(payloads, size, stride, count)?;
        Ok(self.kernels.product(matrix, self.symbols.rows(k), &mut outputs)?)
    }
}
