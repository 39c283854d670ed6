//! An owned table of rows whose layout suits the kernels.
//!
//! Each row starts on a cache line, so that no vector load crosses two lines. The stride is an odd
//! number of cache lines: the same column of many rows then spreads over all cache sets, whereas a
//! power-of-two stride maps it to a few sets and evicts rows that are still needed.

use crate::rows::{Rows, RowsMut};
use std::fmt;

/// Bytes in a cache line, and in the widest vector register.
const LINE: usize = 64;

/// Table of equally long rows, allocated once, each row aligned to a cache line.
pub struct RowBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
    stride: usize,
    count: usize,
}

impl RowBuffer {
    /// Allocates `count` rows of `length` zero bytes.
    #[must_use]
    pub fn new(length: usize, count: usize) -> Self {
        let stride = (length.div_ceil(LINE) | 1) * LINE;
        let bytes = vec![0; stride * count + LINE - 1];
        // `align_offset` may fail and return usize::MAX. Alignment is for speed only, so an
        // unaligned start is still correct.
        let start = bytes.as_ptr().align_offset(LINE).min(LINE - 1);
        Self { bytes, start, length, stride, count }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns row `index`, or `None` past the end.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        let start = self.offset(index)?;
        self.bytes.get(start..start + self.length)
    }

    /// Returns row `index` for writing, or `None` past the end.
    pub fn row_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        let start = self.offset(index)?;
        self.bytes.get_mut(start..start + self.length)
    }

    /// Returns the first `count` rows, or all rows if there are fewer.
    #[must_use]
    pub fn rows(&self, count: usize) -> Rows<'_> {
        let rows =
            Rows::new(&self.bytes[self.start..], self.length, self.stride, count.min(self.count));
        rows.expect("the buffer is allocated for its rows")
    }

    /// Returns the first `count` rows for writing, or all rows if there are fewer.
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
    // A derived clone would copy `start`, which aligns the old allocation and not the new one.
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
