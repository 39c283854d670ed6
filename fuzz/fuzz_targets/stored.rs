//! Arbitrary bytes in the files of a daemon's state: nothing panics, and what is parsed equals what
//! was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ncmesh_engine::file::{Geometry, Manifest};
use ncmesh_node::state::{self, Delivery, OutgoingFile};
use ncmesh_node::store::journal;
use ncmesh_wire::{FlowId, NodeId};
use std::collections::BTreeMap;

fuzz_target!(|data: &[u8]| {
    let [what, bytes @ ..] = data else { return };
    match what % 5 {
        0 => outgoing(bytes),
        1 => delivered(bytes),
        2 => damaged_journal(bytes),
        3 => journal_with_garbage(bytes),
        _ => epochs(bytes),
    }
});

fn manifest() -> Manifest {
    let flow = FlowId { source: NodeId(1), serial: 5 };
    let geometry = Geometry::new(100_000, 8, 100).expect("it can be cut so");
    Manifest { flow, name: "f".into(), geometry, root: [1; 32], hash: [2; 32] }
}

fn outgoing(bytes: &[u8]) {
    if let Ok(file) = OutgoingFile::from_json(bytes) {
        let written = file.to_json().expect("it was text");
        assert_eq!(OutgoingFile::from_json(&written), Ok(file));
    }
}

fn delivered(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Some((flow, delivery)) = Delivery::from_line(line) {
            let written = delivery.to_line(flow).expect("it was text");
            assert_eq!(Delivery::from_line(&written), Some((flow, delivery)));
        }
    }
}

fn epochs(bytes: &[u8]) {
    assert_ne!(state::parse_epoch(bytes), Some(u64::MAX));
    assert!(state::parse_inboxes(bytes).len() <= bytes.len());
}

/// Tests a valid journal with one byte changed, or truncated there.
fn damaged_journal(bytes: &[u8]) {
    let [cut, high, low, flip, ..] = bytes else { return };
    let manifest = manifest();
    let mut journal = journal::head(&manifest).expect("it is text");
    let head = journal.len();
    for generation in 0..4 {
        journal.extend(journal::record(generation, &[generation as u8; 32]));
    }
    let at = usize::from(u16::from_be_bytes([*high, *low])) % journal.len();
    if cut % 2 == 0 {
        journal.truncate(at);
    } else {
        journal[at] ^= *flip;
    }
    let claims = journal::read(journal.as_slice(), &manifest).expect("memory can be read");
    let is_changed = cut % 2 == 0 || *flip != 0;
    assert!(at >= head || !is_changed || claims.is_none());
    if let Some(claims) = claims {
        assert!(claims.length <= journal.len() as u64);
        assert!(claims.generations.iter().all(|(generation, hash)| *hash == [*generation as u8; 32]));
    }
}

/// Tests valid records of existing and missing generations, mixed with arbitrary bytes.
fn journal_with_garbage(mut bytes: &[u8]) {
    let manifest = manifest();
    let mut journal = journal::head(&manifest).expect("it is text");
    let mut whole = true;
    let mut expected = BTreeMap::new();
    while let [kind, number, rest @ ..] = bytes {
        if kind % 4 > 0 {
            let generation = u32::from(*number) << (kind % 25);
            journal.extend(journal::record(generation, &[*kind; 32]));
            if whole && generation < manifest.geometry.generations() {
                expected.insert(generation, [*kind; 32]);
            }
            bytes = rest;
        } else {
            let (garbage, behind) = rest.split_at(usize::from(*number).min(rest.len()));
            journal.extend_from_slice(garbage);
            whole &= garbage.is_empty();
            bytes = behind;
        }
    }
    let claims = journal::read(journal.as_slice(), &manifest).expect("memory can be read");
    assert_eq!(claims.expect("its head is whole").generations, expected);
}
