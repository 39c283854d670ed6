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
/// overlap inputs, except that a single input may be the output that it is added to.
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
pub(crate) struct Group<const R: usize> {
    pub(crate) coefficients: [*const u8; R],
    pub(crate) outputs: [*mut u8; R],
}

impl Job<'_> {
    /// Returns the group of `R` outputs that starts with the `first`-th wanted one.
    #[inline(always)]
    pub(crate) unsafe fn group<const R: usize>(&self, first: usize) -> Group<R> {
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

/// How the last register of a block lies in its row. `part` is the number of bytes that the row
/// has behind its last whole register, and `at` is where the block's last register would begin.
pub(crate) trait End {
    /// Loads the last register.
    unsafe fn load<V: Vector>(at: *const u8, part: usize) -> V;
    /// Stores the last register.
    unsafe fn store<V: Vector>(value: V, at: *mut u8, part: usize);
    /// Adds to the last register in memory.
    unsafe fn add<V: Vector>(value: V, at: *mut u8, part: usize);
}

/// The row has all bytes of the last register.
pub(crate) struct Whole;

/// The last register has `part` bytes. The others are neither read nor written.
struct Part;

/// The last register ends where the row ends, so it repeats bytes of the register before it.
struct Overlap;

impl End for Whole {
    #[inline(always)]
    unsafe fn load<V: Vector>(at: *const u8, _: usize) -> V {
        // SAFETY: the caller's row holds the register.
        unsafe { V::load(at) }
    }

    #[inline(always)]
    unsafe fn store<V: Vector>(value: V, at: *mut u8, _: usize) {
        // SAFETY: as in `load`.
        unsafe { value.store(at) }
    }

    #[inline(always)]
    unsafe fn add<V: Vector>(value: V, at: *mut u8, _: usize) {
        // SAFETY: as in `load`.
        unsafe { V::load(at).xor(value).store(at) }
    }
}

impl End for Part {
    #[inline(always)]
    unsafe fn load<V: Vector>(at: *const u8, part: usize) -> V {
        // SAFETY: the caller's row holds `part` bytes.
        unsafe { V::load_part(at, part) }
    }

    #[inline(always)]
    unsafe fn store<V: Vector>(value: V, at: *mut u8, part: usize) {
        // SAFETY: as in `load`.
        unsafe { value.store_part(at, part) }
    }

    #[inline(always)]
    unsafe fn add<V: Vector>(value: V, at: *mut u8, part: usize) {
        // SAFETY: as in `load`.
        unsafe { V::load_part(at, part).xor(value).store_part(at, part) }
    }
}

/// The longest register of zeros, then one of ones. A load that begins `n` bytes before the ones
/// masks the first `n` bytes of a register.
static ZEROS_ONES: [u8; 128] = {
    let mut bytes = [0; 128];
    let mut i = 64;
    while i < 128 {
        bytes[i] = u8::MAX;
        i += 1;
    }
    bytes
};

impl End for Overlap {
    #[inline(always)]
    unsafe fn load<V: Vector>(at: *const u8, part: usize) -> V {
        // SAFETY: the caller's row has a whole register before its end.
        unsafe { V::load(at.sub(V::WIDTH - part)) }
    }

    #[inline(always)]
    unsafe fn store<V: Vector>(value: V, at: *mut u8, part: usize) {
        // SAFETY: as in `load`. The repeated bytes are the same as those already there.
        unsafe { value.store(at.sub(V::WIDTH - part)) }
    }

    #[inline(always)]
    unsafe fn add<V: Vector>(value: V, at: *mut u8, part: usize) {
        // SAFETY: as in `load`, and the mask lies inside the table. To the repeated bytes nothing
        // is added, since the register before them adds the same.
        unsafe {
            let at = at.sub(V::WIDTH - part);
            let mask = V::load(ZEROS_ONES.as_ptr().add(64 - (V::WIDTH - part)));
            V::load(at).xor(value.and(mask)).store(at);
        }
    }
}

/// Loads `C` registers of a row from `from`.
#[inline(always)]
pub(crate) unsafe fn load<V: Vector, const C: usize, E: End>(
    from: *const u8,
    part: usize,
) -> [V; C] {
    // SAFETY: the caller's row holds the block's bytes.
    unsafe {
        let mut values = [V::zero(); C];
        for (c, value) in values.iter_mut().enumerate() {
            let at = from.add(c * V::WIDTH);
            *value = if c + 1 == C { E::load(at, part) } else { V::load(at) };
        }

        values
    }
}

/// Stores what [`load`] loads, or with `ADD` adds it to the bytes there.
#[inline(always)]
pub(crate) unsafe fn store<V: Vector, const C: usize, E: End, const ADD: bool>(
    values: [V; C],
    to: *mut u8,
    part: usize,
) {
    // The last register goes first: where it repeats bytes of the one before, it leaves them as
    // they are, and that one has yet to be added to them.
    for (c, value) in values.into_iter().enumerate().rev() {
        // SAFETY: the caller's row holds the block's bytes.
        unsafe {
            let at = to.add(c * V::WIDTH);
            match (c + 1 == C, ADD) {
                (true, true) => E::add(value, at, part),
                (true, false) => E::store(value, at, part),
                (false, true) => Whole::add(value, at, part),
                (false, false) => Whole::store(value, at, part),
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
            // One load for both, since loads are what limits the fastest paths.
            let pair = row.add(input).cast::<u16>().read_unaligned().to_ne_bytes();
            let factors = [M::factor(pair[0]), M::factor(pair[1])];
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
unsafe fn block<V, M, const R: usize, const C: usize, E: End, const ADD: bool>(
    job: &Job<'_>,
    group: &Group<R>,
    column: usize,
) where
    V: Vector,
    M: Multiply<V>,
{
    let part = job.length % V::WIDTH;

    // SAFETY: `Job` promises the rows. `walk` chooses C and E so that the block ends inside them.
    unsafe {
        let mut sums = [[V::zero(); C]; R];

        // Two inputs at a time, for paths with a three-way exclusive or.
        let mut row = job.inputs.wrapping_add(column);
        let mut input = 0;
        while input + 2 <= job.input_count {
            let next = row.add(job.input_stride);
            let x = [load::<V, C, E>(row, part), load::<V, C, E>(next, part)];
            fold_two::<V, M, R, C>(&mut sums, x, &group.coefficients, input);

            row = next.wrapping_add(job.input_stride);
            input += 2;
        }

        if input < job.input_count {
            fold::<V, M, R, C>(&mut sums, load::<V, C, E>(row, part), &group.coefficients, input);
        }

        for (sums, out) in sums.into_iter().zip(group.outputs) {
            store::<V, C, E, ADD>(sums, out.add(column), part);
        }
    }
}

/// Work that proceeds one column block at a time.
pub(crate) trait ByColumn {
    /// Handles `C` registers from byte `column` on, the last of which lies as `E` says.
    unsafe fn run<const C: usize, E: End>(&self, column: usize);
}

/// Passes over `length` bytes in blocks of `WIDEST <= 4` registers, then in one narrower block for
/// the remaining bytes.
#[inline(always)]
pub(crate) unsafe fn walk<V: Vector, B: ByColumn, const WIDEST: usize>(length: usize, work: &B) {
    // SAFETY: every block lies inside the row by construction.
    unsafe {
        let mut column = 0;
        while column + WIDEST * V::WIDTH <= length {
            work.run::<WIDEST, Whole>(column);
            column += WIDEST * V::WIDTH;
        }

        // The remaining bytes fill fewer than WIDEST registers, or WIDEST with the last in part.
        let left = length - column;
        if left.is_multiple_of(V::WIDTH) {
            rest::<V, B, WIDEST, Whole>(left, column, work);
        } else if V::MASKED || length < V::WIDTH {
            rest::<V, B, WIDEST, Part>(left, column, work);
        } else {
            rest::<V, B, WIDEST, Overlap>(left, column, work);
        }
    }
}

/// Handles the last `left` bytes of a row. Each number of registers is a constant of its own, so
/// that the sums stay in registers.
#[inline(always)]
unsafe fn rest<V: Vector, B: ByColumn, const WIDEST: usize, E: End>(
    left: usize,
    column: usize,
    work: &B,
) {
    // SAFETY: the caller keeps the contract of `run`.
    unsafe {
        match left.div_ceil(V::WIDTH) {
            1 => work.run::<1, E>(column),
            2 if WIDEST > 1 => work.run::<2, E>(column),
            3 if WIDEST > 2 => work.run::<3, E>(column),
            4 if WIDEST > 3 => work.run::<4, E>(column),
            _ => {}
        }
    }
}

/// Replaces every output of a job: four at a time, then two, then one.
struct Many<'a, V, M>(&'a Job<'a>, PhantomData<(V, M)>);

impl<V: Vector, M: Multiply<V>> ByColumn for Many<'_, V, M> {
    #[inline(always)]
    unsafe fn run<const C: usize, E: End>(&self, column: usize) {
        let job = self.0;
        let mut first = 0;

        // SAFETY: the caller keeps the contract of `block`.
        unsafe {
            while first + 4 <= job.output_count {
                block::<V, M, 4, C, E, false>(job, &job.group(first), column);
                first += 4;
            }

            if first + 2 <= job.output_count {
                block::<V, M, 2, C, E, false>(job, &job.group(first), column);
                first += 2;
            }

            if first < job.output_count {
                block::<V, M, 1, C, E, false>(job, &job.group(first), column);
            }
        }
    }
}

/// Replaces the single output of a job, or adds to it.
struct Single<'a, V, M, const ADD: bool>(&'a Job<'a>, PhantomData<(V, M)>);

impl<V: Vector, M: Multiply<V>, const ADD: bool> ByColumn for Single<'_, V, M, ADD> {
    #[inline(always)]
    unsafe fn run<const C: usize, E: End>(&self, column: usize) {
        // SAFETY: the caller keeps the contract of `block`.
        unsafe { block::<V, M, 1, C, E, ADD>(self.0, &self.0.group(0), column) }
    }
}

/// Computes `outⱼ = Σ cⱼᵢ·rowᵢ` for the outputs of `job`, in blocks of `WIDEST` registers for
/// several outputs and of `LONGEST` for one.
#[inline(always)]
pub(crate) unsafe fn product<V, M, const WIDEST: usize, const LONGEST: usize>(job: &Job<'_>)
where
    V: Vector,
    M: Multiply<V>,
{
    // SAFETY: the caller keeps the same contract.
    unsafe {
        if job.output_count == 1 {
            walk::<V, _, LONGEST>(job.length, &Single::<V, M, false>(job, PhantomData));
        } else {
            walk::<V, _, WIDEST>(job.length, &Many::<V, M>(job, PhantomData));
        }
    }
}

/// Computes `out += Σ cᵢ·rowᵢ` for the single output of `job`, in blocks of `LONGEST` registers.
#[inline(always)]
pub(crate) unsafe fn accumulate<V, M, const LONGEST: usize>(job: &Job<'_>)
where
    V: Vector,
    M: Multiply<V>,
{
    // SAFETY: the caller keeps the same contract.
    unsafe { walk::<V, _, LONGEST>(job.length, &Single::<V, M, true>(job, PhantomData)) }
}
