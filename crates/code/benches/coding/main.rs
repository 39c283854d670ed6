//! Compares ncmesh-code, in one run, with `rlnc` 0.8.5 and 0.8.7, Intel ISA-L, and the throughput
//! of the processor's multiplier.
//!
//! The other coders are libraries loaded at run time, so that neither the build nor the tests need
//! them. A missing library is left out. See docs/results/coder.md for how to build them.
// The other coders are called through C functions, and the ceiling uses intrinsics.
#![allow(unsafe_code, clippy::unwrap_used, unreachable_pub, missing_docs)]

mod ceiling;
mod isal;
mod ours;
mod rlnc;
mod summary;

use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use ncmesh_code::{Field, Shape};
use std::time::Duration;

const GENERATIONS: [usize; 4] = [16, 32, 64, 128];
const SYMBOL_SIZES: [usize; 3] = [1100, 1500, 8192];

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// Returns the number of lost source symbols in systematic decoding, one in eight. Coded packets
/// replace them.
fn lost(k: usize) -> usize {
    k / 8
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    let old = rlnc::Rlnc::load("0.8.5");
    let new = rlnc::Rlnc::load("0.8.7");
    let isal = isal::Isal::load();
    for k in GENERATIONS {
        for size in SYMBOL_SIZES {
            let shape = Shape::new(Field::Gf256, k, size).unwrap();
            let mut group = criterion.benchmark_group(format!("{k}x{size}"));
            // Measured next to the coders, because the clock frequency may change during a run.
            ceiling::bench(&mut group);
            ours::bench(&mut group, shape);
            for rival in [&old, &new].into_iter().flatten() {
                rival.bench(&mut group, shape);
            }
            if let Some(isal) = &isal {
                isal.bench(&mut group, shape);
            }
            group.finish();
        }
    }
    summary::print();
    criterion.final_summary();
}

/// Sets the bytes of payload that the next benchmark produces in an iteration.
fn making(group: &mut Group<'_>, bytes: usize) {
    group.throughput(Throughput::Bytes(bytes as u64));
}
