//! `ncmesh reload`: lets the daemon read its configuration file again.

use crate::client::Client;
use crate::failure::Failure;
use crate::remote_args::Remote;
use crate::show;
use ncmesh_node::api::answers::Reloaded;

/// Runs the command.
pub(crate) fn run(remote: &Remote) -> Result<(), Failure> {
    let reloaded: Reloaded = Client::new(remote)?.post("/v1/reload", &())?;
    if remote.json { show::json(&reloaded) } else { show::line(&reloaded.to_string()) }
}
