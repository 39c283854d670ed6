//! The innovative packets of a generation, and combinations of them.
//!
//! Recoder and decoder share this store. It keeps coding vectors and payloads in two tables for the
//! kernels. A packet is in the row of its number, the column of its pivot, so that the decoding
//! matrix of [`Basis`](crate::basis::Basis) applies to the payloads without reordering. Rows
//! without a packet keep stale bytes; their weight is always zero.

use crate::coefficients::draw;
use crate::error::{CodeError, same_length};
use crate::shape::Shape;
use ncmesh_gf::{Kernels, RowBuffer, Rows, RowsMut};
use rand_core::RngCore;

/// Packets combined in one product: two blocks of four outputs.
const BATCH: usize = 8;
/// The largest generation size.
const MAX_GENERATION: usize = 255;

/// The innovative packets of a generation as they came, each in the row of its number.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    shape: Shape,
    kernels: Kernels,
    coefficients: RowBuffer,
    payloads: RowBuffer,
    /// Numbers of the packets in order of arrival.
    order: Vec<u8>,
    /// One more than the highest number in use. Rows below it may be unused.
    end: usize,
}

impl Store {
    pub(crate) fn new(shape: Shape, kernels: Kernels) -> Self {
        let k = shape.generation_size();
        Self {
            shape,
            kernels,
            coefficients: RowBuffer::new(k, k),
            payloads: RowBuffer::new(shape.symbol_size(), k),
            order: Vec::with_capacity(k),
            end: 0,
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Drops all packets.
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.end = 0;
    }

    /// Keeps a packet of checked lengths under `number`, which is below the generation size and
    /// not in use.
    pub(crate) fn put(&mut self, number: usize, coefficients: &[u8], payload: &[u8]) {
        if let (Some(row), Some(bytes)) =
            (self.coefficients.row_mut(number), self.payloads.row_mut(number))
        {
            row.copy_from_slice(coefficients);
            bytes.copy_from_slice(payload);
            self.order.push(number as u8);
            self.end = self.end.max(number + 1);
        }
    }

    /// Returns the payloads by number, `symbol_size` bytes in a row, up to the highest number in
    /// use. A row without a packet holds arbitrary bytes.
    pub(crate) fn payloads(&self) -> Rows<'_> {
        self.payloads.rows(self.end)
    }

    /// Combines packets with a matrix of weights: one row for each output, one column for each row
    /// up to `end`.
    fn combine(
        &self,
        weights: Rows<'_>,
        coefficients: &mut [u8],
        payloads: &mut [u8],
    ) -> Result<(), CodeError> {
        let k = self.shape.generation_size();
        let size = self.shape.symbol_size();
        let n = weights.count();
        let kept = self.coefficients.rows(self.end);
        self.kernels.product(weights, kept, &mut RowsMut::packed(coefficients, k, n)?)?;
        Ok(self.kernels.product(
            weights,
            self.payloads(),
            &mut RowsMut::packed(payloads, size, n)?,
        )?)
    }

    /// Sorts weights from order of arrival into order of packet numbers. Unused rows get zero.
    fn sort_by_number(&self, weights: &[u8], by_number: &mut [u8]) {
        by_number.fill(0);
        for (&number, &weight) in self.order.iter().zip(weights) {
            by_number[usize::from(number)] = weight;
        }
    }

    /// Draws one weight for each packet into a row of weights by packet number.
    fn draw_weights(&self, rng: &mut (impl RngCore + ?Sized), by_number: &mut [u8]) {
        // Without unused rows any order of random weights is as good as another.
        if self.order.len() == self.end {
            return draw(self.shape.field(), rng, by_number);
        }

        // Unused rows have stale bytes, so their weights must be zero.
        let mut space = [0; MAX_GENERATION];
        let weights = &mut space[..self.order.len()];
        draw(self.shape.field(), rng, weights);
        self.sort_by_number(weights, by_number);
    }

    /// Writes one packet with the given weights, one for each packet in order of arrival.
    pub(crate) fn recode_with(
        &self,
        weights: &[u8],
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), CodeError> {
        same_length("weights", self.order.len(), weights.len())?;
        self.shape.check_lengths(coefficients.len(), payload.len())?;
        self.shape.check_elements(weights)?;
        let mut space = [0; MAX_GENERATION];
        let by_number = &mut space[..self.end];
        self.sort_by_number(weights, by_number);
        self.combine(Rows::single(by_number), coefficients, payload)
    }

    /// Writes as many packets as `coefficients` has rows, with weights from `rng`. Returns `false`
    /// without packets to combine.
    pub(crate) fn recode_many(
        &self,
        rng: &mut (impl RngCore + ?Sized),
        coefficients: &mut [u8],
        payloads: &mut [u8],
    ) -> Result<bool, CodeError> {
        self.shape.check_batch(coefficients.len(), payloads.len())?;
        if self.end == 0 {
            return Ok(false);
        }

        // Weights lie on the stack, a batch at a time, so that recoding allocates nothing.
        let k = self.shape.generation_size();
        let size = self.shape.symbol_size();
        let mut space = [0; BATCH * MAX_GENERATION];
        for (coefficients, payloads) in
            coefficients.chunks_mut(BATCH * k).zip(payloads.chunks_mut(BATCH * size))
        {
            let n = coefficients.len() / k;
            let weights = &mut space[..n * self.end];
            weights.chunks_exact_mut(self.end).for_each(|row| self.draw_weights(rng, row));
            self.combine(Rows::packed(weights, self.end, n)?, coefficients, payloads)?;
        }

        Ok(true)
    }

    /// Writes one packet with weights from `rng`. Returns `false` without packets to combine.
    pub(crate) fn recode(
        &self,
        rng: &mut (impl RngCore + ?Sized),
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<bool, CodeError> {
        self.shape.check_lengths(coefficients.len(), payload.len())?;
        if self.end == 0 {
            return Ok(false);
        }
        let mut space = [0; MAX_GENERATION];
        let weights = &mut space[..self.end];
        self.draw_weights(rng, weights);
        self.combine(Rows::single(weights), coefficients, payload)?;
        Ok(true)
    }
}
