//! Cost of sealing and opening a frame, beside RustCrypto's XChaCha20-Poly1305 on its own, and of
//! signing a link state and checking that, and of tags of tunnelled packets:
//! `cargo bench -p ncmesh-wire --bench seal`.

#![allow(clippy::unwrap_used, missing_docs)]

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ncmesh_wire::identity::{Purpose, SecretKey};
use ncmesh_wire::{Cipher, Key, NodeId, Salt, Sealer, ServiceId, Versions, frame};
use std::hint::black_box;

const KEY: [u8; 32] = [7; 32];
const HEAD: [u8; frame::HEADER_LEN] = [1; frame::HEADER_LEN];

fn seal(c: &mut Criterion) {
    let mut group = c.benchmark_group("seal");
    for len in [64, 1500] {
        let body = vec![3; len];
        let cipher = Cipher::new(&Key::new(KEY));
        let mut sealer = Sealer::new(cipher.clone(), NodeId(1), Salt([9; 16]));
        let mut frame = Vec::new();
        let mut sealed = || {
            Sealer::begin(&mut frame, ServiceId(16), 1);
            frame.extend_from_slice(&body);
            sealer.seal(&mut frame, Versions::OWN.newest);
            frame.clone()
        };
        group.bench_function(BenchmarkId::new("seal", len), |b| b.iter(&mut sealed));
        let frame = sealed();
        let mut scratch = Vec::new();
        group.bench_function(BenchmarkId::new("open", len), |b| {
            b.iter(|| black_box(cipher.open(&frame, &mut scratch).unwrap().kind));
        });

        let peer = XChaCha20Poly1305::new(&KEY.into());
        let mut buffer = body.clone();
        group.bench_function(BenchmarkId::new("seal/rustcrypto", len), |b| {
            b.iter(|| peer.encrypt_inout_detached(&[9; 24].into(), &HEAD, (&mut *buffer).into()));
        });
    }
    group.finish();
}

fn sign(c: &mut Criterion) {
    let mut group = c.benchmark_group("sign");
    let key = SecretKey::new(&KEY.into());
    let public = key.public();
    // A state of 40 links.
    let state = [3; 140];
    let signature = key.sign(Purpose::LinkState, &state);
    group.bench_function("sign", |b| b.iter(|| key.sign(Purpose::LinkState, black_box(&state))));
    group.bench_function("check", |b| {
        b.iter(|| public.has_signed(Purpose::LinkState, black_box(&state), &signature));
    });
    group.finish();
}

/// Tags of tunnelled packets, and the key that they take.
fn tag(c: &mut Criterion) {
    let mut group = c.benchmark_group("tag");
    let own = SecretKey::new(&KEY.into());
    let other = SecretKey::new(&[8; 32].into()).public();
    group.bench_function("key", |b| b.iter(|| own.pair_key(black_box(&other))));
    let pair = own.pair_key(&other).unwrap();
    for len in [64, 1400] {
        let packet = vec![3; len];
        group.bench_function(BenchmarkId::new("tag", len), |b| {
            b.iter(|| pair.tag(NodeId(1), NodeId(2), black_box(&packet)));
        });
    }
    group.finish();
}

criterion_group!(benches, seal, sign, tag);
criterion_main!(benches);
