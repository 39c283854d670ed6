//! Any datagram between the ether and its radios: what is read is written back byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_node::etherd::datagram::parse;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // Right up to the kind, which chance seldom is.
    check(&[b"NE\x01", bytes].concat());
});

fn check(bytes: &[u8]) {
    if let Ok(datagram) = parse(bytes) {
        let mut again = Vec::new();
        datagram.write(&mut again);
        assert_eq!(again, bytes);
    }
}
