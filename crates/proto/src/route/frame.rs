//! Link-state frames: one or more nodes' states.
//!
//! Per state: origin, epoch, number, name behind its length, number of neighbours, then each neighbour and
//! the share of its probes that arrives, in 1/255.

use super::topology::LinkState;
use ncmesh_wire::{NodeId, Reader, Truncated, Writer};
use std::collections::BTreeMap;

/// Bytes of a state besides its name and its links.
const FIXED: usize = 2 + 8 + 4 + 1 + 2;
/// Bytes of a link.
const LINK: usize = 3;

/// Bytes `state` takes in a frame.
pub(super) fn encoded_len(state: &LinkState) -> usize {
    FIXED + state.name.len() + LINK * state.hears.len()
}

/// How many links of the node `name` a frame body of `mtu` bytes takes.
pub(super) fn links_that_fit(mtu: usize, name: &str) -> usize {
    mtu.saturating_sub(FIXED + name.len()) / LINK
}

/// Appends one state.
pub(super) fn write(out: &mut Vec<u8>, origin: NodeId, state: &LinkState) {
    let mut w = Writer::new(out);
    w.node(origin).u64(state.version.0).u32(state.version.1).short_bytes(state.name.as_bytes());
    w.u16(state.hears.len() as u16);
    for (node, delivery) in &state.hears {
        w.node(*node).u8(quantum(*delivery));
    }
}

/// Reads the next state.
pub(super) fn read(r: &mut Reader<'_>) -> Result<(NodeId, LinkState), Truncated> {
    let origin = r.node()?;
    let version = (r.u64()?, r.u32()?);
    let name = String::from_utf8_lossy(r.short_bytes()?).into_owned();
    let count = usize::from(r.u16()?);
    if r.remaining() < 3 * count {
        return Err(Truncated);
    }
    let mut hears = BTreeMap::new();
    for _ in 0..count {
        hears.insert(r.node()?, f64::from(r.u8()?) / 255.0);
    }
    Ok((origin, LinkState { version, name, hears }))
}

fn quantum(delivery: f64) -> u8 {
    (delivery.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// `delivery` as the receivers of a frame will know it.
pub(super) fn as_carried(delivery: f64) -> f64 {
    f64::from(quantum(delivery)) / 255.0
}
