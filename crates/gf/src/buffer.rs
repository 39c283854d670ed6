use crate::rows::{Rows, RowsMut};
use std::fmt;

/// Bytes in a cache line, and in the widest vector register.
const LINE: usize = 64;

/// An owned table of rows, allocated once, each row starting on a cache line.
///
/// The stride is an odd number of cache lines, so that the same column of many
/// rows spreads over all cache sets; a power-of-two stride would put them all
/// into a few.
pub struct RowBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
    stride: usize,
    count: usize,
}

impl RowBuffer {
    /// A table of `count` rows of `length` zero bytes.
    #[must_use]
    pub fn new(length: usize, count: usize) -> Self {
        let stride = (length.div_ceil(LINE) | 1) * LINE;
        let bytes = vec![0; stride * count + LINE - 1];
        // `align_offset` may decline (usize::MAX); alignment is for speed only.
        let start = bytes.as_ptr().align_offset(LINE).min(LINE - 1);
        Self { bytes, start, length, stride, count }
    }

    /// How many rows there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes in one row.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Row `index`, or `None` past the end.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        let start = self.offset(index)?;
        self.bytes.get(start..start + self.length)
    }

    /// Row `index` for writing, or `None` past the end.
    pub fn row_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        let start = self.offset(index)?;
        self.bytes.get_mut(start..start + self.length)
    }

    /// The first `count` rows (all, where there are fewer).
    #[must_use]
    pub fn rows(&self, count: usize) -> Rows<'_> {
        let rows =
            Rows::new(&self.bytes[self.start..], self.length, self.stride, count.min(self.count));
        rows.expect("the buffer is allocated for its rows")
    }

    /// The first `count` rows (all, where there are fewer) for writing.
    pub fn rows_mut(&mut self, count: usize) -> RowsMut<'_> {
        let bytes = &mut self.bytes[self.start..];
        let rows = RowsMut::new(bytes, self.length, self.stride, count.min(self.count));
        rows.expect("the buffer is allocated for its rows")
    }

    /// Sets every byte to zero.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    fn offset(&self, index: usize) -> Option<usize> {
        (index < self.count).then_some(self.start + index * self.stride)
    }
}

impl Clone for RowBuffer {
    // A copied allocation starts elsewhere, so its alignment is found anew.
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.length, self.count);
        for index in 0..self.count {
            if let (Some(to), Some(from)) = (copy.row_mut(index), self.row(index)) {
                to.copy_from_slice(from);
            }
        }
        copy
    }
}

impl fmt::Debug for RowBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowBuffer")
            .field("count", &self.count)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}
