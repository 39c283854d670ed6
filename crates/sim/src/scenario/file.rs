//! The tables of a scenario file, as serde reads them.
//!
//! The types mirror the keys of the file, with defaults and ranges; `read` checks what depends on
//! several of them. [`Spanned`] keeps the place of a value for errors.

use ncmesh_engine::settings::{Declared, Section};
use ncmesh_medium::{BIT_RATES, MAX_FRAME_BYTES};
use ncmesh_stack::trust::TrustMode;
use toml::Spanned;

use super::medium::{ChannelTable, Medium};
use super::mobility::FARTHEST_M;
use super::placement::{Grid, Uniform};
use super::quantity::{ALLOWED_BIT_RATES, ALLOWED_RATES, BitRate, Size};
use super::reader::{MEASUREMENTS, TIMES};
use super::stream::StreamTable;
use super::value::{Entries, Nested, OneOrMore, Protocols};

/// Most random bytes that a transfer can have, since they are generated in memory.
const LARGEST_RANDOM: u64 = 4_000_000_000;

ncmesh_engine::settings! {
    /// The whole file.
    pub(super) struct File {
        /// Name of the scenario.
        pub(super) name: Spanned<String>, allowed "1 to 63 of letters, digits, `.`, `_`, `-`";
        /// Purpose of the scenario, for people.
        pub(super) description: String = String::new();
        /// Determines all random draws: channel, protocols, contents of the file.
        pub(super) seed: u64 = 1;
        /// Whether simulations encrypt frames. False uses a null cipher of the same length, which
        /// is faster and shows bodies in captures.
        pub(super) sealed: bool = true;
        /// How simulated nodes trust each other, see [Trust](../guide/trust.md). Keys and
        /// certificates are made of the seed, and no node remembers others over a restart. Daemons
        /// of a lab have the shared key.
        pub(super) trust: TrustMode = TrustMode::Key;
        /// The [schemes](#schemes) that `--scheme auto` stands for.
        pub(super) scheme: Option<Spanned<String>> = None, absent "`\"auto\"`";
        /// Names of the nodes, if they have no positions.
        pub(super) nodes: Entries<Spanned<String>> = Entries::default();
        /// [Nodes](#nodes) with positions.
        pub(super) node: Entries<Node> = Entries::default();
        /// [Nodes](#nodes) placed by a rule, or a file of nodes and [links](#links).
        pub(super) topology: Nested<Topology> = Nested::default();
        /// [Links](#links), beside those of the topology.
        pub(super) link: Entries<Spanned<Link>> = Entries::default();
        /// The [channel](#medium).
        pub(super) medium: Nested<Medium>;
        /// Further [channels](#channel): other radios of some nodes, or cables between them.
        pub(super) channel: Entries<Spanned<ChannelTable>> = Entries::default();
        /// [Measurement](#measure) of the links before the run.
        pub(super) measure: Option<Nested<Measure>> = None;
        /// [Time](#processing) that simulated nodes take for each received frame.
        pub(super) processing: Option<Nested<Processing>> = None;
        /// [File transfers](#traffic): one as `[traffic]`, several at once as `[[traffic]]` each.
        pub(super) traffic: OneOrMore<Traffic> = OneOrMore::default();
        /// [Flows](#flow) of packets through a tunnel.
        pub(super) flow: Entries<Flow> = Entries::default();
        /// [Live streams](#stream).
        pub(super) stream: Entries<StreamTable> = Entries::default();
        /// [Settings](#protocolname) of `link`, `route` and the engines, by their names.
        pub(super) protocol: Protocols = Protocols::default();
    }
}

ncmesh_engine::settings! {
    /// A table `[[node]]`.
    pub(super) struct Node {
        /// Name of the node.
        pub(super) name: Spanned<String>, allowed "1 to 63 of letters, digits, `.`, `_`, `-`";
        /// Metres east of any origin. Both `x` and `y`, or none.
        pub(super) x: Option<f64> = None, within -FARTHEST_M..=FARTHEST_M, unit "m";
        /// Metres north of the origin.
        pub(super) y: Option<f64> = None, within -FARTHEST_M..=FARTHEST_M, unit "m";
        /// Metres up.
        pub(super) z: f64 = 0.0, within -FARTHEST_M..=FARTHEST_M, unit "m";
    }
}

ncmesh_engine::settings! {
    /// The table `[topology]`. A scenario may have at most one of its keys; `step_s` belongs to
    /// those of nodes that move.
    pub(super) struct Topology {
        /// CSV file. First line `from\to,a,b,c` (the text before the first comma is ignored). Then
        /// for each node, in that order, its name and its losses to all. An empty cell or `-` is no
        /// link.
        pub(super) matrix: Option<Spanned<String>> = None;
        /// CSV file. First line `from,to,loss`, then one directed link per line.
        pub(super) links: Option<Spanned<String>> = None;
        /// File with a NetJSON NetworkGraph, see [NetJSON](#netjson).
        pub(super) netjson: Option<Spanned<String>> = None;
        /// CSV file with lines `x,y` or `x,y,z`, m: nodes at these positions. A first line may name
        /// the columns: `x`, `y`, `z`, or `lat` and `lon` in degrees.
        pub(super) positions: Option<Spanned<String>> = None;
        /// Nodes at random over a rectangle, by the scenario's seed.
        pub(super) uniform: Option<Nested<Uniform>> = None,
            allowed "`{ nodes, width_m, height_m }`";
        /// Nodes on a square grid, row by row.
        pub(super) grid: Option<Nested<Grid>> = None, allowed "`{ columns, rows, spacing_m }`";
        /// Nodes that move. BonnMotion's `.movements`: a line for each node, of triples: time (s),
        /// x, y (m). Nodes are `n1`, `n2`, ... in the order of the lines, padded with zeros to one
        /// length. Files in three dimensions are not read.
        pub(super) bonnmotion: Option<Spanned<String>> = None;
        /// Nodes that move. SUMO's floating car data, `sumo --fcd-output FILE`: vehicles and
        /// persons, which keep their ids, with `-` for each character that names may not have. In
        /// metres or, with `--fcd-output.geo`, degrees, see [Nodes that move](#nodes-that-move).
        pub(super) fcd: Option<Spanned<String>> = None;
        /// Nodes that move. ns-2's movement files, as `setdest` and BonnMotion's `NSFile` write
        /// them: `$node_(0) set X_ 1.0` and `$ns_ at 2.0 "$node_(0) setdest X Y SPEED"`, also `set`
        /// at a time. Node `n1` is `$node_(0)`, or `$node_(1)` if that is the first. Lines about
        /// `$god_` are ignored, any other line is an error.
        pub(super) ns2: Option<Spanned<String>> = None;
        /// Time between two moves. Each move computes again which nodes reach each other.
        // A car in town goes 7 m meanwhile.
        pub(super) step_s: Option<Spanned<f64>> = None, absent "0.5", within 0.01..=60.0, unit "s";
    }
}

ncmesh_engine::settings! {
    /// A table `[[link]]`.
    pub(super) struct Link {
        /// Name of a node.
        pub(super) from: Spanned<String>;
        /// Name of another node.
        pub(super) to: Spanned<String>;
        /// Name of a `[[channel]]` that the link is on.
        pub(super) channel: Option<Spanned<String>> = None, absent "that of `[medium]`";
        /// Share of frames lost from `from` to `to`; 1 is no link.
        pub(super) loss: Option<f64> = None, absent "required unless `wired`", within 0..=1;
        /// The same in the other direction; 1 makes a one-way link.
        pub(super) loss_back: Option<f64> = None, absent "as `loss`", within 0..=1;
        /// Bit rate of unicast frames over this link in both directions. Broadcasts and
        /// acknowledgments keep the channel's rate. DCF only.
        pub(super) rate: Option<BitRate> = None, absent "`bit_rate`; of a cable 1 Gbit/s",
            within BIT_RATES, allowed ALLOWED_BIT_RATES;
        /// A cable: nothing is lost, no other node hears it. A node still sends one frame at a
        /// time, after contending for the channel it senses. DCF only.
        pub(super) wired: bool = false;
    }
}

ncmesh_engine::settings! {
    /// The table `[measure]`: broadcast probes that measure all links before the run.
    #[derive(Clone, Copy)]
    pub(super) struct Measure {
        /// Length of the measurement.
        pub(super) seconds: f64, within 0.001..=1e9, at_least "period_s", unit "s";
        /// Time between two probes of a node.
        // Shorter periods would fill the channel with probes.
        pub(super) period_s: f64, within 0.001..=1e6, unit "s";
        /// Length of a probe.
        pub(super) bytes: usize, within 1..=MAX_FRAME_BYTES, unit "bytes";
    }
}

ncmesh_engine::settings! {
    /// The table `[processing]`: time that nodes spend on each received frame.
    #[derive(Clone, Copy)]
    pub(super) struct Processing {
        /// Shortest time.
        pub(super) least_s: f64 = 0.0, within 0..=1, at_most "most_s", unit "s";
        /// Longest time.
        pub(super) most_s: f64, within 0..=1, unit "s";
    }
}

ncmesh_engine::settings! {
    /// The table `[traffic]`: a file transfer. Of several, each is a table `[[traffic]]`.
    pub(super) struct Traffic {
        /// Source.
        pub(super) from: Spanned<String>;
        /// Receivers.
        pub(super) to: Entries<Spanned<String>>,
            allowed "at least one, none twice, not the source";
        /// Length of a file of random bytes, which are made from the seed and differ from file to
        /// file.
        pub(super) size: Option<Size> = None, within 1..=LARGEST_RANDOM,
            allowed "a quantity from 1 byte to 4 GB; for more give a `file`";
        /// Or the name of a file, relative to the scenario; it may be empty.
        pub(super) file: Option<String> = None;
        /// Sends it in the background, where it gives way to all else at once: the most of the
        /// airtime around a node that it takes, also alone.
        pub(super) background: Option<u8> = None, within 1..=100, unit "%";
        /// The most of its data that the source sends; what it sends again counts, too.
        pub(super) limit: Option<BitRate> = None, above 0, allowed ALLOWED_RATES;
    }
}

ncmesh_engine::settings! {
    /// A table `[[flow]]`: packets through a tunnel.
    pub(super) struct Flow {
        /// Name of a node.
        pub(super) from: Spanned<String>;
        /// Name of another node.
        pub(super) to: Spanned<String>;
        /// `"udp"`: packets that are not repeated. `"tcp"`: a connection, of the kernel's TCP in
        /// the lab, and in the simulator of one that does what Linux's does.
        pub(super) protocol: Protocol = Protocol::Udp;
        /// Rate of IP packets, evenly spaced. Without it a packet always waits at the source's
        /// gateway; in the lab UDP then offers the channel's `bit_rate`. For TCP, in the lab only:
        /// limit of the payload.
        pub(super) rate: Option<BitRate> = None, above 0, allowed ALLOWED_RATES;
        /// Length of the packets, headers included; for TCP of full segments.
        pub(super) packet: Option<usize> = None, absent "longest possible", above 0, unit "bytes";
        /// DSCP of the packets, in both directions. [Classes of real-time
        /// traffic](../internals/braid.md#real-time-traffic) go first.
        pub(super) dscp: u8 = 0, within 0..=63;
        /// Start, after the mesh has measured itself.
        pub(super) start_s: f64 = 0.0, within TIMES, unit "s";
        /// Time before the measurement begins.
        pub(super) warm_up_s: f64 = 0.0, within TIMES, unit "s";
        /// Length of the measurement; then the flow ends.
        pub(super) seconds: f64 = 60.0, within MEASUREMENTS, unit "s";
        /// TCP only: bytes to send; the flow ends when they have arrived.
        pub(super) size: Option<Size> = None, above 0, allowed "a quantity above 0, bytes";
        /// TCP only: `"cubic"` or `"reno"`; in the simulator also `"none"` (as much as the
        /// receiver's window allows), in the lab everything that `sysctl
        /// net.ipv4.tcp_available_congestion_control` lists.
        // Not checked here: the lab's kernel may know others than the simulator.
        pub(super) congestion: Option<String> = None,
            absent "`\"cubic\"`; in the lab the kernel's";
        /// TCP only: send and receive buffer each.
        pub(super) window: Option<Size> = None, within 4096..=1 << 26,
            absent "4 MiB, with `\"none\"` 65,535; in the lab the kernel's",
            allowed "a quantity from 4 KiB to 64 MiB";
        /// TCP only: how long an acknowledgment waits for a second segment; with 0 each segment is
        /// acknowledged. In the lab only 0 changes what the kernel does, for all flows between the
        /// two nodes (`quickack` of its route).
        pub(super) ack_delay_s: Option<f64> = None, within 0..=1, unit "s", absent
            "as Linux: every second segment is acknowledged, a lone one after 0.04 s";
        /// TCP only: least retransmission timeout (RFC 6298 has 1 s, Windows XP about 0.3 s); in
        /// the lab `rto_min` of the kernel's route, whole milliseconds, for all flows between the
        /// two nodes. Before the first round-trip time it is 1 s.
        pub(super) min_rto_s: Option<f64> = None, within 0.001..=60.0, unit "s",
            absent "as Linux: the smoothed round-trip time and at least 0.2 s";
    }
}

ncmesh_engine::choices! {
    /// Transport protocol of a flow.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(super) enum Protocol {
        Udp = "udp",
        Tcp = "tcp",
    }
}

/// Returns what is declared of a scenario, by the names of the tables; the first, which has no
/// name, is the file itself.
#[must_use]
pub fn sections() -> Vec<(&'static str, Vec<Declared>)> {
    let own = [
        ("", File::settings()),
        ("node", Node::settings()),
        ("topology", Topology::settings()),
        ("topology.uniform", Uniform::settings()),
        ("topology.grid", Grid::settings()),
        ("link", Link::settings()),
        ("channel", ChannelTable::settings()),
        ("measure", Measure::settings()),
        ("processing", Processing::settings()),
        ("traffic", Traffic::settings()),
        ("flow", Flow::settings()),
    ];
    own.into_iter().chain(super::stream::sections()).chain(super::medium::sections()).collect()
}
