//! Arbitrary datagrams against the outer frame and its seal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_wire::{Cipher, Key, Opener};

fuzz_target!(|datagram: &[u8]| {
    let mut scratch = Vec::new();
    assert!(Opener::new(Cipher::new(&Key::new([1; 32]))).open(datagram, &mut scratch).is_err());
    let _ = Opener::new(Cipher::Null).open(datagram, &mut scratch);
});
