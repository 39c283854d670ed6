//! The parameters of a generation and the checks of arguments against them.

use crate::error::{CodeError, same_length};
use ncmesh_gf::Field;

/// Field, generation size and symbol size. All coders of a generation must use the same shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    field: Field,
    generation_size: u8,
    symbol_size: u16,
}

impl Shape {
    /// Creates the shape of `generation_size` symbols of `symbol_size` bytes each.
    ///
    /// # Errors
    /// [`CodeError::Generation`] outside 1 to 255, [`CodeError::SymbolSize`] outside 1 to 65 535.
    pub fn new(
        field: Field,
        generation_size: usize,
        symbol_size: usize,
    ) -> Result<Self, CodeError> {
        let count = u8::try_from(generation_size).ok().filter(|&k| k > 0);
        let size = u16::try_from(symbol_size).ok().filter(|&bytes| bytes > 0);
        Ok(Self {
            field,
            generation_size: count.ok_or(CodeError::Generation(generation_size))?,
            symbol_size: size.ok_or(CodeError::SymbolSize(symbol_size))?,
        })
    }

    /// Returns the field of coefficients and payloads.
    #[must_use]
    pub fn field(&self) -> Field {
        self.field
    }

    /// Returns the generation size `k`, in symbols: 1 to 255.
    #[must_use]
    pub fn generation_size(&self) -> usize {
        usize::from(self.generation_size)
    }

    /// Returns the symbol size, in bytes: 1 to 65 535.
    #[must_use]
    pub fn symbol_size(&self) -> usize {
        usize::from(self.symbol_size)
    }

    /// Returns the bytes of source data in a generation.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.generation_size() * self.symbol_size()
    }

    /// Returns `Ok` when every coefficient is an element of the field.
    pub(crate) fn check_elements(&self, coefficients: &[u8]) -> Result<(), CodeError> {
        let field = self.field;

        // Over GF(2^8) every byte is an element.
        if field == Field::Gf256 {
            return Ok(());
        }
        match coefficients.iter().position(|&c| !field.contains(c)) {
            Some(index) => Err(CodeError::Coefficient { index, value: coefficients[index] }),
            None => Ok(()),
        }
    }

    /// Returns `Ok` when the coding vector and the payload of a packet have these lengths.
    pub(crate) fn check_lengths(
        &self,
        coefficients: usize,
        payload: usize,
    ) -> Result<(), CodeError> {
        same_length("coefficients", self.generation_size(), coefficients)?;
        same_length("payload", self.symbol_size(), payload)
    }

    /// Returns the number of packets with `coefficients` bytes of coefficients in all, if that
    /// number is whole and matches `payloads`.
    pub(crate) fn check_batch(
        &self,
        coefficients: usize,
        payloads: usize,
    ) -> Result<usize, CodeError> {
        let count = coefficients / self.generation_size();
        same_length("coefficients", count * self.generation_size(), coefficients)?;
        same_length("payloads", count * self.symbol_size(), payloads)?;
        Ok(count)
    }
}
