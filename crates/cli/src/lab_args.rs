//! Command line of meshes on one machine: `lab`, `simulate`, `replay` and `demo`.

use crate::schemes::scenario_schemes_help;
use crate::seconds::{seconds, within_seconds};
use clap::{Args, ValueHint};
use ncmesh_engine::registry::AUTO;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const LAB_EXAMPLES: &str = "\
Examples:
  ncmesh lab scenarios/building.toml --send photo.jpg --from n01 --to n05,n09,n14,n20
  ncmesh lab scenarios/pair.toml                              # the traffic the scenario names
  ncmesh lab scenarios/line.toml --set medium.bit_rate=2M --set protocol.pacifier.variant=tree
  ncmesh lab scenarios/building.toml --send photo.jpg --dir lab --json
  ncmesh lab building --hold                                     # then talk to its nodes
  ncmesh lab building --web                                      # each node in the browser
  ncmesh lab building --web --token-file token                   # and commands from there
  ncmesh lab scenarios/tunnel.toml --scheme mc2                  # as root: flows, by iperf3
  ncmesh lab scenarios/hub.toml --compare forward                # TCP with and without coding

Every node is an `ncmesh node` process with its own state directory and inbox; only the radio \
channel is emulated. Each end of a flow has a tunnel device in a network namespace. Interrupting \
the command ends everything.";

pub(crate) const SIMULATE_EXAMPLES: &str = "\
Examples:
  ncmesh simulate scenarios/building.toml
  ncmesh simulate scenarios/building.toml --seed 7 --set medium.bit_rate=2M --set traffic.size=12MB
  ncmesh simulate scenarios/line.toml --send photo.jpg --from a --to d --json
  ncmesh simulate scenarios/cross.toml --scheme core_nc        # the scenario's flows
  ncmesh simulate scenarios/stream.toml                        # the scenario's streams
  ncmesh simulate side-by-side --scheme file=cascade,tunnel=xor # a file beside flows
  ncmesh simulate building --compare all                       # all file schemes
  ncmesh simulate cross --web                                  # a built-in one, in the browser
  ncmesh simulate scenarios/diamond.toml --unsealed --pcap diamond.pcapng
  wireshark -X lua_script:wireshark/ncmesh.lua diamond.pcapng
  ncmesh simulate scenarios/building.toml --pcap n09.pcapng --pcap-node n09 --events events.jsonl

The same scenario, settings and seed give the same run, frame for frame, and the same trace hash.";

pub(crate) const REPLAY_EXAMPLES: &str = "\
Examples:
  ncmesh simulate building --record building.ncrec
  ncmesh replay building.ncrec
  ncmesh replay building.ncrec --html building.html    # one file, for others to open";

pub(crate) const DEMO_EXAMPLES: &str = "\
Examples:
  ncmesh demo
  ncmesh demo --no-browser --listen 127.0.0.1:8000";

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
    #[arg(long, default_value = AUTO, help = scenario_schemes_help())]
    pub(crate) scheme: String,
    /// Print a line of JSON for each step of the run and one for its result. Its `event` says which
    #[arg(long)]
    pub(crate) json_stream: bool,
    /// Stop after this many seconds of the mesh's clock (exit code 7) [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Run this scheme first, or `all` others of the service, and compare --scheme with it: by
    /// throughput, losses and round-trip times of flows, with and without load, or by the times and
    /// transmissions of a file
    #[arg(long, value_name = "SCHEME")]
    pub(crate) compare: Option<String>,
    /// Keep the mesh up after its traffic until interrupted, and say how to talk to its nodes
    #[arg(long, conflicts_with = "compare")]
    pub(crate) hold: bool,
    /// Serve the console of each node while the mesh is up, and keep it up as --hold does. The
    /// first is at --listen, the others at the ports behind it
    #[arg(long, conflicts_with = "compare")]
    pub(crate) web: bool,
    /// File whose first line is the token, 16 characters or more, with which the consoles take
    /// commands [default: they are for looking only]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "web")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Keep the nodes' configurations, logs, states and inboxes in this directory [default: a
    /// temporary directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// Interval in seconds for counting each flow's delivered packets; --json shows them as samples
    /// [default: no samples]
    #[arg(long, value_name = "SECONDS", value_parser = within_seconds(0.001..=1e6))]
    pub(crate) sample: Option<Duration>,
    /// Stop if the machine lags this many seconds behind the emulated channel for a second
    #[arg(
        long, value_name = "SECONDS", default_value = "0.25",
        value_parser = within_seconds(0.001..=1e6)
    )]
    pub(crate) max_lag: Duration,
}

/// Parses a seed. Whole numbers of TOML, and so of scenarios, end where those of 64 bits with a
/// sign do.
fn seed(text: &str) -> Result<u64, String> {
    let seed = text.parse::<i64>().ok().and_then(|seed| u64::try_from(seed).ok());
    seed.ok_or_else(|| format!("allowed is 0 to {}", i64::MAX))
}

impl LabArgs {
    /// Returns whether the mesh stays up after its traffic.
    pub(crate) fn holds(&self) -> bool {
        self.hold || self.web
    }
}

#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Seed of all random draws, 0 to 9223372036854775807 [default: the scenario's]
    #[arg(long, value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Run these schemes too, separated by commas, or `all` others of the service, and compare
    /// --scheme with them: by the times and transmissions of a file, or by the throughput of flows
    #[arg(long, value_delimiter = ',', value_name = "SCHEMES")]
    pub(crate) compare: Vec<String>,
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

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The recording, or two that are shown in step: the second is compared with the first
    #[arg(value_name = "FILE", required = true, num_args = 1..=2, value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Write the console with the recordings in it as one page to this file, and serve nothing.
    /// An existing file is overwritten
    #[arg(long, value_name = "PAGE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}

/// Where the console is served.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// Address and port for the console's server; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7180")]
    pub(crate) listen: SocketAddr,
}

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
