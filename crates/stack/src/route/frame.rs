//! Link-state frames: the states of one or more nodes.
//!
//! A state is origin, epoch, sequence number, name with its length, number of neighbours, then each
//! neighbour with the share of its probes that arrives, in units of 1/255.

use ncmesh_engine::name;
use ncmesh_engine::topology::LinkState;
use ncmesh_wire::{NodeId, Reader, Truncated, Writer};
use std::collections::BTreeMap;

/// Length of a state without its name and links, bytes.
const FIXED: usize = 2 + 8 + 4 + 1 + 2;
/// Length of a link, bytes.
const LINK: usize = 3;

/// Returns the length of `state` in a frame, bytes.
pub(super) fn encoded_len(state: &LinkState) -> usize {
    FIXED + state.name.len() + LINK * state.hears.len()
}

/// Returns how many links of the node `name` fit into a frame body of `mtu` bytes.
pub(super) fn links_that_fit(mtu: usize, name: &str) -> usize {
    mtu.saturating_sub(FIXED + name.len()) / LINK
}

/// Appends a state.
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
    let name = name::heard(r.short_bytes()?);
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

/// Returns `delivery` as the receivers of a frame will know it.
pub(super) fn as_carried(delivery: f64) -> f64 {
    f64::from(quantum(delivery)) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The golden vector of the wire format.
    #[test]
    fn golden_link_state() {
        let hears = BTreeMap::from([(NodeId(5), 0.8), (NodeId(9), 1.0)]);
        let state = LinkState { version: (7, 1), name: "c".into(), hears };
        let mut out = Vec::new();
        write(&mut out, NodeId(3), &state);
        let hex: String = out.iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "0003000000000000000700000001016300020005cc0009ff");
        assert_eq!(read(&mut Reader::new(&out)), Ok((NodeId(3), state)));
    }

    #[test]
    fn a_name_that_would_garble_a_terminal_is_made_harmless_and_fits_again() {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out);
        w.node(NodeId(3)).u64(7).u32(1).short_bytes(&[0x1B; 255]).u16(0);
        let (origin, state) = read(&mut Reader::new(&out)).unwrap();
        assert_eq!(state.name, "\u{FFFD}".repeat(63));
        let mut again = Vec::new();
        write(&mut again, origin, &state);
        assert_eq!(again.len(), encoded_len(&state));
        assert_eq!(read(&mut Reader::new(&again)), Ok((origin, state)));
    }
}
