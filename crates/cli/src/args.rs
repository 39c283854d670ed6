//! What the command line takes.

use crate::failure::EXIT_CODES;
use crate::stream_args::StreamCommand;
use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use ncmesh_engine::tunnel::RelayMode;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Network coding for wireless meshes: files to many receivers at once, reliably; IP through a tunnel; live streams.
#[derive(Debug, Parser)]
#[command(name = "ncmesh", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) remote: Remote,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How the daemon is reached and how answers are shown.
#[derive(Debug, Args)]
pub(crate) struct Remote {
    /// The daemon's API socket [default: api.sock in the daemon's default state directory]
    #[arg(long, global = true, env = "NCMESH_API", value_name = "SOCKET", value_hint = ValueHint::FilePath)]
    pub(crate) api: Option<PathBuf>,
    /// Answer in JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node of the mesh until interrupted
    #[command(after_help = NODE_EXAMPLES)]
    Node(NodeArgs),
    /// Send a file to other nodes
    #[command(after_help = SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive files into a directory and show them as they arrive
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive(ReceiveArgs),
    /// Show the transfers this node takes part in
    #[command(
        after_help = "Examples:\n  ncmesh transfers\n  ncmesh transfers --watch\n  ncmesh transfers --json\n  ncmesh transfers --watch --json"
    )]
    Transfers(TransfersArgs),
    /// Send and receive live layered streams
    #[command(subcommand)]
    Stream(StreamCommand),
    /// Show the other nodes of the mesh
    #[command(after_help = "Examples:\n  ncmesh peers\n  ncmesh peers --json")]
    Peers,
    /// Show how the node is doing and what looks wrong
    #[command(
        after_help = "Examples:\n  ncmesh status\n  ncmesh status --api /run/ncmesh/api.sock"
    )]
    Status,
    /// End a transfer: at its source for all, at a receiver for that receiver
    #[command(after_help = "Examples:\n  ncmesh cancel 3-09ab12ff")]
    Cancel(CancelArgs),
    /// Choose the scheme by which packets leave through this node's tunnel, or what it does as a relay, while it runs
    #[command(after_help = TUNNEL_EXAMPLES)]
    Tunnel(TunnelArgs),
    /// Make a network key; every node of a network needs the same
    #[command(after_help = "Examples:\n  ncmesh keygen network.key\n  ncmesh keygen > network.key")]
    Keygen(KeygenArgs),
    /// Carry a scenario's file, streams, or with root flows of packets, over an emulated mesh of real daemons
    #[command(after_help = LAB_EXAMPLES)]
    Lab(LabArgs),
    /// Carry a scenario's file, flows or streams over a simulated mesh: fast, and the same every time
    #[command(after_help = SIMULATE_EXAMPLES)]
    Simulate(SimulateArgs),
    /// Print a shell's completions
    #[command(after_help = "Examples:\n  ncmesh completions bash > /etc/bash_completion.d/ncmesh")]
    Completions(CompletionsArgs),
    /// Write the man pages into a directory
    #[command(after_help = "Examples:\n  ncmesh man /usr/local/share/man/man1")]
    Man(ManArgs),
}

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

NCMESH_LOG sets what is logged: error, warn, info (default), debug.";

const SEND_EXAMPLES: &str = "\
Examples:
  ncmesh send firmware.img --to roof-east,roof-west
  ncmesh send firmware.img --to all --name firmware-2.1.img
  ncmesh send firmware.img --to 5,9 --no-wait
  ncmesh send firmware.img --to all --timeout 600

The daemon reads the file; it must stay as it is until it is sent. A daemon that is stopped sends on when it \
starts again. Interrupting this command does not end the transfer; `ncmesh cancel` does.";

const RECEIVE_EXAMPLES: &str = "\
Examples:
  ncmesh receive --dir downloads
  ncmesh receive --dir downloads --once
  ncmesh receive --dir downloads --json   # a line of JSON for each file
  ncmesh receive                          # into the inbox the daemon has

The directory stays the daemon's inbox until the daemon stops or another is set, and files begun there are \
finished there; [inbox] dir in node.toml sets it for good.";

const TUNNEL_EXAMPLES: &str = "\
Examples:
  ncmesh tunnel xor
  ncmesh tunnel forward --api /run/ncmesh/api.sock
  ncmesh tunnel --relay recoding              # a relay needs no [tunnel] of its own
  ncmesh tunnel core_nc --relay core --coding on

It lasts until the daemon stops; [tunnel] scheme, [core_nc] relay, [core_nc] coding and [cope] coding in node.toml set it \
for good. Each node chooses for what it sends and relays; what comes by any scheme is taken. Generations under way end as \
they began; sources and destinations need not know.";

const LAB_EXAMPLES: &str = "\
Examples:
  ncmesh lab scenarios/building.toml --send photo.jpg --from n01 --to n05,n09,n14,n20
  ncmesh lab scenarios/pair.toml                              # the traffic the scenario names
  ncmesh lab scenarios/line.toml --set medium.bit_rate=2M --set protocol.pacifier.variant=tree
  ncmesh lab scenarios/building.toml --send photo.jpg --dir lab --json
  ncmesh lab scenarios/tunnel.toml --scheme mc2               # as root: the flows the scenario names, by iperf3
  ncmesh lab scenarios/hub.toml --scheme xor --compare forward   # what coding is worth to TCP there

Every node is an `ncmesh node` process with a state directory and an inbox of its own; only the air between \
them is emulated. Each end of a flow has a network namespace with a tunnel device. Interrupting the command \
ends them all.";

const SIMULATE_EXAMPLES: &str = "\
Examples:
  ncmesh simulate scenarios/building.toml
  ncmesh simulate scenarios/building.toml --seed 7 --set medium.bit_rate=2M --set traffic.size=12MB
  ncmesh simulate scenarios/line.toml --send photo.jpg --from a --to d --json
  ncmesh simulate scenarios/cross.toml --scheme core_nc        # the flows the scenario names
  ncmesh simulate scenarios/stream.toml                        # its streams
  ncmesh simulate scenarios/diamond.toml --unsealed --pcap diamond.pcapng
  wireshark -X lua_script:wireshark/ncmesh.lua diamond.pcapng
  ncmesh simulate scenarios/building.toml --pcap n09.pcapng --pcap-node n09 --events events.jsonl

The same scenario, settings and seed give the same run, frame for frame: the trace hash says so.";

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The node's configuration
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The file
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Receivers by name or id, separated by commas; or `all`: every node known, and those that join
    #[arg(long, required = true, value_delimiter = ',', value_name = "NODES")]
    pub(crate) to: Vec<String>,
    /// The name receivers give it [default: the file's own]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The protocol that carries it: pacifier, more, etx_unicast or tree_flood [default: pacifier]
    #[arg(long)]
    pub(crate) scheme: Option<String>,
    /// Return once it is announced, and print its id
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Give up waiting after so many seconds (exit code 7); the transfer goes on
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "no_wait")]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct ReceiveArgs {
    /// Where files are put; made if it is not there [default: the inbox the daemon has]
    #[arg(long, value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Return after one file
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TransfersArgs {
    /// Show progress until interrupted; with --json a line for each transfer and each change of one
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The transfer's id, as `ncmesh transfers` shows it
    pub(crate) id: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct TunnelArgs {
    /// A tunnel scheme: forward, xor, mc2, core_nc or cope
    pub(crate) scheme: Option<String>,
    /// What this node is as a relay of core_nc: core, recoding or non_recoding
    #[arg(long, value_parser = relay)]
    pub(crate) relay: Option<RelayMode>,
    /// Whether it combines flows that cross, as a relay of core_nc and cope: on or off
    #[arg(long, value_name = "ON|OFF", value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub(crate) coding: Option<bool>,
}

#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// Where to put the key, readable by its owner only; never over another file [default: standard output]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}

/// What is sent over which mesh.
#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    /// The scenario
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: PathBuf,
    /// The file to send [default: what the scenario's traffic says]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) send: Option<PathBuf>,
    /// The source, by name [default: the scenario's]
    #[arg(long, value_name = "NODE")]
    pub(crate) from: Option<String>,
    /// Receivers by name, separated by commas; or `all` [default: the scenario's]
    #[arg(long, value_delimiter = ',', value_name = "NODES")]
    pub(crate) to: Vec<String>,
    /// Change a setting of the scenario, for instance medium.bit_rate=2M; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The protocol: pacifier, more, etx_unicast or tree_flood for a file; forward, xor, mc2, core_nc or cope for
    /// flows; multirate for streams [default: pacifier for a file, else forward for flows, else multirate]
    #[arg(long)]
    pub(crate) scheme: Option<String>,
    /// Give up after so many seconds of the mesh's clock (exit code 7) [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Carry the flows by this tunnel scheme first, and tell what --scheme changes against it: throughput, losses,
    /// round-trip times under load and without
    #[arg(long, value_name = "SCHEME")]
    pub(crate) compare: Option<String>,
    /// Keep the nodes' configurations, logs, states and inboxes in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Note so often how many packets of each flow have arrived; --json shows it as samples
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) sample: Option<Duration>,
    /// Give up where the machine falls so many seconds behind the emulated medium for a second
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0.25")]
    pub(crate) max_lag: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Names all random draws [default: the scenario's]
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Do not encrypt frames, so that a capture shows what is in them; nothing else changes
    #[arg(long)]
    pub(crate) unsealed: bool,
    #[command(flatten)]
    pub(crate) traces: TraceArgs,
}

/// Files that tell a run event by event.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Write the frames on the air to this file, as pcapng; one that is there is overwritten
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Capture what these nodes send and hear, by name, separated by commas; or `all` [default: each frame once,
    /// where it is sent]
    #[arg(long, value_delimiter = ',', value_name = "NODES", requires = "pcap")]
    pub(crate) pcap_node: Vec<String>,
    /// Write every event to this file, a line of JSON each; one that is there is overwritten
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) events: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory; made if it is not there
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
}

fn relay(text: &str) -> Result<RelayMode, String> {
    RelayMode::deserialize(text.into_deserializer()).map_err(|e: Error| e.to_string())
}

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
