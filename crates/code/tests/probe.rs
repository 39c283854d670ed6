//! Linear checks of packets.

#![allow(clippy::unwrap_used)] // Tests may.

use ncmesh_code::{CodeError, Encoder, Field, Probe, Shape, draw};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A generation, its probe and the sums of its symbols.
struct Bench {
    rng: ChaCha8Rng,
    encoder: Encoder,
    probe: Probe,
    sums: Vec<u8>,
}

impl Bench {
    fn new(k: usize, size: usize, columns: usize) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(k as u64);
        let shape = Shape::new(Field::Gf256, k, size).unwrap();
        let mut source = vec![0; k * size];
        rng.fill_bytes(&mut source);
        let mut encoder = Encoder::new(shape);
        encoder.load(&source).unwrap();
        let mut matrix = vec![0; size * columns];
        rng.fill_bytes(&mut matrix);
        let probe = Probe::new(shape, columns, matrix).unwrap();
        let sums = probe.sums(&source).unwrap();
        Self { rng, encoder, probe, sums }
    }

    fn packet(&mut self) -> (Vec<u8>, Vec<u8>) {
        let shape = self.encoder.shape();
        let mut vector = vec![0; shape.generation_size()];
        let mut payload = vec![0; shape.symbol_size()];
        draw(Field::Gf256, &mut self.rng, &mut vector);
        self.encoder.encode(&vector, &mut payload).unwrap();
        (vector, payload)
    }
}

#[test]
fn true_packets_agree_and_false_ones_do_not() {
    for (k, size, columns) in [(1, 64, 8), (5, 100, 8), (32, 1200, 8), (255, 1472, 4)] {
        let mut bench = Bench::new(k, size, columns);
        for _ in 0..50 {
            let (vector, mut payload) = bench.packet();
            assert_eq!(bench.probe.agrees(&bench.sums, &vector, &payload), Ok(true));
            let at = bench.rng.next_u32() as usize % size;
            payload[at] ^= 1 << (bench.rng.next_u32() % 8);
            assert_eq!(bench.probe.agrees(&bench.sums, &vector, &payload), Ok(false));
        }
    }
}

/// With one column, a false packet passes once in 256 times.
#[test]
fn each_column_finds_all_errors_but_one_in_256() {
    let mut passed = 0;
    for seed in 0..200 {
        let mut bench = Bench::new(2, 64, 1);
        bench.rng = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..128 {
            let (vector, mut payload) = bench.packet();
            bench.rng.fill_bytes(&mut payload);
            passed += u32::from(bench.probe.agrees(&bench.sums, &vector, &payload).unwrap());
        }
    }
    assert!((60..=140).contains(&passed), "{passed} of 25,600");
}

#[test]
fn lengths_that_do_not_fit_are_errors() {
    let shape = Shape::new(Field::Gf256, 4, 100).unwrap();
    let is_length = |error: CodeError| matches!(error, CodeError::Length { .. });
    assert!(is_length(Probe::new(shape, 8, vec![0; 799]).unwrap_err()));
    assert!(is_length(Probe::new(shape, 0, Vec::new()).unwrap_err()));
    let probe = Probe::new(shape, 8, vec![1; 800]).unwrap();
    assert!(is_length(probe.sums(&[0; 150]).unwrap_err()));
    assert!(is_length(probe.agrees(&[0; 31], &[0; 4], &[0; 100]).unwrap_err()));
    assert!(is_length(probe.agrees(&[0; 32], &[0; 3], &[0; 100]).unwrap_err()));
    assert!(is_length(probe.agrees(&[0; 32], &[0; 4], &[0; 99]).unwrap_err()));
    assert_eq!(probe.agrees(&[0; 32], &[0; 4], &[0; 100]), Ok(true));
}
