//! The portable path: eight bytes at a time in a 64-bit machine word.
//!
//! Two algorithms share the work. Each uses that a product is the sum of the shifts `x·2^i` for the
//! bits `i` that are set in the coefficient.
//!
//! - [`Sums`] computes products of many inputs. For bit `i` of all coefficients it adds up the
//!   inputs that have the bit, then doubles the sum on the way to the next lower bit, so that
//!   doubling is done once for all inputs. Inputs are taken four at a time: a table has the 16 sums
//!   that four words can have, so that one look-up replaces four tests. This is the method of the
//!   Four Russians, see V. Arlazarov, E. Dinic, M. Kronrod, I. Faradzev, "On economical
//!   construction of the transitive closure of a directed graph", 1970.
//! - [`Multiply`] multiplies single words, in elimination. Masks replace branches: each shift is
//!   ANDed with all ones or all zeros.

use crate::elimination::{Step, eliminate};
use crate::paths::{Entries, entries};
use crate::skeleton::{ByColumn, End, Job, accumulate, load, store, walk};
use crate::vector::{Multiply, Vector, first_nonzero_stored, load_part_of_8, store_part_of_8};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Eight bytes.
pub(crate) type Word = u64;

/// `0x01` in every byte.
const ONES: u64 = u64::from_ne_bytes([1; 8]);

impl Vector for Word {
    const WIDTH: usize = 8;
    const MASKED: bool = false;

    #[inline(always)]
    unsafe fn zero() -> Self {
        0
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: eight bytes are readable.
        unsafe { from.cast::<u64>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: eight bytes are writable.
        unsafe { to.cast::<u64>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn load_part(from: *const u8, count: usize) -> Self {
        // SAFETY: `count < 8` bytes are readable.
        u64::from_ne_bytes(unsafe { load_part_of_8(from, count) })
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut u8, count: usize) {
        // SAFETY: `count < 8` bytes are writable.
        unsafe { store_part_of_8(self.to_ne_bytes(), to, count) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        self & other
    }

    #[inline(always)]
    unsafe fn first_nonzero(self) -> Option<usize> {
        // SAFETY: the caller keeps the same contract.
        unsafe { first_nonzero_stored(self) }
    }
}

/// Returns, for each of the lowest `N` bits of `coefficient`, all ones if it is set, else zero.
#[inline(always)]
fn masks<const N: usize>(coefficient: u8) -> [u64; N] {
    let mut masks = [0; N];
    for (i, mask) in masks.iter_mut().enumerate() {
        *mask = 0u64.wrapping_sub(u64::from(coefficient >> i & 1));
    }
    masks
}

/// Adds the shifts selected by `masks` to `sum`.
#[inline(always)]
fn sum_of_shifts<const N: usize>(mut sum: u64, shifts: [u64; N], masks: [u64; N]) -> u64 {
    for i in 0..N {
        sum ^= shifts[i] & masks[i];
    }
    sum
}

/// A field on words whose elements have several bits.
trait Doubling {
    /// Bits of an element.
    const BITS: usize;

    /// Doubles every element.
    fn double(x: Word) -> Word;
}

/// GF(2^8) on words.
pub(crate) struct Bytes;

impl Doubling for Bytes {
    const BITS: usize = 8;

    #[inline(always)]
    fn double(x: Word) -> Word {
        // Each byte moves left. Where its top bit falls out, the polynomial reduces it.
        let top = x >> 7 & ONES;
        ((x & (0x7F * ONES)) << 1) ^ ((top << 8).wrapping_sub(top) & (0x1B * ONES))
    }
}

impl Multiply<Word> for Bytes {
    type Factor = [u64; 8];
    type Operand = [u64; 8];

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        masks(coefficient)
    }

    #[inline(always)]
    unsafe fn operand(x: Word) -> Self::Operand {
        let mut shifts = [x; 8];
        for i in 1..8 {
            shifts[i] = Self::double(shifts[i - 1]);
        }
        shifts
    }

    #[inline(always)]
    unsafe fn fold(sum: Word, x: Self::Operand, factor: Self::Factor) -> Word {
        sum_of_shifts(sum, x, factor)
    }
}

/// GF(2^4), two elements a byte, on words.
pub(crate) struct Nibbles;

impl Doubling for Nibbles {
    const BITS: usize = 4;

    #[inline(always)]
    fn double(x: Word) -> Word {
        // As for bytes, within each nibble and with the polynomial x^4 + x + 1.
        ((x & (0x77 * ONES)) << 1) ^ ((x >> 3 & (0x11 * ONES)) * 0x3)
    }
}

impl Multiply<Word> for Nibbles {
    type Factor = [u64; 4];
    type Operand = [u64; 4];

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> Self::Factor {
        masks(coefficient)
    }

    #[inline(always)]
    unsafe fn operand(x: Word) -> Self::Operand {
        let mut shifts = [x; 4];
        for i in 1..4 {
            shifts[i] = Self::double(shifts[i - 1]);
        }
        shifts
    }

    #[inline(always)]
    unsafe fn fold(sum: Word, x: Self::Operand, factor: Self::Factor) -> Word {
        sum_of_shifts(sum, x, factor)
    }
}

/// GF(2), eight elements a byte, on words.
pub(crate) struct Bits;

impl Multiply<Word> for Bits {
    type Factor = u64;
    type Operand = u64;

    #[inline(always)]
    unsafe fn factor(coefficient: u8) -> u64 {
        masks::<1>(coefficient)[0]
    }

    #[inline(always)]
    unsafe fn operand(x: Word) -> u64 {
        x
    }

    #[inline(always)]
    unsafe fn fold(sum: Word, x: u64, factor: u64) -> Word {
        sum ^ (x & factor)
    }
}

/// Inputs whose sums are in one table.
const FOUR: usize = 4;
/// Tables that are made at a time.
const TABLES: usize = 16;
/// Outputs that are computed from the same tables.
const OUTPUTS: usize = 8;

/// The 16 sums of four words: entry `c` adds up the words whose bits are set in `c`.
type Table = [Word; 16];

/// For each bit of an element, and for each table, which of the four coefficients have the bit.
type Choices = [[u8; TABLES]; 8];

/// Some outputs of a job, as far as they come from some inputs.
struct Sums<'a, F, const ADD: bool> {
    job: &'a Job<'a>,
    /// Pointers to the outputs.
    outputs: &'a [*mut u8],
    /// The choices of each output.
    choices: &'a [Choices; OUTPUTS],
    /// The first of the inputs.
    inputs: *const u8,
    input_count: usize,
    field: PhantomData<F>,
}

impl<F: Doubling, const ADD: bool> ByColumn for Sums<'_, F, ADD> {
    /// Computes `C` words of each output.
    #[inline(always)]
    unsafe fn run<const C: usize, E: End>(&self, column: usize) {
        let part = self.job.length % Word::WIDTH;
        let mut space = [const { MaybeUninit::<[Table; C]>::uninit() }; TABLES];
        let tables = &mut space[..self.input_count.div_ceil(FOUR)];

        // SAFETY: the caller's job has the rows, `walk` keeps to them, and every table is written
        // before it is read. A choice has four bits.
        unsafe {
            for (group, table) in tables.iter_mut().enumerate() {
                let mut words = [[0; FOUR]; C];
                for i in 0..FOUR.min(self.input_count - group * FOUR) {
                    let row = self.inputs.add((group * FOUR + i) * self.job.input_stride);
                    let loaded = load::<Word, C, E>(row.add(column), part);
                    for (words, loaded) in words.iter_mut().zip(loaded) {
                        words[i] = loaded;
                    }
                }

                let table = table.write([[0; 16]; C]);
                for (table, words) in table.iter_mut().zip(words) {
                    *table = sums_of_four(words);
                }
            }

            for (choices, output) in self.choices.iter().zip(self.outputs) {
                // From the highest bit to the lowest: the sum of the inputs that have the bit.
                let mut sums = [0; C];
                for choices in choices[..F::BITS].iter().rev() {
                    for sum in &mut sums {
                        *sum = F::double(*sum);
                    }

                    for (tables, choice) in tables.iter().zip(choices) {
                        let choice = usize::from(*choice);
                        for (sum, table) in sums.iter_mut().zip(tables.assume_init_ref()) {
                            *sum ^= table.get_unchecked(choice);
                        }
                    }
                }

                store::<Word, C, E, ADD>(sums, output.add(column), part);
            }
        }
    }
}

/// Returns the table of four words.
#[inline(always)]
fn sums_of_four(words: [Word; FOUR]) -> Table {
    let mut table = [0; 16];
    for (i, word) in words.into_iter().enumerate() {
        for low in 0..1 << i {
            table[1 << i | low] = table[low] ^ word;
        }
    }
    table
}

/// Returns the choices of one output: what its coefficients of up to `4 · TABLES` inputs say.
#[inline(always)]
fn choices(coefficients: &[u8], bits: usize) -> Choices {
    let mut choices = [[0; TABLES]; 8];
    for (group, four) in coefficients.chunks(FOUR).enumerate() {
        let mut bytes = [0; FOUR];
        bytes[..four.len()].copy_from_slice(four);
        let packed = u32::from_le_bytes(bytes);
        for (bit, choices) in choices[..bits].iter_mut().enumerate() {
            // The factor moves the lowest bit of byte `i` to bit `24 + i`, and no two bits of the
            // product meet.
            let spread = packed >> bit & 0x0101_0101;
            choices[group] = (spread.wrapping_mul(0x0102_0408) >> 24) as u8 & 15;
        }
    }
    choices
}

/// Computes all outputs of `job` by tables of sums. With `ADD` it adds to them.
unsafe fn product_by_sums<F: Doubling, const ADD: bool>(job: &Job<'_>) {
    let mut first = 0;
    while first < job.output_count {
        let count = (job.output_count - first).min(OUTPUTS);
        let mut outputs = [job.outputs; OUTPUTS];
        let mut space = [[[0; TABLES]; 8]; OUTPUTS];

        // Inputs beyond the tables' number are added in further passes. There is a first pass even
        // without inputs, since it replaces the outputs.
        let mut input = 0;
        loop {
            let input_count = (job.input_count - input).min(FOUR * TABLES);
            // SAFETY: the job has these outputs, inputs and coefficients.
            unsafe {
                for i in 0..count {
                    let group = job.group::<1>(first + i);
                    let row = group.coefficients[0].add(input);
                    outputs[i] = group.outputs[0];
                    space[i] = choices(std::slice::from_raw_parts(row, input_count), F::BITS);
                }

                let inputs = job.inputs.wrapping_add(input * job.input_stride);
                let outputs = &outputs[..count];
                let choices = &space;
                let field = PhantomData;
                if ADD || input > 0 {
                    let sums =
                        Sums::<F, true> { job, outputs, choices, inputs, input_count, field };
                    walk::<Word, _, 2>(job.length, &sums);
                } else {
                    let sums =
                        Sums::<F, false> { job, outputs, choices, inputs, input_count, field };
                    walk::<Word, _, 2>(job.length, &sums);
                }
            }

            input += input_count;
            if input == job.input_count {
                break;
            }
        }

        first += count;
    }
}

/// Row length from which a table of all bytes' products pays for a single input.
const LONG: usize = 64;

/// Adds the multiple of one row, whose coefficient is given, by a table of all bytes' products.
unsafe fn add_by_bytes<
    M: Multiply<Word, Operand = [Word; N], Factor = [Word; N]>,
    const N: usize,
>(
    job: &Job<'_>,
) {
    // The products of single bits, in one word. The product of any byte is a sum of them.
    let bits = Word::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]);
    // SAFETY: there is a coefficient. The path needs no instructions.
    let images = unsafe { M::fold(0, M::operand(bits), M::factor(*job.coefficients)) };
    let mut products = [0u8; 256];
    for (i, image) in images.to_le_bytes().into_iter().enumerate() {
        let (known, rest) = products.split_at_mut(1 << i);
        for (product, low) in rest.iter_mut().zip(known) {
            *product = *low ^ image;
        }
    }

    for at in 0..job.length {
        // SAFETY: both rows have this byte.
        unsafe {
            let product = products[usize::from(*job.inputs.add(at))];
            *job.outputs.add(at) ^= product;
        }
    }
}

/// Defines the entry points of a field by tables of sums.
macro_rules! entries_by_sums {
    ($name:ident, $m:ty) => {
        pub(crate) static $name: Entries = {
            unsafe fn product(job: &Job<'_>) {
                // SAFETY: the caller keeps the same contract.
                unsafe { product_by_sums::<$m, false>(job) }
            }
            unsafe fn accumulate_any(job: &Job<'_>) {
                // SAFETY: the caller keeps the same contract.
                unsafe {
                    match (job.input_count, job.length) {
                        (1, LONG..) => add_by_bytes::<$m, _>(job),
                        (1, _) => accumulate::<Word, $m, 1>(job),
                        _ => product_by_sums::<$m, true>(job),
                    }
                }
            }
            unsafe fn eliminate_step(step: &Step) -> Option<usize> {
                // SAFETY: the caller keeps the same contract.
                unsafe { eliminate::<Word, $m, 8>(step) }
            }
            Entries { product, accumulate: accumulate_any, eliminate: eliminate_step }
        };
    };
}

entries!(GF2, Word, Bits, 1, 1, 8);
entries_by_sums!(GF16, Nibbles);
entries_by_sums!(GF256, Bytes);
