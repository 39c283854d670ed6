//! `ncmesh tunnel`: shows or changes the scheme and the relay mode.

use crate::args::TunnelArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::remote_args::Remote;
use crate::show;
use ncmesh_node::api::types::{Status, Tunnel, TunnelChange};

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: TunnelArgs) -> Result<(), Failure> {
    let TunnelArgs { scheme, relay, coding } = args;
    let change = TunnelChange { scheme, relay, coding };
    let client = Client::new(remote)?;
    if change == TunnelChange::default() {
        return show_present(remote, &client.read("/v1/status")?);
    }
    // Settings that are absent stay. The daemon answers with those that it changed.
    let set: TunnelChange = client.put("/v1/tunnel", &change)?;
    if remote.json {
        return show::json(&set);
    }
    if let Some(scheme) = &set.scheme {
        show::line(&format!("packets leave by {scheme}"))?;
    }
    show_relaying(&set)
}

/// Shows what holds now.
fn show_present(remote: &Remote, status: &Status) -> Result<(), Failure> {
    let tunnel = status.tunnel.as_ref();
    let present = TunnelChange {
        scheme: tunnel.map(|tunnel| tunnel.scheme.clone()),
        relay: status.coding.iter().find_map(|coding| coding.relay),
        coding: status.coding.iter().find_map(|coding| coding.combines),
    };

    if remote.json {
        return show::json(&present);
    }

    show::line(&match tunnel {
        Some(Tunnel { scheme, scheme_reason, .. }) => {
            format!("packets leave by {scheme} ({scheme_reason})")
        }
        None => "there is no tunnel here: packets of others are passed on".to_owned(),
    })?;
    show_relaying(&present)
}

/// Shows how this node relays, as far as it is given.
fn show_relaying(set: &TunnelChange) -> Result<(), Failure> {
    if let Some(relay) = set.relay {
        show::line(&format!("of core_nc this node is a {} relay", relay.name()))?;
    }
    if let Some(coding) = set.coding {
        let not = if coding { "" } else { "not " };
        show::line(&format!("flows that cross here are {not}combined"))?;
    }

    Ok(())
}
