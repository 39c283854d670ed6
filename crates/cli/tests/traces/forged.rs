//! Captures of forged frames.

use ncmesh_engine::time::Instant;
use ncmesh_sim::scenario::Scenario;
use ncmesh_sim::{Capture, CapturePoints, Event, Observer, SimulationConfig, What};
use ncmesh_wire::{Cipher, NodeId, Salt, Sealer, ServiceId, Versions};
use rand_core::RngCore;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Returns the diamond's configuration with the null cipher.
pub(crate) fn config() -> SimulationConfig {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/diamond.toml");
    let config = SimulationConfig::from_scenario(&Scenario::load(&file).unwrap()).unwrap();
    SimulationConfig { sealed: false, ..config }
}

/// Returns a frame of node 7 with the null cipher.
pub(crate) fn open_frame(service: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Sealer::begin(&mut out, ServiceId(service), kind);
    out.extend_from_slice(body);
    Sealer::new(Cipher::Null, NodeId(7), Salt([9; 16])).seal(&mut out, Versions::OWN.newest);
    out
}

/// Parses hexadecimal digits. Spaces only separate.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Writes a capture of forged frames.
pub(crate) fn forge(dir: &Path, frames: &[Vec<u8>]) -> PathBuf {
    let path = dir.join("forged.pcapng");
    let out = BufWriter::new(File::create(&path).unwrap());
    let mut capture = Capture::new(out, &config(), &CapturePoints::Senders).unwrap();
    for (i, frame) in (0..).zip(frames) {
        let what = What::Sent { channel: 0, to: None, frame };
        capture.observe(&Event { at: Instant::from_nanos(i), node: 0, what }).unwrap();
    }
    capture.finish().unwrap();
    path
}

/// Returns a random number below `bound`.
pub(crate) fn below(rng: &mut impl RngCore, bound: usize) -> usize {
    rng.next_u32() as usize % bound.max(1)
}
