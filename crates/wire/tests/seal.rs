//! A node without the key can neither read nor inject frames, and no nonce repeats.

use ncmesh_wire::{
    Cipher, Key, KeyError, NodeId, OpenError, Salt, Sealer, ServiceId, Versions, frame,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const SALT: Salt = Salt(*b"sixteen bytes ok");

fn key(byte: u8) -> Key {
    Key::new([byte; 32])
}

fn sealer() -> Sealer {
    Sealer::new(Cipher::new(&key(1)), NodeId(5), SALT)
}

fn sealed(sealer: &mut Sealer, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Sealer::begin(&mut out, ServiceId(16), 3);
    out.extend_from_slice(body);
    sealer.seal(&mut out, Versions::OWN.newest);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The test vectors of docs/reference/wire-format.md.
#[test]
fn golden_frame() {
    let salt = Salt(core::array::from_fn(|i| i as u8));
    let cipher = Cipher::new(&key(7));
    let frame = sealed(&mut Sealer::new(cipher.clone(), NodeId(258), salt), b"ncmesh");
    assert_eq!(
        hex(&frame),
        "c20102000102030405060708090a0b0c0d0e0f0000000104c8b749a400c7d3e5566e4d048671f81c793f48eb8cec4a",
    );
    let next = cipher.next_salt(NodeId(258), salt).to_string();
    assert_eq!(next, "ac8f5de078e62836cb5edea47d7ca1ac");
}

#[test]
fn a_frame_opens_only_with_the_key() {
    let frame = sealed(&mut sealer(), b"hello");
    assert_eq!(frame.len(), 5 + frame::OVERHEAD);
    assert!(!frame.windows(5).any(|w| w == b"hello"));
    let mut scratch = Vec::new();
    let stranger = Cipher::new(&key(2)).open(&frame, &mut scratch).unwrap_err();
    assert_eq!(stranger, OpenError::Unauthentic);
    let opened = Cipher::new(&key(1)).open(&frame, &mut scratch).unwrap();
    assert_eq!((opened.header.sender, opened.service, opened.kind), (NodeId(5), ServiceId(16), 3));
    assert_eq!((opened.header.salt, opened.header.counter), (SALT, 1));
    assert_eq!(opened.body, b"hello");
    let short = Cipher::new(&key(1)).open(&frame[..20], &mut scratch).unwrap_err();
    assert_eq!(short, OpenError::Foreign);
}

/// The key stream is the exclusive or of a sealed body of zeros: two frames that share it show the
/// exclusive or of what they say.
#[test]
fn no_two_frames_share_a_key_stream() {
    let mut streams = BTreeSet::new();
    for (node, salt) in [(5, SALT), (6, SALT), (5, Salt([7; 16]))] {
        let mut sealer = Sealer::new(Cipher::new(&key(1)), NodeId(node), salt);
        for _ in 0..3 {
            let frame = sealed(&mut sealer, &[0; 32]);
            let body = &frame[frame::HEADER_LEN + 2..frame.len() - frame::TAG_LEN];
            assert!(streams.insert(body.to_vec()));
        }
    }
}

/// A counter that wrapped would repeat nonces.
#[test]
fn after_the_last_counter_a_start_is_renewed() {
    for cipher in [Cipher::new(&key(1)), Cipher::Null] {
        let mut sealer = Sealer::resume(cipher.clone(), NodeId(5), SALT, u32::MAX - 1);
        let mut scratch = Vec::new();
        let mut header = || {
            let frame = sealed(&mut sealer, b"x");
            cipher.open(&frame, &mut scratch).unwrap().header
        };
        let last = header();
        let first = header();
        let second = header();
        assert_eq!((last.salt, last.counter), (SALT, u32::MAX));
        let next = cipher.next_salt(NodeId(5), SALT);
        assert_ne!(next, SALT);
        assert_eq!((first.salt, first.counter), (next, 1));
        assert_eq!((second.salt, second.counter), (next, 2));
    }
}

#[test]
fn foreign_versions_are_told_apart_from_noise() {
    let mut frame = sealed(&mut sealer(), b"x");
    let cipher = Cipher::new(&key(1));
    let mut scratch = Vec::new();
    for version in [1, 3] {
        frame[0] = 0xC0 | version;
        let other = OpenError::Version { version, sender: Some(NodeId(5)) };
        assert_eq!(cipher.open(&frame, &mut scratch).unwrap_err(), other);
        let short = OpenError::Version { version, sender: None };
        assert_eq!(cipher.open(&frame[..2], &mut scratch).unwrap_err(), short);
    }
    frame[0] = 0x45;
    assert_eq!(cipher.open(&frame, &mut scratch).unwrap_err(), OpenError::Foreign);
    assert_eq!(cipher.open(&[], &mut scratch).unwrap_err(), OpenError::Foreign);
    assert_eq!(cipher.open(&[0xC2; 20], &mut scratch).unwrap_err(), OpenError::Foreign);
}

#[test]
fn keys_are_read_strictly_and_never_shown() {
    let text = key(0xAB).to_hex();
    assert_eq!(text.parse::<Key>().unwrap(), key(0xAB));
    assert_eq!(format!("{:?}", key(0xAB)), "Key(..)");
    for bad in ["", "ab", &text[1..], &format!("{}zz", &text[2..])] {
        assert_eq!(bad.parse::<Key>(), Err(KeyError::Form), "{bad}");
    }
}

#[test]
fn a_placeholder_is_not_a_key() {
    for digit in ["0", "f", "F", "1"] {
        let refused = digit.repeat(64).parse::<Key>();
        assert_eq!(refused, Err(KeyError::Placeholder), "{digit}");
    }
}

proptest! {
    #[test]
    fn no_changed_bit_passes(at in 0usize..80, bit in 0u8..8) {
        let mut frame = sealed(&mut sealer(), &[9; 40]);
        let at = at % frame.len();
        frame[at] ^= 1 << bit;
        prop_assert!(Cipher::new(&key(1)).open(&frame, &mut Vec::new()).is_err());
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Cipher::new(&key(1)).open(&bytes, &mut Vec::new()).is_err());
        let _ = Cipher::Null.open(&bytes, &mut Vec::new());
    }
}
