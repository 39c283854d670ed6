//! A span of vectors by textbook elimination, to compare the coders with.

use ncmesh_code::Field;

/// The inserted vectors, in reduced row echelon form.
pub(crate) struct Span {
    field: Field,
    rows: Vec<Vec<u8>>,
}

impl Span {
    pub(crate) fn new(field: Field) -> Self {
        Self { field, rows: Vec::new() }
    }

    pub(crate) fn rank(&self) -> usize {
        self.rows.len()
    }

    /// Inserts a vector. Returns whether the rank rose.
    pub(crate) fn insert(&mut self, vector: &[u8]) -> bool {
        let field = self.field;
        let subtract = |from: &mut [u8], factor: u8, row: &[u8]| {
            from.iter_mut().zip(row).for_each(|(y, &x)| *y ^= field.mul(factor, x));
        };
        let mut rest = vector.to_vec();
        for row in &self.rows {
            let factor = rest[pivot(row)];
            subtract(&mut rest, factor, row);
        }
        if rest.iter().all(|&c| c == 0) {
            return false;
        }
        let lead = pivot(&rest);
        let inverse = field.inv(rest[lead]).expect("a pivot is not zero");
        rest.iter_mut().for_each(|c| *c = field.mul(*c, inverse));
        for row in &mut self.rows {
            let factor = row[lead];
            subtract(row, factor, &rest);
        }
        self.rows.push(rest);
        true
    }

    /// Returns whether the span contains unit vector `index`.
    pub(crate) fn determines(&self, index: usize) -> bool {
        let unit = |row: &Vec<u8>| row.iter().enumerate().all(|(i, &c)| (c != 0) == (i == index));
        self.rows.iter().any(unit)
    }
}

/// Returns the column of the first non-zero element.
fn pivot(row: &[u8]) -> usize {
    row.iter().position(|&c| c != 0).expect("rows are not zero")
}
