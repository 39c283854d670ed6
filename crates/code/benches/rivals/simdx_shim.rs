//! The kernel of `rlnc-simdx` behind a C function, for benchmarks.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)]

use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Writes the combination of `count` rows of `length` bytes with these coefficients.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn combine(
    coefficients: *const u8,
    rows: *const *const u8,
    count: usize,
    out: *mut u8,
    length: usize,
) {
    let coefficients = unsafe { from_raw_parts(coefficients, count) };
    let rows = unsafe { from_raw_parts(rows, count) };
    let out = unsafe { from_raw_parts_mut(out, length) };
    out.fill(0);
    for (&coefficient, &row) in coefficients.iter().zip(rows) {
        let row = unsafe { from_raw_parts(row, length) };
        rlnc_simdx::kernel::axpy(coefficient, row, out);
    }
}
