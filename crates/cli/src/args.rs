//! Command line of `ncmesh`. The doc comments are the texts of `--help`.

use crate::airtime::airtime;
use crate::failure::EXIT_CODES;
use crate::fleet_args::FleetCommand;
#[cfg(feature = "lab")]
use crate::lab_args::{self, DemoArgs, LabArgs, ReplayArgs, SimulateArgs};
use crate::network_args::NetworkCommand;
use crate::number::within;
use crate::remote_args::{NoArgs, Remote, Remotely, WatchArgs};
use crate::schemes::scheme_help;
use crate::seconds::{seconds, within_seconds};
use crate::source::pattern;
use crate::stream_args::{StreamCommand, rate};
use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueHint};
#[cfg(feature = "manual")]
use clap_complete::Shell;
use ncmesh_engine::Background;
use ncmesh_engine::registry::{AUTO, ServiceKind};
use ncmesh_engine::settings::Value;
use ncmesh_engine::tunnel::RelayMode;
use ncmesh_node::config::Rate;
use ncmesh_node::tree::pack::Pattern;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Network coding for wireless meshes: reliable files to many receivers, an IP tunnel, and live
/// streams
#[derive(Debug, Parser)]
#[command(name = "ncmesh", version, propagate_version = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) remote: Remote,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node of the mesh until it is interrupted
    #[command(after_help = NODE_EXAMPLES)]
    Node(NodeArgs),
    #[command(flatten)]
    Client(ClientCommand),
    /// Make a network key. Every node of a network needs the same one
    #[command(after_help = "Examples:\n  ncmesh keygen network.key\n  \
                            (umask 077; ncmesh keygen > network.key)")]
    Keygen(KeygenArgs),
    /// Make a network of nodes with certificates, and revoke them
    #[command(subcommand)]
    Network(NetworkCommand),
    /// Make, sign and check releases of router images, and roll them out over the mesh
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// List the schemes that this program knows
    #[command(after_help = "Examples:\n  ncmesh schemes\n  ncmesh schemes --json")]
    Schemes,
    #[cfg(feature = "lab")]
    /// Run a scenario over an emulated mesh of real daemons. Flows need root
    #[command(after_help = lab_args::LAB_EXAMPLES)]
    Lab(LabArgs),
    #[cfg(feature = "lab")]
    /// Run a scenario over a simulated mesh: fast and repeatable
    #[command(after_help = lab_args::SIMULATE_EXAMPLES)]
    Simulate(SimulateArgs),
    #[cfg(feature = "lab")]
    /// Show a recorded run in the browser
    #[command(after_help = lab_args::REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
    #[cfg(feature = "lab")]
    /// Show in the browser what coding gains: the same mesh and seed, forwarded and coded
    #[command(after_help = lab_args::DEMO_EXAMPLES)]
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

impl Command {
    /// Returns whether it talks to a daemon.
    pub(crate) fn asks_daemon(&self) -> bool {
        matches!(self, Self::Client(_) | Self::Fleet(FleetCommand::Rollout(_)))
    }
}

/// Commands that talk to a daemon.
#[derive(Debug, Subcommand)]
pub(crate) enum ClientCommand {
    /// Send a file to other nodes
    #[command(after_help = SEND_EXAMPLES)]
    Send(Remotely<SendArgs>),
    /// Receive files into a directory and show each as it arrives
    #[command(after_help = RECEIVE_EXAMPLES)]
    Receive(Remotely<ReceiveArgs>),
    /// Show the transfers this node takes part in
    #[command(after_help = TRANSFERS_EXAMPLES)]
    Transfers(Remotely<TransfersArgs>),
    /// Send and receive live layered streams
    #[command(subcommand)]
    Stream(StreamCommand),
    /// Show the other nodes of the mesh
    #[command(
        after_help = "Examples:\n  ncmesh peers\n  ncmesh peers --watch\n  ncmesh peers --json"
    )]
    Peers(Remotely<WatchArgs>),
    /// Show the best path to another node by link state, hop by hop, with measured round trips
    #[command(after_help = TRACEROUTE_NOTES)]
    Traceroute(Remotely<TracerouteArgs>),
    /// Measure how much the tunnel's scheme carries to another node
    #[command(after_help = BANDWIDTH_NOTES)]
    Bandwidth(Remotely<BandwidthArgs>),
    /// Show the node's state and possible problems
    #[command(after_help = "Examples:\n  ncmesh status\n  ncmesh status --config node.toml")]
    Status(Remotely<WatchArgs>),
    #[cfg(feature = "top")]
    /// Show peers, flows and airtime on the terminal as they change
    #[command(after_help = "Examples:\n  ncmesh top\n  ncmesh top --config node.toml\n\n? shows \
                            the keys.")]
    Top(Remotely<NoArgs>),
    /// End a transfer: at its source for all receivers, at a receiver for that one alone. Removes
    /// what is left of a file whose source is gone
    #[command(after_help = "Examples:\n  ncmesh cancel 3-09ab12ff")]
    Cancel(Remotely<CancelArgs>),
    /// Make the daemon read its configuration file again, and show what changed
    #[command(after_help = RELOAD_NOTES)]
    Reload(Remotely<NoArgs>),
    /// Collect what a report of a problem needs: version, system, interfaces, configuration without
    /// keys, status, peers, transfers, the last lines of the log
    #[command(after_help = "Examples:\n  ncmesh doctor --config node.toml > report.md\n  ncmesh \
                            doctor --json\n  ncmesh doctor --radio wlan0\n\nKeys are never shown. \
                            Without --config the file is /etc/ncmesh/node.toml, if it exists.")]
    Doctor(Remotely<DoctorArgs>),
    /// Show or change the tunnel scheme and the relay mode of a running node
    #[command(after_help = TUNNEL_EXAMPLES)]
    Tunnel(Remotely<TunnelArgs>),
}

/// Options of `ncmesh doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Name what costs throughput on an interface, with the commands that change it, instead
    #[arg(long)]
    pub(crate) radio: bool,
    /// Interface to look at [default: that of the configuration, else all radios]
    #[arg(requires = "radio")]
    pub(crate) interface: Option<String>,
}

const TRANSFERS_EXAMPLES: &str = "\
Examples:
  ncmesh transfers
  ncmesh transfers --watch
  ncmesh transfers --json
  ncmesh transfers --json-stream

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

[node] log sets what is logged: error, warn, info (default), debug, trace. At the start NCMESH_LOG \
goes before it.";

const SEND_EXAMPLES: &str = "\
Examples:
  ncmesh send firmware.img --to roof-east,roof-west
  ncmesh send firmware.img --to all --name firmware-2.1.img
  ncmesh send firmware.img --to 5,9 --no-wait
  ncmesh send firmware.img --to all --timeout 600
  ncmesh send photos --to roof-east --exclude '*.raw' --exclude .git
  ncmesh send site.html images notes --name site --to all
  dmesg | ncmesh send - --name dmesg.txt --to roof-east

A directory arrives as one, with names, modes, times and holes of its files; each file is there as \
soon as it is whole. Symbolic links and devices are left out. A pattern without / is compared with \
names, one with / with paths below the directory.

The daemon reads the file, which must not change until it is sent; of a directory it keeps a \
copy. A daemon that was stopped goes on sending when it starts again. Interrupting this command \
does not end the transfer; `ncmesh cancel` does.";

const RECEIVE_EXAMPLES: &str = "\
Examples:
  ncmesh receive --dir downloads
  ncmesh receive --dir downloads --once
  ncmesh receive --stdout | tar x
  ncmesh receive --dir downloads --json   # a line of JSON for each file
  ncmesh receive                          # into the daemon's present inbox

The directory stays the daemon's inbox until the daemon stops or another one is set. Files begun \
there are finished there. [inbox] dir in node.toml sets it permanently.";

const TRACEROUTE_NOTES: &str = "\
Examples:
  ncmesh traceroute barn
  ncmesh traceroute 5 --json
  ncmesh traceroute barn --count 0            # sends nothing over the mesh

OUT and BACK are the shares of broadcasts that arrive in each direction. ETX is the expected \
number of transmissions of a hop with its acknowledgment. All come from the link state; schemes \
that code or overhear may use other nodes too. RTT is the median of measured round trips from \
this node to the end of the hop, by the scheme of the tunnel, with a [tunnel] or without; '-' if \
nothing came back within 2 s, for instance because the node's ncmesh is older.";

const BANDWIDTH_NOTES: &str = "\
Examples:
  ncmesh bandwidth barn
  ncmesh bandwidth barn --seconds 20 --rate 2M
  ncmesh bandwidth 5 --bytes 200 --json

The packets go by the scheme that the tunnel's packets leave by (`ncmesh tunnel` changes it), with \
a [tunnel] or without. Without --rate they take what the host's own packets to that node leave \
free. Goodput is what arrived: bytes of packets, as IP packets would be, over the time for which \
they were sent, or in which they arrived if that is longer. If the node does not answer, the exit \
code is 6; it is 8 while another measurement of a bandwidth goes on. Interrupting this command \
does not end the measurement; it ends by itself.";

const RELOAD_NOTES: &str = "\
Examples:
  ncmesh reload
  kill -HUP PID             # the same; the answer is in the daemon's log

These settings change without a restart: [node] position, display_name and log, all of [inbox], \
[radio] rate, all of [[port]] while the largest frame stays, and of [tunnel] scheme, clamp_mss, \
padding, queue, announce, and routes and accept unless the host needs other routes. The answer \
names all others that differ; they take effect after a restart. If anything in the file is wrong, \
nothing changes.";

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

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// The node's configuration file
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The file to send; `-` is standard input, which needs a --name. A directory, or several files
    /// and directories, are one transfer
    #[arg(value_hint = ValueHint::AnyPath, required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Send only files that match one of these patterns
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) include: Vec<Pattern>,
    /// Leave out files and directories that match one of these patterns
    #[arg(long, value_name = "PATTERN", value_parser = pattern)]
    pub(crate) exclude: Vec<Pattern>,
    /// Names or ids of the receivers, separated by commas; or `all`, which includes nodes that join
    /// later
    #[arg(long, required = true, value_delimiter = ',', value_name = "NODES")]
    pub(crate) to: Vec<String>,
    /// The file's name at the receivers [default: its own name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    #[arg(long, default_value = AUTO, help = scheme_help(ServiceKind::File))]
    pub(crate) scheme: String,
    /// Send in the background: give way at once to all other traffic, at every node on the way
    #[arg(long)]
    pub(crate) background: bool,
    /// Send in the background, and take at most this share of the airtime around each node, also
    /// where there is no other traffic: 1 to 100 percent
    #[arg(long, value_name = "PERCENT", value_parser = airtime)]
    pub(crate) airtime: Option<Background>,
    /// The most of the file's data that this node sends, for instance 200k, in bit/s; at least 1k
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) limit: Option<u64>,
    /// Turn of the file if many are sent at once: 0 to 9, the highest first [default: 5]
    #[arg(long, value_name = "PRIORITY", value_parser = within::<u8>(0..=9))]
    pub(crate) priority: Option<u8>,
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
    /// Write the contents of one complete file to standard output, and return. The file stays in
    /// the inbox
    #[arg(long)]
    pub(crate) stdout: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TransfersArgs {
    /// Show progress until interrupted
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print a line of JSON for each transfer and each of its changes, until interrupted; the same
    /// as --watch with --json
    #[arg(long)]
    pub(crate) json_stream: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TracerouteArgs {
    /// Name or id of the node
    pub(crate) node: String,
    /// Round trips to measure for each hop; 0 measures nothing
    #[arg(long, default_value_t = 3, value_parser = within::<u8>(0..=20))]
    pub(crate) count: u8,
}

#[derive(Debug, Args)]
pub(crate) struct BandwidthArgs {
    /// Name or id of the node
    pub(crate) node: String,
    /// Time for which packets are sent, 0.1 to 60
    #[arg(long, default_value = "5", value_parser = within_seconds(0.1..=60.0))]
    pub(crate) seconds: Duration,
    /// Length of each packet, up to what the scheme carries
    #[arg(long, default_value_t = 1200, value_parser = within::<usize>(1..=65_535))]
    pub(crate) bytes: usize,
    /// Rate at which packets are sent, bit/s, for instance 500k or 2M [default: as fast as the
    /// scheme takes them]
    #[arg(long, value_parser = Rate::from_str)]
    pub(crate) rate: Option<Rate>,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Id of the transfer, as `ncmesh transfers` shows it
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct TunnelArgs {
    #[arg(help = scheme_help(ServiceKind::Tunnel))]
    pub(crate) scheme: Option<String>,
    /// Relay mode of this node for core_nc
    #[arg(long, value_parser = PossibleValuesParser::new(RelayMode::CHOICES).try_map(relay))]
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

/// Parses a relay mode, whose name was found among those of configuration files.
fn relay(name: String) -> Result<RelayMode, String> {
    RelayMode::deserialize(name.into_deserializer()).map_err(|e: Error| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::with_negatives;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn numbers_out_of_range_are_refused_with_option_and_limits() {
        for (line, option, allowed) in [
            ("simulate a --seed -1", "--seed", "allowed is 0 to 9223372036854775807"),
            ("simulate a --seed 18446744073709551615", "--seed", "allowed is 0 to 92233720368547"),
            ("simulate a --seed 1.5", "--seed", "allowed is 0 to 9223372036854775807"),
            ("simulate a --timeout -1", "--timeout", "allowed are seconds, 0 or more"),
            ("lab a --max-lag -0.5", "--max-lag", "allowed are 0.001 to 1000000 seconds"),
            ("lab a --sample 0", "--sample", "allowed are 0.001 to 1000000 seconds"),
            ("traceroute b --count 300", "--count", "allowed is 0 to 20"),
            ("traceroute b --count -1", "--count", "allowed is 0 to 20"),
            ("bandwidth b --seconds 61", "--seconds", "allowed are 0.1 to 60 seconds"),
            ("bandwidth b --seconds nan", "--seconds", "allowed are 0.1 to 60 seconds"),
            ("bandwidth b --bytes 99999999999999999999", "--bytes", "allowed is 1 to 65535"),
            ("bandwidth b --rate -1", "--rate", "allowed is \"1k\" to \"100G\""),
            ("send f --to b --limit 0k", "--limit", "a rate of 0 is none: leave"),
            ("send f --to b --limit 999", "--limit", "allowed is 1k to 100G, in bit/s"),
            ("send f --to b --airtime -1", "--airtime", "allowed are 1% to 100%"),
            ("stream send --group g --rtp h264=udp:1 --deadline 5", "--deadline", "is 20 to 5000"),
            ("stream receive --group g --rtp 70000", "--rtp", "allowed is 1 to 65535"),
            ("stream receive --group g --rtp 1 --weight nan", "--weight", "a number, 0 or more"),
            (
                "stream receive --group g --rtp 1 --xi -1e3",
                "--xi",
                "allowed is a number, 0 or more",
            ),
        ] {
            let command = with_negatives(Cli::command());
            let words = ["ncmesh"].into_iter().chain(line.split(' '));
            let error = command.try_get_matches_from(words).unwrap_err().to_string();
            let is_said = error.contains(option) && error.contains(allowed);
            assert!(is_said, "{line}: {error}");
        }
    }

    #[test]
    fn receivers_are_a_list() {
        let cli = Cli::parse_from(["ncmesh", "send", "f", "--to", "a,b", "--to", "c"]);
        let Command::Client(ClientCommand::Send(args)) = cli.command else { panic!("not send") };
        assert_eq!(args.args.to, ["a", "b", "c"]);
    }

    #[test]
    fn the_daemon_is_named_before_or_after_the_command() {
        let remote = |line: &str| {
            let cli = Cli::parse_from(line.split(' '));
            let Command::Client(ClientCommand::Peers(peers)) = cli.command else {
                panic!("not peers")
            };
            let Remote { api, config, .. } = peers.remote.or(cli.remote);
            [api, config].map(|path| path.map(|path| path.display().to_string()))
        };
        let path = |path: &str| Some(path.to_owned());
        assert_eq!(remote("ncmesh --api a peers"), [path("a"), None]);
        assert_eq!(remote("ncmesh --config b peers --api a"), [path("a"), path("b")]);
        assert_eq!(remote("ncmesh --config b peers --config c"), [None, path("c")]);
    }
}
