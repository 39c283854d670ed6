//! Command line of `ncmesh`. The doc comments are the texts of `--help`.

use crate::failure::EXIT_CODES;
use crate::stream_args::StreamCommand;
use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueHint};
#[cfg(feature = "manual")]
use clap_complete::Shell;
use ncmesh_engine::registry::AUTO;
use ncmesh_engine::tunnel::RelayMode;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
#[cfg(feature = "lab")]
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Network coding for wireless meshes: reliable files to many receivers, an IP tunnel, and live
/// streams
#[derive(Debug, Parser)]
#[command(name = "ncmesh", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) remote: Remote,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of all commands: the daemon's address and the form of the output.
#[derive(Debug, Args)]
pub(crate) struct Remote {
    /// The daemon's API socket [default: api.sock in the daemon's default state directory, else
    /// /run/ncmesh/api.sock]
    #[arg(
        long, global = true, env = "NCMESH_API", value_name = "SOCKET",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) api: Option<PathBuf>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node of the mesh until it is interrupted
    #[command(after_help = NODE_EXAMPLES)]
    Node(NodeArgs),
    /// Send a file to other nodes
    #[command(after_help = SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive files into a directory and show each as it arrives
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive(ReceiveArgs),
    /// Show the transfers this node takes part in
    #[command(after_help = TRANSFERS_EXAMPLES)]
    Transfers(TransfersArgs),
    /// Send and receive live layered streams
    #[command(subcommand)]
    Stream(StreamCommand),
    /// Show the other nodes of the mesh
    #[command(after_help = "Examples:\n  ncmesh peers\n  ncmesh peers --json")]
    Peers,
    /// Show the node's state and possible problems
    #[command(
        after_help = "Examples:\n  ncmesh status\n  ncmesh status --api /run/ncmesh/api.sock"
    )]
    Status,
    /// End a transfer: at its source for all receivers, at a receiver for that one alone. Removes
    /// what is left of a file whose source is gone
    #[command(after_help = "Examples:\n  ncmesh cancel 3-09ab12ff")]
    Cancel(CancelArgs),
    /// Change the tunnel scheme or the relay mode of a running node
    #[command(after_help = TUNNEL_EXAMPLES)]
    Tunnel(TunnelArgs),
    /// Make a network key. Every node of a network needs the same one
    #[command(after_help = "Examples:\n  ncmesh keygen network.key\n  ncmesh keygen > network.key")]
    Keygen(KeygenArgs),
    #[cfg(feature = "lab")]
    /// Run a scenario over an emulated mesh of real daemons. Flows need root
    #[command(after_help = LAB_EXAMPLES)]
    Lab(LabArgs),
    #[cfg(feature = "lab")]
    /// Run a scenario over a simulated mesh: fast and repeatable
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateArgs),
    #[cfg(feature = "lab")]
    /// Show a recorded run in the browser
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    #[cfg(feature = "lab")]
    /// Show in the browser what coding gains: the same mesh and seed, forwarded and coded
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(DemoArgs),
    #[cfg(feature = "manual")]
    /// Print the completions of a shell
    #[command(after_help = "Examples:\n  ncmesh completions bash > /etc/bash_completion.d/ncmesh")]
    Completions(CompletionsArgs),
    #[cfg(feature = "manual")]
    /// Write the man pages into a directory
    #[command(after_help = "Examples:\n  ncmesh man /usr/local/share/man/man1")]
    Man(ManArgs),
}

const TRANSFERS_EXAMPLES: &str = "\
Examples:
  ncmesh transfers
  ncmesh transfers --watch
  ncmesh transfers --json
  ncmesh transfers --watch --json

A file whose source is gone is shown as out of reach. What is there of it is kept for [inbox] \
keep_days, a week by default.";

const NODE_EXAMPLES: &str = "\
Examples:
  ncmesh node --config node.toml

A smallest node.toml:
  [node]
  id = 3
  name = \"roof-east\"
  key_file = \"network.key\"

  [radio]
  kind = \"udp\"
  interface = \"wlan0\"
  rate = \"6M\"

  [inbox]
  dir = \"inbox\"

[inbox] also limits what received files may take: max_bytes, reserve, allow_from, keep_days. The \
configuration reference has every setting.

NCMESH_LOG sets what is logged: error, warn, info (default), debug.";

const SEND_EXAMPLES: &str = "\
Examples:
  ncmesh send firmware.img --to roof-east,roof-west
  ncmesh send firmware.img --to all --name firmware-2.1.img
  ncmesh send firmware.img --to 5,9 --no-wait
  ncmesh send firmware.img --to all --timeout 600

The daemon reads the file, which must not change until it is sent. A daemon that was stopped goes \
on sending when it starts again. Interrupting this command does not end the transfer; \
`ncmesh cancel` does.";

const RECEIVE_EXAMPLES: &str = "\
Examples:
  ncmesh receive --dir downloads
  ncmesh receive --dir downloads --once
  ncmesh receive --dir downloads --json   # a line of JSON for each file
  ncmesh receive                          # into the daemon's present inbox

The directory stays the daemon's inbox until the daemon stops or another one is set. Files begun \
there are finished there. [inbox] dir in node.toml sets it permanently.";

const TUNNEL_EXAMPLES: &str = "\
Examples:
  ncmesh tunnel xor
  ncmesh tunnel forward --api /run/ncmesh/api.sock
  ncmesh tunnel --relay recoding              # a relay needs no [tunnel] of its own
  ncmesh tunnel core_nc --relay core --coding on

The change lasts until the daemon stops. [tunnel] scheme, [core_nc] relay, [core_nc] coding and \
[cope] coding in node.toml set it permanently. Each node chooses the scheme of what it sends and \
how it relays; it receives packets of every scheme. Generations in flight end as they began. \
Sources and destinations need not know of a relay's choice.";

#[cfg(feature = "lab")]
const LAB_EXAMPLES: &str = "\
Examples:
  ncmesh lab scenarios/building.toml --send photo.jpg --from n01 --to n05,n09,n14,n20
  ncmesh lab scenarios/pair.toml                              # the traffic the scenario names
  ncmesh lab scenarios/line.toml --set medium.bit_rate=2M --set protocol.pacifier.variant=tree
  ncmesh lab scenarios/building.toml --send photo.jpg --dir lab --json
  ncmesh lab scenarios/tunnel.toml --scheme mc2                  # as root: flows, by iperf3
  ncmesh lab scenarios/hub.toml --compare forward                # TCP with and without coding

Every node is an `ncmesh node` process with its own state directory and inbox; only the radio \
channel is emulated. Each end of a flow has a tunnel device in a network namespace. Interrupting \
the command ends everything.";

#[cfg(feature = "lab")]
const REPLAY_EXAMPLES: &str = "\
Examples:
  ncmesh simulate building --record building.ncrec
  ncmesh replay building.ncrec
  ncmesh replay building.ncrec --html building.html    # one file, for others to open";

#[cfg(feature = "lab")]
const DEMO_EXAMPLES: &str = "\
Examples:
  ncmesh demo
  ncmesh demo --no-browser --listen 127.0.0.1:8000";

#[cfg(feature = "lab")]
const SIMULATE_EXAMPLES: &str = "\
Examples:
  ncmesh simulate scenarios/building.toml
  ncmesh simulate scenarios/building.toml --seed 7 --set medium.bit_rate=2M --set traffic.size=12MB
  ncmesh simulate scenarios/line.toml --send photo.jpg --from a --to d --json
  ncmesh simulate scenarios/cross.toml --scheme core_nc        # the scenario's flows
  ncmesh simulate scenarios/stream.toml                        # the scenario's streams
  ncmesh simulate cross --web                                  # a built-in one, in the browser
  ncmesh simulate scenarios/diamond.toml --unsealed --pcap diamond.pcapng
  wireshark -X lua_script:wireshark/ncmesh.lua diamond.pcapng
  ncmesh simulate scenarios/building.toml --pcap n09.pcapng --pcap-node n09 --events events.jsonl

The same scenario, settings and seed give the same run, frame for frame, and the same trace hash.";

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The node's configuration file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The file to send
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Names or ids of the receivers, separated by commas; or `all`, which includes nodes that join
    /// later
    #[arg(long, required = true, value_delimiter = ',', value_name = "NODES")]
    pub(crate) to: Vec<String>,
    /// The file's name at the receivers [default: its own name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The file scheme: cascade, pacifier, more, etx_unicast or tree_flood; or auto, which is
    /// cascade
    #[arg(long, default_value = AUTO)]
    pub(crate) scheme: String,
    /// Return once the transfer is announced, and print its id
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Stop waiting after this many seconds (exit code 7). The transfer goes on [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "no_wait")]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ReceiveArgs {
    /// Directory for received files, made if it is absent [default: the daemon's present inbox]
    #[arg(long, value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Return after one complete file
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TransfersArgs {
    /// Show progress until interrupted; with --json, one line for each transfer and each change
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Id of the transfer, as `ncmesh transfers` shows it
    pub(crate) id: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct TunnelArgs {
    /// A tunnel scheme: braid, forward, xor, mc2, core_nc or cope; or auto, which is braid
    pub(crate) scheme: Option<String>,
    /// Relay mode of this node for core_nc: core, recoding or non_recoding
    #[arg(long, value_parser = relay)]
    pub(crate) relay: Option<RelayMode>,
    /// Whether this node, as a relay of core_nc or cope, combines flows that cross: on or off
    #[arg(
        long, value_name = "ON|OFF", value_parser = BoolishValueParser::new(),
        hide_possible_values = true
    )]
    pub(crate) coding: Option<bool>,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// File for the key, which must not exist yet; only its owner may read it [default: standard
    /// output]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}

#[cfg(feature = "lab")]
/// Options of `lab` and `simulate`: the scenario and its changes.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// The scenario file
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// The file to send [default: the content of the scenario's traffic]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) send: Option<PathBuf>,
    /// Name of the source [default: the scenario's]
    #[arg(long, value_name = "NODE")]
    pub(crate) from: Option<String>,
    /// Names of the receivers, separated by commas; or `all` [default: the scenario's]
    #[arg(long, value_delimiter = ',', value_name = "NODES")]
    pub(crate) to: Vec<String>,
    /// Change a setting of the scenario, for instance medium.bit_rate=2M. May be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The scheme: cascade, pacifier, more, etx_unicast or tree_flood for a file; braid,
    /// forward, xor, mc2, core_nc or cope for flows; multirate for streams; or auto, which is
    /// cascade if a file is sent, else braid for flows, else multirate
    #[arg(long, default_value = AUTO)]
    pub(crate) scheme: String,
    /// Stop after this many seconds of the mesh's clock (exit code 7) [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Run the flows by this tunnel scheme first, and show how --scheme changes throughput, losses
    /// and round-trip times with and without load
    #[arg(long, value_name = "SCHEME")]
    pub(crate) compare: Option<String>,
    /// Keep the nodes' configurations, logs, states and inboxes in this directory [default: a
    /// temporary directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Interval in seconds for counting each flow's delivered packets; --json shows them as samples
    /// [default: no samples]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) sample: Option<Duration>,
    /// Stop if the machine lags this many seconds behind the emulated channel for a second
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0.25")]
    pub(crate) max_lag: Duration,
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Seed of all random draws [default: the scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Do not encrypt frames, so that captures show their contents. Nothing else changes
    #[arg(long)]
    pub(crate) unsealed: bool,
    /// Say on standard error what took the time: the medium, timers, frames of each service
    #[arg(long)]
    pub(crate) time_parts: bool,
    /// Serve the console while the scenario runs and afterwards, until interrupted
    #[arg(long)]
    pub(crate) web: bool,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Write the console with the run in it as one page to this file. An existing file is
    /// overwritten
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Write the console with the run in it as one page to this file, and serve nothing. An
    /// existing file is overwritten
    #[arg(long, value_name = "PAGE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

#[cfg(feature = "lab")]
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[cfg(feature = "lab")]
/// Where the console is served.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// Address and port for the console's server; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7180")]
    pub(crate) listen: SocketAddr,
}

#[cfg(feature = "lab")]
/// Options for files that record a run event by event.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Write the frames on the air to this file as pcapng. An existing file is overwritten
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Capture what these nodes send and hear: names separated by commas, or `all` [default: each
    /// frame once, at its sender]
    #[arg(long, value_delimiter = ',', value_name = "NODES", requires = "pcap")]
    pub(crate) pcap_node: Vec<String>,
    /// Write every event to this file, one line of JSON each. An existing file is overwritten
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
    /// Record the run for the console into this file, for `ncmesh replay`. An existing file is
    /// overwritten
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,
}

#[cfg(feature = "manual")]
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[cfg(feature = "manual")]
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Directory for the pages, made if it is absent
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
}

/// Parses a relay mode by the names that configuration files use.
fn relay(text: &str) -> Result<RelayMode, String> {
    RelayMode::deserialize(text.into_deserializer()).map_err(|e: Error| e.to_string())
}

/// Parses a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    seconds.ok_or_else(|| "allowed are seconds, 0 or more".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn receivers_are_a_list() {
        let cli = Cli::parse_from(["ncmesh", "send", "f", "--to", "a,b", "--to", "c"]);
        let Command::Send(args) = cli.command else { panic!("not send") };
        assert_eq!(args.to, ["a", "b", "c"]);
    }
}
