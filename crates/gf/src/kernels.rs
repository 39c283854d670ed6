use crate::elimination::{LINE, LONGEST, Step};
use crate::error::{GfError, same_length, within};
use crate::field::Field;
use crate::path::Path;
use crate::paths::Entries;
use crate::rows::{Rows, RowsMut};
use crate::skeleton::Job;

/// One code path bound to one field.
///
/// Small and `Copy`; make it once and keep it. Lengths and strides are bytes.
/// No method allocates.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    field: Field,
    path: Path,
    entries: &'static Entries,
}

impl Kernels {
    /// The fastest path that this processor can run.
    #[must_use]
    pub fn best(field: Field) -> Self {
        let path = Path::ALL.iter().copied().find(|path| path.is_available());
        Self::bound(field, path.unwrap_or(Path::Portable))
    }

    /// Every path that this processor can run, fastest first.
    pub fn available(field: Field) -> impl Iterator<Item = Self> {
        let runnable = Path::ALL.iter().copied().filter(|path| path.is_available());
        runnable.map(move |path| Self::bound(field, path))
    }

    /// The given path, or `None` where this processor cannot run it.
    #[must_use]
    pub fn with_path(field: Field, path: Path) -> Option<Self> {
        path.is_available().then(|| Self::bound(field, path))
    }

    fn bound(field: Field, path: Path) -> Self {
        Self { field, path, entries: path.entries(field) }
    }

    /// The field of payloads and coefficients.
    #[must_use]
    pub fn field(&self) -> Field {
        self.field
    }

    /// The code path.
    #[must_use]
    pub fn path(&self) -> Path {
        self.path
    }

    /// `y += x`.
    ///
    /// # Errors
    /// [`GfError::Length`] when the lengths differ.
    pub fn xor(&self, x: &[u8], y: &mut [u8]) -> Result<(), GfError> {
        self.axpy(1, x, y)
    }

    /// `y = c·y`.
    pub fn scale(&self, c: u8, y: &mut [u8]) {
        let rows = y.as_mut_ptr();
        let job = Job { outputs: rows, ..single(&c, rows, y.len()) };
        // SAFETY: one row, of this length, both read and written; each block
        // is read before it is written.
        unsafe { (self.entries.product)(&job) }
    }

    /// `y += c·x`.
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

    /// `out = Σ coefficients[i]·rows[i]`.
    ///
    /// # Errors
    /// [`GfError::Length`] when there is not one coefficient for each row, or
    /// `out` is not as long as a row.
    pub fn combine(
        &self,
        coefficients: &[u8],
        rows: Rows<'_>,
        out: &mut [u8],
    ) -> Result<(), GfError> {
        self.product(Rows::single(coefficients), rows, &mut RowsMut::single(out))
    }

    /// `out += Σ coefficients[i]·rows[i]`.
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
        // SAFETY: `checked`; one output.
        unsafe { (self.entries.accumulate)(&job) }
        Ok(())
    }

    /// `outputs[j] = Σ coefficients[j][i]·rows[i]`, with `coefficients` a
    /// matrix of one row per output and one byte per input row.
    ///
    /// # Errors
    /// [`GfError::Length`] when the matrix does not match the rows, or the
    /// rows are not as long as the outputs.
    pub fn product(
        &self,
        coefficients: Rows<'_>,
        rows: Rows<'_>,
        outputs: &mut RowsMut<'_>,
    ) -> Result<(), GfError> {
        let job = checked(coefficients, rows, outputs)?;
        // SAFETY: `checked`.
        unsafe { (self.entries.product)(&job) }
        Ok(())
    }

    /// As [`Kernels::product`], but only for the outputs (and their rows of
    /// the matrix) numbered in `chosen`; the others stay as they are.
    ///
    /// # Errors
    /// As for [`Kernels::product`], and [`GfError::Index`] for a number past
    /// the last output.
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
        // SAFETY: `checked`, and every number lies inside the table.
        unsafe { (self.entries.product)(&job) }
        Ok(())
    }

    /// One step of in-place Gauss-Jordan elimination: takes in one more vector
    /// and returns the column of its pivot, or `None` when the rows span it
    /// already.
    ///
    /// Everything holds one element per byte. `free` marks the columns without
    /// a pivot with 255, those with one (and unused ones) with 0. Row `j` is
    /// the row of pivot `j`; a row without a pivot is all zero, and so are all
    /// from row `present` on. In a free column a row holds its coefficient of
    /// that unknown; in the column of pivot `j`, how much of the vector that
    /// brought pivot `j` went into the row. The new row, the changes to the
    /// others and the pivot's column in `free` are written.
    /// With a pivot in every column the rows are the inverse of the matrix
    /// whose row `j` is the vector that brought pivot `j`.
    ///
    /// # Errors
    /// [`GfError::Length`] unless the rows and `free` are equally long, and 64,
    /// 128, 192 or 256 bytes; [`GfError::Index`] when `present` exceeds the
    /// rows or the vector, or the vector the length of a row.
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
        // SAFETY: every length was checked, and the borrows are distinct.
        Ok(unsafe { (self.entries.eliminate)(&step) })
    }
}

/// A job with one input row and one coefficient; the output is still the
/// caller's to set.
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

/// The job of a product, once every length agrees.
fn checked(
    coefficients: Rows<'_>,
    rows: Rows<'_>,
    outputs: &mut RowsMut<'_>,
) -> Result<Job<'static>, GfError> {
    let (matrix, inputs, results) = (coefficients.layout(), rows.layout(), outputs.layout());
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
