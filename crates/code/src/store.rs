use crate::coefficients::draw;
use crate::error::{CodeError, same_length};
use crate::shape::Shape;
use ncmesh_gf::{Kernels, RowBuffer, Rows, RowsMut};
use rand_core::RngCore;

/// Packets mixed from one draw of weights; two blocks of four.
const BATCH: usize = 8;
/// The largest generation.
const MOST: usize = 255;

/// The innovative packets of a generation as they came, each in the row of its
/// number (see [`Basis`](crate::basis::Basis)).
#[derive(Clone, Debug)]
pub(crate) struct Store {
    shape: Shape,
    kernels: Kernels,
    coefficients: RowBuffer,
    payloads: RowBuffer,
    /// The packets' numbers in order of arrival.
    order: Vec<u8>,
    /// Rows from here on are not in use; those before may have gaps.
    end: usize,
}

impl Store {
    pub(crate) fn new(shape: Shape, kernels: Kernels) -> Self {
        let k = shape.generation();
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

    /// Forgets the packets.
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.end = 0;
    }

    /// Keeps a packet whose lengths were checked, under a number below the
    /// generation's size that no other packet has.
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

    /// The payloads by number, `symbol_size` bytes a row, up to the highest
    /// number kept. A row without a packet holds anything.
    pub(crate) fn payloads(&self) -> Rows<'_> {
        self.payloads.rows(self.end)
    }

    /// Mixes `n` packets from `n` rows of one weight per row in use.
    fn mix(
        &self,
        weights: Rows<'_>,
        coefficients: &mut [u8],
        payloads: &mut [u8],
    ) -> Result<(), CodeError> {
        let (k, size, n) = (self.shape.generation(), self.shape.symbol_size(), weights.count());
        let kept = self.coefficients.rows(self.end);
        self.kernels.product(weights, kept, &mut RowsMut::packed(coefficients, k, n)?)?;
        Ok(self.kernels.product(
            weights,
            self.payloads(),
            &mut RowsMut::packed(payloads, size, n)?,
        )?)
    }

    /// Puts weights in order of arrival to their packets' rows.
    fn place(&self, weights: &[u8], rows: &mut [u8]) {
        rows.fill(0);
        for (&number, &weight) in self.order.iter().zip(weights) {
            rows[usize::from(number)] = weight;
        }
    }

    /// Draws one weight for each packet.
    fn draw(&self, rng: &mut (impl RngCore + ?Sized), rows: &mut [u8]) {
        if self.order.len() == self.end {
            return draw(self.shape.field(), rng, rows);
        }
        let mut space = [0; MOST];
        let weights = &mut space[..self.order.len()];
        draw(self.shape.field(), rng, weights);
        self.place(weights, rows);
    }

    /// One packet with the given weights, one per packet kept.
    pub(crate) fn recode_with(
        &self,
        weights: &[u8],
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), CodeError> {
        same_length("weights", self.order.len(), weights.len())?;
        self.shape.check_lengths(coefficients.len(), payload.len())?;
        self.shape.check_elements(weights)?;
        let mut space = [0; MOST];
        let rows = &mut space[..self.end];
        self.place(weights, rows);
        self.mix(Rows::single(rows), coefficients, payload)
    }

    /// As many packets as `coefficients` has rows, with weights drawn from
    /// `rng`. `false` where nothing is kept.
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
        let (k, size) = (self.shape.generation(), self.shape.symbol_size());
        let mut space = [0; BATCH * MOST];
        for (coefficients, payloads) in
            coefficients.chunks_mut(BATCH * k).zip(payloads.chunks_mut(BATCH * size))
        {
            let n = coefficients.len() / k;
            let weights = &mut space[..n * self.end];
            weights.chunks_exact_mut(self.end).for_each(|row| self.draw(rng, row));
            self.mix(Rows::packed(weights, self.end, n)?, coefficients, payloads)?;
        }
        Ok(true)
    }

    /// One packet with weights drawn from `rng`. `false` where nothing is kept.
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
        let mut space = [0; MOST];
        let weights = &mut space[..self.end];
        self.draw(rng, weights);
        self.mix(Rows::single(weights), coefficients, payload)?;
        Ok(true)
    }
}
