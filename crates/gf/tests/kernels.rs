//! Tests every path of every field against a scalar oracle that multiplies bit by bit, at odd
//! lengths and misaligned starts.

use ncmesh_gf::{Field, Kernels, Rows, RowsMut};
use proptest::prelude::*;

/// Returns the schoolbook product of two elements, from the definition and without the crate's
/// tables.
fn element_product(field: Field, a: u8, b: u8) -> u8 {
    let (poly, degree) = match field {
        Field::Gf2 => (0b11u32, 1),
        Field::Gf16 => (0x13, 4),
        Field::Gf256 => (0x11B, 8),
    };
    let mut product =
        (0..degree).fold(0u32, |sum, i| sum ^ ((u32::from(a) << i) * (u32::from(b) >> i & 1)));
    for bit in (degree..2 * degree).rev() {
        if product >> bit & 1 == 1 {
            product ^= poly << (bit - degree);
        }
    }
    product as u8
}

/// Returns the product of a coefficient and a payload byte of packed elements.
fn byte_product(field: Field, c: u8, byte: u8) -> u8 {
    let c = c & field.mask();
    let bits = field.bits();
    (0..8 / bits).fold(0, |sum, i| {
        let element = byte >> (i * bits) & field.mask();
        sum | element_product(field, c, element) << (i * bits)
    })
}

/// Returns `Σ coefficients[i]·rows[i]`, byte by byte.
fn oracle_product(field: Field, coefficients: &[u8], rows: &[&[u8]], length: usize) -> Vec<u8> {
    let mut out = vec![0; length];
    for (&c, row) in coefficients.iter().zip(rows) {
        for (y, &x) in out.iter_mut().zip(*row) {
            *y ^= byte_product(field, c, x);
        }
    }
    out
}

/// Returns the kernels of every field on every path that this processor can run.
fn every_path() -> impl Iterator<Item = Kernels> {
    Field::ALL.into_iter().flat_map(Kernels::available)
}

/// Returns reproducible bytes by xorshift64*, which saves a dependency on a generator crate.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn scalar_algebra_matches_the_definition() {
    for field in Field::ALL {
        let elements = || (0..=255u8).filter(|&e| field.contains(e));
        assert_eq!(elements().count(), field.order());
        for a in elements() {
            for b in elements() {
                assert_eq!(field.mul(a, b), element_product(field, a, b), "{field:?} {a}*{b}");
                assert_eq!(field.div(field.mul(a, b), b), (b != 0).then_some(a));
            }
            assert_eq!(field.inv(a).map(|i| field.mul(a, i)), (a != 0).then_some(1));
        }
    }
}

#[test]
fn every_coefficient_on_every_byte_value() {
    let x: Vec<u8> = (0..=255).collect();
    for kernels in every_path() {
        for c in 0..=255u8 {
            let mut y = noise(256, u64::from(c));
            let mut scaled = x.clone();
            let expected: Vec<u8> =
                x.iter().zip(&y).map(|(&x, &y)| y ^ byte_product(kernels.field(), c, x)).collect();
            kernels.axpy(c, &x, &mut y).unwrap();
            assert_eq!(y, expected, "{kernels:?} axpy {c}");
            kernels.scale(c, &mut scaled);
            let product: Vec<u8> = x.iter().map(|&x| byte_product(kernels.field(), c, x)).collect();
            assert_eq!(scaled, product, "{kernels:?} scale {c}");
        }
    }
}

#[test]
fn every_length_and_start() {
    let x = noise(400, 1);
    for kernels in every_path() {
        for length in (0..=300).chain([4095, 5000, 8200]) {
            let x = if length > 300 { noise(length + 64, 2) } else { x.clone() };
            let from = length % 61;
            let to = length * 7 % 63;
            let x = &x[from..from + length];
            let mut y = noise(length + 64, 3);
            let before = y.clone();
            kernels.axpy(0xA7, x, &mut y[to..to + length]).unwrap();
            for (i, (&after, &before)) in y.iter().zip(&before).enumerate() {
                let inside = i.checked_sub(to).and_then(|i| x.get(i));
                let change = inside.map_or(0, |&x| byte_product(kernels.field(), 0xA7, x));
                assert_eq!(after, before ^ change, "{kernels:?} length {length} byte {i}");
            }
        }
    }
}

/// A product of `outputs x inputs` rows at some stride and start, with guard bytes between the
/// outputs.
#[derive(Debug, Clone)]
struct Case {
    outputs: usize,
    inputs: usize,
    length: usize,
    gap: usize,
    start: usize,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let length = prop_oneof![9 => 0usize..300, 1 => 300usize..2100];
    (0usize..11, 0usize..20, length, 0usize..70, 0usize..64, any::<u64>()).prop_map(
        |(outputs, inputs, length, gap, start, seed)| Case {
            outputs,
            inputs,
            length,
            gap,
            start,
            seed,
        },
    )
}

impl Case {
    fn matrix(&self) -> Vec<u8> {
        noise(self.outputs * self.inputs, self.seed)
    }

    fn input_bytes(&self) -> Vec<u8> {
        noise(self.start + self.inputs * self.stride(), self.seed ^ 1)
    }

    fn stride(&self) -> usize {
        self.length + self.gap
    }

    fn expected(&self, field: Field, output: usize) -> Vec<u8> {
        let bytes = self.input_bytes();
        let row = |i: usize| &bytes[self.start + i * self.stride()..][..self.length];
        let rows: Vec<&[u8]> = (0..self.inputs).map(row).collect();
        let matrix = self.matrix();
        oracle_product(field, &matrix[output * self.inputs..][..self.inputs], &rows, self.length)
    }
}

proptest! {
    #[test]
    fn products_match_the_oracle(case in case(), chosen in prop::collection::vec(0u16..11, 0..9)) {
        let matrix = case.matrix();
        let bytes = case.input_bytes();
        let stride = case.stride();
        let matrix = Rows::packed(&matrix, case.inputs, case.outputs).unwrap();
        let rows = Rows::new(&bytes[case.start..], case.length, stride, case.inputs).unwrap();
        for kernels in every_path() {
            let mut all = vec![0x5A; case.outputs * stride + 13];
            let mut some = all.clone();
            let length = case.length;
            let count = case.outputs;
            let mut outputs = RowsMut::new(&mut all[13..], length, stride, count).unwrap();
            kernels.product(matrix, rows, &mut outputs).unwrap();
            let mut outputs = RowsMut::new(&mut some[13..], length, stride, count).unwrap();
            let chosen_result = kernels.product_at(&chosen, matrix, rows, &mut outputs);
            let valid = chosen.iter().all(|&j| usize::from(j) < case.outputs);
            prop_assert_eq!(chosen_result.is_ok(), valid);
            for j in 0..case.outputs {
                let expected = case.expected(kernels.field(), j);
                let at = 13 + j * stride;
                let got = &all[at..at + case.length];
                prop_assert_eq!(got, &expected[..], "{:?} output {}", kernels, j);
                prop_assert!(all[at + case.length..][..case.gap].iter().all(|&b| b == 0x5A));
                let untouched = vec![0x5A; case.length];
                let computed = valid && chosen.contains(&(j as u16));
                let wanted = if computed { expected } else { untouched };
                prop_assert_eq!(&some[at..at + case.length], &wanted[..]);
            }
        }
    }

    #[test]
    fn accumulate_and_combine_match_the_oracle(case in case()) {
        let case = Case { outputs: 1, ..case };
        let matrix = case.matrix();
        let bytes = case.input_bytes();
        let stride = case.stride();
        let rows = Rows::new(&bytes[case.start..], case.length, stride, case.inputs).unwrap();
        for kernels in every_path() {
            let expected = case.expected(kernels.field(), 0);
            let mut out = vec![0; case.length];
            kernels.combine(&matrix, rows, &mut out).unwrap();
            prop_assert_eq!(&out, &expected);
            kernels.accumulate(&matrix, rows, &mut out).unwrap();
            prop_assert!(out.iter().all(|&b| b == 0), "the same sum twice cancels");
        }
    }

    #[test]
    fn elimination_matches_the_oracle(
        k in 1usize..=256,
        lines in 1usize..=4,
        given in 0usize..30,
        sparse in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let k = k.min(lines * 64);
        for kernels in every_path() {
            let field = kernels.field();
            let mut ours = vec![0; k * lines * 64];
            let mut free = vec![0; lines * 64];
            free[..k].fill(255);
            let mut oracle = Oracle { field, free: vec![true; k], rows: vec![vec![0; k]; k] };
            let mut present = 0;
            for turn in 0..given {
                let mut vector = noise(k, seed ^ turn as u64);
                let keep = |i: usize| !sparse || noise(1, seed ^ (turn * k + i) as u64)[0] < 16;
                for (i, c) in vector.iter_mut().enumerate() {
                    *c = if keep(i) { *c & field.mask() } else { 0 };
                }
                let mut rows = RowsMut::packed(&mut ours, lines * 64, k).unwrap();
                let pivot = kernels.eliminate(&vector, &mut free, present, &mut rows).unwrap();
                prop_assert_eq!(pivot, oracle.insert(&vector), "{:?}", kernels);
                if let Some(pivot) = pivot {
                    prop_assert_eq!(free[pivot], 0);
                    present = present.max(pivot + 1);
                }
                for (ours, row) in ours.chunks(lines * 64).zip(&oracle.rows) {
                    prop_assert_eq!(&ours[..k], &row[..]);
                    prop_assert!(ours[k..].iter().all(|&c| c == 0));
                }
            }
        }
    }
}

/// In-place Gauss-Jordan elimination, one element at a time.
struct Oracle {
    field: Field,
    free: Vec<bool>,
    rows: Vec<Vec<u8>>,
}

impl Oracle {
    fn insert(&mut self, vector: &[u8]) -> Option<usize> {
        let field = self.field;
        let k = vector.len();
        let mut row: Vec<u8> = (0..k).map(|j| if self.free[j] { vector[j] } else { 0 }).collect();
        for i in (0..k).filter(|&i| !self.free[i]) {
            row.iter_mut().zip(&self.rows[i]).for_each(|(y, &x)| *y ^= field.mul(vector[i], x));
        }
        let pivot = (0..k).find(|&j| self.free[j] && row[j] != 0)?;
        let inverse = field.inv(row[pivot])?;
        row[pivot] = 1;
        row.iter_mut().for_each(|c| *c = field.mul(*c, inverse));
        for other in &mut self.rows {
            let c = std::mem::take(&mut other[pivot]);
            other.iter_mut().zip(&row).for_each(|(y, &x)| *y ^= field.mul(c, x));
        }
        self.rows[pivot] = row;
        self.free[pivot] = false;
        Some(pivot)
    }
}
