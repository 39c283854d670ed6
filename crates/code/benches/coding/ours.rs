//! The benchmarks of ncmesh-code itself, and the packets that all benchmarks decode.

use crate::{Group, lost, making};
use criterion::Bencher;
use ncmesh_code::{Decoder, Encoder, Recoder, Shape, draw};
use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

/// Packets of one generation, with coefficients and payloads in separate tables.
pub struct Packets {
    pub shape: Shape,
    pub data: Vec<u8>,
    pub coefficients: Vec<u8>,
    pub payloads: Vec<u8>,
}

impl Packets {
    /// Makes `k` dense packets of full rank.
    pub fn dense(shape: Shape) -> Self {
        Self::after(shape, 0)
    }

    /// Makes the packets that arrive of a systematic generation with losses, followed by as many
    /// dense packets as are missing.
    pub fn with_losses(shape: Shape) -> Self {
        Self::after(shape, shape.generation_size() - lost(shape.generation_size()))
    }

    /// Makes `systematic` source symbols, spread evenly, then dense packets. Tries seeds until the
    /// packets have full rank.
    fn after(shape: Shape, systematic: usize) -> Self {
        let (encoder, data) = source(shape);
        let k = shape.generation_size();
        (0..)
            .map(|seed| {
                let mut rng = SmallRng::seed_from_u64(seed);
                let mut coefficients = vec![0; k * k];
                for (i, row) in coefficients.chunks_mut(k).enumerate() {
                    if i < systematic {
                        row[i * k / systematic] = 1;
                    } else {
                        draw(shape.field(), &mut rng, row);
                    }
                }
                let mut payloads = vec![0; shape.capacity()];
                encoder.encode_many(&coefficients, &mut payloads).unwrap();
                Self { shape, data: data.clone(), coefficients, payloads }
            })
            .find(|packets| packets.feed(&mut Decoder::new(shape)))
            .unwrap()
    }

    /// Feeds all packets to `decoder`. Returns whether they complete the generation.
    fn feed(&self, decoder: &mut Decoder) -> bool {
        let coefficients = self.coefficients.chunks_exact(self.shape.generation_size());
        for (row, payload) in coefficients.zip(self.payloads.chunks_exact(self.shape.symbol_size()))
        {
            decoder.absorb(row, payload).unwrap();
        }
        decoder.is_complete()
    }

    /// Returns the packets in the layout of `rlnc`: coefficients, then payload.
    pub fn joined(&self) -> Vec<u8> {
        let coefficients = self.coefficients.chunks_exact(self.shape.generation_size());
        let rows = coefficients.zip(self.payloads.chunks_exact(self.shape.symbol_size()));
        rows.flat_map(|(row, payload)| [row, payload].concat()).collect()
    }
}

/// Returns a loaded encoder and its data. The last byte is the marker that `rlnc` appends to its
/// data, so that both code the same bytes.
pub fn source(shape: Shape) -> (Encoder, Vec<u8>) {
    let mut data = vec![0; shape.capacity()];
    SmallRng::seed_from_u64(9).fill_bytes(&mut data);
    data[shape.capacity() - 1] = 0x81;
    let mut encoder = Encoder::new(shape);
    encoder.load(&data).unwrap();
    (encoder, data)
}

pub fn bench(group: &mut Group<'_>, shape: Shape) {
    let size = shape.symbol_size();
    making(group, size);
    group.bench_function("encode-1/ncmesh", |b| encode(b, shape, 1));
    group.bench_function("recode-1/ncmesh", |b| recode(b, shape, 1));
    for n in [4, 16] {
        making(group, n * size);
        group.bench_function(format!("encode-{n}/ncmesh"), |b| encode(b, shape, n));
        group.bench_function(format!("encode-{n}/ncmesh, given coefficients"), |b| {
            encode_given(b, shape, n);
        });
        group.bench_function(format!("recode-{n}/ncmesh"), |b| recode(b, shape, n));
    }
    making(group, size);
    for rank in [5, 12] {
        group.bench_function(format!("recode-1/ncmesh, of {rank} packets"), |b| {
            recode_of(b, shape, rank, 1);
        });
    }
    group.bench_function("check-dependent/ncmesh", |b| check_dependent(b, shape));
    making(group, shape.capacity());
    group.bench_function("check-innovative/ncmesh, a generation", |b| check_innovative(b, shape));
    group.bench_function("decode-dense/ncmesh", |b| decode(b, &Packets::dense(shape)));
    group.bench_function("decode-systematic/ncmesh", |b| {
        decode(b, &Packets::with_losses(shape));
    });
}

/// Draws coefficients and encodes packets, as `rlnc` does in one call.
fn encode(b: &mut Bencher<'_>, shape: Shape, n: usize) {
    let (encoder, _) = source(shape);
    let mut rng = SmallRng::seed_from_u64(1);
    let (mut coefficients, mut payloads) = buffers(shape, n);
    b.iter(|| {
        coefficients
            .chunks_exact_mut(shape.generation_size())
            .for_each(|row| draw(shape.field(), &mut rng, row));
        encoder.encode_many(&coefficients, &mut payloads).unwrap();
    });
}

/// Encodes with given coefficients: the product alone, to compare with the ceiling.
fn encode_given(b: &mut Bencher<'_>, shape: Shape, n: usize) {
    let (encoder, _) = source(shape);
    let (mut coefficients, mut payloads) = buffers(shape, n);
    SmallRng::seed_from_u64(1).fill_bytes(&mut coefficients);
    b.iter(|| encoder.encode_many(&coefficients, &mut payloads).unwrap());
}

/// Recodes a whole generation, as `rlnc` does.
fn recode(b: &mut Bencher<'_>, shape: Shape, n: usize) {
    recode_of(b, shape, shape.generation_size(), n);
}

/// Recodes `rank` packets.
fn recode_of(b: &mut Bencher<'_>, shape: Shape, rank: usize, n: usize) {
    let mut recoder = Recoder::new(shape);
    absorb_first(&mut recoder, &Packets::dense(shape), rank);
    let mut rng = SmallRng::seed_from_u64(1);
    let (mut coefficients, mut payloads) = buffers(shape, n);
    if n == 1 {
        b.iter(|| recoder.recode(&mut rng, &mut coefficients, &mut payloads).unwrap());
    } else {
        b.iter(|| recoder.recode_many(&mut rng, &mut coefficients, &mut payloads).unwrap());
    }
}

/// Feeds the first `count` packets to `recoder`.
fn absorb_first(recoder: &mut Recoder, packets: &Packets, count: usize) {
    let rows = packets.coefficients.chunks_exact(packets.shape.generation_size());
    let payloads = packets.payloads.chunks_exact(packets.shape.symbol_size());
    for (row, payload) in rows.zip(payloads).take(count) {
        assert!(recoder.absorb(row, payload).unwrap().is_innovative());
    }
}

/// Rejects a redundant packet at a relay that lacks one dimension.
fn check_dependent(b: &mut Bencher<'_>, shape: Shape) {
    let mut recoder = Recoder::new(shape);
    absorb_first(&mut recoder, &Packets::dense(shape), shape.generation_size() - 1);
    let (mut coefficients, mut payload) = buffers(shape, 1);
    let mut rng = SmallRng::seed_from_u64(1);
    recoder.recode(&mut rng, &mut coefficients, &mut payload).unwrap();
    b.iter(|| assert!(!recoder.absorb(&coefficients, &payload).unwrap().is_innovative()));
}

/// Receives a whole generation of innovative packets at a relay.
fn check_innovative(b: &mut Bencher<'_>, shape: Shape) {
    let packets = Packets::dense(shape);
    let mut recoder = Recoder::new(shape);
    b.iter(|| {
        recoder.clear();
        absorb_first(&mut recoder, &packets, shape.generation_size());
    });
}

/// Decodes a whole generation, from the first packet to the source data.
fn decode(b: &mut Bencher<'_>, packets: &Packets) {
    let mut decoder = Decoder::new(packets.shape);
    packets.feed(&mut decoder);
    assert_eq!(decoder.decode(), Some(&packets.data[..]));
    b.iter(|| {
        decoder.clear();
        packets.feed(&mut decoder);
        decoder.decode().map(|data| data[0])
    });
}

fn buffers(shape: Shape, n: usize) -> (Vec<u8>, Vec<u8>) {
    (vec![0; n * shape.generation_size()], vec![0; n * shape.symbol_size()])
}
