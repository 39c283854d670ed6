//! Separates one generation from packets that combine it with another.
//!
//! Relays of CORE add packets of two generations (J. Hansen et al., "Bridging Inter-flow and
//! Intra-flow Network Coding in Wireless Mesh Networks", Computer Networks 145, 2018, section 4).
//! A receiver of one generation removes the other by elimination: it treats the coding vectors over
//! both generations as one long vector and eliminates the columns of the generation that it does
//! not want.

use crate::error::{CodeError, same_length};
use crate::shape::Shape;
use ncmesh_gf::{Field, Kernels};

/// A packet: its coding vector and its payload.
pub type Combination = (Vec<u8>, Vec<u8>);

/// Effect of a packet that a [`Separator`] receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Separated {
    /// The packet is a combination of earlier packets.
    Redundant,
    /// The separator keeps the packet until it knows more of the other generation.
    Kept,
    /// The packet gives this combination of the wanted generation alone.
    Wanted(Combination),
}

/// Extracts combinations of a *wanted* generation from packets that combine it with an *other* one.
///
/// A row is a packet: its coefficients in the other generation, its coefficients in the wanted
/// generation, and its payload. Rows are kept in echelon form over the columns of the other
/// generation. A packet that reduces to zero in these columns is a combination of the wanted
/// generation alone. Every such combination that follows from the inserted packets is returned
/// once. The separator keeps at most one row for each symbol of the other generation.
#[derive(Clone, Debug)]
pub struct Separator {
    kernels: Kernels,
    shape: Shape,
    /// Rows by their leading column in the other generation. Each has a one in that column.
    rows: Vec<Option<Vec<u8>>>,
    rank: usize,
}

impl Separator {
    /// Creates a separator for generations of `wanted` and `other` symbols over `field`, with
    /// payloads of `payload` bytes.
    ///
    /// # Errors
    /// [`CodeError::Generation`] or [`CodeError::SymbolSize`] for a size of zero or a size that is
    /// too large.
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

    /// Returns the number of rows kept: the known dimensions of the other generation, alone or
    /// combined with the wanted one.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the length of a payload in bytes.
    #[must_use]
    pub fn payload_size(&self) -> usize {
        self.shape.symbol_size()
    }

    /// Inserts a packet with its coefficients in both generations.
    ///
    /// # Errors
    /// [`CodeError::Length`] for a length other than given to [`Separator::new`],
    /// [`CodeError::Coefficient`] for a value that is not an element of the field.
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

        // Eliminate the columns of the other generation. The first column without a row keeps this
        // packet as its row, scaled to a leading one.
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

        // Nothing of the other generation remains.
        let payload = row.split_off(self.rows.len() + self.shape.generation_size());
        let wanted = row.split_off(self.rows.len());
        // Without a coefficient of the wanted generation nothing is left to learn.
        let innovative = wanted.iter().any(|coefficient| *coefficient != 0);
        Ok(if innovative { Separated::Wanted((wanted, payload)) } else { Separated::Redundant })
    }
}
