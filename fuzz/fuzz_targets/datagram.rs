//! Arbitrary datagrams between the channel emulator and its radios: a parsed one is written back
//! byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_node::etherd::datagram::parse;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // Valid up to the kind, which random bytes seldom are.
    check(&[b"NE\x01", bytes].concat());
});

fn check(bytes: &[u8]) {
    if let Ok(datagram) = parse(bytes) {
        let mut again = Vec::new();
        datagram.write(&mut again);
        assert_eq!(again, bytes);
    }
}
