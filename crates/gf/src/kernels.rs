//! The public entry points: checks arguments and dispatches to a code path.
//!
//! Each method compares the lengths of its slices, packs pointers and strides into a [`Job`] or a
//! [`Step`], and calls the function of the code path for this field. That call is the only
//! indirection: the loops behind it are compiled once per path and field.

use crate::elimination::{LINE, LONGEST, Step};
use crate::error::{GfError, same_length, within};
use crate::field::Field;
use crate::path::Path;
use crate::paths::Entries;
use crate::rows::{Rows, RowsMut};
use crate::skeleton::Job;
use std::fmt;

/// The kernels of one field on one code path.
///
/// The value is small and `Copy`; make it once and keep it. Lengths and strides are in bytes. No
/// method allocates.
#[derive(Clone, Copy)]
pub struct Kernels {
    field: Field,
    path: Path,
    entries: &'static Entries,
}

impl Kernels {
    /// Returns the kernels on the fastest path that this processor can run.
    #[must_use]
    pub fn best(field: Field) -> Self {
        let path = Path::ALL.iter().copied().find(|path| path.is_available());
        Self::on_path(field, path.unwrap_or(Path::Portable))
    }

    /// Returns the kernels on every path that this processor can run, fastest first. For tests.
    pub fn available(field: Field) -> impl Iterator<Item = Self> {
        let runnable = Path::ALL.iter().copied().filter(|path| path.is_available());
        runnable.map(move |path| Self::on_path(field, path))
    }

    fn on_path(field: Field, path: Path) -> Self {
        Self { field, path, entries: path.entries(field) }
    }

    /// Returns the field of payloads and coefficients.
    #[must_use]
    pub fn field(&self) -> Field {
        self.field
    }

    /// Computes `y = c·y`.
    pub fn scale(&self, c: u8, y: &mut [u8]) {
        // As `y += (c + 1)·y`: the sum leaves bytes alone that two registers of a path share.
        let c = c ^ 1;
        let rows = y.as_mut_ptr();
        let job = Job { outputs: rows, ..single(&c, rows, y.len()) };
        // SAFETY: one row of this length is both read and written. Each block is read before it
        // is written.
        unsafe { (self.entries.accumulate)(&job) }
    }

    /// Computes `y += c·x`.
    ///
    /// # Errors
    /// [`GfError::Length`] when the lengths differ.
    pub fn axpy(&self, c: u8, x: &[u8], y: &mut [u8]) -> Result<(), GfError> {
        same_length(y.len(), x.len())?;
        let job = Job { outputs: y.as_mut_ptr(), ..single(&c, x.as_ptr(), x.len()) };
        // SAFETY: two distinct rows of this length.
        unsafe { (self.entries.accumulate)(&job) }
        Ok(())
    }

    /// Computes `out = Σ coefficients[i]·rows[i]`.
    ///
    /// # Errors
    /// [`GfError::Length`] unless there is one coefficient for each row and `out` is as long as a
    /// row.
    pub fn combine(
        &self,
        coefficients: &[u8],
        rows: Rows<'_>,
        out: &mut [u8],
    ) -> Result<(), GfError> {
        self.product(Rows::single(coefficients), rows, &mut RowsMut::single(out))
    }

    /// Computes `out += Σ coefficients[i]·rows[i]`.
    ///
    /// # Errors
    /// As for [`Kernels::combine`].
    pub fn accumulate(
        &self,
        coefficients: &[u8],
        rows: Rows<'_>,
        out: &mut [u8],
    ) -> Result<(), GfError> {
        let mut outputs = RowsMut::single(out);
        let job = checked(Rows::single(coefficients), rows, &mut outputs)?;
        // SAFETY: `checked` compared all lengths, and there is one output.
        unsafe { (self.entries.accumulate)(&job) }
        Ok(())
    }

    /// Computes `outputs[j] = Σ coefficients[j][i]·rows[i]` for all `j`.
    ///
    /// `coefficients` is a matrix of one row per output and one byte per input row. Four outputs
    /// in one call cost much less each than one: each input byte is loaded once for all four.
    ///
    /// # Errors
    /// [`GfError::Length`] when the matrix does not match the rows, or the rows are not as long as
    /// the outputs.
    pub fn product(
        &self,
        coefficients: Rows<'_>,
        rows: Rows<'_>,
        outputs: &mut RowsMut<'_>,
    ) -> Result<(), GfError> {
        let job = checked(coefficients, rows, outputs)?;
        // SAFETY: `checked` compared all lengths.
        unsafe { (self.entries.product)(&job) }
        Ok(())
    }

    /// Computes [`Kernels::product`] only for the outputs (and their rows of the matrix) whose
    /// numbers are in `chosen`. The other outputs keep their bytes.
    ///
    /// # Errors
    /// As for [`Kernels::product`], and [`GfError::Index`] for a number past the last output.
    pub fn product_at(
        &self,
        chosen: &[u16],
        coefficients: Rows<'_>,
        rows: Rows<'_>,
        outputs: &mut RowsMut<'_>,
    ) -> Result<(), GfError> {
        for &number in chosen {
            within(usize::from(number), outputs.count())?;
        }

        let job = checked(coefficients, rows, outputs)?;
        let job = Job { chosen: Some(chosen), output_count: chosen.len(), ..job };

        // SAFETY: `checked` compared all lengths, and every number is inside the table.
        unsafe { (self.entries.product)(&job) }
        Ok(())
    }

    /// Inserts one vector into an in-place Gauss-Jordan elimination.
    ///
    /// Returns the column of the vector's pivot, or `None` when the rows already span the vector.
    ///
    /// The elimination state is `free` and `rows`, with one element per byte:
    /// - `free` holds 255 for each column without a pivot, and 0 for each column with a pivot and
    ///   for padding.
    /// - Row `j` belongs to the pivot in column `j`. It is all zero while there is no such pivot.
    ///   All rows from `present` on are zero.
    /// - In a free column, a row holds its coefficient of that unknown. In the column of pivot
    ///   `j`, it holds the factor with which the vector that brought pivot `j` entered the row.
    ///
    /// An innovative vector writes its own row, updates the other rows, and clears its column in
    /// `free`. Once every column has a pivot, the rows are the inverse of the matrix whose row `j`
    /// is the vector that brought pivot `j`.
    ///
    /// # Errors
    /// [`GfError::Length`] unless the rows and `free` have the same length of 64, 128, 192 or 256
    /// bytes. [`GfError::Index`] when `present` exceeds the number of rows or the length of the
    /// vector, or when the vector is longer than a row.
    pub fn eliminate(
        &self,
        vector: &[u8],
        free: &mut [u8],
        present: usize,
        rows: &mut RowsMut<'_>,
    ) -> Result<Option<usize>, GfError> {
        let layout = rows.layout();
        same_length(layout.length, free.len())?;
        same_length(layout.length.next_multiple_of(LINE).clamp(LINE, LONGEST), layout.length)?;
        within(present, layout.count.min(vector.len()) + 1)?;
        within(vector.len(), layout.length + 1)?;

        let step = Step {
            field: self.field,
            vector: vector.as_ptr(),
            vector_length: vector.len(),
            free: free.as_mut_ptr(),
            rows: rows.as_mut_ptr(),
            stride: layout.stride,
            count: layout.count,
            present,
            length: layout.length,
        };

        // SAFETY: every length is checked, and the borrows are distinct.
        Ok(unsafe { (self.entries.eliminate)(&step) })
    }
}

impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernels({:?} by {:?})", self.field, self.path)
    }
}

/// Returns a job with one input row and one coefficient. The caller sets the output.
fn single<'a>(c: &'a u8, x: *const u8, length: usize) -> Job<'a> {
    Job {
        coefficients: c,
        coefficient_stride: 0,
        inputs: x,
        input_stride: 0,
        input_count: 1,
        outputs: std::ptr::null_mut(),
        output_stride: 0,
        output_count: 1,
        chosen: None,
        length,
    }
}

/// Returns the job of a product, or an error when lengths disagree.
fn checked(
    coefficients: Rows<'_>,
    rows: Rows<'_>,
    outputs: &mut RowsMut<'_>,
) -> Result<Job<'static>, GfError> {
    let matrix = coefficients.layout();
    let inputs = rows.layout();
    let results = outputs.layout();

    same_length(results.count, matrix.count)?;
    same_length(inputs.count, matrix.length)?;
    same_length(results.length, inputs.length)?;

    Ok(Job {
        coefficients: coefficients.as_ptr(),
        coefficient_stride: matrix.stride,
        inputs: rows.as_ptr(),
        input_stride: inputs.stride,
        input_count: inputs.count,
        outputs: outputs.as_mut_ptr(),
        output_stride: results.stride,
        output_count: results.count,
        chosen: None,
        length: results.length,
    })
}
