//! Hints of a port: what keeps it from sending as it should, and what to do about it.

use super::interface::Interface;
use super::nl80211;
use super::pacing::DEFAULT_RATE;
use super::ways::Way;
use crate::config::{PortConfig, PortPlace};
use std::path::Path;

/// Returns what to do about a mesh interface that forwards by itself.
pub(super) fn forwarding(interface: &Interface) -> Option<String> {
    let name = interface.name();
    (nl80211::forwards(interface.index()?) == Some(true)).then(|| {
        format!(
            "{name} forwards frames by itself, so that every node of the mesh looks like a \
             neighbour; `iw dev {name} set mesh_param mesh_fwding 0` on all nodes"
        )
    })
}

/// Returns which interface may be meant instead of a bridge: the only radio in it, or its only
/// port.
pub(super) fn bridge(interface: &Interface, written: PortPlace) -> Option<String> {
    if !interface.is_bridge() {
        return None;
    }

    let name = interface.name();
    let net = Path::new("/sys/class/net");
    // The kernel lists the ports of a bridge here.
    let entries = net.join(name).join("brif").read_dir().ok()?.flatten();
    let ports: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();

    let is_radio = |port: &&String| net.join(port).join("phy80211").exists();
    let meant = match (ports.as_slice(), ports.iter().filter(is_radio).collect::<Vec<_>>()) {
        ([only], _) => only,
        (_, radios) if radios.len() == 1 => radios[0],
        _ => return None,
    };
    Some(format!(
        "{name} is a bridge, so frames go out on all its ports; if {meant} is meant, set \
         {written} interface = {meant:?}"
    ))
}

/// Returns what to do if IPv6 is used since there is no IPv4 address, and not because the
/// configuration says so.
pub(super) fn version(name: &str, config: &PortConfig, written: PortPlace) -> Option<String> {
    let group = config.group();
    config.group.is_none().then(|| {
        format!(
            "{name} has no IPv4 address, so frames go to the IPv6 group {group}, which nodes with \
             IPv4 do not hear; set {written} group = \"{group}\" on all nodes, or add an address"
        )
    })
}

/// Returns what to do about a driver that takes every frame at once.
pub(super) fn pressure(name: &str, written: PortPlace) -> String {
    format!(
        "{name} takes every frame at once, whatever its channel carries, so no more than {} \
         Mbit/s is sent; set {written} rate to what the channel carries",
        DEFAULT_RATE.bits_per_second / 1e6
    )
}

/// Returns what is wrong with the MTU of the interface for frames of `mtu` bytes. Short frames get
/// through all the same.
pub(super) fn mtu(
    interface: &Interface,
    way: Way,
    mtu: usize,
    written: PortPlace,
) -> Option<String> {
    let overhead = way.overhead();
    let wanted = mtu + overhead;
    let name = interface.name();
    let there = interface.mtu();
    (wanted > there).then(|| {
        let fits = there.saturating_sub(overhead);
        format!(
            "long frames are not sent: the MTU of {name} is {there} now; raise it to {wanted}, or \
             set {written} mtu = {fits} on all nodes"
        )
    })
}
