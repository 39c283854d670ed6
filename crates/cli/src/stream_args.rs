//! What `ncmesh stream` takes.

use clap::{Args, Subcommand};
use ncmesh_node::stream::Layer;
use ncmesh_sim::scenario::Quantity;

#[derive(Debug, Subcommand)]
pub(crate) enum StreamCommand {
    /// Take live layers from local UDP ports and send them to a group
    #[command(after_help = SEND_EXAMPLES)]
    Send(StreamSendArgs),
    /// Join a group and play its layers out to local UDP ports
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive(StreamReceiveArgs),
    /// Show the streams this node knows, and its queues
    #[command(after_help = "Examples:\n  ncmesh stream list\n  ncmesh stream list --json")]
    List,
    /// End the stream that this node sends to a group, or leave the group
    #[command(after_help = "Examples:\n  ncmesh stream stop --group lecture")]
    Stop(StreamStopArgs),
}

const SEND_EXAMPLES: &str = "\
Examples:
  ncmesh stream send --group lecture --layer base=udp:5004 --layer enh=udp:5006
  ffmpeg -re -i lecture.mp4 -an -c:v libx264 -b:v 400k -f rtp 'rtp://127.0.0.1:5004?pkt_size=1300'
  ncmesh stream send --group lecture --layer base=udp:5004 --no-wait

The base comes first: where links are full, packets of the last layer are dropped first and served last. Ports are \
of 127.0.0.1. Interrupting the command ends the stream, unless it was begun with --no-wait; [stream] in node.toml \
begins one with the daemon.";

const RECEIVE_EXAMPLES: &str = "\
Examples:
  ncmesh stream receive --group lecture --layer base=udp:6004 --layer enh=udp:6006
  ncmesh stream receive --group lecture --min-rate 1.7M --utility log --layer base=udp:6004
  ncmesh stream receive --group lecture --layer base=udp:6004 --no-wait --json

A group may be joined before anybody sends to it. Interrupting the command leaves the group, unless it was joined \
with --no-wait.";

#[derive(Debug, Args)]
pub(crate) struct StreamSendArgs {
    /// The group
    #[arg(long)]
    pub(crate) group: String,
    /// A layer and the local port it comes in by; the base first, up to four
    #[arg(long = "layer", required = true, value_name = "NAME=udp:PORT")]
    pub(crate) layers: Vec<Layer>,
    /// Return at once; `ncmesh stream stop` ends it
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StreamReceiveArgs {
    /// The group
    #[arg(long)]
    pub(crate) group: String,
    /// A layer and the local port it is played out to; layers that are not named go nowhere
    #[arg(long = "layer", required = true, value_name = "NAME=udp:PORT")]
    pub(crate) layers: Vec<Layer>,
    /// What the rate is worth: linear, log, alpha_fair or max_min, of Mbit/s
    #[arg(long, default_value = "linear")]
    pub(crate) utility: String,
    /// A factor of it [default: 1 of linear; of others as steep at rate 0 as multirate.theta allows]
    #[arg(long)]
    pub(crate) weight: Option<f64>,
    /// Added to the rate, Mbit/s: bounds the slope at rate 0 [default: 1]
    #[arg(long)]
    pub(crate) xi: Option<f64>,
    /// The exponent of alpha_fair and max_min
    #[arg(long)]
    pub(crate) alpha: Option<f64>,
    /// The rate below which there is a penalty, for instance 1.7M, in bit/s
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) min_rate: Option<u64>,
    /// Per Mbit/s below it [default: what multirate.theta leaves room for]
    #[arg(long, requires = "min_rate")]
    pub(crate) penalty: Option<f64>,
    /// Return at once; `ncmesh stream stop` leaves the group
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StreamStopArgs {
    /// The group
    #[arg(long)]
    pub(crate) group: String,
}

fn rate(text: &str) -> Result<u64, String> {
    let rate = Quantity::parse(text, "").map(|Quantity(bps)| bps);
    rate.ok_or_else(|| "allowed is a bit rate such as 500k or 1.7M, in bit/s".into())
}
