//! Round trips over random shapes, fields, losses, duplicates and chains of recoders. The decoded
//! data is the source data, and after every packet the rank is that of an oracle.
// A helper outside the `#[test]` functions fails its test where it unwraps.
#![allow(clippy::unwrap_used)]

mod oracle;

use ncmesh_code::{
    Absorbed, Decoder, Encoder, Field, Recoder, Shape, draw, draw_sparse, expand_seed,
};
use oracle::Span;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

fn field() -> impl Strategy<Value = Field> {
    prop::sample::select(&Field::ALL[..])
}

fn shape() -> impl Strategy<Value = Shape> {
    let generation = prop_oneof![8 => 1usize..40, 1 => 40usize..=255];
    let size = prop_oneof![8 => 1usize..200, 1 => 200usize..1700];
    (field(), generation, size).prop_map(|(field, k, size)| Shape::new(field, k, size).unwrap())
}

fn source(shape: Shape, rng: &mut ChaCha8Rng) -> (Encoder, Vec<u8>) {
    let mut data = vec![0; shape.capacity()];
    rng.fill_bytes(&mut data);
    let mut encoder = Encoder::new(shape);
    encoder.load(&data).unwrap();
    (encoder, data)
}

/// Returns a packet of any kind that a sender may choose: a source symbol, or a sparse, a seeded or
/// a dense combination.
fn packet(encoder: &Encoder, rng: &mut ChaCha8Rng) -> (Vec<u8>, Vec<u8>) {
    let shape = encoder.shape();
    let mut coefficients = vec![0; shape.generation_size()];
    match rng.next_u32() % 8 {
        0..3 => coefficients[rng.next_u32() as usize % shape.generation_size()] = 1,
        3 => draw_sparse(shape.field(), 0.2, rng, &mut coefficients).unwrap(),
        4 => expand_seed(shape.field(), rng.next_u64(), &mut coefficients),
        _ => draw(shape.field(), rng, &mut coefficients),
    }
    let mut payload = vec![0; shape.symbol_size()];
    encoder.encode(&coefficients, &mut payload).unwrap();
    (coefficients, payload)
}

/// Checks that the decoder returns exactly the symbols that the oracle calls determined.
fn check_partial(decoder: &mut Decoder, span: &Span, data: &[u8]) {
    let size = decoder.shape().symbol_size();
    for i in 0..decoder.shape().generation_size() {
        let expected = span.determines(i).then(|| &data[i * size..][..size]);
        assert_eq!(decoder.is_determined(i), expected.is_some());
        assert_eq!(decoder.symbol(i), expected, "symbol {i}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rank_partial_and_full_decoding_match_the_oracle(shape in shape(), seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (encoder, data) = source(shape, &mut rng);
        let mut decoder = Decoder::new(shape);
        let mut recoder = Recoder::new(shape);
        let mut span = Span::new(shape.field());
        let look = 1 + shape.generation_size() / 4;
        for turn in 0.. {
            let (coefficients, payload) = packet(&encoder, &mut rng);
            let grew = span.insert(&coefficients);
            for _ in 0..1 + rng.next_u32() % 2 {
                let absorbed = decoder.absorb(&coefficients, &payload).unwrap();
                let kept = recoder.absorb(&coefficients, &payload).unwrap();
                prop_assert_eq!(absorbed, kept);
                prop_assert_eq!(decoder.rank(), span.rank());
                prop_assert_eq!(recoder.rank(), span.rank());
            }
            prop_assert_eq!(decoder.absorb(&coefficients, &payload).unwrap(), Absorbed::Redundant);
            if grew && turn % look == 0 {
                check_partial(&mut decoder, &span, &data);
            }
            prop_assert_eq!(decoder.is_complete(), span.rank() == shape.generation_size());
            if decoder.is_complete() {
                break;
            }
            prop_assert!(decoder.decode().is_none());
        }
        prop_assert_eq!(decoder.decode(), Some(&data[..]));
        check_partial(&mut decoder, &span, &data);
    }

    #[test]
    fn chains_of_recoders_deliver(shape in shape(), hops in 1usize..4, seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (encoder, data) = source(shape, &mut rng);
        let mut relays = vec![Recoder::new(shape); hops];
        let mut decoder = Decoder::new(shape);
        while !decoder.is_complete() {
            let (mut coefficients, mut payload) = packet(&encoder, &mut rng);
            for relay in &mut relays {
                let lost = rng.next_u32() % 4 == 0;
                if !lost {
                    relay.absorb(&coefficients, &payload).unwrap();
                }
                let sent = relay.recode(&mut rng, &mut coefficients, &mut payload).unwrap();
                prop_assert_eq!(sent, relay.rank() > 0);
                if !sent {
                    coefficients.fill(0);
                    payload.fill(0);
                } else {
                    prop_assert!(coefficients.iter().any(|&c| c != 0));
                }
            }
            decoder.absorb(&coefficients, &payload).unwrap();
            prop_assert!(decoder.rank() <= relays[hops - 1].rank());
        }
        prop_assert_eq!(decoder.decode(), Some(&data[..]));
    }

    #[test]
    fn a_decoder_recodes_like_a_recoder(shape in shape(), n in 0usize..20, seed in any::<u64>()) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (encoder, _) = source(shape, &mut rng);
        let mut decoder = Decoder::new(shape);
        let mut recoder = Recoder::new(shape);
        for _ in 0..1 + rng.next_u32() as usize % shape.generation_size() {
            let (coefficients, payload) = packet(&encoder, &mut rng);
            decoder.absorb(&coefficients, &payload).unwrap();
            recoder.absorb(&coefficients, &payload).unwrap();
        }
        let k = shape.generation_size();
        let size = shape.symbol_size();
        let mut mixed = [(vec![0; n * k], vec![0; n * size]), (vec![0; n * k], vec![0; n * size])];
        let [(a, b), (c, d)] = &mut mixed;
        prop_assert!(decoder.recode_many(&mut rng.clone(), a, b).unwrap());
        prop_assert!(recoder.recode_many(&mut rng.clone(), c, d).unwrap());
        prop_assert_eq!(&mixed[0], &mixed[1]);
        for (coefficients, payload) in mixed[0].0.chunks(k).zip(mixed[0].1.chunks(size)) {
            let mut expected = vec![0; size];
            encoder.encode(coefficients, &mut expected).unwrap();
            prop_assert_eq!(payload, &expected[..]);
        }
    }

    #[test]
    fn many_at_once_are_the_same_packets(
        shape in shape(),
        n in 0usize..11,
        seed in any::<u64>(),
    ) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (encoder, _) = source(shape, &mut rng);
        let k = shape.generation_size();
        let size = shape.symbol_size();
        let mut coefficients = vec![0; n * k];
        coefficients.chunks_mut(k).for_each(|row| draw(shape.field(), &mut rng, row));
        let mut payloads = vec![0; n * size];
        encoder.encode_many(&coefficients, &mut payloads).unwrap();
        for i in 0..n {
            let mut one = vec![0; size];
            encoder.encode(&coefficients[i * k..][..k], &mut one).unwrap();
            prop_assert_eq!(&payloads[i * size..][..size], &one[..]);
        }
    }
}

#[test]
fn explicit_weights_mix_in_order_of_arrival() {
    let shape = Shape::new(Field::Gf256, 3, 2).unwrap();
    let mut recoder = Recoder::new(shape);
    recoder.absorb(&[0, 1, 0], &[10, 11]).unwrap();
    recoder.absorb(&[1, 0, 0], &[20, 21]).unwrap();
    let mut coefficients = [9; 3];
    let mut payload = [9; 2];
    recoder.recode_with(&[1, 2], &mut coefficients, &mut payload).unwrap();
    assert_eq!(coefficients, [2, 1, 0]);
    assert_eq!(payload, [10 ^ 40, 11 ^ 42]);
}

#[test]
fn a_cleared_coder_takes_the_next_generation() {
    let shape = Shape::new(Field::Gf16, 5, 9).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut decoder = Decoder::new(shape);
    let mut recoder = Recoder::new(shape);
    for _ in 0..3 {
        let (encoder, data) = source(shape, &mut rng);
        while !decoder.is_complete() {
            let (coefficients, payload) = packet(&encoder, &mut rng);
            decoder.absorb(&coefficients, &payload).unwrap();
            recoder.absorb(&coefficients, &payload).unwrap();
        }
        assert_eq!(decoder.decode(), Some(&data[..]));
        decoder.clear();
        recoder.clear();
        assert_eq!((decoder.rank(), recoder.rank()), (0, 0));
        assert_eq!(decoder.symbol(0), None);
    }
}
