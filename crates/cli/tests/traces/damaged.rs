//! Captures that are damaged or incomplete.

use crate::forged::below;
use crate::support::{Run, Tshark};
use ncmesh_engine::rng;
use ncmesh_wire::NodeId;
use rand_core::RngCore;
use std::process::Command;

#[test]
fn a_capture_that_is_cut_or_damaged_is_shown_as_far_as_it_goes() {
    let Some(tshark) = Tshark::new() else { return };
    let run = Run::new(&["--unsealed"]);
    let whole = std::fs::read(&run.pcap).unwrap();
    let rows = tshark.fields(&run.pcap, ["ncmesh.counter", "ncmesh.type"]);
    let damaged = run.dir.path().join("damaged.pcapng");
    let mut rng = rng::stream(2, NodeId(0), "test", "damage");
    let lua_errors = ["-Y", "_ws.lua.error"];
    for _ in 0..12 {
        let cut = 1_000 + below(&mut rng, whole.len() - 1_000);
        std::fs::write(&damaged, &whole[..cut]).unwrap();
        let fields = ["-T", "fields", "-e", "ncmesh.counter", "-e", "ncmesh.type"];
        let output = tshark.read(&damaged, &fields);
        let text = String::from_utf8(output.stdout).unwrap();
        let shown: Vec<String> = text.lines().map(str::to_owned).collect();
        let expected: Vec<String> = rows.iter().map(|row| row.join("\t")).collect();
        assert!(expected.starts_with(&shown), "{} rows", shown.len());
        assert!(shown.len() + 3 >= expected.len() * cut / whole.len() / 2);
    }
    for _ in 0..12 {
        let mut bytes = whole.clone();
        for _ in 0..200 {
            let at = below(&mut rng, bytes.len());
            bytes[at] = rng.next_u32() as u8;
        }
        std::fs::write(&damaged, bytes).unwrap();
        assert_eq!(tshark.read(&damaged, &lua_errors).stdout, b"");
    }
}

#[test]
fn frames_captured_in_part_are_shown_as_such() {
    let Some(tshark) = Tshark::new() else { return };
    let run = Run::new(&["--unsealed"]);
    for length in [60, 100] {
        let file = run.dir.path().join("cut.pcapng");
        let mut editcap = Command::new("editcap");
        editcap.args(["-s", &length.to_string()]).arg(&run.pcap).arg(&file);
        assert!(editcap.output().unwrap().status.success());
        let names = ["frame.len", "ncmesh.sender", "ncmesh.cut", "ncmesh.malformed", "ncmesh.type"];
        for [length_on_air, sender, cut, malformed, kind] in tshark.fields(&file, names) {
            let is_cut = length_on_air.parse::<u32>().unwrap() > length;
            assert_eq!((cut.is_empty(), kind.is_empty()), (!is_cut, is_cut));
            assert!(malformed.is_empty());
            // 46 bytes precede the frame, whose header has 15.
            assert_eq!(sender.is_empty(), length < 46 + 23);
        }
    }
}
