//! `ncmesh bandwidth`: measures how much the tunnel's scheme carries to another node.

use crate::args::BandwidthArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::remote_args::Remote;
use crate::show;
use ncmesh_node::api::answers::{BandwidthRequest, Measured};

/// Runs the command.
pub(crate) fn run(remote: &Remote, args: BandwidthArgs) -> Result<(), Failure> {
    let request = BandwidthRequest {
        node: args.node,
        seconds: args.seconds.as_secs_f64(),
        bytes: args.bytes,
        rate_bps: args.rate.map(|rate| rate.bits_per_second),
    };

    let measured: Measured = Client::new(remote)?.post("/v1/bandwidth", &request)?;
    if remote.json {
        return show::json(&measured);
    }

    // The scheme belongs to the result: by another one the rate would be another.
    let Measured { name, scheme, seconds, bytes, sent, received, lost, goodput_bps, .. } = measured;
    show::line(&format!(
        "{:.0} kbit/s to {name} by {scheme}: {received} of {sent} packets of {bytes} bytes in \
         {seconds:.1} s, {:.1} % lost",
        goodput_bps / 1e3,
        lost * 100.0
    ))
}
