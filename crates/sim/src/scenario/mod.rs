//! Scenario files: a network, its medium, its traffic and the settings of its protocols, in TOML.
//!
//! ```toml
//! name = "diamond"
//! description = "One source, two relays, one destination"
//! seed = 1                                 # names all random draws; 1 if absent
//! sealed = true                            # simulations really encrypt frames; true if absent
//! nodes = ["s", "r1", "r2", "d"]           # or [[node]] tables with name and x, y, z in metres
//!
//! [medium]
//! phy = "802.11b"                          # or "802.11a" (and pure 802.11g)
//! bit_rate = "2M"                          # bit/s
//! # mac = "dcf" | "slotted", conflict, order, rts_threshold_bytes, sense = "audible" | "everyone", bursts, link_power, retry_limit,
//! # mac_overhead_bytes, cw_min, cw_max, mtu, overhear_unicast
//!
//! # [medium.propagation]                   # power over distance in the place of losses
//! # [medium.reception]                     # which frames can be read
//!
//! [topology]                               # at most one of:
//! # matrix = "loss.csv"                    # n x n losses, see `links`
//! # links = "links.csv"                    # lines of from,to,loss
//! # netjson = "graph.json"                 # NetJSON NetworkGraph, see `netjson`
//! # positions = "positions.csv"            # lines of x,y in metres
//! # uniform = { nodes = 50, width_m = 1000, height_m = 1000 }
//! # grid = { columns = 5, rows = 4, spacing_m = 100 }
//!
//! [[link]]                                 # on top of the file, if any
//! from = "s"
//! to = "r1"
//! loss = 0.3                               # 0 to 1
//! loss_back = 0.2                          # equal to loss if absent; 1 for a one-way link
//!
//! # [measure]                              # links are measured beforehand
//!
//! [traffic]                                # a file transfer
//! from = "s"
//! to = ["d"]
//! size = "2.3MB"                           # or file = "firmware.bin"
//!
//! # [[flow]]                               # packets through a tunnel; any number
//! # from = "s"
//! # to = "d"
//! # rate = "500k"                          # bit/s; as many as are taken if absent
//! # packet = 1000                          # bytes; the longest there can be if absent
//! # protocol = "udp"                       # or "tcp": the kernel's, in the lab; congestion = "cubic"
//! # start_s = 0, warm_up_s = 0, seconds = 60
//! # protocol = "tcp"                       # a TCP connection in the place of bare packets; then also:
//! # congestion = "cubic"                   # or "reno", "none"
//! # window = "4M"                          # bytes of send and receive buffer
//! # ack_delay_s = 0.04                     # how long acknowledgments wait for another
//! # size = "1MB"                           # bytes to send; as many as can be if absent
//!
//! # [[stream]]                             # a live layered stream; any number
//! # group = "news"
//! # from = "s"
//! # layers = [{ name = "base", rate = "500k" }, { name = "enh", rate = "2M" }]
//! # packet = 1000                          # bytes; the longest there can be if absent
//! # receivers = [{ node = "d", min_rate = "500k", utility = "log", join_s = 0, leave_s = 30 }]
//! # start_s = 0, warm_up_s = 0, seconds = 60
//!
//! [protocol.pacifier]                      # handed to that protocol as it is
//! knob = 1
//! ```
//!
//! Nodes are numbered in the order of the file, from 1 as node ids, from 0 as radios. Without `nodes` and
//! `[[node]]` they are those of the topology file, in its order. File names are relative to the scenario's.

mod error;
mod ether;
mod file;
mod links;
pub mod netjson;
mod network;
mod overrides;
mod placement;
mod quantity;
mod read;
mod reader;
mod stream;

pub use error::{Place, ScenarioError};
pub use links::Topology;
pub use quantity::Quantity;
pub use stream::{Layer, Stream, StreamReceiver};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ncmesh_engine::time::Duration;
use ncmesh_medium::{LossMatrix, MediumConfig, RadioId};

/// Where a node stands, in metres from any origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// East.
    pub x: f64,
    /// North.
    pub y: f64,
    /// Up.
    pub z: f64,
}

/// A node of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique; 1 to 63 of letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// Where it stands, if the scenario says so.
    pub position: Option<Position>,
}

/// What a file transfer carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// That many bytes made from the seed.
    Random {
        /// Bytes.
        bytes: u64,
    },
    /// The bytes of a file.
    File(PathBuf),
}

/// A file to be carried from one node to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The source's index in [`Scenario::nodes`].
    pub from: usize,
    /// The receivers' indices, at least one, none twice, none the source.
    pub to: Vec<usize>,
    /// What is sent.
    pub content: Content,
}

/// What makes the packets of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams, which are not repeated.
    #[default]
    Udp,
    /// A TCP connection, whose packets go in both directions.
    Tcp(Tcp),
}

/// How the two ends of a TCP connection behave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Congestion control of the sender, by its name; the usual one if absent.
    pub congestion: Option<String>,
    /// Send and receive buffer each, bytes; the usual ones if absent.
    pub window: Option<usize>,
    /// Delay of an acknowledgment that waits for a second segment; zero: each segment is
    /// acknowledged. As the kernel does it if absent. In the lab the kernel always decides itself.
    pub ack_delay: Option<Duration>,
    /// Bytes to be sent in all; as many as can be if absent.
    pub size: Option<u64>,
}

impl Transport {
    /// In scenarios and results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp(_) => "tcp",
        }
    }
}

/// Packets that one node offers to a tunnel for another.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its source's index in [`Scenario::nodes`].
    pub from: usize,
    /// Its destination's.
    pub to: usize,
    /// What is offered, bit/s of packets, evenly spaced; as many as are taken if absent.
    pub rate_bps: Option<u64>,
    /// Length of the packets, bytes; the longest that the scheme carries if absent.
    pub packet: Option<usize>,
    /// What makes them.
    pub transport: Transport,
    /// After which time of the run it begins.
    pub start: Duration,
    /// What then passes before it is measured.
    pub warm_up: Duration,
    /// How long it is measured; then it ends.
    pub duration: Duration,
}

/// Links are measured before a run and what is measured handed to all nodes, which then measure nothing
/// themselves (Pacifier, IV-A).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// For how long.
    pub duration: Duration,
    /// Length of the broadcast probes, bytes.
    pub bytes: usize,
    /// From one probe of a node to its next.
    pub period: Duration,
}

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Names all random draws.
    pub seed: u64,
    /// Whether a simulation encrypts frames; otherwise a null cipher of the same length stands in.
    pub sealed: bool,
    /// All nodes. Node id = index + 1, radio = index.
    pub nodes: Vec<Node>,
    /// How links are measured beforehand, if they are.
    pub measure: Option<Measure>,
    /// The file transfer, if the scenario has one.
    pub traffic: Option<Traffic>,
    /// What tunnels carry.
    pub flows: Vec<Flow>,
    /// What streams there are.
    pub streams: Vec<Stream>,
    /// Settings by protocol name, checked by the protocols themselves.
    pub protocol: BTreeMap<String, toml::Table>,
    /// The largest frame a node hands to its radio, bytes; 1500 if the scenario does not say.
    pub mtu: usize,
    medium: MediumConfig,
    source: reader::Original,
}

impl Scenario {
    /// Reads a scenario file and the files it names.
    ///
    /// # Errors
    /// [`ScenarioError`], with file and line.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let text = reader::text(path)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &path.display().to_string(), directory)
    }

    /// Reads a scenario from `text`; `origin` names it in errors, other files are sought in `directory`.
    ///
    /// # Errors
    /// [`ScenarioError`], with file and line.
    pub fn parse(text: &str, origin: &str, directory: &Path) -> Result<Self, ScenarioError> {
        read::scenario(text, origin, directory)
    }

    /// Reads a scenario that is no file from a table of the same shape; other files are sought in `directory`.
    ///
    /// # Errors
    /// [`ScenarioError`]: [`ScenarioError::Table`] for what the table says.
    pub fn from_table(table: &toml::Table, directory: &Path) -> Result<Self, ScenarioError> {
        let written = toml::to_string(table).map_err(|e| ScenarioError::Table(e.to_string()))?;
        let origin = "<table>";
        let made = read::scenario(&written, origin, directory);
        made.map_err(|error| error.in_table(origin, &written))
    }

    /// Changes one setting: `medium.bit_rate=2M`, `seed=7`, `protocol.pacifier.knob=1`,
    /// `traffic.to=n05,n09`. The value is read as TOML, or else as plain text; where a list stands now, text
    /// with commas is a list.
    ///
    /// # Errors
    /// [`ScenarioError::Override`]; the scenario is then as it was.
    pub fn set(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        *self = overrides::with(&self.source, assignment)?;
        Ok(())
    }

    /// The index of the node named `name`.
    pub fn node_index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Loss of every directed link by node index, for frames of the MTU without interference.
    ///
    /// # Panics
    /// Never: the medium's settings have been checked.
    #[allow(clippy::expect_used, reason = "a scenario's medium is valid")]
    pub fn loss(&self) -> LossMatrix {
        self.medium.expected_loss(self.mtu).expect("checked when the scenario was read")
    }

    /// The medium of this scenario: radio i is node i.
    pub fn medium_config(&self) -> MediumConfig {
        self.medium.clone()
    }

    /// All directed links as (from, to, delivery probability), as in [`loss`](Self::loss).
    pub fn deliveries(&self) -> Vec<(usize, usize, f64)> {
        let delivery = |(from, to, loss): (RadioId, RadioId, f64)| (from.0, to.0, 1.0 - loss);
        self.loss().links().map(delivery).collect()
    }
}
