//! `ncmesh peers`: shows the other nodes.

use crate::client::Client;
use crate::failure::Failure;
use crate::remote_args::{Remote, WatchArgs};
use crate::show::{self, Table};
use crate::watch::watch;
use ncmesh_console::schema::{PeerValues, Values};
use ncmesh_node::api::types::{Peer, PeerPort};
use std::collections::BTreeSet;

/// Resource of the daemon that the command shows.
const PATH: &str = "/v1/peers";

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: &WatchArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    if args.watch {
        return watch(&client, remote.json, PATH, |peers: &Vec<Peer>| text(peers));
    }
    let peers: Vec<Peer> = client.read(PATH)?;
    if remote.json { show::json(&peers) } else { show::line(&text(&peers)) }
}

/// Returns the other nodes as a table.
fn text(peers: &[Peer]) -> String {
    if peers.is_empty() {
        return "no other node is known; `ncmesh status` shows what may be wrong".into();
    }

    // Without identities no node has a key, and the column would be empty.
    let has_keys = peers.iter().any(|peer| peer.fingerprint.is_some() || peer.conflict);
    // With one port there is nothing to tell apart.
    let ports: BTreeSet<&str> =
        peers.iter().flat_map(|peer| &peer.ports).map(|port| port.port.as_str()).collect();
    let has_ports = ports.len() > 1;
    let mut table = Table::new(["NAME", "ID", "VIA"]);
    table.columns(PeerValues::FIELDS);
    if has_ports {
        table.column("PORTS");
    }
    if has_keys {
        table.column("KEY");
    }
    for peer in peers {
        let name = peer.name.clone().unwrap_or_else(|| "?".into());
        let via = show::or_dash(peer.next_hop.clone());
        let who = [name, peer.id.to_string(), via];
        let mut key = show::or_dash(peer.fingerprint.clone());
        if peer.conflict {
            key += " conflict";
        }
        let ports = has_ports.then(|| shown(&peer.ports));
        let key = has_keys.then_some(key);
        table.row(who.into_iter().chain(show::cells(&peer.values)).chain(ports).chain(key));
    }

    table.to_string()
}

/// Returns the ports on which a node is heard, with what arrives there. Frames go to it by the one
/// with a star.
fn shown(ports: &[PeerPort]) -> String {
    let one = |PeerPort { port, delivery_from, way }: &PeerPort| {
        let star = if *way { "*" } else { "" };
        format!("{port}{star} {:.0} %", delivery_from * 100.0)
    };
    let all: Vec<String> = ports.iter().map(one).collect();
    show::or_dash((!all.is_empty()).then(|| all.join(", ")))
}
