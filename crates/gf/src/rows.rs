use crate::error::{GfError, within};

/// A read-only table of equally long rows inside one byte slice.
///
/// Row `i` is `length` bytes from byte `i * stride`. Rows never overlap.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    shape: Layout,
}

/// A writable table of equally long rows inside one byte slice.
#[derive(Debug)]
pub struct RowsMut<'a> {
    bytes: &'a mut [u8],
    shape: Layout,
}

/// Where the rows of a table lie; checked against the bytes that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) length: usize,
    pub(crate) stride: usize,
    pub(crate) count: usize,
}

impl Layout {
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

    fn span(self, index: usize) -> Option<std::ops::Range<usize>> {
        let start = (index < self.count).then_some(index * self.stride)?;
        Some(start..start + self.length)
    }
}

impl<'a> Rows<'a> {
    /// A table of `count` rows of `length` bytes, `stride` bytes apart.
    ///
    /// # Errors
    /// [`GfError::Layout`] when the rows overlap or do not fit into `bytes`.
    pub fn new(
        bytes: &'a [u8],
        length: usize,
        stride: usize,
        count: usize,
    ) -> Result<Self, GfError> {
        let shape = Layout { length, stride, count }.checked(bytes.len())?;
        Ok(Self { bytes, shape })
    }

    /// A table of `count` rows of `length` bytes, one right after the other.
    ///
    /// # Errors
    /// [`GfError::Layout`] when `bytes` holds fewer rows.
    pub fn packed(bytes: &'a [u8], length: usize, count: usize) -> Result<Self, GfError> {
        Self::new(bytes, length, length, count)
    }

    /// A table with `bytes` as its only row.
    #[must_use]
    pub fn single(bytes: &'a [u8]) -> Self {
        let length = bytes.len();
        Self { bytes, shape: Layout { length, stride: length, count: 1 } }
    }

    /// Row `index`, or `None` past the end.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.shape.span(index)?)
    }

    /// The same rows cut down to `length` bytes from byte `from` of each.
    ///
    /// # Errors
    /// [`GfError::Index`] when that part does not lie inside a row.
    pub fn columns(self, from: usize, length: usize) -> Result<Self, GfError> {
        let end = from.saturating_add(length);
        within(end, self.shape.length + 1)?;
        // The bytes before `from` fall away; an empty table may have none.
        let bytes = self.bytes.get(from..).unwrap_or_default();
        Ok(Self { bytes, shape: Layout { length, ..self.shape } })
    }

    /// How many rows there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shape.count
    }

    /// Bytes in one row.
    #[must_use]
    pub fn length(&self) -> usize {
        self.shape.length
    }

    pub(crate) fn layout(&self) -> Layout {
        self.shape
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

impl<'a> RowsMut<'a> {
    /// A table of `count` rows of `length` bytes, `stride` bytes apart.
    ///
    /// # Errors
    /// [`GfError::Layout`] when the rows overlap or do not fit into `bytes`.
    pub fn new(
        bytes: &'a mut [u8],
        length: usize,
        stride: usize,
        count: usize,
    ) -> Result<Self, GfError> {
        let shape = Layout { length, stride, count }.checked(bytes.len())?;
        Ok(Self { bytes, shape })
    }

    /// A table of `count` rows of `length` bytes, one right after the other.
    ///
    /// # Errors
    /// [`GfError::Layout`] when `bytes` holds fewer rows.
    pub fn packed(bytes: &'a mut [u8], length: usize, count: usize) -> Result<Self, GfError> {
        Self::new(bytes, length, length, count)
    }

    /// A table with `bytes` as its only row.
    #[must_use]
    pub fn single(bytes: &'a mut [u8]) -> Self {
        let length = bytes.len();
        Self { bytes, shape: Layout { length, stride: length, count: 1 } }
    }

    /// How many rows there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shape.count
    }

    /// Bytes in one row.
    #[must_use]
    pub fn length(&self) -> usize {
        self.shape.length
    }

    pub(crate) fn layout(&self) -> Layout {
        self.shape
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }
}
