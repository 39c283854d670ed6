//! Writes the `node.toml` of a lab's daemon.

use crate::tunnel::Tunnel;
use ncmesh_node::etherd::datagram::Token;
use ncmesh_sim::node_id;
use ncmesh_sim::scenario::Scenario;
use std::fmt::Write;
use std::net::SocketAddr;
use toml::{Table, Value};

/// Secrets of a run, which all daemons have.
#[derive(Clone, Copy)]
pub(crate) struct Secrets {
    /// Token of the channel emulator.
    pub(crate) token: Token,
    /// Key of the network.
    pub(crate) key: [u8; 32],
}

/// Returns the configuration of the daemon of node `index`. Relative paths in it are relative to
/// the file.
pub(crate) fn node_config(
    scenario: &Scenario,
    index: usize,
    ether: SocketAddr,
    secrets: &Secrets,
    tunnel: Option<&Tunnel>,
) -> String {
    // The sections that the lab decides: the node's identity, and its radio in the emulator.
    let Secrets { token, key } = secrets;
    let mut hex = String::new();
    for byte in key {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    let node = section([
        ("id", i64::from(node_id(index).0).into()),
        ("name", scenario.nodes[index].name.as_str().into()),
        ("key", hex.into()),
        ("state_dir", "state".into()),
    ]);
    let radio = section([
        ("kind", "air".into()),
        ("ether", ether.to_string().into()),
        ("index", (index as i64).into()),
        ("token", token.to_string().into()),
        ("mtu", (scenario.mtu as i64).into()),
    ]);
    let inbox = section([("dir", "inbox".into())]);

    // The scenario's protocol sections are passed on unchanged.
    let own = [("node", node), ("radio", radio), ("inbox", inbox)];
    let tunnel = tunnel.and_then(|tunnel| tunnel.section(index));
    let own = own.into_iter().chain(tunnel.map(|section| ("tunnel", section)));
    own.map(|(name, table)| (name.to_owned(), table))
        .chain(scenario.protocol.clone())
        .map(|(name, table)| (name, Value::Table(table)))
        .collect::<Table>()
        .to_string()
}

/// Returns a section with these settings.
fn section<const N: usize>(settings: [(&str, Value); N]) -> Table {
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
