//! Scenario files: a network, its medium, its traffic and the settings of its protocols, in TOML.
//!
//! `file`, `medium` and `stream` describe the file's tables to serde, without any checks. `read`
//! turns them into a checked [`Scenario`]: `network` reads the nodes and links, with the formats of
//! topology files in `links`, `netjson` and `placement`. Every error names the file and, where
//! known, the line. `overrides` changes one key of the original table and reads the result again,
//! so an override passes the same checks as the file.
//!
//! ```toml
//! name = "diamond"
//! description = "One source, two relays, one destination"
//! seed = 1                                 # seed of all random draws; 1 if absent
//! sealed = true                            # simulations really encrypt frames; true if absent
//! scheme = "auto"                          # schemes of `auto`; the default ones if absent
//! nodes = ["s", "r1", "r2", "d"]           # or [[node]] tables with name and x, y, z in metres
//!
//! [medium]
//! phy = "802.11b"                          # or "802.11a" (and pure 802.11g)
//! bit_rate = "2M"                          # bit/s
//! # mac = "dcf" | "slotted", conflict, order, rts_threshold_bytes, long_retry_limit,
//! # sense = "audible" | "everyone", bursts, link_power, retry_limit, mac_overhead_bytes,
//! # cw_min, cw_max, mtu, overhear_unicast
//!
//! # [medium.propagation]                   # received power from distance, instead of losses
//! # [medium.reception]                     # which frames can be decoded
//!
//! [topology]                               # at most one of:
//! # matrix = "loss.csv"                    # n x n losses, see `links`
//! # links = "links.csv"                    # lines of from,to,loss
//! # netjson = "graph.json"                 # NetJSON NetworkGraph, see `netjson`
//! # positions = "positions.csv"            # lines of x,y in metres
//! # bonnmotion = "walk.movements"          # or fcd, ns2: nodes that move, see `mobility`
//! # step_s = 0.5                           # of these: time between two moves
//! # uniform = { nodes = 50, width_m = 1000, height_m = 1000 }
//! # grid = { columns = 5, rows = 4, spacing_m = 100 }
//!
//! [[link]]                                 # added to those of the topology file, if any
//! from = "s"
//! to = "r1"
//! loss = 0.3                               # 0 to 1
//! loss_back = 0.2                          # equal to loss if absent; 1 for a one-way link
//! # channel = "cable"                      # of a further channel, `[[channel]]`
//!
//! # [measure]                              # measures the links before the run
//! # [processing]                           # time that nodes spend on each received frame
//! # least_s = 0, most_s = 0.001
//!
//! [traffic]                                # a file transfer; of several, each is [[traffic]]
//! from = "s"
//! to = ["d"]
//! size = "2.3MB"                           # or file = "firmware.bin"
//!
//! # [[flow]]                               # packets through a tunnel; any number
//! # from = "s"
//! # to = "d"
//! # rate = "500k"                          # bit/s; as fast as the tunnel takes them if absent
//! # packet = 1000                          # bytes; the longest the scheme carries if absent
//! # start_s = 0, warm_up_s = 0, seconds = 60
//! # protocol = "udp"                       # or "tcp": a TCP connection, the kernel's in the lab
//! # congestion = "cubic"                   # of "tcp": or "reno", "none"
//! # window = "4M"                          # of "tcp": bytes of send and of receive buffer
//! # ack_delay_s = 0.04                     # of "tcp": longest delay of an acknowledgment, s
//! # min_rto_s = 0.3                        # of "tcp": least retransmission timeout, s
//! # size = "1MB"                           # of "tcp": bytes to send; unlimited if absent
//!
//! # [[stream]]                             # a live layered stream; any number
//! # group = "news"
//! # from = "s"
//! # layers = [{ name = "base", rate = "500k" }, { name = "enh", rate = "2M" }]
//! # packet = 1000                          # bytes; the longest the scheme carries if absent
//! # receivers = [{ node = "d", min_rate = "500k", utility = "log", join_s = 0, leave_s = 30 }]
//! # start_s = 0, warm_up_s = 0, seconds = 60
//!
//! [protocol.pacifier]                      # passed to that protocol unchanged
//! knob = 1
//! ```
//!
//! Nodes are numbered in the order of the file, from 1 as node ids and from 0 as radios. Without
//! `nodes` and `[[node]]` the nodes are those of the topology file, in its order. File names are
//! relative to the scenario file.

mod earth;
mod error;
mod file;
mod links;
mod medium;
mod mobility;
pub mod netjson;
mod network;
mod overrides;
mod path;
mod placement;
mod quantity;
mod read;
mod reader;
mod shipped;
mod stream;
mod value;

pub use error::{Place, ScenarioError};
pub use file::sections;
pub use links::Topology;
pub use path::{Mobility, Path as NodePath};
pub use quantity::Quantity;
pub use shipped::names as shipped;
pub use stream::{Layer, Stream, StreamReceiver};

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ncmesh_engine::file::Allowance;
use ncmesh_engine::registry::ServiceKind;
use ncmesh_engine::text::unmarked;
use ncmesh_engine::time::Duration;
use ncmesh_medium::{LossMatrix, LossyLink, MediumConfig};
use ncmesh_stack::trust::TrustMode;

/// Position of a node, in metres from an arbitrary origin.
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
    /// Position, if the scenario gives one.
    pub position: Option<Position>,
}

/// Contents of a file transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Random bytes, generated from the seed.
    Random {
        /// Number of bytes.
        bytes: u64,
    },
    /// The bytes of a file.
    File(PathBuf),
}

/// A file transfer from one node to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Index of the source in [`Scenario::nodes`].
    pub from: usize,
    /// Indices of the receivers: at least one, all different, none of them the source.
    pub to: Vec<usize>,
    /// Contents of the file.
    pub content: Content,
    /// Airtime and rate that it may take.
    pub allowance: Allowance,
}

/// Transport protocol that produces the packets of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams, without retransmission.
    #[default]
    Udp,
    /// A TCP connection, with packets in both directions.
    Tcp(Tcp),
}

/// Settings of both ends of a TCP connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Name of the sender's congestion control; the default one if absent.
    pub congestion: Option<String>,
    /// Size of the send buffer and of the receive buffer, bytes; the default sizes if absent.
    pub window: Option<usize>,
    /// Time that an acknowledgment waits for a second segment; zero acknowledges each segment, and
    /// the kernel's policy applies if absent. In the lab that applies with any other value, too.
    pub ack_delay: Option<Duration>,
    /// Least retransmission timeout; without it the smoothed round-trip time and at least 0.2 s, as
    /// in Linux.
    pub min_rto: Option<Duration>,
    /// Total bytes to send; unlimited if absent.
    pub size: Option<u64>,
}

impl Transport {
    /// Returns the name used in scenarios and results.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp(_) => "tcp",
        }
    }
}

/// A flow of packets that one node offers to a tunnel for another.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Index of the source in [`Scenario::nodes`].
    pub from: usize,
    /// Index of the destination.
    pub to: usize,
    /// Offered rate, bit/s of packets, evenly spaced; as fast as the tunnel takes them if absent.
    pub rate_bps: Option<u64>,
    /// Length of the packets, bytes; the longest that the scheme carries if absent.
    pub packet: Option<usize>,
    /// DSCP of the packets, in both directions.
    pub dscp: u8,
    /// Protocol that produces the packets.
    pub transport: Transport,
    /// Time from the beginning of the run to the beginning of the flow.
    pub start: Duration,
    /// Time from there to the beginning of the measurement.
    pub warm_up: Duration,
    /// Length of the measurement; the flow ends with it.
    pub duration: Duration,
}

/// Settings for measuring all links before a run. Every node gets the result and measures nothing
/// itself (Pacifier, IV-A).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// Length of the measurement.
    pub duration: Duration,
    /// Length of the broadcast probes, bytes.
    pub bytes: usize,
    /// Mean interval between two probes of one node.
    pub period: Duration,
}

/// Range of the time that a simulated node spends on each received frame. It is drawn uniformly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processing {
    /// Shortest time.
    pub least: Duration,
    /// Longest time.
    pub most: Duration,
}

/// A channel beside the first one. It has a radio for each node of the mesh; those of other nodes
/// are switched off.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name, which no other channel has.
    pub name: String,
    /// Settings of its medium, with its seed.
    pub medium: MediumConfig,
    /// Nodes that have a port on it.
    pub nodes: BTreeSet<usize>,
}

/// Name of the channel of `[medium]`, where several are told apart.
pub const FIRST_CHANNEL: &str = "air";

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// Purpose of the scenario, in a sentence.
    pub description: String,
    /// Seed of all random draws.
    pub seed: u64,
    /// Whether a simulation encrypts frames. If not, a null cipher adds as many bytes.
    pub sealed: bool,
    /// How simulated nodes trust each other.
    pub trust: TrustMode,
    /// Schemes that `auto` stands for, if the scenario names some.
    pub scheme: Option<String>,
    /// All nodes. The node id is the index + 1, the radio is the index.
    pub nodes: Vec<Node>,
    /// How the nodes move, if they do. Their positions are those at the beginning.
    pub mobility: Option<Mobility>,
    /// Measurement of the links before the run, if the scenario asks for one.
    pub measure: Option<Measure>,
    /// Time that simulated nodes spend on each received frame; none if absent.
    pub processing: Option<Processing>,
    /// File transfers, which begin at the same time.
    pub traffic: Vec<Traffic>,
    /// Flows of packets through tunnels.
    pub flows: Vec<Flow>,
    /// Live streams.
    pub streams: Vec<Stream>,
    /// Settings by protocol name, checked by the protocols themselves.
    pub protocol: BTreeMap<String, toml::Table>,
    /// Length of the largest frame that a node passes to its radio, bytes; 1500 by default.
    pub mtu: usize,
    /// Remarks on the files that it was read from: what a user may want to know that is no error.
    pub notes: Vec<String>,
    /// Nodes that are on other channels than the first only.
    pub absent: BTreeSet<usize>,
    /// Channels beside that of `[medium]`.
    pub channels: Vec<Channel>,
    medium: MediumConfig,
    source: reader::Original,
}

/// A link of one direction between two nodes, by their indices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirectedLink {
    /// Node that sends.
    pub from: usize,
    /// Node that hears it.
    pub to: usize,
    /// Share of frames that arrives.
    pub delivery: f64,
}

impl Scenario {
    /// Reads a scenario file and the files it names. If there is no file `path`, it may be the name
    /// of a scenario that comes with the program, such as `building`.
    ///
    /// # Errors
    /// [`ScenarioError`], with file and line.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        if let Some(text) = shipped::text(path).filter(|_| !path.exists()) {
            let name = format!("{}/{}", shipped::DIRECTORY, path.display());
            return Self::parse(text, &name, Path::new(shipped::DIRECTORY));
        }
        let text = reader::text(path)?;
        let directory = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &path.display().to_string(), directory)
    }

    /// Reads a scenario from `text`. Errors call it `origin`; the files it names are relative to
    /// `directory`.
    ///
    /// # Errors
    /// [`ScenarioError`], with file and line.
    pub fn parse(text: &str, origin: &str, directory: &Path) -> Result<Self, ScenarioError> {
        read::scenario(unmarked(text), origin, directory)
    }

    /// Reads a scenario from a table of the same shape as a scenario file. The files it names are
    /// relative to `directory`.
    ///
    /// # Errors
    /// [`ScenarioError`]; [`ScenarioError::Table`] where the table itself is wrong.
    pub fn from_table(table: &toml::Table, directory: &Path) -> Result<Self, ScenarioError> {
        let written = toml::to_string(table).map_err(|e| ScenarioError::Table(e.to_string()))?;
        let origin = "<table>";
        let made = read::scenario(&written, origin, directory);
        made.map_err(|error| error.in_table(origin, &written))
    }

    /// Returns the table that it was read from.
    pub fn table(&self) -> &toml::Table {
        &self.source.table
    }

    /// Returns the scenario of another table, with the same files.
    ///
    /// # Errors
    /// [`ScenarioError`]; [`ScenarioError::Table`] where the table itself is wrong.
    pub fn with_table(&self, table: &toml::Table) -> Result<Self, ScenarioError> {
        Self::from_table(table, &self.source.directory)
    }

    /// Changes one setting: `medium.bit_rate=2M`, `seed=7`, `protocol.pacifier.knob=1`,
    /// `traffic.to=n05,n09`. Reads the value as TOML if it is valid TOML, else as plain text. If
    /// the present value is a list, splits the text at commas.
    ///
    /// # Errors
    /// [`ScenarioError::Override`]; the scenario stays unchanged.
    pub fn set(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        *self = overrides::with(&self.source, assignment)?;
        Ok(())
    }

    /// Returns the services that the scenario has traffic of, in the order of [`ServiceKind`].
    #[must_use]
    pub fn services(&self) -> Vec<ServiceKind> {
        let file = (!self.traffic.is_empty()).then_some(ServiceKind::File);
        let tunnel = (!self.flows.is_empty()).then_some(ServiceKind::Tunnel);
        let stream = (!self.streams.is_empty()).then_some(ServiceKind::Stream);
        [file, tunnel, stream].into_iter().flatten().collect()
    }

    /// Returns the index of the node named `name`.
    pub fn node_index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Returns the loss of every directed link by node index on each channel, the first one
    /// included, for frames of the MTU without interference.
    ///
    /// # Panics
    /// Never: the medium's settings have been checked.
    #[allow(clippy::expect_used, reason = "a scenario's medium is valid")]
    pub fn channel_losses(&self) -> Vec<LossMatrix> {
        let further = self.channels.iter().map(|channel| &channel.medium);
        let media = core::iter::once(&self.medium).chain(further);
        let loss = |medium: &MediumConfig| {
            medium.expected_loss(self.mtu).expect("checked when the scenario was read")
        };
        media.map(loss).collect()
    }

    /// Returns the names of the channels that each directed link is on, by node index; nothing if
    /// there is one channel only.
    #[must_use]
    pub fn link_channels(&self) -> BTreeMap<(usize, usize), Vec<String>> {
        let mut on: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
        if self.channels.is_empty() {
            return on;
        }

        let further = self.channels.iter().map(|channel| channel.name.as_str());
        let names = core::iter::once(FIRST_CHANNEL).chain(further);
        for (name, losses) in names.zip(self.channel_losses()) {
            for link in losses.links() {
                on.entry((link.from.0, link.to.0)).or_default().push(name.to_owned());
            }
        }
        on
    }

    /// Returns the loss of every directed link by node index, for frames of the MTU without
    /// interference; on several channels the least.
    ///
    /// # Panics
    /// Never: links of further channels are between the same nodes.
    #[allow(clippy::expect_used, reason = "a scenario's medium is valid")]
    pub fn loss(&self) -> LossMatrix {
        let mut losses = self.channel_losses().into_iter();
        let mut all = losses.next().expect("there is a first channel");
        let links: Vec<LossyLink> =
            losses.flat_map(|own| own.links().collect::<Vec<_>>()).collect();
        for link in links {
            let least = link.loss.min(all.loss(link.from, link.to));
            all.set(link.from, link.to, least).expect("both are nodes, and this is a loss");
        }
        all
    }

    /// Returns the settings of the medium: radio i is node i.
    pub fn medium_config(&self) -> MediumConfig {
        self.medium.clone()
    }

    /// Returns all directed links, from the same values as [`loss`](Self::loss).
    pub fn deliveries(&self) -> Vec<DirectedLink> {
        let delivery = |link: LossyLink| DirectedLink {
            from: link.from.0,
            to: link.to.0,
            delivery: 1.0 - link.loss,
        };
        self.loss().links().map(delivery).collect()
    }
}
