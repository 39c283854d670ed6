//! Command line of `ncmesh stream`. The doc comments are the texts of `--help`.

use crate::number::{not_negative, within};
use crate::remote_args::{NoArgs, Remotely};
use clap::{Args, Subcommand};
use ncmesh_node::config::Rate;
use ncmesh_node::stream::{Layer, RtpPort};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum StreamCommand {
    /// Read live video or layers from local UDP ports and send them to a group
    #[command(after_help = SEND_EXAMPLES)]
    Send(Remotely<StreamSendArgs>),
    /// Join a group and show its video in ffplay or mpv
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(Remotely<StreamWatchArgs>),
    /// Join a group and write its layers to local UDP ports
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive(Remotely<StreamReceiveArgs>),
    /// Show the streams this node knows, with its queues
    #[command(after_help = "Examples:\n  ncmesh stream list\n  ncmesh stream list --json")]
    List(Remotely<NoArgs>),
    /// End the stream that this node sends to a group, or leave the group
    #[command(after_help = "Examples:\n  ncmesh stream stop --group lecture")]
    Stop(Remotely<StreamStopArgs>),
}

const SEND_EXAMPLES: &str = "\
Examples:
  ncmesh stream send --group lecture --rtp h264=udp:5004
  ffmpeg -re -i lecture.mp4 -an -c:v libx264 -bf 2 -f rtp 'rtp://127.0.0.1:5004?pkt_size=1300'
  ncmesh stream send --group lecture --sdp lecture.sdp
  ncmesh stream send --group lecture --layer base=udp:5004 --layer enh=udp:5006 --no-wait

With --rtp and --sdp the layers come from one encoder: frames that no other frame refers to are \
the enhancement. With --layer each layer has its port, the base layer first. Where links are \
full, packets of the last layer are dropped first and served last. Ports are on 127.0.0.1. \
Interrupting the command ends the stream, unless it was begun with --no-wait. \
[stream] in node.toml begins a stream with the daemon.";

const WATCH_EXAMPLES: &str = "\
Examples:
  ncmesh stream watch lecture
  ncmesh stream watch lecture --sdp lecture.sdp

The source must send RTP (`stream send --rtp` or `--sdp`). Closing the player or interrupting the \
command leaves the group.";

const RECEIVE_EXAMPLES: &str = "\
Examples:
  ncmesh stream receive --group lecture --rtp 6004
  ncmesh stream receive --group lecture --layer base=udp:6004 --layer enh=udp:6006
  ncmesh stream receive --group lecture --min-rate 1.7M --utility log --layer base=udp:6004
  ncmesh stream receive --group lecture --layer base=udp:6004 --no-wait --json

A group may be joined before anybody sends to it. Interrupting the command leaves the group, \
unless it was joined with --no-wait.";

#[derive(Debug, Args)]
pub(crate) struct StreamSendArgs {
    /// Name of the group
    #[arg(long)]
    pub(crate) group: String,
    /// A layer and the local port it comes from. Up to four, the base layer first
    #[arg(
        long = "layer",
        value_name = "NAME=udp:PORT",
        required_unless_present_any = ["rtp", "sdp"]
    )]
    pub(crate) layers: Vec<Layer>,
    /// A codec and the local port of its RTP, whose packets tell their layers. RTCP has the next
    /// port. Codecs: h264, h265, vp8, vp9, av1, mp2t, opus, pcma, pcmu
    #[arg(long, value_name = "CODEC=udp:PORT", conflicts_with = "layers")]
    pub(crate) rtp: Vec<RtpPort>,
    /// File with a session description (SDP) of the RTP that comes to local ports
    #[arg(long, value_name = "FILE", conflicts_with_all = ["layers", "rtp"])]
    pub(crate) sdp: Option<PathBuf>,
    /// Age at which a packet is of no use any more, in milliseconds, 20 to 5000 [default:
    /// deadline_ms of the scheme's settings]
    #[arg(long, value_name = "MS", value_parser = within::<u16>(20..=5000))]
    pub(crate) deadline: Option<u16>,
    /// Return at once. `ncmesh stream stop` ends the stream
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StreamReceiveArgs {
    /// Name of the group
    #[arg(long)]
    pub(crate) group: String,
    /// A layer and the local port it goes to. Layers that are not named are discarded
    #[arg(long = "layer", value_name = "NAME=udp:PORT", required_unless_present = "rtp")]
    pub(crate) layers: Vec<Layer>,
    /// Local port of a player for a stream of RTP. RTCP has the next port, further tracks have
    /// those behind it
    #[arg(
        long, value_name = "PORT", conflicts_with = "layers",
        value_parser = within::<u16>(1..=65_535)
    )]
    pub(crate) rtp: Option<u16>,
    /// Utility of the rate in Mbit/s: linear, log, alpha_fair or max_min
    #[arg(long, default_value = "linear")]
    pub(crate) utility: String,
    /// Factor of the utility [default: 1 for linear; else the largest slope at rate 0 that
    /// multirate.theta allows]
    #[arg(long, value_parser = not_negative)]
    pub(crate) weight: Option<f64>,
    /// Added to the rate, in Mbit/s, which bounds the slope at rate 0 [default: 1]
    #[arg(long, value_parser = not_negative)]
    pub(crate) xi: Option<f64>,
    /// Exponent of alpha_fair and max_min
    #[arg(long, value_parser = not_negative)]
    pub(crate) alpha: Option<f64>,
    /// Rate below which a penalty applies, in bit/s, for instance 1.7M
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) min_rate: Option<u64>,
    /// Penalty for each Mbit/s below --min-rate [default: as much as multirate.theta leaves room
    /// for]
    #[arg(long, requires = "min_rate", value_parser = not_negative)]
    pub(crate) penalty: Option<f64>,
    /// Return at once. `ncmesh stream stop` leaves the group
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StreamWatchArgs {
    /// Name of the group
    pub(crate) group: String,
    /// Write the session description to this file and start no player
    #[arg(long, value_name = "FILE")]
    pub(crate) sdp: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StreamStopArgs {
    /// Name of the group
    #[arg(long)]
    pub(crate) group: String,
}

/// Parses a bit rate.
pub(crate) fn rate(text: &str) -> Result<u64, String> {
    let rate = text.parse::<Rate>().map(|rate| rate.bits_per_second.round() as u64);
    // Zero is a number, so "not a rate" would not help: the error says how to have no limit.
    let number = text.trim().trim_end_matches(['k', 'M', 'G']);
    rate.map_err(|_| match number.parse::<f64>() {
        Ok(0.0) => "a rate of 0 is none: leave the option out, or give 1k to 100G, in bit/s".into(),
        _ => "allowed is 1k to 100G, in bit/s, such as 500k or 1.7M".into(),
    })
}
