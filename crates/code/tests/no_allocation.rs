//! The coders do not allocate after `new`: a counting allocator watches whole generations.
// `GlobalAlloc` is an unsafe trait, and there is no other way to count.
#![allow(unsafe_code)]
// A helper outside the `#[test]` functions fails its test where it unwraps.
#![allow(clippy::unwrap_used)]

use ncmesh_code::{Decoder, Encoder, Field, Recoder, Shape, draw, draw_sparse, expand_seed};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: passes every call on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System.alloc` with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Sends one generation through all three coders.
fn run_generation(
    encoder: &mut Encoder,
    recoder: &mut Recoder,
    decoder: &mut Decoder,
    rng: &mut ChaCha8Rng,
) {
    let shape = encoder.shape();
    let k = shape.generation_size();
    let size = shape.symbol_size();
    let mut coefficients = [0; 4 * 12];
    let mut payloads = [0; 4 * 100];
    let coefficients = &mut coefficients[..4 * k];
    let payloads = &mut payloads[..4 * size];
    encoder.load(&[7; 500]).unwrap();
    while !decoder.is_complete() {
        coefficients.chunks_mut(k).for_each(|row| draw(shape.field(), rng, row));
        draw_sparse(shape.field(), 0.3, rng, &mut coefficients[..k]).unwrap();
        expand_seed(shape.field(), 5, &mut coefficients[k..2 * k]);
        encoder.encode_many(coefficients, payloads).unwrap();
        recoder.absorb(&coefficients[..k], &payloads[..size]).unwrap();
        recoder.recode_many(rng, coefficients, payloads).unwrap();
        recoder.recode(rng, &mut coefficients[..k], &mut payloads[..size]).unwrap();
        decoder.absorb(&coefficients[..k], &payloads[..size]).unwrap();
        decoder.recode(rng, &mut coefficients[..k], &mut payloads[..size]).unwrap();
        decoder.symbol(0);
    }
    assert!(decoder.decode().is_some());
    decoder.clear();
    recoder.clear();
}

#[test]
fn nothing_allocates_once_set_up() {
    for field in Field::ALL {
        let shape = Shape::new(field, 12, 100).unwrap();
        let mut encoder = Encoder::new(shape);
        let mut recoder = Recoder::new(shape);
        let mut decoder = Decoder::new(shape);
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let before = ALLOCATIONS.with(Cell::get);
        for _ in 0..3 {
            run_generation(&mut encoder, &mut recoder, &mut decoder, &mut rng);
        }
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "{field:?}");
    }
}
