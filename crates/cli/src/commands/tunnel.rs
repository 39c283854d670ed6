//! `ncmesh tunnel`.

use crate::args::{Remote, TunnelArgs};
use crate::client::Client;
use crate::failure::Failure;
use crate::show;
use ncmesh_node::api::types::Scheme;

pub(crate) fn run(remote: &Remote, args: TunnelArgs) -> Result<(), Failure> {
    let set: Scheme = Client::new(remote)?.put("/v1/tunnel", &Scheme { scheme: args.scheme })?;
    if remote.json {
        show::json(&set)
    } else {
        show::line(&format!("packets leave by {}", set.scheme))
    }
}
