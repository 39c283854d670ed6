//! The throughput of the processor's multiplier, as the upper bound of any coder.
//!
//! The loop runs nothing but `gf2p8mulb` on registers, in as many independent chains as a block of
//! the coder has.

use crate::{Group, making};

/// Products in an iteration, each of 64 bytes.
pub const PRODUCTS: usize = 16 * 1024;

#[cfg(target_arch = "x86_64")]
pub fn bench(group: &mut Group<'_>) {
    if !(is_x86_feature_detected!("gfni") && is_x86_feature_detected!("avx512f")) {
        return;
    }
    making(group, PRODUCTS * 64);
    // SAFETY: the processor has the instructions.
    group.bench_function("ceiling", |b| {
        b.iter(|| unsafe { products(std::hint::black_box(3)) });
    });
}

#[cfg(not(target_arch = "x86_64"))]
pub fn bench(_: &mut Group<'_>) {}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "gfni,avx512f")]
fn products(c: i8) -> i64 {
    use std::arch::x86_64::*;
    let factor = _mm512_set1_epi8(c);
    let mut chains = [factor; 16];
    for _ in 0..PRODUCTS / 16 {
        for chain in &mut chains {
            *chain = _mm512_gf2p8mul_epi8(*chain, factor);
        }
    }
    let sum = chains.into_iter().fold(factor, |a, b| _mm512_xor_si512(a, b));
    _mm512_reduce_add_epi64(sum)
}
