//! The span of the received coding vectors, and the matrix that decodes them.
//!
//! [`Basis`] decides whether a packet is innovative and keeps its coding vector in reduced row
//! echelon form. The textbook method carries a second matrix that records how each row was made
//! from the packets. In-place Gauss-Jordan elimination stores both in the same bytes: a column
//! with a pivot is zero in every row but its own, so it is free to hold the second matrix.

use ncmesh_gf::{GfError, Kernels, RowBuffer, Rows};

/// Effect of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absorbed {
    /// The packet was linearly independent of all packets before. The rank rose by one.
    Innovative,
    /// The packet was a combination of packets before. Nothing was stored.
    Redundant,
}

impl Absorbed {
    /// Returns whether the rank rose.
    #[must_use]
    pub fn is_innovative(self) -> bool {
        self == Self::Innovative
    }
}

/// Span of the coding vectors received so far, in reduced row echelon form.
///
/// Row `i` has its pivot in column `i`. *Packet `i`* is the packet that brought this pivot. An
/// element of the row is
/// - in a column without a pivot: the row's coefficient of that source symbol;
/// - in the column of pivot `j`: the factor of packet `j` in the row.
///
/// Once every column has a pivot, the rows are the inverse of the matrix of the packets' coding
/// vectors. Rows without a pivot are all zero. A packet's own coefficients in the pivot columns are
/// therefore the factors that reduce it.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    kernels: Kernels,
    generation: usize,
    rows: RowBuffer,
    /// 255 for a column without a pivot, 0 for the others.
    free: Vec<u8>,
    rank: usize,
    /// One more than the highest row with a pivot.
    end: usize,
}

impl Basis {
    /// Creates the empty span of vectors of `generation` coefficients.
    pub(crate) fn new(kernels: Kernels, generation: usize) -> Self {
        // The elimination kernel works on whole lines of 64 bytes.
        let length = generation.next_multiple_of(64);
        let mut free = vec![0; length];
        free[..generation].fill(u8::MAX);
        Self {
            kernels,
            generation,
            rows: RowBuffer::new(length, generation),
            free,
            rank: 0,
            end: 0,
        }
    }

    /// Empties the span.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.free[..self.generation].fill(u8::MAX);
        self.rank = 0;
        self.end = 0;
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.rank == self.generation
    }

    /// Inserts a coding vector of `generation` coefficients. Returns the column of its pivot, which
    /// becomes the packet's number, or `None` if the vector is not innovative.
    pub(crate) fn insert(&mut self, coefficients: &[u8]) -> Result<Option<usize>, GfError> {
        if self.is_complete() {
            return Ok(None);
        }

        // A symbol on its own needs no elimination as long as its column is free.
        let pivot = match self.insert_symbol(coefficients) {
            Some(column) => Some(column),
            None => {
                let rows = &mut self.rows.rows_mut(self.generation);
                self.kernels.eliminate(coefficients, &mut self.free, self.end, rows)?
            }
        };

        if let Some(pivot) = pivot {
            self.rank += 1;
            // Elimination looks at no row from `end` on.
            self.end = self.end.max(pivot + 1);
        }

        Ok(pivot)
    }

    /// Inserts the coding vector of an uncoded source symbol, if its column has no pivot yet.
    ///
    /// This shortcut needs no elimination. The new row is the unit vector itself. The other rows do
    /// not change: their coefficient of the symbol becomes their factor of the packet, which is the
    /// same value in the same byte.
    fn insert_symbol(&mut self, coefficients: &[u8]) -> Option<usize> {
        let column = unit_column(coefficients)?;
        let fresh = self.free[column] != 0 && coefficients[column] == 1;
        let row = self.rows.row_mut(column).filter(|_| fresh)?;
        row[column] = 1;
        self.free[column] = 0;
        Some(column)
    }

    /// Returns whether the packets determine source symbol `index`: its row exists and has no
    /// coefficient of an undetermined symbol.
    pub(crate) fn determines(&self, index: usize) -> bool {
        let present = index < self.generation && self.free[index] == 0;
        let row = self.rows.row(index).filter(|_| present);
        row.is_some_and(|row| row.iter().zip(&self.free).all(|(c, free)| c & free == 0))
    }

    /// Returns the decoding matrix: row `i` holds the factors of the packets that sum up to source
    /// symbol `i`, if that symbol is determined. There is one column for each packet number up to
    /// the highest, with zeros for numbers without a packet.
    pub(crate) fn solution(&self) -> Result<Rows<'_>, GfError> {
        self.rows.rows(self.generation).columns(0, self.end)
    }
}

/// Returns the column of the only non-zero element, or `None` if there are none or several. `row`
/// has at most 255 elements.
pub(crate) fn unit_column(row: &[u8]) -> Option<usize> {
    // Most dense vectors have non-zero elements at both ends, which decides at once.
    if let [first, .., last] = row
        && *first != 0
        && *last != 0
    {
        return None;
    }

    // A counter of one byte lets the compiler vectorize the loop in byte lanes.
    let count = row.iter().fold(0u8, |count, &c| count.wrapping_add(u8::from(c != 0)));
    if count == 1 { row.iter().position(|&c| c != 0) } else { None }
}
