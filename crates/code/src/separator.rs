//! Combinations over two generations, taken apart by elimination.

use crate::error::{CodeError, same_length};
use crate::shape::Shape;
use ncmesh_gf::{Field, Kernels};

/// A packet: its coefficients and its payload.
pub type Combination = (Vec<u8>, Vec<u8>);

/// What became of a packet that a [`Separator`] took in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Separated {
    /// It followed from those before.
    Redundant,
    /// It is kept until more is known of the other generation.
    Kept,
    /// With those before, this follows of the wanted generation alone.
    Wanted(Combination),
}

/// Takes one generation out of packets that combine it with another (CORE, section 4).
///
/// A row is a packet: its coefficients in the *other* generation, those in the *wanted* one, and its payload. Rows are kept in
/// echelon form over the other generation's columns. What vanishes there is a combination of the wanted generation alone;
/// all such combinations that follow from the packets inserted come out, each once.
#[derive(Clone, Debug)]
pub struct Separator {
    kernels: Kernels,
    shape: Shape,
    /// By leading column in the other generation.
    rows: Vec<Option<Vec<u8>>>,
    rank: usize,
}

impl Separator {
    /// For generations of `wanted` and `other` symbols over `field`, with payloads of `payload` bytes.
    ///
    /// # Errors
    /// [`CodeError::Generation`], [`CodeError::SymbolSize`] where one of them is zero or too large.
    pub fn new(
        field: Field,
        wanted: usize,
        other: usize,
        payload: usize,
    ) -> Result<Self, CodeError> {
        Shape::new(field, other, payload)?;
        let shape = Shape::new(field, wanted, payload)?;
        Ok(Self { kernels: Kernels::best(field), shape, rows: vec![None; other], rank: 0 })
    }

    /// Rows kept: how many dimensions of the other generation are known, alone or combined with the wanted one.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Bytes of a payload.
    #[must_use]
    pub fn payload_size(&self) -> usize {
        self.shape.symbol_size()
    }

    /// Takes in a packet with its coefficients in both generations.
    ///
    /// # Errors
    /// [`CodeError::Length`] where a length is not as [`Separator::new`] was told, [`CodeError::Coefficient`] where one is
    /// no element of the field.
    pub fn insert(
        &mut self,
        wanted: &[u8],
        other: &[u8],
        payload: &[u8],
    ) -> Result<Separated, CodeError> {
        self.shape.check_lengths(wanted.len(), payload.len())?;
        same_length("coefficients", self.rows.len(), other.len())?;
        self.shape.check_elements(wanted)?;
        self.shape.check_elements(other)?;
        let mut row = [other, wanted, payload].concat();
        for column in 0..self.rows.len() {
            let lead = row[column];
            match &mut self.rows[column] {
                _ if lead == 0 => {}
                Some(kept) => self.kernels.axpy(lead, kept, &mut row)?,
                free => {
                    let inverse = self.kernels.field().inv(lead).unwrap_or(1);
                    self.kernels.scale(inverse, &mut row);
                    *free = Some(row);
                    self.rank += 1;
                    return Ok(Separated::Kept);
                }
            }
        }
        let payload = row.split_off(self.rows.len() + self.shape.generation());
        let wanted = row.split_off(self.rows.len());
        let new = wanted.iter().any(|coefficient| *coefficient != 0);
        Ok(if new { Separated::Wanted((wanted, payload)) } else { Separated::Redundant })
    }
}
