//! Linear checks: sums that tell true packets of a generation from false ones without decoding.
//!
//! A random matrix `H` with few columns turns a payload `p` into a short *sum* `p·H`. Sums are
//! linear: if `S` are the sums of the source symbols, a packet with coding vector `v` is true only
//! if `p·H = v·S`. The error `e` of a false packet passes if `e·H = 0`. For a matrix that was drawn
//! after the packet was made this happens with probability 2^-8 for each column. Whoever knows the
//! matrix can make errors that pass.

use crate::error::{CodeError, same_length};
use crate::shape::Shape;
use ncmesh_gf::{Field, Kernels, Rows, RowsMut};

/// A matrix by which the packets of generations of one shape are checked, over GF(2^8).
#[derive(Clone, Debug)]
pub struct Probe {
    kernels: Kernels,
    shape: Shape,
    /// One row for each byte of a payload.
    matrix: Vec<u8>,
    columns: usize,
}

impl Probe {
    /// Creates a probe from a matrix of `columns` bytes for each byte of a payload, row after row.
    ///
    /// # Errors
    /// [`CodeError::Length`] if the matrix has another size, or no column.
    pub fn new(shape: Shape, columns: usize, matrix: Vec<u8>) -> Result<Self, CodeError> {
        same_length("matrix", shape.symbol_size() * columns.max(1), matrix.len())?;
        Ok(Self { kernels: Kernels::best(Field::Gf256), shape, matrix, columns })
    }

    /// Returns the sums of payloads that lie one after the other. Four at once cost little more
    /// than one.
    ///
    /// # Errors
    /// [`CodeError::Length`] unless the payloads have the size of the shape.
    pub fn sums(&self, payloads: &[u8]) -> Result<Vec<u8>, CodeError> {
        let size = self.shape.symbol_size();
        let count = payloads.len() / size;
        same_length("payloads", count * size, payloads.len())?;

        // The payloads are the coefficients here, and the rows of the matrix are combined.
        let mut sums = vec![0; count * self.columns];
        let payloads = Rows::packed(payloads, size, count)?;
        let matrix = Rows::packed(&self.matrix, self.columns, size)?;
        let mut outputs = RowsMut::packed(&mut sums, self.columns, count)?;
        self.kernels.product(payloads, matrix, &mut outputs)?;
        Ok(sums)
    }

    /// Returns whether a packet agrees with the `sums` of the source symbols, one after the other.
    ///
    /// # Errors
    /// [`CodeError::Length`] for slices of other lengths than the shape says.
    pub fn agrees(&self, sums: &[u8], vector: &[u8], payload: &[u8]) -> Result<bool, CodeError> {
        let k = self.shape.generation_size();
        self.shape.check_lengths(vector.len(), payload.len())?;
        same_length("sums", k * self.columns, sums.len())?;

        let mut expected = vec![0; self.columns];
        let sums = Rows::packed(sums, self.columns, k)?;
        self.kernels.combine(vector, sums, &mut expected)?;
        Ok(self.sums(payload)? == expected)
    }
}
