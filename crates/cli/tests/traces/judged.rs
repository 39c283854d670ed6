//! The dissector accepts and rejects the same frames as a node.

use crate::forged::{below, config, forge, hex, open_frame};
use crate::support::Tshark;
use ncmesh_engine::file::Geometry;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::rng;
use ncmesh_engine::time::Duration;
use ncmesh_engines::registry;
use ncmesh_sim::{Event, Observer, Simulation, What};
use ncmesh_stack::summary::{services, summarise};
use ncmesh_wire::{Cipher, NodeId, OpenError, ServiceId, frame};
use rand_core::RngCore;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

/// Returns frames of a real run, by service and kind.
#[derive(Default)]
struct Collected(BTreeMap<(&'static str, &'static str), Vec<Vec<u8>>>);

impl Observer for Collected {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        if let What::Sent { frame, .. } = event.what {
            let mut scratch = Vec::new();
            let opened = Cipher::Null.open(frame, &mut scratch).unwrap();
            let summary = summarise(
                registry(),
                opened.header.sender,
                opened.service,
                opened.kind,
                opened.body,
            )
            .unwrap();
            let of_its_kind = self.0.entry((summary.service, summary.kind)).or_default();
            if of_its_kind.len() < 40 {
                of_its_kind.push(frame.to_vec());
            }
        }
        Ok(())
    }
}

fn real_frames() -> Vec<Vec<u8>> {
    let collected = Rc::new(RefCell::new(Collected::default()));
    let engines: Vec<_> = registry().of(ServiceKind::File).collect();
    for entry in &engines {
        let mut simulation = Simulation::new(config()).unwrap();
        simulation.observe(Box::new(Rc::clone(&collected)));
        simulation.run_for(Duration::from_secs(10));
        simulation.send_file(entry.name, 0, Some(&[1, 3]), vec![7; 100_000]).unwrap();
        simulation.run_for(Duration::from_secs(20));
    }
    let frames = collected.take().0;
    // Hellos and probes, three kinds of each engine, and reports of the three that send hop by hop.
    // Whether nodes compare and request depends on what is lost.
    let control = frames.keys().filter(|(service, _)| *service == "control").count();
    assert!(control >= 2, "a kind of control frame was not sent");
    let data = frames.len() - control;
    assert_eq!(data, 3 * engines.len() + 3, "a kind of frame was not sent");
    frames.into_values().flatten().collect()
}

/// Changes the body of a frame: truncated, longer, with flipped bits, of another service, random
/// bytes, or small numbers.
fn mutate(rng: &mut impl RngCore, frame: &[u8]) -> Vec<u8> {
    let head = frame::HEADER_LEN;
    let tag = frame::TAG_LEN;
    let mut out = frame[..frame.len() - tag].to_vec();
    match below(rng, 7) {
        0 => out.truncate(head + below(rng, out.len() - head)),
        1 => out.truncate(below(rng, 120).min(out.len())),
        2 => out.extend((0..below(rng, 8)).map(|i| i as u8)),
        3 => {
            out.resize(head + 2 + below(rng, 200), 0);
            rng.fill_bytes(&mut out[head + 2..]);
            out[head] = [0, 1, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26][below(rng, 13)];
            out[head + 1] = below(rng, 5) as u8;
        }
        4 => {
            out.truncate(head + 2);
            let mut small = || if below(rng, 2) == 0 { 0 } else { below(rng, 8) as u8 };
            let body: Vec<u8> = (0..150).map(|_| small()).collect();
            out.extend(&body[..below(rng, 150)]);
        }
        5 => out[head + below(rng, 2)] = rng.next_u32() as u8,
        _ => {}
    }
    for _ in 0..below(rng, 4) {
        // Positions of numbers, lengths and names.
        let at = head + 2 + below(rng, out.len().saturating_sub(head + 2).min(120));
        if let Some(byte) = out.get_mut(at) {
            *byte ^= 1 << below(rng, 8);
        }
    }
    out.resize(out.len() + tag, 0);
    out
}

/// Short bodies, truncated and changed everywhere.
fn neighbours_of_short_bodies() -> Vec<Vec<u8>> {
    const BODIES: [(u8, u8, &str); 28] = [
        (
            0,
            0,
            "03e8 0003 0102 0009 deadbeef01020304 01 01 0007 0008 \
             0003 ff 00000003 0001 0000000000000007 01 63 02 0005 cc 0009 ff",
        ),
        (
            0,
            0,
            "03e8 0003 0102 0009 deadbeef01020304 00 00 \
             0003 03 00000005 0003 0007 0003 02 0005 99 0009 00",
        ),
        (0, 2, "0007 0000 0009 0000000000000000"),
        (0, 3, "0007 0000 0009 01 0003 0000000000000007 00000002"),
        (0, 4, "0007 0003 0004"),
        (
            16,
            1,
            "000301020304 1122 00000006 00000004 02 02 02 0008 0180 0009 0180 \
             0005 00000055 0a0b ffff",
        ),
        (17, 1, "000301020304 1122 00000006 00000004 02 05 02 0008 0180 0009 0040 03 40 01 ffff"),
        (
            19,
            1,
            "000301020304 1122 00000006 00000004 02 19 02 0008 0003 0009 0008 03 00000077 01 ffff",
        ),
        (18, 3, "0008 000301020304 1122 00000006 00000004 00000077 c0"),
        (20, 1, "0002 0001 0003 09 4950"),
        (21, 1, "01 11 00000008 0005 0001 0003 4950"),
        (21, 1, "01 02 00000008 0005 0007 0001 0003 0004 4950"),
        (
            21,
            1,
            "02 0001 0003 0002 12 00000009 0000 0004 ce6bb2c9 11 00000008 0005 64f2c448 08134b",
        ),
        (21, 2, "0008 00000009 00000007"),
        (21, 3, "0008 0005 0007"),
        (
            23,
            1,
            "0102 02 00010004 00000001 0004 00000007 01 04 02 01 0028 02 0908 \
             00020005 00000001 0005 00000000 00 04 02 01 0028 02 0003 aabb",
        ),
        (25, 2, "0102 00010004 00000001 0003 00000000 00 04 02 01 0028"),
        (23, 3, "00010004 00000001 0003 00000007 01 02 05 003e 02 0009 01 0003 005a 0064"),
        (
            22,
            1,
            "00010001 03 0002 0006 0004 0000 0003 0002 02 0304 03 0005 00000000 01 \
             0001 0009 00000003 01 02 00000006 0007 0001 00000006 02 00 02 0003 0100 0001aa",
        ),
        (22, 2, "0002 0004 00000001 0000 00000007 01 0001 0009 00000003"),
        (22, 3, "0002 0004 00000001 0002 00000006 01 03"),
        (24, 1, "0001 00000007 0002 01 00000005 09 525450"),
        (24, 2, "0001 00000007 0001 0002 3fc00000 40200000"),
        (24, 3, "0001 00000007 00000001 02 02 7476 04 62617365 03 656e68 00000003 00000004"),
        (16, 2, "0008 000301020304 0005 0000000000000007 00000002 01 00000001 80"),
        (26, 1, "000301020304 00000004 02 0e 02 0102 0003 0708 0009 00000005 01 02 01ff 0a0b ffff"),
        (26, 1, "000301020304 00000004 0c 19 0c 0102 0003 0000 ffff ffffffff 00 00 0b ffff"),
        (26, 3, "0008 0003 0009 000301020304 0102 0708 0009 0c 00000004 01 07ff"),
    ];
    let mut frames = Vec::new();
    for (service, kind, body) in BODIES {
        let body = hex(body);
        for cut in 0..=body.len() {
            for at in 0..cut {
                for value in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 24, 25, 32, 255] {
                    let mut changed = body[..cut].to_vec();
                    changed[at] = value;
                    frames.push(open_frame(service, kind, &changed));
                }
            }
        }
    }
    frames
}

/// Random bytes, some of which begin as a frame or as one of another version.
fn noise(rng: &mut impl RngCore) -> Vec<u8> {
    let mut out = vec![0; below(rng, 300)];
    rng.fill_bytes(&mut out);
    if let Some(first) = out.first_mut() {
        *first = [0xC2, 0xC0 | *first, *first][below(rng, 3)];
    }
    out
}

/// Returns what a node makes of a datagram.
fn verdict(datagram: &[u8]) -> &'static str {
    let mut scratch = Vec::new();
    if datagram.first().is_none_or(|first| first >> 4 != 0xC) {
        return "foreign";
    }
    let opened = match Cipher::Null.open(datagram, &mut scratch) {
        Err(OpenError::Version { .. }) => return "foreign_version",
        // Nothing is known of what was sealed.
        _ if is_sealed(datagram) => return "sealed",
        Err(_) => return "malformed",
        Ok(opened) => opened,
    };
    match summarise(registry(), opened.header.sender, opened.service, opened.kind, opened.body) {
        Some(summary) => summary.kind,
        None if is_described(opened.service, opened.kind) => "malformed",
        None => "unknown",
    }
}

/// Returns whether a datagram is as long as a frame, with a tag that is not the null cipher's.
fn is_sealed(datagram: &[u8]) -> bool {
    let tag = datagram.len().checked_sub(frame::TAG_LEN).map(|begin| &datagram[begin..]);
    datagram.len() >= frame::OVERHEAD && tag.is_some_and(|tag| tag.iter().any(|byte| *byte != 0))
}

/// Returns whether frames of this kind are described, so that the dissector knows them.
fn is_described(service: ServiceId, kind: u8) -> bool {
    let mut same = services(registry()).filter(|known| known.id == service);
    same.any(|known| known.layouts.iter().any(|layout| layout.kind == kind))
}

#[test]
fn malformed_frames_are_malformed_to_the_dissector_and_to_no_one_else() {
    let Some(tshark) = Tshark::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut rng = rng::stream(1, NodeId(0), "test", "mutations");
    let real = real_frames();
    let mut frames = Vec::new();
    for _ in 0..4_000 {
        let which = below(&mut rng, real.len());
        frames.push(mutate(&mut rng, &real[which]));
    }
    frames.extend((0..1_000).map(|_| noise(&mut rng)));
    frames.extend(real);
    frames.extend(neighbours_of_short_bodies());
    let pcap = forge(dir.path(), &frames);
    let names = [
        "ncmesh.mark",
        "ncmesh.type",
        "ncmesh.sealed",
        "ncmesh.malformed",
        "ncmesh.unknown",
        "ncmesh.foreign_version",
    ];
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let rows = tshark.fields(&pcap, names);
    assert_eq!(rows.len(), frames.len());
    for (i, (row, datagram)) in rows.iter().zip(&frames).enumerate() {
        let [mark, kind, sealed, malformed, unknown, version] =
            row.each_ref().map(|c| !c.is_empty());
        let shown = match () {
            () if !mark => "foreign",
            () if malformed => "malformed",
            () if unknown => "unknown",
            () if version => "foreign_version",
            () if sealed => "sealed",
            () if kind => row[1].as_str(),
            () => "nothing",
        };
        let expected = verdict(datagram);
        assert_eq!(shown, expected, "frame {i}: {datagram:02x?}");
        *seen.entry(expected).or_default() += 1;
    }
    for what in ["foreign", "malformed", "unknown", "foreign_version", "sealed", "data", "probe"] {
        assert!(seen.get(what).is_some_and(|n| *n > 20), "too few of {what}: {seen:?}");
    }
    let control = ["hello", "compare", "versions", "request"];
    for what in control.into_iter().chain(["announcement", "acknowledgment"]) {
        assert!(seen.get(what).is_some_and(|n| *n > 100), "too few of {what}: {seen:?}");
    }
}

/// Returns an announcement without receivers.
fn announcement(size: u64, generation: u8, symbol_size: u16, name: &[u8]) -> Vec<u8> {
    let mut body = hex("000301020304 0000000000000007 00000009 80 00");
    body.extend(size.to_be_bytes());
    body.push(generation);
    body.extend(symbol_size.to_be_bytes());
    body.extend([0xAA; 64]);
    body.push(name.len() as u8);
    body.extend_from_slice(name);
    body.extend([0, 0]);
    open_frame(16, 0, &body)
}

#[test]
fn a_file_is_cut_as_the_engine_cuts_it() {
    let Some(tshark) = Tshark::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut rng = rng::stream(3, NodeId(0), "test", "geometries");
    let mut cuts = vec![(0, 0, 0), (1 << 44, 255, 65_535), ((1 << 44) + 1, 255, 65_535)];
    cuts.push((u64::MAX, 255, 1400));
    for _ in 0..2_000 {
        // Around the size at which the tree grows by a level.
        let generation = below(&mut rng, 6) as u64;
        let symbol_size = below(&mut rng, 200) as u64;
        let depth = below(&mut rng, 26) as u64;
        let room = (generation * symbol_size).saturating_sub(32 * depth);
        let size = ((room << depth) + below(&mut rng, 3) as u64).saturating_sub(1);
        cuts.push((size, generation as u8, symbol_size as u16));
    }
    let frames: Vec<_> = cuts.iter().map(|(s, g, l)| announcement(*s, *g, *l, b"a")).collect();
    let names = ["ncmesh.announcement.generations", "ncmesh.malformed"];
    let rows = tshark.fields(&forge(dir.path(), &frames), names);
    assert_eq!(rows.len(), cuts.len());
    let mut possible = 0;
    for ([generations, malformed], (size, generation, symbol_size)) in rows.into_iter().zip(cuts) {
        let cut = Geometry::new(size, generation, symbol_size).ok();
        let expected = cut.map_or_else(String::new, |cut| cut.generations().to_string());
        assert_eq!(generations, expected, "{size} {generation} {symbol_size}");
        assert_eq!(malformed.is_empty(), cut.is_some());
        possible += u32::from(cut.is_some());
    }
    assert!((500..1_900).contains(&possible), "{possible}");
}

#[test]
fn names_are_judged_as_utf8_is() {
    let Some(tshark) = Tshark::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    // Every lead byte before every kind of continuation, and the limits of what Rust accepts.
    let mut names: Vec<Vec<u8>> = Vec::new();
    for lead in 0..=255_u8 {
        for second in [0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0] {
            for tail in [&[][..], &[0x80], &[0xBF, 0x80], &[0x80, b'x']] {
                names.push([&[b'a', lead, second], tail].concat());
            }
        }
    }
    let frames: Vec<Vec<u8>> =
        names.iter().map(|name| announcement(1000, 32, 1400, name)).collect();
    let rows = tshark.fields(&forge(dir.path(), &frames), ["ncmesh.malformed"]);
    assert_eq!(rows.len(), names.len());
    for ([malformed], name) in rows.iter().zip(&names) {
        assert_eq!(malformed.is_empty(), str::from_utf8(name).is_ok(), "{name:02x?}");
    }
}
