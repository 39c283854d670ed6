//! Arbitrary datagrams against the outer frame and its seal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_wire::{Cipher, Key};

fuzz_target!(|datagram: &[u8]| {
    let mut scratch = Vec::new();
    assert!(Cipher::new(&Key::new([1; 32])).open(datagram, &mut scratch).is_err());
    let _ = Cipher::Null.open(datagram, &mut scratch);
});
