//! The space spanned by the packets that a node has received.

use ncmesh_code::{Field, draw};
use ncmesh_gf::{Kernels, RowBuffer};
use rand_core::RngCore;

/// Span of coding vectors, one element per byte, in echelon form.
///
/// The coders of `ncmesh_code` hold at most 255 packets and choose pivots for speed. Two
/// generations of 256 need 512, and here the order of the pivots tells which flow is decoded.
pub(crate) struct Span {
    kernels: Kernels,
    width: usize,
    /// Rows in order of arrival. A row is 1 at its pivot and 0 before it.
    rows: RowBuffer,
    rank: usize,
    /// Index of the row with its pivot in each column.
    row_of: Vec<Option<usize>>,
    /// Scratch space for the vector that is being absorbed.
    vector: Vec<u8>,
}

impl Span {
    /// Creates an empty span of vectors with `width` elements.
    pub(crate) fn new(field: Field, width: usize) -> Self {
        Self {
            kernels: Kernels::best(field),
            width,
            rows: RowBuffer::new(width, width),
            rank: 0,
            row_of: vec![None; width],
            vector: vec![0; width],
        }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rank == self.width
    }

    /// Returns the number of rows with a pivot at column `from` or later: the dimensions known of
    /// these unknowns alone.
    pub(crate) fn rank_from(&self, from: usize) -> usize {
        self.row_of[from..].iter().flatten().count()
    }

    /// Adds a vector of `width` elements.
    pub(crate) fn absorb(&mut self, vector: &[u8]) {
        if self.is_full() {
            return;
        }

        self.vector.copy_from_slice(vector);

        // Each row takes its own pivot out of the vector, from the first column on.
        for column in 0..self.width {
            let lead = self.vector[column];
            if lead == 0 {
                continue;
            }

            // The first column without a row is the pivot of a new one.
            let Some(row) = self.row_of[column] else {
                self.append(column, lead);
                return;
            };

            if let Some(row) = self.rows.row(row) {
                let rest = &mut self.vector[column..];
                self.kernels.axpy(lead, &row[column..], rest).expect("both end with the row");
            }
        }
    }

    /// Appends the reduced vector as a row, with its pivot `lead` in `column`.
    fn append(&mut self, column: usize, lead: u8) {
        let inverse = self.kernels.field().inv(lead).unwrap_or_default();
        self.kernels.scale(inverse, &mut self.vector);

        // A row is 1 at its pivot, as elimination expects.
        if let Some(row) = self.rows.row_mut(self.rank) {
            row.copy_from_slice(&self.vector);
        }

        self.row_of[column] = Some(self.rank);
        self.rank += 1;
    }

    /// Writes the combination of all rows with [`Span::rank`] weights to `out`.
    pub(crate) fn combine(&self, weights: &[u8], out: &mut [u8]) {
        self.kernels
            .combine(weights, self.rows.rows(self.rank), out)
            .expect("a weight for each row, and rows of this width");
    }
}

/// Draws a relay's packet: a random combination of everything it has of both flows. Draws the
/// weights for both flows together, so that the combination is never zero.
pub(crate) fn recode(field: Field, flows: &[Span; 2], rng: &mut impl RngCore, out: [&mut [u8]; 2]) {
    let mut weights = vec![0; flows[0].rank() + flows[1].rank()];
    draw(field, rng, &mut weights);

    let (first, second) = weights.split_at(flows[0].rank());
    for ((flow, weights), out) in flows.iter().zip([first, second]).zip(out) {
        flow.combine(weights, out);
    }
}
