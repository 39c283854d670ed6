//! Bytes and airtime of control frames, by sender and by neighbourhood.
//!
//! Control is every frame of the service `control`. What a protocol adds to frames of
//! other services is not seen here; in a mesh without traffic there are none.

use crate::mesh::Mesh;
use crate::statistics::spread;
use ncmesh_engines::registry;
use ncmesh_sim::{Event, Observer, SimulationConfig, What};
use ncmesh_stack::summary::services;
use ncmesh_wire::{Cipher, ServiceId};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;

/// Services whose frames are control.
const CONTROL: [&str; 1] = ["control"];

/// A service and a kind of its frames.
type Kind = (ServiceId, u8);

/// Observer that adds up bytes and airtime since the last report.
pub(crate) struct Air {
    cipher: Cipher,
    scratch: Vec<u8>,
    /// Kind of each node's frame on the air.
    on_air: Vec<Option<Kind>>,
    kinds: BTreeMap<Kind, Tally>,
    /// Airtime of the control frames of each node, ns.
    control_ns: Vec<u64>,
    /// Airtime of all frames of each node, ns.
    all_ns: Vec<u64>,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    frames: u64,
    bytes: u64,
    airtime_ns: u64,
}

impl Air {
    pub(crate) fn new(config: &SimulationConfig) -> Self {
        let nodes = config.names.len();
        Self {
            cipher: config.cipher(),
            scratch: Vec::new(),
            on_air: vec![None; nodes],
            kinds: BTreeMap::new(),
            control_ns: vec![0; nodes],
            all_ns: vec![0; nodes],
        }
    }

    /// Returns the figures of the last `seconds`, in which the nodes `running` ran. Starts anew.
    ///
    /// The airtime in a node's surroundings is the sum over all nodes that it senses and itself.
    /// Frames of two nodes that do not sense each other may overlap, so the sum can exceed 1.
    pub(crate) fn report(&mut self, mesh: &Mesh, seconds: f64, running: &[bool]) -> Value {
        let nodes = running.iter().filter(|&&runs| runs).count();
        let per_node = |sum: u64| sum as f64 / seconds / nodes as f64;
        let around = |airtime_ns: &[u64]| {
            let share = |list: &Vec<usize>| {
                list.iter().map(|&node| airtime_ns[node]).sum::<u64>() as f64 * 1e-9 / seconds
            };
            let lists = mesh.senses.iter().zip(running).filter(|(_, runs)| **runs);
            spread(&lists.map(|(list, _)| share(list)).collect::<Vec<_>>())
        };
        let mut kinds = Map::new();
        let mut control = 0;
        let mut other = 0;
        for (&kind, tally) in &self.kinds {
            let (service, name) = names(kind);
            *(if CONTROL.contains(&service) { &mut control } else { &mut other }) += tally.bytes;
            let figures = json!({
                "frames_per_node_s": per_node(tally.frames),
                "bytes_per_node_s": per_node(tally.bytes),
                "airtime_per_node": per_node(tally.airtime_ns) * 1e-9,
            });
            kinds.insert(format!("{service}.{name}"), figures);
        }
        let report = json!({
            "control_bytes_per_node_s": per_node(control),
            "other_bytes_per_node_s": per_node(other),
            "control_airtime": around(&self.control_ns),
            "all_airtime": around(&self.all_ns),
            "kinds": kinds,
        });
        self.kinds.clear();
        self.control_ns.fill(0);
        self.all_ns.fill(0);
        report
    }
}

impl Observer for Air {
    fn observe(&mut self, event: &Event<'_>) -> io::Result<()> {
        match event.what {
            What::Sent { frame, .. } => {
                let opened = self.cipher.open(frame, &mut self.scratch).ok();
                let kind = opened.map(|opened| (opened.service, opened.kind));
                self.on_air[event.node] = kind;
                if let Some(kind) = kind {
                    let tally = self.kinds.entry(kind).or_default();
                    tally.frames += 1;
                    tally.bytes += frame.len() as u64;
                }
            }
            What::Reported { airtime_ns, .. } => {
                self.all_ns[event.node] += airtime_ns;
                if let Some(kind) = self.on_air[event.node].take() {
                    self.kinds.entry(kind).or_default().airtime_ns += airtime_ns;
                    if CONTROL.contains(&names(kind).0) {
                        self.control_ns[event.node] += airtime_ns;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns the names of a service and of a kind of its frames.
fn names((service, kind): Kind) -> (&'static str, String) {
    let Some(known) = services(registry()).find(|known| known.id == service) else {
        return ("unknown", kind.to_string());
    };
    let layout = known.layouts.iter().find(|layout| layout.kind == kind);
    (known.name, layout.map_or_else(|| kind.to_string(), |layout| layout.name.to_owned()))
}
