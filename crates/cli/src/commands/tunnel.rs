//! `ncmesh tunnel`: changes the scheme and the relay mode.

use crate::args::TunnelArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::remote_args::Remote;
use crate::show;
use ncmesh_node::api::types::TunnelChange;

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: TunnelArgs) -> Result<(), Failure> {
    // Settings that are absent stay. The daemon answers with those that it changed.
    let TunnelArgs { scheme, relay, coding } = args;
    let change = TunnelChange { scheme, relay, coding };
    let set: TunnelChange = Client::new(remote)?.put("/v1/tunnel", &change)?;
    if remote.json {
        return show::json(&set);
    }
    if let Some(scheme) = set.scheme {
        show::line(&format!("packets leave by {scheme}"))?;
    }
    if let Some(relay) = set.relay {
        show::line(&format!("of core_nc this node is a {} relay", relay.name()))?;
    }
    if let Some(coding) = set.coding {
        let not = if coding { "" } else { "not " };
        show::line(&format!("flows that cross here are {not}combined"))?;
    }

    Ok(())
}
