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

/// The span of the coefficients seen so far, in reduced row echelon form.
///
/// A row is `[coefficients | transform]`: the transform says which stored
/// packets, in order of arrival, add up to the row's coefficients. It is left
/// out where only the rank matters. Row `i` is the one with its pivot in
/// column `i`; absent rows are all zero, so that a packet's own coefficients
/// are the factors of its reduction.
#[derive(Clone, Debug)]
pub(crate) struct Basis {
    kernels: Kernels,
    generation: usize,
    with_transform: bool,
    rows: RowBuffer,
    candidate: Vec<u8>,
    present: Vec<bool>,
    rank: usize,
    /// Rows from here on are absent.
    end: usize,
}

impl Basis {
    /// The empty span of vectors of `generation` coefficients.
    pub(crate) fn new(kernels: Kernels, generation: usize, with_transform: bool) -> Self {
        let columns = if with_transform { 2 * generation } else { generation };
        // Whole registers only: the elimination never masks.
        let length = columns.next_multiple_of(64);
        Self {
            kernels,
            generation,
            with_transform,
            rows: RowBuffer::new(length, generation),
            candidate: vec![0; length],
            present: vec![false; generation],
            rank: 0,
            end: 0,
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.present.fill(false);
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
    /// before, the packet counts as the next one stored.
    pub(crate) fn insert(&mut self, coefficients: &[u8]) -> Result<Absorbed, GfError> {
        if self.is_complete() {
            return Ok(Absorbed::Redundant);
        }
        self.reduce(coefficients)?;
        let remainder = &self.candidate[..self.generation];
        let Some(pivot) = remainder.iter().position(|&c| c != 0) else {
            return Ok(Absorbed::Redundant);
        };
        self.take(pivot)?;
        Ok(Absorbed::Innovative)
    }

    /// Sets the candidate to the packet's row, reduced by all rows present.
    fn reduce(&mut self, coefficients: &[u8]) -> Result<(), GfError> {
        self.candidate.fill(0);
        self.candidate[..self.generation].copy_from_slice(coefficients);
        if self.with_transform {
            self.candidate[self.generation + self.rank] = 1;
        }
        // A source symbol not seen before is reduced as it stands.
        if unit_column(coefficients).is_some_and(|column| !self.present[column]) {
            return Ok(());
        }
        let factors = &coefficients[..self.end];
        self.kernels.accumulate(factors, self.rows.rows(self.end), &mut self.candidate)
    }

    /// Makes the candidate the row of `pivot` and clears that column in all
    /// others.
    fn take(&mut self, pivot: usize) -> Result<(), GfError> {
        let field = self.kernels.field();
        let lead = self.candidate[pivot];
        if let Some(inverse) = field.inv(lead).filter(|_| lead != 1) {
            self.kernels.scale(inverse, &mut self.candidate);
        }
        self.kernels.sweep(pivot, &self.candidate, &mut self.rows.rows_mut(self.end))?;
        if let Some(row) = self.rows.row_mut(pivot) {
            row.copy_from_slice(&self.candidate);
        }
        self.present[pivot] = true;
        self.rank += 1;
        self.end = self.end.max(pivot + 1);
        Ok(())
    }

    /// Whether source symbol `index` follows from the packets so far: its row
    /// is there and has no other coefficient.
    pub(crate) fn determines(&self, index: usize) -> bool {
        let present = self.present.get(index).copied().unwrap_or(false);
        let row = self.rows.row(index).and_then(|row| row.get(..self.generation));
        present && row.is_some_and(|row| unit_column(row).is_some())
    }

    /// The transform of every row: `generation` rows of `rank` factors.
    pub(crate) fn transform(&self) -> Result<Rows<'_>, GfError> {
        self.rows.rows(self.generation).columns(self.generation, self.rank)
    }
}

/// The column of the only non-zero element, or `None` where there are none or
/// several. For at most 255 elements.
pub(crate) fn unit_column(row: &[u8]) -> Option<usize> {
    // Counting in a byte lets the compiler use byte lanes.
    let count = row.iter().fold(0u8, |count, &c| count.wrapping_add(u8::from(c != 0)));
    if count == 1 { row.iter().position(|&c| c != 0) } else { None }
}
