//! Cursors that read and write the fields of a frame body.
//!
//! A [`Reader`] checks every access against the end of the body, so parsers need no length
//! arithmetic. Numbers are big-endian.

use crate::id::{FlowId, NodeId};

/// The body ends before the end of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the frame ends before its fields do")]
pub struct Truncated;

/// Reads fields from the front of a byte slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads the next `n` bytes.
    ///
    /// # Errors
    /// [`Truncated`] if fewer are left.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads the next `N` bytes as an array.
    ///
    /// # Errors
    /// [`Truncated`] if fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`Truncated`] at the end.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    /// Reads a 16-bit number.
    ///
    /// # Errors
    /// [`Truncated`] if fewer than two bytes are left.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Reads a 32-bit number.
    ///
    /// # Errors
    /// [`Truncated`] if fewer than four bytes are left.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Reads a 64-bit number.
    ///
    /// # Errors
    /// [`Truncated`] if fewer than eight bytes are left.
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Reads a node id.
    ///
    /// # Errors
    /// [`Truncated`] if fewer than two bytes are left.
    pub fn node(&mut self) -> Result<NodeId, Truncated> {
        Ok(NodeId(self.u16()?))
    }

    /// Reads a flow id.
    ///
    /// # Errors
    /// [`Truncated`] if fewer than six bytes are left.
    pub fn flow(&mut self) -> Result<FlowId, Truncated> {
        Ok(FlowId { source: self.node()?, serial: self.u32()? })
    }

    /// Reads a one-byte length and as many bytes.
    ///
    /// # Errors
    /// [`Truncated`] if fewer bytes are left than the length says.
    pub fn short_bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let n = self.u8()?;
        self.bytes(usize::from(n))
    }

    /// Returns all remaining bytes.
    #[must_use]
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Returns the number of remaining bytes.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }
}

/// Appends fields to a frame body.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Appends bytes without a length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// Appends one byte.
    pub fn u8(&mut self, v: u8) -> &mut Self {
        self.bytes(&[v])
    }

    /// Appends a 16-bit number.
    pub fn u16(&mut self, v: u16) -> &mut Self {
        self.bytes(&v.to_be_bytes())
    }

    /// Appends a 32-bit number.
    pub fn u32(&mut self, v: u32) -> &mut Self {
        self.bytes(&v.to_be_bytes())
    }

    /// Appends a 64-bit number.
    pub fn u64(&mut self, v: u64) -> &mut Self {
        self.bytes(&v.to_be_bytes())
    }

    /// Appends a node id.
    pub fn node(&mut self, v: NodeId) -> &mut Self {
        self.u16(v.0)
    }

    /// Appends a flow id.
    pub fn flow(&mut self, v: FlowId) -> &mut Self {
        self.node(v.source).u32(v.serial)
    }

    /// Appends a one-byte length and the bytes, of which at most 255 are written.
    pub fn short_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let bytes = &bytes[..bytes.len().min(255)];
        self.u8(bytes.len() as u8).bytes(bytes)
    }

    /// Appends `n` zero bytes and returns them, so that the caller can overwrite them.
    pub fn reserve(&mut self, n: usize) -> &mut [u8] {
        let start = self.out.len();
        self.out.resize(start + n, 0);
        &mut self.out[start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_back_and_the_end_is_checked() {
        let mut out = Vec::new();
        let flow = FlowId { source: NodeId(9), serial: 7 };
        Writer::new(&mut out).u8(1).u16(2).u32(3).u64(4).flow(flow).short_bytes(b"abc");
        let mut r = Reader::new(&out);
        assert_eq!((r.u8(), r.u16(), r.u32(), r.u64()), (Ok(1), Ok(2), Ok(3), Ok(4)));
        assert_eq!(r.flow(), Ok(flow));
        assert_eq!(r.short_bytes(), Ok(&b"abc"[..]));
        assert_eq!(r.u8(), Err(Truncated));
        assert_eq!(Reader::new(&[200, 1]).short_bytes(), Err(Truncated));
        assert_eq!(Reader::new(&[1]).u16(), Err(Truncated));
    }
}
