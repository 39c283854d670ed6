//! The separator extracts one of two combined generations.

#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use ncmesh_code::{CodeError, Decoder, Encoder, Field, Separated, Separator, Shape, draw};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

const SYMBOL: usize = 6;

fn source(field: Field, count: usize, rng: &mut ChaCha8Rng) -> (Encoder, Vec<u8>) {
    let shape = Shape::new(field, count, SYMBOL).unwrap();
    let mut data = vec![0; shape.capacity()];
    rng.fill_bytes(&mut data);
    let mut encoder = Encoder::new(shape);
    encoder.load(&data).unwrap();
    (encoder, data)
}

/// Returns a random combination: its coding vector and its payload.
fn packet(encoder: &Encoder, rng: &mut ChaCha8Rng) -> (Vec<u8>, Vec<u8>) {
    let mut coefficients = vec![0; encoder.shape().generation_size()];
    let mut payload = vec![0; SYMBOL];
    draw(encoder.shape().field(), rng, &mut coefficients);
    encoder.encode(&coefficients, &mut payload).unwrap();
    (coefficients, payload)
}

#[test]
fn an_overheard_packet_and_one_combined_with_it_give_the_other() {
    let mut separator = Separator::new(Field::Gf256, 2, 3, 2).unwrap();
    assert_eq!(separator.insert(&[4, 0], &[1, 2, 3], &[0x0f, 0xff]), Ok(Separated::Kept));
    let found = Separated::Wanted((vec![4, 0], vec![0x01, 0x0f]));
    assert_eq!(separator.insert(&[0, 0], &[1, 2, 3], &[0x0e, 0xf0]), Ok(found));
    assert_eq!(separator.rank(), 1);
    // A combination of earlier packets is redundant.
    assert_eq!(separator.insert(&[0, 0], &[0, 0, 0], &[0, 0]), Ok(Separated::Redundant));
    assert!(matches!(separator.insert(&[1], &[1, 2, 3], &[0, 0]), Err(CodeError::Length { .. })));
    assert!(matches!(separator.insert(&[1, 0], &[1], &[0, 0]), Err(CodeError::Length { .. })));
    assert!(matches!(separator.insert(&[1, 0], &[1, 2, 3], &[0]), Err(CodeError::Length { .. })));
}

proptest! {
    /// Inserts combined and overheard packets in any order. The wanted generation is complete when
    /// their number reaches the joint rank, and not before.
    #[test]
    fn every_combination_that_follows_is_returned(
        seed in any::<u64>(),
        field in prop::sample::select(vec![Field::Gf256, Field::Gf16]),
        wanted in 1..9_usize,
        other in 1..9_usize,
        overheard in 0..9_usize,
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (ours, data) = source(field, wanted, &mut rng);
        let (theirs, _) = source(field, other, &mut rng);
        let mut separator = Separator::new(field, wanted, other, SYMBOL).unwrap();
        let mut decoder = Decoder::new(ours.shape());
        let mut known = Decoder::new(theirs.shape());
        let mut combined = 0;
        while !decoder.is_complete() {
            let (theirs, mut payload) = packet(&theirs, &mut rng);
            let mut vector = vec![0; wanted];
            if known.rank() < overheard.min(other) {
                known.absorb(&theirs, &payload).unwrap();
            } else {
                let (ours, other) = packet(&ours, &mut rng);
                vector = ours;
                payload.iter_mut().zip(other).for_each(|(a, b)| *a ^= b);
                combined += 1;
            }
            let separated = separator.insert(&vector, &theirs, &payload).unwrap();
            if let Separated::Wanted((vector, payload)) = separated {
                decoder.absorb(&vector, &payload).unwrap();
            }
            prop_assert!(combined < 200);
        }
        prop_assert!(combined >= wanted);
        prop_assert!(separator.rank() <= other);
        prop_assert!(separator.rank() + wanted <= known.rank() + combined);
        prop_assert_eq!(decoder.decode().unwrap(), &data[..]);
    }
}
