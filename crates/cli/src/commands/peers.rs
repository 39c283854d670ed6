//! `ncmesh peers`: shows the other nodes.

use crate::args::Remote;
use crate::client::Client;
use crate::failure::Failure;
use crate::show::{self, Table};
use ncmesh_node::api::types::Peer;

/// Runs the command.
pub(crate) fn run(remote: &Remote) -> Result<(), Failure> {
    let peers: Vec<Peer> = Client::new(remote)?.read("/v1/peers")?;
    if remote.json {
        return show::json(&peers);
    }
    if peers.is_empty() {
        return show::line("no other node is known; `ncmesh status` shows what may be wrong");
    }
    let mut table = Table::new(["NAME", "ID", "OUT", "IN", "ETX", "HOPS", "VIA", "HEARD"]);
    for peer in peers {
        let share = |d: Option<f64>| show::or_dash(d.map(|d| format!("{:.0} %", d * 100.0)));
        table.row([
            peer.name.unwrap_or_else(|| "?".into()),
            peer.id.to_string(),
            share(peer.delivery_to),
            share(peer.delivery_from),
            show::or_dash(peer.etx.map(|etx| format!("{etx:.2}"))),
            show::or_dash(peer.hops.map(|hops| hops.to_string())),
            show::or_dash(peer.next_hop),
            show::or_dash(peer.last_heard_s.map(|s| format!("{s:.0} s ago"))),
        ]);
    }
    show::line(&table.to_string())
}
