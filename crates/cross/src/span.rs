//! What a node can make of the packets it has heard.

use ncmesh_code::{Field, draw};
use ncmesh_gf::{Kernels, RowBuffer};
use rand_core::RngCore;

/// The span of vectors of coefficients, one element a byte, in echelon form. `ncmesh_code`'s coders end at 255
/// packets and pick pivots for speed; two generations of 256 have 512, and here the order of the pivots tells
/// what is decoded.
pub(crate) struct Span {
    kernels: Kernels,
    width: usize,
    /// Each is 1 at its pivot and 0 before it; in order of arrival.
    rows: RowBuffer,
    rank: usize,
    /// The row with its pivot in that column.
    row_of: Vec<Option<usize>>,
    /// A vector on its way in.
    vector: Vec<u8>,
}

impl Span {
    /// The empty span of vectors of `width` elements.
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

    /// How many dimensions have nothing before column `from`: what is known of the unknowns from there on alone.
    pub(crate) fn rank_from(&self, from: usize) -> usize {
        self.row_of[from..].iter().flatten().count()
    }

    /// Takes in a vector of `width` elements.
    pub(crate) fn absorb(&mut self, vector: &[u8]) {
        if self.is_full() {
            return;
        }
        self.vector.copy_from_slice(vector);
        for column in 0..self.width {
            let lead = self.vector[column];
            if lead == 0 {
                continue;
            }
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

    /// Appends what is left of the vector, with its pivot, which is `lead`, in `column`.
    fn append(&mut self, column: usize, lead: u8) {
        let inverse = self.kernels.field().inv(lead).unwrap_or_default();
        self.kernels.scale(inverse, &mut self.vector);
        if let Some(row) = self.rows.row_mut(self.rank) {
            row.copy_from_slice(&self.vector);
        }
        self.row_of[column] = Some(self.rank);
        self.rank += 1;
    }

    /// Writes the combination of all rows with these weights, of which there are [`Span::rank`].
    pub(crate) fn combine(&self, weights: &[u8], out: &mut [u8]) {
        self.kernels
            .combine(weights, self.rows.rows(self.rank), out)
            .expect("a weight for each row, and rows of this width");
    }
}

/// The packet of a relay: a random combination of all it holds of both flows, their coefficients side by side.
/// Weights are drawn for both together, so that it is never empty.
pub(crate) fn recode(field: Field, flows: &[Span; 2], rng: &mut impl RngCore, out: [&mut [u8]; 2]) {
    let mut weights = vec![0; flows[0].rank() + flows[1].rank()];
    draw(field, rng, &mut weights);
    let (first, second) = weights.split_at(flows[0].rank());
    for ((flow, weights), out) in flows.iter().zip([first, second]).zip(out) {
        flow.combine(weights, out);
    }
}
