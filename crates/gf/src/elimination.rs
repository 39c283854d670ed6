//! One step of in-place Gauss-Jordan elimination, with the new row in
//! registers from its first load to its last store.
//!
//! Done piece by piece through memory, single bytes written into a row just
//! before a whole register is read from it stall the processor; at one or two
//! registers a row those stalls cost more than the arithmetic.

use crate::field::Field;
use crate::vector::{Multiply, Vector};

/// Bytes in a line; rows are whole lines.
pub(crate) const LINE: usize = 64;
/// The longest row.
pub(crate) const LONGEST: usize = 256;

/// One checked step; see [`Kernels::eliminate`](crate::Kernels::eliminate).
///
/// `vector` is valid for `vector_length <= length` bytes, `free` for `length`
/// bytes, the rows for `count` of `length` bytes. `present <= count` and
/// `present <= vector_length`.
pub(crate) struct Step {
    pub(crate) field: Field,
    pub(crate) vector: *const u8,
    pub(crate) vector_length: usize,
    pub(crate) free: *mut u8,
    pub(crate) rows: *mut u8,
    pub(crate) stride: usize,
    pub(crate) count: usize,
    pub(crate) present: usize,
    pub(crate) length: usize,
}

/// A row of `L` lines of `P` registers.
type Row<V, const P: usize, const L: usize> = [[V; P]; L];

/// A row in memory.
#[repr(align(64))]
struct Bytes([u8; LONGEST]);

/// A one between zeros: unit vectors by unaligned loads.
static UNIT: [u8; 2 * LONGEST] = {
    let mut bytes = [0; 2 * LONGEST];
    bytes[LONGEST] = 1;
    bytes
};

/// A zero between all-ones, to strike out one column.
static OTHERS: [u8; 2 * LONGEST] = {
    let mut bytes = [u8::MAX; 2 * LONGEST];
    bytes[LONGEST] = 0;
    bytes
};

#[inline(always)]
unsafe fn load<V: Vector, const P: usize, const L: usize>(from: *const u8) -> Row<V, P, L> {
    // SAFETY: the caller's `L` lines.
    unsafe {
        let mut row = [[V::zero(); P]; L];
        for (i, register) in row.as_flattened_mut().iter_mut().enumerate() {
            *register = V::load(from.add(i * V::WIDTH));
        }
        row
    }
}

#[inline(always)]
unsafe fn store<V: Vector, const P: usize, const L: usize>(row: Row<V, P, L>, to: *mut u8) {
    for (i, register) in row.as_flattened().iter().enumerate() {
        // SAFETY: the caller's `L` lines.
        unsafe { register.store(to.add(i * V::WIDTH)) }
    }
}

/// `sum + factor·x`
#[inline(always)]
unsafe fn fold<V, M, const P: usize, const L: usize>(
    mut sum: Row<V, P, L>,
    x: Row<V, P, L>,
    factor: M::Factor,
) -> Row<V, P, L>
where
    V: Vector,
    M: Multiply<V>,
{
    for (sum, x) in sum.as_flattened_mut().iter_mut().zip(x.as_flattened()) {
        // SAFETY: the path's instructions are there.
        *sum = unsafe { M::fold(*sum, M::operand(*x), factor) };
    }
    sum
}

/// Bit by bit.
#[inline(always)]
unsafe fn and<V: Vector, const P: usize, const L: usize>(
    mut row: Row<V, P, L>,
    mask: Row<V, P, L>,
) -> Row<V, P, L> {
    for (register, mask) in row.as_flattened_mut().iter_mut().zip(mask.as_flattened()) {
        // SAFETY: the path's instructions are there.
        *register = unsafe { register.and(*mask) };
    }
    row
}

/// The vector, zero after its end.
#[inline(always)]
unsafe fn load_vector<V: Vector, const P: usize, const L: usize>(step: &Step) -> Row<V, P, L> {
    // SAFETY: loads end with the vector.
    unsafe {
        let mut row = [[V::zero(); P]; L];
        for (i, register) in row.as_flattened_mut().iter_mut().enumerate() {
            let at = i * V::WIDTH;
            let left = step.vector_length.saturating_sub(at);
            let from = step.vector.wrapping_add(at);
            *register = if left < V::WIDTH { V::load_part(from, left) } else { V::load(from) };
        }
        row
    }
}

/// The candidate less what the rows present have of it.
#[inline(always)]
unsafe fn reduce<V, M, const P: usize, const L: usize>(
    step: &Step,
    mut sum: Row<V, P, L>,
) -> Row<V, P, L>
where
    V: Vector,
    M: Multiply<V>,
{
    // SAFETY: `Step` promises the rows, and one byte of the vector for each.
    unsafe {
        let mut i = 0;
        while i + 2 <= step.present {
            let rows = [
                load::<V, P, L>(step.rows.add(i * step.stride)),
                load::<V, P, L>(step.rows.add((i + 1) * step.stride)),
            ];
            let factors = [M::factor(*step.vector.add(i)), M::factor(*step.vector.add(i + 1))];
            for (r, sum) in sum.as_flattened_mut().iter_mut().enumerate() {
                let x = [rows[0].as_flattened()[r], rows[1].as_flattened()[r]];
                *sum = M::fold_two(*sum, [M::operand(x[0]), M::operand(x[1])], factors);
            }
            i += 2;
        }
        if i < step.present {
            let row = load::<V, P, L>(step.rows.add(i * step.stride));
            sum = fold::<V, M, P, L>(sum, row, M::factor(*step.vector.add(i)));
        }
    }
    sum
}

/// The first byte of a row that is not zero, and its place.
#[inline(always)]
unsafe fn first_nonzero<V: Vector, const P: usize, const L: usize>(
    row: Row<V, P, L>,
) -> Option<(usize, u8)> {
    let mut bytes = Bytes([0; LONGEST]);
    // SAFETY: the buffer holds the longest row.
    unsafe { store(row, bytes.0.as_mut_ptr()) }
    let mut registers = row.as_flattened().iter().enumerate();
    // SAFETY: the path's instructions are there.
    let place = registers.find_map(|(i, register)| {
        unsafe { register.first_nonzero() }.map(|at| i * V::WIDTH + at)
    })?;
    Some((place, bytes.0[place]))
}

/// One step on rows of `L` lines; the pivot, where the vector brings one.
#[inline(always)]
unsafe fn step_of<V, M, const P: usize, const L: usize>(step: &Step) -> Option<usize>
where
    V: Vector,
    M: Multiply<V>,
{
    // SAFETY: `Step` promises the rows; the pivot is checked against them, and
    // lies below `LONGEST`, which keeps the loads inside `UNIT` and `OTHERS`.
    unsafe {
        let free = load::<V, P, L>(step.free);
        let candidate = reduce::<V, M, P, L>(step, and(load_vector(step), free));
        let (pivot, lead) = first_nonzero(and(candidate, free))?;
        let inverse = step.field.inv(lead).filter(|_| pivot < step.count)?;
        let unit = load::<V, P, L>(UNIT.as_ptr().add(LONGEST - pivot));
        // Divided by its lead the candidate has a one at the pivot, and is to
        // have the inverse there, which tells of the packet. A row with `c` of
        // the unknown gets `c` times that and loses the `c` itself, as if the
        // one were there as well.
        let open = fold::<V, M, P, L>(candidate, unit, M::factor(1));
        let change = fold::<V, M, P, L>([[V::zero(); P]; L], open, M::factor(inverse));
        let row = fold::<V, M, P, L>(change, unit, M::factor(1));
        for i in 0..step.present {
            let at = step.rows.add(i * step.stride);
            let swept = fold::<V, M, P, L>(load(at), change, M::factor(*at.add(pivot)));
            store(swept, at);
        }
        store(row, step.rows.add(pivot * step.stride));
        store(and(free, load(OTHERS.as_ptr().add(LONGEST - pivot))), step.free);
        Some(pivot)
    }
}

/// One step, with `P` registers a line; see [`Step`].
#[inline(always)]
pub(crate) unsafe fn eliminate<V, M, const P: usize>(step: &Step) -> Option<usize>
where
    V: Vector,
    M: Multiply<V>,
{
    // SAFETY: same contract; the rows are whole lines.
    unsafe {
        match step.length / LINE {
            1 => step_of::<V, M, P, 1>(step),
            2 => step_of::<V, M, P, 2>(step),
            3 => step_of::<V, M, P, 3>(step),
            4 => step_of::<V, M, P, 4>(step),
            _ => None,
        }
    }
}
