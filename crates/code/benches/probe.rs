//! Cost of checking packets beside that of decoding them: generations of 32 packets of 1,300 bytes.
#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use ncmesh_code::{Decoder, Encoder, Field, Probe, Shape, draw};
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

const K: usize = 32;
const SIZE: usize = 1300;
const COLUMNS: usize = 8;

fn bench(criterion: &mut Criterion) {
    let mut rng = SmallRng::seed_from_u64(1);
    let shape = Shape::new(Field::Gf256, K, SIZE).unwrap();
    let mut source = vec![0; shape.capacity()];
    rng.fill_bytes(&mut source);
    let mut encoder = Encoder::new(shape);
    encoder.load(&source).unwrap();

    // Enough packets to decode with: a few random vectors are dependent.
    let packets: Vec<(Vec<u8>, Vec<u8>)> = (0..K + 4)
        .map(|_| {
            let mut vector = vec![0; K];
            let mut payload = vec![0; SIZE];
            draw(Field::Gf256, &mut rng, &mut vector);
            encoder.encode(&vector, &mut payload).unwrap();
            (vector, payload)
        })
        .collect();
    let mut matrix = vec![0; SIZE * COLUMNS];
    rng.fill_bytes(&mut matrix);
    let probe = Probe::new(shape, COLUMNS, matrix).unwrap();
    let sums = probe.sums(&source).unwrap();

    let mut group = criterion.benchmark_group("probe");
    group.bench_function("check a packet", |b| {
        let (vector, payload) = &packets[0];
        b.iter(|| probe.agrees(&sums, vector, payload).unwrap());
    });
    group.bench_function("sums of a generation", |b| b.iter(|| probe.sums(&source).unwrap()));
    group.bench_function("decode a generation", |b| {
        let mut decoder = Decoder::new(shape);
        b.iter(|| {
            decoder.clear();
            for (vector, payload) in &packets {
                decoder.absorb(vector, payload).unwrap();
            }
            decoder.decode().unwrap().len()
        });
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
