//! One step of in-place Gauss-Jordan elimination, generic over the vector register.
//!
//! The step keeps the new row in registers from its first load to its last store. A version that
//! went through memory would write single bytes into a row and read the whole register right
//! after, which defeats store forwarding; at one or two registers a row those stalls cost more
//! than the arithmetic. A row is therefore a constant number of 64-byte lines, and the code is
//! compiled once for each of the four possible row lengths.
//!
//! [`Kernels::eliminate`](crate::Kernels::eliminate) documents the matrix that is kept.

use crate::field::Field;
use crate::vector::{Multiply, Vector};

/// Bytes in a line. A row is a whole number of lines.
pub(crate) const LINE: usize = 64;
/// Bytes in the longest row.
pub(crate) const LONGEST: usize = 256;

/// Arguments of one step, already checked.
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

/// A row of `L` lines of `P` registers each.
type Row<V, const P: usize, const L: usize> = [[V; P]; L];

/// A row in memory, for access to single bytes.
#[repr(align(64))]
struct Bytes([u8; LONGEST]);

/// A one between zeros. A load from `LONGEST - i` gives the unit vector `i`.
static UNIT: [u8; 2 * LONGEST] = {
    let mut bytes = [0; 2 * LONGEST];
    bytes[LONGEST] = 1;
    bytes
};

/// A zero between all-ones. A load from `LONGEST - i` gives the mask of all columns but `i`.
static OTHERS: [u8; 2 * LONGEST] = {
    let mut bytes = [u8::MAX; 2 * LONGEST];
    bytes[LONGEST] = 0;
    bytes
};

/// Loads a row of `L` lines.
#[inline(always)]
unsafe fn load<V: Vector, const P: usize, const L: usize>(from: *const u8) -> Row<V, P, L> {
    // SAFETY: the caller passes a pointer to `L` lines.
    unsafe {
        let mut row = [[V::zero(); P]; L];
        for (i, register) in row.as_flattened_mut().iter_mut().enumerate() {
            *register = V::load(from.add(i * V::WIDTH));
        }
        row
    }
}

/// Stores a row of `L` lines.
#[inline(always)]
unsafe fn store<V: Vector, const P: usize, const L: usize>(row: Row<V, P, L>, to: *mut u8) {
    for (i, register) in row.as_flattened().iter().enumerate() {
        // SAFETY: the caller passes a pointer to `L` lines.
        unsafe { register.store(to.add(i * V::WIDTH)) }
    }
}

/// Returns `sum + factor·x`.
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
        // SAFETY: the processor has the path's instructions.
        *sum = unsafe { M::fold(*sum, M::operand(*x), factor) };
    }
    sum
}

/// Returns the bitwise AND of a row and a mask.
#[inline(always)]
unsafe fn and<V: Vector, const P: usize, const L: usize>(
    mut row: Row<V, P, L>,
    mask: Row<V, P, L>,
) -> Row<V, P, L> {
    for (register, mask) in row.as_flattened_mut().iter_mut().zip(mask.as_flattened()) {
        // SAFETY: the processor has the path's instructions.
        *register = unsafe { register.and(*mask) };
    }
    row
}

/// Loads the vector of a step, padded with zeros to `L` lines.
#[inline(always)]
unsafe fn load_vector<V: Vector, const P: usize, const L: usize>(step: &Step) -> Row<V, P, L> {
    // SAFETY: no load reads beyond the end of the vector.
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

/// Reduces the candidate row `sum`: subtracts every present row, times the vector's coefficient in
/// that row's pivot column. Absent rows are zero, so they need no test.
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
        // Two rows at a time, for paths with a three-way exclusive or.
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

/// Returns the index and the value of the first non-zero byte of a row, or `None` for a zero row.
#[inline(always)]
unsafe fn first_nonzero<V: Vector, const P: usize, const L: usize>(
    row: Row<V, P, L>,
) -> Option<(usize, u8)> {
    let mut bytes = Bytes([0; LONGEST]);

    // SAFETY: the buffer holds the longest row.
    unsafe { store(row, bytes.0.as_mut_ptr()) }

    let mut registers = row.as_flattened().iter().enumerate();

    // SAFETY: the processor has the path's instructions.
    let place = registers.find_map(|(i, register)| {
        unsafe { register.first_nonzero() }.map(|at| i * V::WIDTH + at)
    })?;

    Some((place, bytes.0[place]))
}

/// Performs one step on rows of `L` lines. Returns the pivot column, or `None` if the vector is
/// not innovative.
#[inline(always)]
unsafe fn step_of<V, M, const P: usize, const L: usize>(step: &Step) -> Option<usize>
where
    V: Vector,
    M: Multiply<V>,
{
    // SAFETY: `Step` promises the rows. The pivot is checked against their count and is below
    // `LONGEST`, which keeps the loads inside `UNIT` and `OTHERS`.
    unsafe {
        // 1. Reduce the vector by the present rows and find its pivot among the free columns.
        let free = load::<V, P, L>(step.free);
        let candidate = reduce::<V, M, P, L>(step, and(load_vector(step), free));
        let (pivot, lead) = first_nonzero(and(candidate, free))?;
        let inverse = step.field.inv(lead).filter(|_| pivot < step.count)?;

        // 2. Normalize. Dividing by the lead puts a one into the pivot column. In-place elimination
        //    stores the inverse matrix in pivot columns, so the new row holds 1/lead there instead:
        //    `row` is (candidate - lead·unit + unit) / lead. For the other rows both the one and
        //    the 1/lead count: a row with coefficient `c` in the pivot column adds `c·row`, which
        //    writes c/lead, and must also lose its `c`, which adding `c·unit` does. Hence they add
        //    `c·change` with `change = row + unit`.
        let unit = load::<V, P, L>(UNIT.as_ptr().add(LONGEST - pivot));
        let open = fold::<V, M, P, L>(candidate, unit, M::factor(1));
        let change = fold::<V, M, P, L>([[V::zero(); P]; L], open, M::factor(inverse));
        let row = fold::<V, M, P, L>(change, unit, M::factor(1));

        // 3. Clear the pivot column of every present row.
        for i in 0..step.present {
            let at = step.rows.add(i * step.stride);
            let swept = fold::<V, M, P, L>(load(at), change, M::factor(*at.add(pivot)));
            store(swept, at);
        }

        // 4. Store the new row, and mark the pivot column as taken.
        store(row, step.rows.add(pivot * step.stride));
        store(and(free, load(OTHERS.as_ptr().add(LONGEST - pivot))), step.free);
        Some(pivot)
    }
}

/// Performs one step with `P` registers in a line.
#[inline(always)]
pub(crate) unsafe fn eliminate<V, M, const P: usize>(step: &Step) -> Option<usize>
where
    V: Vector,
    M: Multiply<V>,
{
    // SAFETY: the caller keeps the same contract. The rows are whole lines.
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
