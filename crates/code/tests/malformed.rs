//! The coders reject malformed input without a panic and never claim a rank that is too high.

use ncmesh_code::{
    Absorbed, CodeError, Decoder, Encoder, Field, Recoder, Shape, draw, draw_sparse, expand_seed,
    pack, packed_len, unpack,
};
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

#[test]
fn one_unit_vector_three_times_is_rank_one() {
    // The crate `rlnc` 0.8.7 counts this as rank 3 and declares the generation decoded.
    let shape = Shape::new(Field::Gf256, 3, 4).unwrap();
    let mut decoder = Decoder::new(shape);
    let mut recoder = Recoder::new(shape);
    for turn in 0..3 {
        let expected = if turn == 0 { Absorbed::Innovative } else { Absorbed::Redundant };
        assert_eq!(decoder.absorb(&[0, 1, 0], &[1, 2, 3, 4]), Ok(expected));
        assert_eq!(recoder.absorb(&[0, 1, 0], &[1, 2, 3, 4]), Ok(expected));
        assert_eq!((decoder.rank(), recoder.rank()), (1, 1));
    }
    assert!(!decoder.is_complete());
    assert_eq!(decoder.decode(), None);
    assert_eq!(decoder.symbol(1), Some(&[1, 2, 3, 4][..]));
}

#[test]
fn shapes_outside_the_limits() {
    assert_eq!(Shape::new(Field::Gf2, 0, 1), Err(CodeError::Generation(0)));
    assert_eq!(Shape::new(Field::Gf2, 256, 1), Err(CodeError::Generation(256)));
    assert_eq!(Shape::new(Field::Gf2, 1, 0), Err(CodeError::SymbolSize(0)));
    assert_eq!(Shape::new(Field::Gf2, 1, 65_536), Err(CodeError::SymbolSize(65_536)));
    assert!(Shape::new(Field::Gf2, 255, 65_535).is_ok());
}

#[test]
fn an_all_zero_vector_brings_nothing() {
    let shape = Shape::new(Field::Gf16, 2, 1).unwrap();
    let mut decoder = Decoder::new(shape);
    assert_eq!(decoder.absorb(&[0, 0], &[7]), Ok(Absorbed::Redundant));
    assert_eq!(decoder.rank(), 0);
    let mut payload = [5];
    Encoder::new(shape).encode(&[0, 0], &mut payload).unwrap();
    assert_eq!(payload, [0]);
}

#[test]
fn an_empty_relay_sends_nothing() {
    let shape = Shape::new(Field::Gf256, 2, 3).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut coefficients = [9; 2];
    let mut payload = [9; 3];
    let recoder = Recoder::new(shape);
    assert_eq!(recoder.recode(&mut rng, &mut coefficients, &mut payload), Ok(false));
    assert_eq!(recoder.recode_many(&mut rng, &mut coefficients, &mut payload), Ok(false));
    assert_eq!(Decoder::new(shape).recode(&mut rng, &mut coefficients, &mut payload), Ok(false));
    assert_eq!((coefficients, payload), ([9; 2], [9; 3]));
}

#[test]
fn loading_pads_and_has_a_limit() {
    let mut encoder = Encoder::new(Shape::new(Field::Gf256, 3, 4).unwrap());
    encoder.load(&[1; 12]).unwrap();
    assert_eq!(encoder.load(&[2; 13]), Err(CodeError::TooMuchData { capacity: 12, got: 13 }));
    assert_eq!(encoder.symbol(2), Some(&[1; 4][..]));
    encoder.load(&[3; 5]).unwrap();
    assert_eq!(encoder.symbol(0), Some(&[3; 4][..]));
    assert_eq!(encoder.symbol(1), Some(&[3, 0, 0, 0][..]));
    assert_eq!(encoder.symbol(2), Some(&[0; 4][..]));
    assert_eq!(encoder.symbol(3), None);
}

/// A broken generator that returns only zeros.
struct Stuck;

impl RngCore for Stuck {
    fn next_u32(&mut self) -> u32 {
        0
    }
    fn next_u64(&mut self) -> u64 {
        0
    }
    fn fill_bytes(&mut self, out: &mut [u8]) {
        out.fill(0);
    }
}

#[test]
fn a_decoder_takes_a_whole_generation_in_place_of_its_packets() {
    let mut decoder = Decoder::new(Shape::new(Field::Gf256, 3, 4).unwrap());
    decoder.absorb(&[1, 2, 3], &[9; 4]).unwrap();
    let source: Vec<u8> = (0..12).collect();
    assert!(matches!(decoder.load(&source[1..]), Err(CodeError::Length { .. })));
    assert_eq!(decoder.rank(), 1);
    decoder.load(&source).unwrap();
    assert_eq!(decoder.decode(), Some(&source[..]));
}

#[test]
fn drawing_ends_even_with_a_stuck_generator() {
    let mut out = [0; 3];
    draw(Field::Gf256, &mut Stuck, &mut out);
    assert_eq!(out, [1, 0, 0]);
    draw(Field::Gf2, &mut Stuck, &mut []);
    draw_sparse(Field::Gf2, 0.5, &mut Stuck, &mut []).unwrap();
    for density in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        assert_eq!(draw_sparse(Field::Gf2, density, &mut Stuck, &mut out), Err(CodeError::Density));
    }
}

#[test]
fn seeds_expand_to_fixed_vectors() {
    // Receivers of other versions must expand a seed to the same vector.
    let mut out = [0; 4];
    expand_seed(Field::Gf256, 1, &mut out);
    assert_eq!(out, SEED_ONE);
    expand_seed(Field::Gf16, 1, &mut out);
    assert_eq!(out, SEED_ONE.map(|c| c & 15));
}

/// The first bytes of the ChaCha8 key stream for the key 1, 0, 0, … and a zero nonce (test case 2
/// of J. Strombergson, draft-strombergson-chacha-test-vectors).
const SEED_ONE: [u8; 4] = [0xCF, 0x5E, 0xE9, 0xA0];

proptest! {
    #[test]
    fn wrong_lengths_and_elements_change_nothing(
        field in prop::sample::select(&Field::ALL[..]),
        k in 1usize..9,
        size in 1usize..9,
        coefficients in prop::collection::vec(any::<u8>(), 0..12),
        payload in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        let shape = Shape::new(field, k, size).unwrap();
        let fits = coefficients.len() == k && payload.len() == size;
        let valid = fits && coefficients.iter().all(|&c| field.contains(c));
        let zero = coefficients.iter().all(|&c| c == 0);
        let mut decoder = Decoder::new(shape);
        let mut recoder = Recoder::new(shape);
        let absorbed = decoder.absorb(&coefficients, &payload);
        prop_assert_eq!(absorbed.is_ok(), valid);
        prop_assert_eq!(&absorbed, &recoder.absorb(&coefficients, &payload));
        prop_assert_eq!(decoder.rank(), usize::from(valid && !zero));
        let encoder = Encoder::new(shape);
        prop_assert_eq!(encoder.encode(&coefficients, &mut payload.clone()).is_ok(), valid);
        let whole = coefficients.len() % k == 0 && payload.len() == coefficients.len() / k * size;
        let elements = coefficients.iter().all(|&c| field.contains(c));
        let encoded = encoder.encode_many(&coefficients, &mut payload.clone());
        prop_assert_eq!(encoded.is_ok(), whole && elements);
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mixed = recoder.recode(&mut rng, &mut coefficients.clone(), &mut payload.clone());
        prop_assert_eq!(mixed.is_ok(), fits);
        let mixed = recoder.recode_many(&mut rng, &mut coefficients.clone(), &mut payload.clone());
        prop_assert_eq!(mixed.is_ok(), whole);
        let mut vector = coefficients.clone();
        let mut out = payload.clone();
        prop_assert!(recoder.recode_with(&[1, 1], &mut vector, &mut out).is_err());
    }

    #[test]
    fn packing_is_reversible_and_checked(
        field in prop::sample::select(&Field::ALL[..]),
        bytes in prop::collection::vec(any::<u8>(), 0..256),
        wire in prop::collection::vec(any::<u8>(), 0..40),
        count in 0usize..256,
    ) {
        let coefficients: Vec<u8> = bytes.iter().map(|b| b & field.mask()).collect();
        let mut packed = vec![0; packed_len(field, coefficients.len())];
        pack(field, &coefficients, &mut packed).unwrap();
        let mut back = vec![0; coefficients.len()];
        unpack(field, &packed, &mut back).unwrap();
        prop_assert_eq!(&back, &coefficients);
        prop_assert_eq!(pack(field, &bytes, &mut packed).is_ok(), coefficients == bytes);
        let mut out = vec![0; count];
        if unpack(field, &wire, &mut out).is_ok() {
            let mut again = vec![0; wire.len()];
            pack(field, &out, &mut again).unwrap();
            prop_assert_eq!(again, wire);
        }
    }

    #[test]
    fn draws_are_elements_and_never_all_zero(
        field in prop::sample::select(&Field::ALL[..]),
        k in 1usize..=255,
        density in 0.001f64..=1.0,
        seed in any::<u64>(),
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut drawn = [vec![0; k], vec![0; k], vec![0; k]];
        draw(field, &mut rng, &mut drawn[0]);
        draw_sparse(field, density, &mut rng, &mut drawn[1]).unwrap();
        expand_seed(field, seed, &mut drawn[2]);
        for out in &drawn {
            prop_assert!(out.iter().all(|&c| field.contains(c)));
            prop_assert!(out.iter().any(|&c| c != 0));
        }
    }
}
