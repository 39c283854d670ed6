//! A generation over a lossy hop, a relay that recodes, and another lossy hop.
//!
//! `cargo run -p ncmesh-code --example codec`

use ncmesh_code::{CodeError, Decoder, Encoder, Field, Recoder, Shape, draw};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

const LOSS_PERCENT: u32 = 30;

fn main() -> Result<(), CodeError> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    // 32 symbols of 1,200 bytes; a packet carries 32 coefficients beside its payload.
    let shape = Shape::new(Field::Gf256, 32, 1200)?;
    let data: Vec<u8> = (0..shape.capacity()).map(|i| (i % 251) as u8).collect();

    let mut encoder = Encoder::new(shape);
    encoder.load(&data)?;
    let mut relay = Recoder::new(shape);
    let mut decoder = Decoder::new(shape);

    let mut coefficients = [0; 32];
    let mut payload = [0; 1200];
    let mut sent = 0;
    while !decoder.is_complete() {
        sent += 1;
        draw(shape.field(), &mut rng, &mut coefficients);
        encoder.encode(&coefficients, &mut payload)?;
        if rng.next_u32() % 100 >= LOSS_PERCENT {
            relay.absorb(&coefficients, &payload)?;
        }
        // The relay need not decode: it sends a fresh combination of what it has.
        let recoded = relay.recode(&mut rng, &mut coefficients, &mut payload)?;
        if recoded && rng.next_u32() % 100 >= LOSS_PERCENT {
            decoder.absorb(&coefficients, &payload)?;
        }
    }
    assert_eq!(decoder.decode(), Some(&data[..]));
    println!("32 symbols through two hops that lose {LOSS_PERCENT} %: {sent} packets");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
