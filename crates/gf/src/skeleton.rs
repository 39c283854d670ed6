//! The register-blocked loops of a matrix product, written once for every path and field.
//!
//! A block is `R` outputs by `C` registers. Its sums stay in registers while the loop runs down
//! all inputs, so each loaded input register serves `R` products and each coefficient serves `C`.
//! The loop over column blocks is outermost: the part of the inputs under one column block stays
//! in the first-level cache while all outputs use it.
//!
//! ```text
//! walk             column blocks of up to 4 registers, then the rest of the row
//!   ByColumn::run  all outputs over one column block: 4 at a time, then 2, then 1
//!     block        R x C sums in registers, over all inputs, two inputs at a time
//! ```

use crate::vector::{Multiply, Vector};
use std::marker::PhantomData;

/// Arguments of one product, already checked: `output_count` outputs from `input_count` inputs.
///
/// The pointers are valid for their counts, strides and `length` bytes in each row. Outputs do not
/// overlap inputs, except that a single input may be the single output.
pub(crate) struct Job<'a> {
    pub(crate) coefficients: *const u8,
    pub(crate) coefficient_stride: usize,
    pub(crate) inputs: *const u8,
    pub(crate) input_stride: usize,
    pub(crate) input_count: usize,
    pub(crate) outputs: *mut u8,
    pub(crate) output_stride: usize,
    pub(crate) output_count: usize,
    /// Numbers of the `output_count` outputs to compute (and of their rows of coefficients). All
    /// outputs in order when absent.
    pub(crate) chosen: Option<&'a [u16]>,
    pub(crate) length: usize,
}

/// Pointers to `R` outputs and to their rows of coefficients.
struct Group<const R: usize> {
    coefficients: [*const u8; R],
    outputs: [*mut u8; R],
}

impl Job<'_> {
    /// Returns the group of `R` outputs that starts with the `first`-th wanted one.
    #[inline(always)]
    unsafe fn group<const R: usize>(&self, first: usize) -> Group<R> {
        let mut group = Group { coefficients: [self.coefficients; R], outputs: [self.outputs; R] };

        for r in 0..R {
            let number = match self.chosen {
                Some(chosen) => usize::from(chosen[first + r]),
                None => first + r,
            };

            // SAFETY: the numbers are checked against both tables.
            unsafe {
                group.coefficients[r] = self.coefficients.add(number * self.coefficient_stride);
                group.outputs[r] = self.outputs.add(number * self.output_stride);
            }
        }

        group
    }
}

/// Loads `C` registers of a row from `from`. With `PART`, the last register has `part` bytes only.
#[inline(always)]
unsafe fn load<V: Vector, const C: usize, const PART: bool>(
    from: *const u8,
    part: usize,
) -> [V; C] {
    // SAFETY: the caller's row holds the block's bytes.
    unsafe {
        let mut values = [V::zero(); C];
        for (c, value) in values.iter_mut().enumerate() {
            let at = from.add(c * V::WIDTH);
            *value = if PART && c + 1 == C { V::load_part(at, part) } else { V::load(at) };
        }

        values
    }
}

/// Stores what [`load`] loads.
#[inline(always)]
unsafe fn store<V: Vector, const C: usize, const PART: bool>(
    values: [V; C],
    to: *mut u8,
    part: usize,
) {
    for (c, value) in values.into_iter().enumerate() {
        // SAFETY: the caller's row holds the block's bytes.
        unsafe {
            let at = to.add(c * V::WIDTH);
            if PART && c + 1 == C {
                value.store_part(at, part);
            } else {
                value.store(at);
            }
        }
    }
}

/// Adds the products of one input to the sums of a block.
#[inline(always)]
unsafe fn fold<V: Vector, M: Multiply<V>, const R: usize, const C: usize>(
    sums: &mut [[V; C]; R],
    x: [V; C],
    coefficients: &[*const u8; R],
    input: usize,
) {
    // SAFETY: `input` is below the number of inputs, which is the length of a row of coefficients.
    unsafe {
        for (sums, row) in sums.iter_mut().zip(coefficients) {
            let factor = M::factor(*row.add(input));
            for (sum, x) in sums.iter_mut().zip(x) {
                *sum = M::fold(*sum, M::operand(x), factor);
            }
        }
    }
}

/// Adds the products of the inputs `input` and `input + 1` to the sums of a block.
#[inline(always)]
unsafe fn fold_two<V: Vector, M: Multiply<V>, const R: usize, const C: usize>(
    sums: &mut [[V; C]; R],
    x: [[V; C]; 2],
    coefficients: &[*const u8; R],
    input: usize,
) {
    // SAFETY: as in `fold`.
    unsafe {
        for (sums, row) in sums.iter_mut().zip(coefficients) {
            let at = row.add(input);
            let factors = [M::factor(*at), M::factor(*at.add(1))];
            for c in 0..C {
                let operands = [M::operand(x[0][c]), M::operand(x[1][c])];
                sums[c] = M::fold_two(sums[c], operands, factors);
            }
        }
    }
}

/// Computes one block: `R` outputs by `C` registers from byte `column` on. With `ADD` it adds to
/// the outputs, otherwise it replaces them.
#[inline(always)]
unsafe fn block<V, M, const R: usize, const C: usize, const PART: bool, const ADD: bool>(
    job: &Job<'_>,
    group: &Group<R>,
    column: usize,
) where
    V: Vector,
    M: Multiply<V>,
{
    let part = job.length % V::WIDTH;

    // SAFETY: `Job` promises the rows. `walk` chooses C and PART so that the block ends inside
    // them.
    unsafe {
        // The sums start from zero, or from the outputs' present bytes.
        let mut sums = [[V::zero(); C]; R];
        if ADD {
            for (sums, out) in sums.iter_mut().zip(group.outputs) {
                *sums = load::<V, C, PART>(out.add(column), part);
            }
        }

        // Two inputs at a time, for paths with a three-way exclusive or.
        let mut row = job.inputs.wrapping_add(column);
        let mut input = 0;
        while input + 2 <= job.input_count {
            let next = row.add(job.input_stride);
            let x = [load::<V, C, PART>(row, part), load::<V, C, PART>(next, part)];
            fold_two::<V, M, R, C>(&mut sums, x, &group.coefficients, input);

            row = next.wrapping_add(job.input_stride);
            input += 2;
        }

        if input < job.input_count {
            fold::<V, M, R, C>(
                &mut sums,
                load::<V, C, PART>(row, part),
                &group.coefficients,
                input,
            );
        }

        for (sums, out) in sums.into_iter().zip(group.outputs) {
            store::<V, C, PART>(sums, out.add(column), part);
        }
    }
}

/// Work that proceeds one column block at a time.
trait ByColumn {
    /// Handles `C` registers from byte `column` on. With `PART`, the last register holds only the
    /// remaining bytes of the row.
    unsafe fn run<const C: usize, const PART: bool>(&self, column: usize);
}

/// Passes over `length` bytes in blocks of `WIDEST <= 4` registers, then in one narrower block for
/// the remaining bytes.
#[inline(always)]
unsafe fn walk<V: Vector, B: ByColumn, const WIDEST: usize>(length: usize, work: &B) {
    let mut column = 0;

    // SAFETY: every block lies inside the row by construction.
    unsafe {
        while column + WIDEST * V::WIDTH <= length {
            work.run::<WIDEST, false>(column);
            column += WIDEST * V::WIDTH;
        }

        // The remaining bytes fill fewer than WIDEST registers, or WIDEST with the last in part.
        // Each count is a constant of its own, so that the sums stay in registers.
        let left = length - column;
        match (left.div_ceil(V::WIDTH), !left.is_multiple_of(V::WIDTH)) {
            (1, false) => work.run::<1, false>(column),
            (1, true) => work.run::<1, true>(column),
            (2, false) if WIDEST > 2 => work.run::<2, false>(column),
            (2, true) if WIDEST > 1 => work.run::<2, true>(column),
            (3, false) if WIDEST > 3 => work.run::<3, false>(column),
            (3, true) if WIDEST > 2 => work.run::<3, true>(column),
            (4, true) if WIDEST > 3 => work.run::<4, true>(column),
            _ => {}
        }
    }
}

/// Replaces every output of a job: four at a time, then two, then one.
struct Replace<'a, V, M>(&'a Job<'a>, PhantomData<(V, M)>);

impl<V: Vector, M: Multiply<V>> ByColumn for Replace<'_, V, M> {
    #[inline(always)]
    unsafe fn run<const C: usize, const PART: bool>(&self, column: usize) {
        let job = self.0;
        let mut first = 0;

        // SAFETY: the caller keeps the contract of `block`.
        unsafe {
            while first + 4 <= job.output_count {
                block::<V, M, 4, C, PART, false>(job, &job.group(first), column);
                first += 4;
            }

            if first + 2 <= job.output_count {
                block::<V, M, 2, C, PART, false>(job, &job.group(first), column);
                first += 2;
            }

            if first < job.output_count {
                block::<V, M, 1, C, PART, false>(job, &job.group(first), column);
            }
        }
    }
}

/// Adds to the single output of a job.
struct Add<'a, V, M>(&'a Job<'a>, PhantomData<(V, M)>);

impl<V: Vector, M: Multiply<V>> ByColumn for Add<'_, V, M> {
    #[inline(always)]
    unsafe fn run<const C: usize, const PART: bool>(&self, column: usize) {
        // SAFETY: the caller keeps the contract of `block`.
        unsafe { block::<V, M, 1, C, PART, true>(self.0, &self.0.group(0), column) }
    }
}

/// Computes `outⱼ = Σ cⱼᵢ·rowᵢ` for the outputs of `job`.
#[inline(always)]
pub(crate) unsafe fn product<V: Vector, M: Multiply<V>, const WIDEST: usize>(job: &Job<'_>) {
    // SAFETY: the caller keeps the same contract.
    unsafe { walk::<V, _, WIDEST>(job.length, &Replace::<V, M>(job, PhantomData)) }
}

/// Computes `out += Σ cᵢ·rowᵢ` for the single output of `job`.
#[inline(always)]
pub(crate) unsafe fn accumulate<V: Vector, M: Multiply<V>, const WIDEST: usize>(job: &Job<'_>) {
    // SAFETY: the caller keeps the same contract.
    unsafe { walk::<V, _, WIDEST>(job.length, &Add::<V, M>(job, PhantomData)) }
}
