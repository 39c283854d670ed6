//! `ncmesh peers`: shows the other nodes.

use crate::client::Client;
use crate::failure::Failure;
use crate::remote_args::{Remote, WatchArgs};
use crate::show::{self, Table};
use crate::watch::watch;
use ncmesh_node::api::types::Peer;

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
    let mut table = Table::new(["NAME", "ID", "OUT", "IN", "ETX", "HOPS", "VIA", "HEARD"]);
    for peer in peers {
        let share = |d: Option<f64>| show::or_dash(d.map(|d| format!("{:.0} %", d * 100.0)));
        table.row([
            peer.name.clone().unwrap_or_else(|| "?".into()),
            peer.id.to_string(),
            share(peer.delivery_to),
            share(peer.delivery_from),
            show::or_dash(peer.etx.map(|etx| format!("{etx:.2}"))),
            show::or_dash(peer.hops.map(|hops| hops.to_string())),
            show::or_dash(peer.next_hop.clone()),
            show::or_dash(peer.last_heard_s.map(|s| format!("{s:.0} s ago"))),
        ]);
    }
    table.to_string()
}
