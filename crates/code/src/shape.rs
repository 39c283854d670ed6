use crate::error::{CodeError, same_length};
use ncmesh_gf::Field;

/// Field, generation size and symbol size; what all coders of one generation
/// have to agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    field: Field,
    generation: u8,
    symbol_size: u16,
}

impl Shape {
    /// `generation` symbols of `symbol_size` bytes each.
    ///
    /// # Errors
    /// [`CodeError::Generation`] outside 1 to 255, [`CodeError::SymbolSize`]
    /// outside 1 to 65 535.
    pub fn new(field: Field, generation: usize, symbol_size: usize) -> Result<Self, CodeError> {
        let count = u8::try_from(generation).ok().filter(|&k| k > 0);
        let size = u16::try_from(symbol_size).ok().filter(|&bytes| bytes > 0);
        Ok(Self {
            field,
            generation: count.ok_or(CodeError::Generation(generation))?,
            symbol_size: size.ok_or(CodeError::SymbolSize(symbol_size))?,
        })
    }

    /// The field of coefficients and payloads.
    #[must_use]
    pub fn field(&self) -> Field {
        self.field
    }

    /// Symbols in a generation, `k`: 1 to 255.
    #[must_use]
    pub fn generation(&self) -> usize {
        usize::from(self.generation)
    }

    /// Bytes in a symbol: 1 to 65 535.
    #[must_use]
    pub fn symbol_size(&self) -> usize {
        usize::from(self.symbol_size)
    }

    /// Bytes of source data in a generation.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.generation() * self.symbol_size()
    }

    /// `Ok` when every coefficient is an element of the field.
    pub(crate) fn check_elements(&self, coefficients: &[u8]) -> Result<(), CodeError> {
        let field = self.field;
        // Over GF(2^8) every byte is an element: nothing to look at.
        if field == Field::Gf256 {
            return Ok(());
        }
        match coefficients.iter().position(|&c| !field.contains(c)) {
            Some(index) => Err(CodeError::Coefficient { index, value: coefficients[index] }),
            None => Ok(()),
        }
    }

    /// `Ok` for one packet's coefficients and payload of the right lengths.
    pub(crate) fn check_lengths(
        &self,
        coefficients: usize,
        payload: usize,
    ) -> Result<(), CodeError> {
        same_length("coefficients", self.generation(), coefficients)?;
        same_length("payload", self.symbol_size(), payload)
    }

    /// How many packets have `coefficients` bytes of coefficients, once that
    /// is a whole number and `payloads` matches it.
    pub(crate) fn check_batch(
        &self,
        coefficients: usize,
        payloads: usize,
    ) -> Result<usize, CodeError> {
        let count = coefficients / self.generation();
        same_length("coefficients", count * self.generation(), coefficients)?;
        same_length("payloads", count * self.symbol_size(), payloads)?;
        Ok(count)
    }
}
