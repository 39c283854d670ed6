//! `ncmesh cancel`: ends a transfer.

use crate::args::CancelArgs;
use crate::client::Client;
use crate::failure::{Failure, Kind};
use crate::remote_args::Remote;
use crate::show;
use ncmesh_node::api::types::Started;
use ncmesh_wire::FlowId;

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: &CancelArgs) -> Result<(), Failure> {
    // Parsed here, because the daemon would only say that it has no such transfer.
    let flow: FlowId = args
        .id
        .parse()
        .map_err(|e| Failure::new(Kind::Usage, format!("{:?} is no transfer id: {e}", args.id)))?;
    let ended: Started = Client::new(remote)?.delete(&format!("/v1/transfers/{flow}"))?;
    if remote.json { show::json(&ended) } else { show::line(&format!("{} is cancelled", ended.id)) }
}
