//! A node without the key can neither read nor inject frames, and no node can replay them.

use ncmesh_wire::{Cipher, Key, NodeId, OpenError, Opener, Sealer, ServiceId, frame};
use proptest::prelude::*;

fn key(byte: u8) -> Key {
    Key::new([byte; 32])
}

fn sealed(sealer: &mut Sealer, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Sealer::begin(&mut out, ServiceId(16), 3);
    out.extend_from_slice(body);
    sealer.seal(&mut out);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The test vector of docs/reference/wire-format.md.
#[test]
fn golden_frame() {
    let mut sealer = Sealer::new(Cipher::new(&key(7)), NodeId(258), 0x0102_0304_0506_0708);
    let frame = sealed(&mut sealer, b"ncmesh");
    assert_eq!(
        hex(&frame),
        "c10102010203040506070800000001ccfe1d6892cf14753c203cb8d09224c87878396329c6abcb",
    );
}

#[test]
fn a_frame_opens_once_and_only_with_the_key() {
    let mut sealer = Sealer::new(Cipher::new(&key(1)), NodeId(5), 10);
    let frame = sealed(&mut sealer, b"hello");
    assert_eq!(frame.len(), 5 + frame::OVERHEAD);
    assert!(!frame.windows(5).any(|w| w == b"hello"));
    let mut scratch = Vec::new();
    let mut stranger = Opener::new(Cipher::new(&key(2)));
    assert_eq!(stranger.open(&frame, &mut scratch).unwrap_err(), OpenError::Unauthentic);
    let mut opener = Opener::new(Cipher::new(&key(1)));
    let opened = opener.open(&frame, &mut scratch).unwrap();
    assert_eq!((opened.header.sender, opened.service, opened.kind), (NodeId(5), ServiceId(16), 3));
    assert_eq!(opened.body, b"hello");
    assert_eq!(opener.open(&frame, &mut scratch).unwrap_err(), OpenError::Replayed);
}

#[test]
fn a_cipher_alone_opens_a_frame_as_often_as_asked() {
    let mut sealer = Sealer::new(Cipher::new(&key(1)), NodeId(5), 10);
    let mut frame = sealed(&mut sealer, b"hello");
    let mut scratch = Vec::new();
    for _ in 0..2 {
        assert_eq!(Cipher::new(&key(1)).open(&frame, &mut scratch).unwrap().body, b"hello");
    }
    frame[20] ^= 1;
    let refused = Cipher::new(&key(1)).open(&frame, &mut scratch).unwrap_err();
    assert_eq!(refused, OpenError::Unauthentic);
    assert_eq!(
        Cipher::new(&key(1)).open(&frame[..20], &mut scratch).unwrap_err(),
        OpenError::Foreign
    );
}

#[test]
fn frames_of_an_earlier_start_are_refused_even_after_our_own_restart() {
    let old = sealed(&mut Sealer::new(Cipher::new(&key(1)), NodeId(5), 10), b"old");
    let new = sealed(&mut Sealer::new(Cipher::new(&key(1)), NodeId(5), 11), b"new");
    let mut scratch = Vec::new();
    let mut opener = Opener::new(Cipher::new(&key(1)));
    opener.open(&new, &mut scratch).unwrap();
    assert_eq!(opener.open(&old, &mut scratch).unwrap_err(), OpenError::Replayed);
    let remembered: Vec<_> = opener.epochs().collect();
    let mut restarted = Opener::new(Cipher::new(&key(1)));
    for (node, epoch) in remembered {
        restarted.remember(node, epoch);
    }
    assert_eq!(restarted.open(&old, &mut scratch).unwrap_err(), OpenError::Replayed);
}

#[test]
fn foreign_versions_are_told_apart_from_noise() {
    let mut frame = sealed(&mut Sealer::new(Cipher::new(&key(1)), NodeId(5), 10), b"x");
    let mut opener = Opener::new(Cipher::new(&key(1)));
    let mut scratch = Vec::new();
    frame[0] = 0xC2;
    assert_eq!(opener.open(&frame, &mut scratch).unwrap_err(), OpenError::Version);
    frame[0] = 0x45;
    assert_eq!(opener.open(&frame, &mut scratch).unwrap_err(), OpenError::Foreign);
    assert_eq!(opener.open(&[], &mut scratch).unwrap_err(), OpenError::Foreign);
    assert_eq!(opener.open(&[0xC1; 20], &mut scratch).unwrap_err(), OpenError::Foreign);
}

#[test]
fn keys_are_read_strictly_and_never_shown() {
    let text = key(0xAB).to_hex();
    assert_eq!(text.parse::<Key>().unwrap(), key(0xAB));
    assert_eq!(format!("{:?}", key(0xAB)), "Key(..)");
    for bad in ["", "ab", &text[1..], &format!("{}zz", &text[2..])] {
        assert!(bad.parse::<Key>().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_changed_bit_passes(at in 0usize..60, bit in 0u8..8) {
        let mut frame = sealed(&mut Sealer::new(Cipher::new(&key(1)), NodeId(5), 10), &[9; 40]);
        let at = at % frame.len();
        frame[at] ^= 1 << bit;
        let mut opener = Opener::new(Cipher::new(&key(1)));
        prop_assert!(opener.open(&frame, &mut Vec::new()).is_err());
    }

    #[test]
    fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut opener = Opener::new(Cipher::new(&key(1)));
        prop_assert!(opener.open(&bytes, &mut Vec::new()).is_err());
        let _ = Opener::new(Cipher::Null).open(&bytes, &mut Vec::new());
    }
}
