//! Borrowed tables of rows: views of a byte slice with a row length and a stride.
//!
//! The constructors check that all rows fit into the slice and do not overlap. The kernels rely on
//! that check and then work on pointers.

use crate::error::{GfError, within};

/// A read-only table of equally long rows inside one byte slice.
///
/// Row `i` is `length` bytes from byte `i * stride`. Rows never overlap.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

/// A writable table of equally long rows inside one byte slice.
#[derive(Debug)]
pub struct RowsMut<'a> {
    bytes: &'a mut [u8],
    layout: Layout,
}

/// Length, stride and number of the rows of a table, checked against the slice that holds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) length: usize,
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

impl Layout {
    /// Returns the layout if its rows fit into `available` bytes and do not overlap.
    fn checked(self, available: usize) -> Result<Self, GfError> {
        let Self { length, stride, count } = self;
        let last = count.saturating_sub(1).checked_mul(stride);
        let end = last.and_then(|start| start.checked_add(length));
        let fits = end.is_some_and(|end| end <= available) || count == 0;

        if fits && length <= stride {
            Ok(self)
        } else {
            Err(GfError::Layout { length, stride, count, available })
        }
    }

    /// Returns the bytes of row `index`, or `None` past the end.
    fn span(self, index: usize) -> Option<std::ops::Range<usize>> {
        let start = (index < self.count).then_some(index * self.stride)?;
        Some(start..start + self.length)
    }
}

impl<'a> Rows<'a> {
    /// Views `bytes` as `count` rows of `length` bytes that start `stride` bytes apart.
    ///
    /// # Errors
    /// [`GfError::Layout`] when the rows overlap or do not fit into `bytes`.
    pub fn new(
        bytes: &'a [u8],
        length: usize,
        stride: usize,
        count: usize,
    ) -> Result<Self, GfError> {
        let layout = Layout { length, stride, count }.checked(bytes.len())?;
        Ok(Self { bytes, layout })
    }

    /// Views `bytes` as `count` adjacent rows of `length` bytes.
    ///
    /// # Errors
    /// [`GfError::Layout`] when `bytes` holds fewer rows.
    pub fn packed(bytes: &'a [u8], length: usize, count: usize) -> Result<Self, GfError> {
        Self::new(bytes, length, length, count)
    }

    /// Views `bytes` as a table of one row.
    #[must_use]
    pub fn single(bytes: &'a [u8]) -> Self {
        let length = bytes.len();
        Self { bytes, layout: Layout { length, stride: length, count: 1 } }
    }

    /// Returns row `index`, or `None` past the end.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.layout.span(index)?)
    }

    /// Returns the same rows, restricted to `length` bytes from byte `from` of each row.
    ///
    /// # Errors
    /// [`GfError::Index`] when these columns are not inside a row.
    pub fn columns(self, from: usize, length: usize) -> Result<Self, GfError> {
        let end = from.saturating_add(length);
        within(end, self.layout.length + 1)?;
        // Drops the bytes before `from`. A table without rows may have fewer bytes than that.
        let bytes = self.bytes.get(from..).unwrap_or_default();
        Ok(Self { bytes, layout: Layout { length, ..self.layout } })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.layout.count
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

impl<'a> RowsMut<'a> {
    /// Views `bytes` as `count` rows of `length` bytes that start `stride` bytes apart.
    ///
    /// # Errors
    /// [`GfError::Layout`] when the rows overlap or do not fit into `bytes`.
    pub fn new(
        bytes: &'a mut [u8],
        length: usize,
        stride: usize,
        count: usize,
    ) -> Result<Self, GfError> {
        let layout = Layout { length, stride, count }.checked(bytes.len())?;
        Ok(Self { bytes, layout })
    }

    /// Views `bytes` as `count` adjacent rows of `length` bytes.
    ///
    /// # Errors
    /// [`GfError::Layout`] when `bytes` holds fewer rows.
    pub fn packed(bytes: &'a mut [u8], length: usize, count: usize) -> Result<Self, GfError> {
        Self::new(bytes, length, length, count)
    }

    /// Views `bytes` as a table of one row.
    #[must_use]
    pub fn single(bytes: &'a mut [u8]) -> Self {
        let length = bytes.len();
        Self { bytes, layout: Layout { length, stride: length, count: 1 } }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.layout.count
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }
}
