use crate::coefficients::draw;
use crate::error::{CodeError, same_length};
use crate::shape::Shape;
use ncmesh_gf::{Kernels, RowBuffer, Rows, RowsMut};
use rand_core::RngCore;

/// Packets mixed from one draw of weights; two blocks of four.
const BATCH: usize = 8;
/// The largest generation.
const MOST: usize = 255;

/// The innovative packets of a generation as they came, in order of arrival.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    shape: Shape,
    kernels: Kernels,
    coefficients: RowBuffer,
    payloads: RowBuffer,
    count: usize,
}

impl Store {
    pub(crate) fn new(shape: Shape, kernels: Kernels) -> Self {
        let k = shape.generation();
        Self {
            shape,
            kernels,
            coefficients: RowBuffer::new(k, k),
            payloads: RowBuffer::new(shape.symbol_size(), k),
            count: 0,
        }
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Forgets the packets.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Keeps a packet whose lengths were checked; the caller keeps no more
    /// than a generation's worth.
    pub(crate) fn push(&mut self, coefficients: &[u8], payload: &[u8]) {
        let slot = self.count;
        if let (Some(row), Some(bytes)) =
            (self.coefficients.row_mut(slot), self.payloads.row_mut(slot))
        {
            row.copy_from_slice(coefficients);
            bytes.copy_from_slice(payload);
            self.count += 1;
        }
    }

    /// The payloads kept, `symbol_size` bytes a row.
    pub(crate) fn payloads(&self) -> Rows<'_> {
        self.payloads.rows(self.count)
    }

    /// Mixes `n` packets from `n` rows of one weight per packet kept.
    fn mix(
        &self,
        weights: Rows<'_>,
        coefficients: &mut [u8],
        payloads: &mut [u8],
    ) -> Result<(), CodeError> {
        let (k, size, n) = (self.shape.generation(), self.shape.symbol_size(), weights.count());
        let kept = self.coefficients.rows(self.count);
        self.kernels.product(weights, kept, &mut RowsMut::packed(coefficients, k, n)?)?;
        Ok(self.kernels.product(
            weights,
            self.payloads(),
            &mut RowsMut::packed(payloads, size, n)?,
        )?)
    }

    /// One packet with the given weights, one per packet kept.
    pub(crate) fn recode_with(
        &self,
        weights: &[u8],
        coefficients: &mut [u8],
        payload: &mut [u8],
    ) -> Result<(), CodeError> {
        same_length("weights", self.count, weights.len())?;
        self.shape.check_lengths(coefficients.len(), payload.len())?;
        self.shape.check_elements(weights)?;
        self.mix(Rows::single(weights), coefficients, payload)
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
        if self.count == 0 {
            return Ok(false);
        }
        let (k, size) = (self.shape.generation(), self.shape.symbol_size());
        let mut space = [0; BATCH * MOST];
        for (coefficients, payloads) in
            coefficients.chunks_mut(BATCH * k).zip(payloads.chunks_mut(BATCH * size))
        {
            let n = coefficients.len() / k;
            let weights = &mut space[..n * self.count];
            for row in weights.chunks_exact_mut(self.count) {
                draw(self.shape.field(), rng, row);
            }
            self.mix(Rows::packed(weights, self.count, n)?, coefficients, payloads)?;
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
        if self.count == 0 {
            return Ok(false);
        }
        let mut space = [0; MOST];
        let weights = &mut space[..self.count];
        draw(self.shape.field(), rng, weights);
        self.mix(Rows::single(weights), coefficients, payload)?;
        Ok(true)
    }
}
