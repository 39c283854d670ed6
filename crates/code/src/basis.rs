use ncmesh_gf::{GfError, Kernels, RowBuffer, Rows};

/// What a packet brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absorbed {
    /// Its coefficients were independent of all before; the rank rose by one.
    Innovative,
    /// A combination of what was there already; nothing was stored.
    Redundant,
}

impl Absorbed {
    /// Whether the rank rose.
    #[must_use]
    pub fn is_innovative(self) -> bool {
        self == Self::Innovative
    }
}

/// The span of the coefficients seen so far, in reduced row echelon form, and
/// how it came about, in the same bytes.
///
/// Row `i` is the one with its pivot in column `i`, and the packet that
/// brought it is *packet `i`*. A column without a pivot holds what the row
/// still has of that source symbol. In a column with one, no row but its own
/// has anything left, so the column says instead how much of packet `j` went
/// into the row: in-place Gauss-Jordan elimination. Once there is a pivot
/// everywhere, the rows are the inverse matrix. Absent rows are all zero, so
/// that a packet's own coefficients are the factors of its reduction.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    kernels: Kernels,
    generation: usize,
    rows: RowBuffer,
    /// All ones for a column without a pivot.
    free: Vec<u8>,
    rank: usize,
    /// Rows from here on are absent.
    end: usize,
}

impl Basis {
    /// The empty span of vectors of `generation` coefficients.
    pub(crate) fn new(kernels: Kernels, generation: usize) -> Self {
        // The elimination works on whole lines.
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

    /// Forgets everything.
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

    /// Takes `generation` coefficients. If they are independent of those
    /// before, returns the packet's number: its pivot.
    pub(crate) fn insert(&mut self, coefficients: &[u8]) -> Result<Option<usize>, GfError> {
        if self.is_complete() {
            return Ok(None);
        }
        let pivot = match self.insert_symbol(coefficients) {
            Some(column) => Some(column),
            None => {
                let rows = &mut self.rows.rows_mut(self.generation);
                self.kernels.eliminate(coefficients, &mut self.free, self.end, rows)?
            }
        };
        if let Some(pivot) = pivot {
            self.rank += 1;
            self.end = self.end.max(pivot + 1);
        }
        Ok(pivot)
    }

    /// Takes a source symbol not seen before: its row is the unit vector as it
    /// stands, and what other rows have of the symbol they now have of the
    /// packet, in the same byte.
    fn insert_symbol(&mut self, coefficients: &[u8]) -> Option<usize> {
        let column = unit_column(coefficients)?;
        let fresh = self.free[column] != 0 && coefficients[column] == 1;
        let row = self.rows.row_mut(column).filter(|_| fresh)?;
        row[column] = 1;
        self.free[column] = 0;
        Some(column)
    }

    /// Whether source symbol `index` follows from the packets so far: its row
    /// is there and has nothing of any other symbol.
    pub(crate) fn determines(&self, index: usize) -> bool {
        let present = index < self.generation && self.free[index] == 0;
        let row = self.rows.row(index).filter(|_| present);
        row.is_some_and(|row| row.iter().zip(&self.free).all(|(c, free)| c & free == 0))
    }

    /// How much of each packet goes into each symbol that is determined:
    /// `generation` rows of one factor for each packet number up to the
    /// highest; zero for numbers that have no packet.
    pub(crate) fn solution(&self) -> Result<Rows<'_>, GfError> {
        self.rows.rows(self.generation).columns(0, self.end)
    }
}

/// The column of the only non-zero element, or `None` where there are none or
/// several. For at most 255 elements.
pub(crate) fn unit_column(row: &[u8]) -> Option<usize> {
    // Most dense vectors show it at their ends.
    if let [first, .., last] = row
        && *first != 0
        && *last != 0
    {
        return None;
    }
    // Counting in a byte lets the compiler use byte lanes.
    let count = row.iter().fold(0u8, |count, &c| count.wrapping_add(u8::from(c != 0)));
    if count == 1 { row.iter().position(|&c| c != 0) } else { None }
}
