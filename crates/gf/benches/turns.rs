//! Compares the product of every path of this processor with other libraries, in turns.
//!
//! Each round runs ours and then the other's for a fraction of a millisecond, so that what else
//! the machine does slows both. Printed are the medians, and the median and the quartiles of the
//! rounds' ratios; above 1, ours is faster. The libraries are loaded at run time, and a missing one
//! is left out. docs/results/coder.md says how to build them.
//!
//! A call longer than a turn loses more to other jobs than the short ones of the other side, so its
//! ratio means little on a busy machine.
// The other libraries are called through C functions, and a benchmark reads the clock.
#![allow(unsafe_code, clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

use libloading::Library;
use ncmesh_gf::{Field, Kernels, RowBuffer, Rows, RowsMut};
use std::ffi::c_int;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rounds of each comparison.
const ROUNDS: usize = 200;
/// Time that a side gets in a round.
const TURN: Duration = Duration::from_micros(150);

/// Shapes that are compared: outputs of a call, rows, and bytes in a row.
const SHAPES: [(usize, usize, usize); 14] = [
    (1, 16, 1100),
    (1, 32, 1088),
    (1, 32, 1100),
    (1, 32, 1500),
    (1, 64, 1100),
    (1, 64, 1500),
    (1, 32, 8192),
    (4, 32, 1100),
    (4, 32, 1500),
    (4, 64, 1100),
    (32, 32, 64),
    (32, 32, 20),
    (32, 32, 1500),
    (64, 64, 1100),
];

type InitTables = unsafe extern "C" fn(c_int, c_int, *mut u8, *mut u8);
type EncodeData = unsafe extern "C" fn(c_int, c_int, c_int, *mut u8, *mut *mut u8, *mut *mut u8);
type Combine = unsafe extern "C" fn(*const u8, *const *const u8, usize, *mut u8, usize);

/// A product: coefficients, rows and outputs.
struct Work {
    outputs: usize,
    count: usize,
    size: usize,
    coefficients: Vec<u8>,
    inputs: RowBuffer,
    results: Vec<u8>,
    input_pointers: Vec<*mut u8>,
    output_pointers: Vec<*mut u8>,
}

impl Work {
    fn new((outputs, count, size): (usize, usize, usize)) -> Self {
        let mut state = 1u64;
        let mut fill = |bytes: &mut [u8]| {
            for byte in bytes {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (state >> 56) as u8;
            }
        };
        let mut inputs = RowBuffer::new(size, count);
        (0..count).for_each(|i| fill(inputs.row_mut(i).unwrap()));
        let mut coefficients = vec![0; outputs * count];
        fill(&mut coefficients);
        let mut results = vec![0; outputs * size];
        let input_pointers = (0..count).map(|i| inputs.row_mut(i).unwrap().as_mut_ptr()).collect();
        let output_pointers = results.chunks_mut(size).map(<[u8]>::as_mut_ptr).collect();
        Self {
            outputs,
            count,
            size,
            coefficients,
            inputs,
            results,
            input_pointers,
            output_pointers,
        }
    }

    fn ours(&mut self, kernels: &Kernels) {
        let matrix = Rows::packed(&self.coefficients, self.count, self.outputs).unwrap();
        let rows = self.inputs.rows(self.count);
        let results = &mut RowsMut::packed(&mut self.results, self.size, self.outputs).unwrap();
        kernels.product(matrix, rows, results).unwrap();
    }
}

/// ISA-L's functions for a path of ours. Their tables are made before, and not timed.
struct Isal<'a> {
    library: &'a Library,
    suffix: &'static str,
}

impl Isal<'_> {
    /// Returns ISA-L's code for a path, by the name of ours.
    fn suffix(path: &str) -> Option<&'static str> {
        Some(match path {
            "GfniAvx512" => "avx512_gfni",
            "GfniAvx2" => "avx2_gfni",
            "Avx2" => "avx2",
            "Ssse3" => "sse",
            "Portable" => "base",
            _ => return None,
        })
    }

    fn tables(&self, work: &mut Work) -> Vec<u8> {
        // The code with GFNI has tables of its own, which `ec_init_tables` makes where it would
        // choose that code.
        let name = if self.suffix.ends_with("gfni") {
            "ec_init_tables_gfni"
        } else {
            "ec_init_tables_base"
        };
        let mut tables = vec![0; 32 * work.outputs * work.count];
        let rows = work.count as c_int;
        let outputs = work.outputs as c_int;
        // SAFETY: the function has this type, and 32 bytes for each coefficient suffice.
        unsafe {
            let init = *self.library.get::<InitTables>(name.as_bytes()).unwrap();
            init(rows, outputs, work.coefficients.as_mut_ptr(), tables.as_mut_ptr());
        }
        tables
    }

    fn run(&self, work: &mut Work, tables: &mut [u8], encode: EncodeData) {
        let from = work.input_pointers.as_mut_ptr();
        let to = work.output_pointers.as_mut_ptr();
        let length = work.size as c_int;
        // SAFETY: every pointer is valid for the bytes of its row.
        unsafe {
            encode(
                length,
                work.count as c_int,
                work.outputs as c_int,
                tables.as_mut_ptr(),
                from,
                to,
            );
        }
    }
}

/// Returns ns a call of `run` over about one turn.
fn turn(calls: usize, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..calls).for_each(|_| run());
    start.elapsed().as_nanos() as f64 / calls as f64
}

/// Returns how many calls fill a turn.
fn calls(mut run: impl FnMut()) -> usize {
    let mut calls = 1;
    loop {
        let start = Instant::now();
        (0..calls).for_each(|_| run());
        if start.elapsed() > TURN {
            return calls;
        }
        calls *= 2;
    }
}

/// Runs both sides in turns on one piece of work and prints a row.
fn compare(
    names: [&str; 2],
    work: &mut Work,
    mut ours: impl FnMut(&mut Work),
    mut theirs: impl FnMut(&mut Work),
) {
    let counts = [calls(|| ours(work)), calls(|| theirs(work))];
    let mut times = [Vec::new(), Vec::new()];
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let mine = turn(counts[0], || ours(work));
        let other = turn(counts[1], || theirs(work));
        times[0].push(mine);
        times[1].push(other);
        ratios.push(other / mine);
    }
    let at = |values: &mut Vec<f64>, share: usize| {
        values.sort_by(f64::total_cmp);
        values[values.len() * share / 4]
    };
    println!(
        "| {} | {} | {} x {} -> {} | {:.0} | {:.0} | {:.2} | {:.2} to {:.2} |",
        names[0],
        names[1],
        work.count,
        work.size,
        work.outputs,
        at(&mut times[0], 2),
        at(&mut times[1], 2),
        at(&mut ratios, 2),
        at(&mut ratios, 1),
        at(&mut ratios, 3),
    );
}

fn main() {
    // SAFETY: neither library has initialisers.
    let isal = unsafe { Library::new("libisal.so.2") }.ok();
    let folder = std::env::var_os("NCMESH_RIVALS");
    let simdx = folder.and_then(|folder| {
        // SAFETY: as above.
        unsafe { Library::new(Path::new(&folder).join("librlnc_simdx_1_3_1.so")) }.ok()
    });
    let only = std::env::args().nth(1).filter(|name| !name.starts_with('-'));

    println!("| path | other | product | ours ns | other ns | ratio | quartiles |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for kernels in Kernels::available(Field::Gf256) {
        let name = format!("{kernels:?}");
        let path = name.trim_start_matches("Kernels(Gf256 by ").trim_end_matches(')');
        if only.as_ref().is_some_and(|only| !only.eq_ignore_ascii_case(path)) {
            continue;
        }

        for shape in SHAPES {
            let mut work = Work::new(shape);
            if let (Some(library), Some(suffix)) = (&isal, Isal::suffix(path)) {
                let isal = Isal { library, suffix };
                let symbol = format!("ec_encode_data_{suffix}");
                // SAFETY: the function has this type.
                let encode = unsafe { library.get::<EncodeData>(symbol.as_bytes()) };
                if let Ok(encode) = encode {
                    let mut tables = isal.tables(&mut work);
                    compare(
                        [path, "ISA-L"],
                        &mut work,
                        |work| work.ours(&kernels),
                        |work| isal.run(work, &mut tables, *encode),
                    );
                }
            }
            if let Some(library) = simdx.as_ref().filter(|_| path == "Portable") {
                // SAFETY: the shim's function has this type.
                let combine = unsafe { *library.get::<Combine>(b"combine").unwrap() };
                compare(
                    [path, "rlnc-simdx"],
                    &mut work,
                    |work| work.ours(&kernels),
                    |work| {
                        for (weights, &to) in
                            work.coefficients.chunks(work.count).zip(&work.output_pointers)
                        {
                            let from = work.input_pointers.as_ptr().cast();
                            // SAFETY: every pointer is valid for the bytes of its row.
                            unsafe {
                                combine(weights.as_ptr(), from, work.count, to, work.size);
                            }
                        }
                    },
                );
            }
        }
    }
}
