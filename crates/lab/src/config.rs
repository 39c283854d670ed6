//! Writes the `node.toml` of a lab's daemon.

use crate::tunnel::Tunnel;
use ncmesh_node::etherd::datagram::Token;
use ncmesh_sim::node_id;
use ncmesh_sim::scenario::Scenario;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use toml::{Table, Value};

/// Secrets of a run, which all daemons have.
#[derive(Clone, Copy)]
pub(crate) struct Secrets {
    /// Token of the channel emulator.
    pub(crate) token: Token,
    /// Key of the network.
    pub(crate) key: [u8; 32],
}

/// Settings of one node.
pub(crate) struct Own<'a> {
    /// Its index in the scenario.
    pub(crate) index: usize,
    /// Tunnels of the lab.
    pub(crate) tunnel: Option<&'a Tunnel>,
    /// Stream scheme of the lab.
    pub(crate) stream: Option<&'a str>,
    /// Address of its console, and the file with the token for commands.
    pub(crate) web: Option<(SocketAddr, Option<&'a Path>)>,
}

/// A radio of a node.
pub(crate) struct OwnRadio<'a> {
    /// Name of its channel; `None` if there is one channel only.
    pub(crate) name: Option<&'a str>,
    /// Address of the channel's emulator.
    pub(crate) ether: SocketAddr,
}

/// Returns the configuration of a node's daemon. Relative paths in it are relative to the file.
pub(crate) fn node_config(
    scenario: &Scenario,
    own: &Own<'_>,
    radios: &[OwnRadio<'_>],
    secrets: &Secrets,
) -> String {
    let index = own.index;

    // The sections that the lab decides: the node's identity, and its radios in the emulators.
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
    let radio = |OwnRadio { name, ether }: &OwnRadio<'_>| {
        let mut radio = section([
            ("kind", "air".into()),
            ("ether", ether.to_string().into()),
            ("index", (index as i64).into()),
            ("token", token.to_string().into()),
            ("mtu", (scenario.mtu as i64).into()),
        ]);
        radio.extend(name.map(|name| ("name".to_owned(), name.into())));
        Value::Table(radio)
    };
    // Where channels have names, a node has a port on each that it is on.
    let ports = match radios {
        [only @ OwnRadio { name: None, .. }] => ("radio", radio(only)),
        several => ("port", Value::Array(several.iter().map(radio).collect())),
    };
    let inbox = section([("dir", "inbox".into())]);
    let web = own.web.map(|(address, token_file)| {
        // An emulated mesh has no secrets, and its consoles are opened one after the other.
        let mut web = section([("listen", address.to_string().into()), ("read", "anyone".into())]);
        let token_file = token_file.map(|file| file.display().to_string().into());
        web.extend(token_file.map(|file| ("token_file".to_owned(), file)));
        web
    });

    let tunnel = own.tunnel.and_then(|tunnel| tunnel.section(index));

    let stream = own.stream.map(|scheme| section([("scheme", scheme.into())]));

    // The scenario's protocol sections are passed on unchanged.
    let all = [("node", node), ("inbox", inbox)];
    let more = web.map(|web| ("web", web)).into_iter();
    let all = all.into_iter().chain(more).chain(tunnel.map(|tunnel| ("tunnel", tunnel)));
    let all = all.chain(stream.map(|stream| ("stream", stream)));
    all.map(|(name, table)| (name.to_owned(), table))
        .chain(scenario.protocol.clone())
        .map(|(name, table)| (name, Value::Table(table)))
        .chain([(ports.0.to_owned(), ports.1)])
        .collect::<Table>()
        .to_string()
}

/// Returns a section with these settings.
fn section<const N: usize>(settings: [(&str, Value); N]) -> Table {
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
