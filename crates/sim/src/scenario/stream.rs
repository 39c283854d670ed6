//! The table `[[stream]]`: live layered streams and their receivers.
//!
//! The types ending in `Table` mirror the keys of the file. [`Reader::stream`] checks them and
//! returns a [`Stream`].

use super::quantity::{ALLOWED_RATES, BitRate};
use super::reader::{MEASUREMENTS, Reader, TIMES, find, index_by_name};
use super::value::Entries;
use super::{Node, ScenarioError};
use ncmesh_engine::settings::{Declared, Kind, Mismatch, Section, Toml, Value, from_serde};
use ncmesh_engine::stream::{Deadline, LAYERS, UtilityConfig};
use ncmesh_engine::time::Duration;
use toml::Spanned;

/// A live stream from one node to receivers that join and leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// Group that it is sent to.
    pub group: String,
    /// Index of the source in [`Scenario::nodes`](super::Scenario::nodes).
    pub from: usize,
    /// Layers, the base layer first.
    pub layers: Vec<Layer>,
    /// Length of its packets, bytes; the longest that the scheme carries if absent.
    pub packet: Option<usize>,
    /// Deadline of its packets; that of the scheme's settings if absent.
    pub deadline: Option<Deadline>,
    /// Receivers of the stream.
    pub receivers: Vec<StreamReceiver>,
    /// Time from the beginning of the run to the beginning of the stream.
    pub start: Duration,
    /// Time from there to the beginning of the measurement.
    pub warm_up: Duration,
    /// Length of the measurement; the stream ends with it.
    pub duration: Duration,
}

/// A layer of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Name of the layer.
    pub name: String,
    /// Offered rate, bit/s of packets, evenly spaced.
    pub rate_bps: u64,
}

/// A receiver of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamReceiver {
    /// Index of the receiver in [`Scenario::nodes`](super::Scenario::nodes).
    pub node: usize,
    /// Utility of the receiver as a function of its rate in Mbit/s.
    pub utility: UtilityConfig,
    /// Time from the beginning of the stream until the receiver joins.
    pub join: Duration,
    /// Time from the beginning of the stream until the receiver leaves; never if absent.
    pub leave: Option<Duration>,
}

ncmesh_engine::settings! {
    /// A table `[[stream]]`.
    pub(super) struct StreamTable {
        /// Group that it is sent to.
        group: Spanned<String>;
        /// Source.
        from: Spanned<String>;
        /// Layers, the base first.
        layers: Entries<LayerTable>, allowed "1 to 4 of `{ name, rate }`";
        /// Length of the packets.
        packet: Option<usize> = None, absent "longest possible; 1,400 in the lab", above 0,
            unit "bytes";
        /// Age at which a packet is of no use any more.
        deadline_ms: Option<u16> = None, absent "that of the scheme's settings", within 20..=5000,
            unit "ms";
        /// Receivers.
        receivers: Entries<ReceiverTable>,
            allowed "list of `{ node, utility, min_rate, join_s, leave_s }`";
        /// Start, after the mesh has measured itself.
        start_s: f64 = 0.0, within TIMES, unit "s";
        /// Time before the measurement begins.
        warm_up_s: f64 = 0.0, within TIMES, unit "s";
        /// Length of the measurement; then the stream ends.
        seconds: f64 = 60.0, within MEASUREMENTS, unit "s";
    }
}

ncmesh_engine::settings! {
    /// An entry of `layers`.
    struct LayerTable {
        /// Name of the layer.
        name: String;
        /// Rate of packets, evenly spaced.
        rate: BitRate, above 0, allowed ALLOWED_RATES;
    }
}

ncmesh_engine::settings! {
    /// An entry of `receivers`.
    struct ReceiverTable {
        /// Name of a node.
        node: Spanned<String>;
        /// Utility of the rate in Mbit/s: a name, or a table with its settings.
        utility: Utility = Utility::default(), absent "`\"linear\"`",
            allowed "a name or a table";
        /// Minimum rate; `minimum` of the utility.
        min_rate: Option<BitRate> = None, allowed "a quantity, bit/s";
        /// Time from the beginning of the stream until the receiver joins.
        join_s: f64 = 0.0, within TIMES, unit "s";
        /// Time from the beginning of the stream until the receiver leaves.
        leave_s: Option<f64> = None, absent "never", within TIMES, unit "s";
    }
}

/// The key `utility`.
#[derive(Default)]
struct Utility(UtilityConfig);

impl Value for Utility {
    const KINDS: &'static [Kind] = &[Kind::Text, Kind::Table];

    fn from_toml(value: Toml) -> Result<Self, Mismatch> {
        match value {
            Toml::String(name) => Ok(Self(UtilityConfig { name, ..UtilityConfig::default() })),
            Toml::Table(_) => from_serde(value).map(Self),
            _ => Err(Mismatch::Type("a name such as \"log\", or a table of keys and values")),
        }
    }

    fn to_toml(&self) -> Option<Toml> {
        None
    }
}

/// Returns what is declared of `[[stream]]` and of the tables in it.
pub(super) fn sections() -> [(&'static str, Vec<Declared>); 4] {
    [
        ("stream", StreamTable::settings()),
        ("stream.layers", LayerTable::settings()),
        ("stream.receivers", ReceiverTable::settings()),
        ("stream.receivers.utility", UtilityConfig::settings()),
    ]
}

impl ReceiverTable {
    /// Returns the settings of the utility, with `min_rate` as its minimum.
    fn utility(&self) -> UtilityConfig {
        let mut config = self.utility.0.clone();
        if let Some(BitRate(bps)) = self.min_rate {
            // Utilities are functions of Mbit/s.
            config.minimum = Some(bps as f64 / 1e6);
        }
        config
    }
}

impl Reader<'_> {
    /// Returns the checked stream.
    pub(super) fn stream(
        &self,
        table: &StreamTable,
        nodes: &[Node],
    ) -> Result<Stream, ScenarioError> {
        let index = index_by_name(nodes, self.origin)?;
        let fail = |message: &str| Err(ScenarioError::value(self.place(&table.group), message));
        let from = find(&index, table.from.as_ref(), &self.place(&table.from))?;

        if table.layers.0.is_empty() || table.layers.0.len() > LAYERS {
            return fail("`layers` must be 1 to 4, the base first");
        }

        // Each receiver must be another node.
        let mut receivers: Vec<StreamReceiver> = Vec::new();
        for receiver in &table.receivers.0 {
            let node = find(&index, receiver.node.as_ref(), &self.place(&receiver.node))?;
            if node == from || receivers.iter().any(|other| other.node == node) {
                let message = "a receiver must not be the source, nor listed twice";
                return Err(ScenarioError::value(self.place(&receiver.node), message));
            }
            receivers.push(StreamReceiver {
                node,
                utility: receiver.utility(),
                join: Duration::from_secs_f64(receiver.join_s),
                leave: receiver.leave_s.map(Duration::from_secs_f64),
            });
        }
        if receivers.is_empty() {
            return fail("`receivers` must name at least one node");
        }

        let layers = table.layers.0.iter();
        Ok(Stream {
            group: table.group.get_ref().clone(),
            from,
            layers: layers.map(|l| Layer { name: l.name.clone(), rate_bps: l.rate.0 }).collect(),
            packet: table.packet,
            deadline: table.deadline_ms.and_then(Deadline::of_ms),
            receivers,
            start: Duration::from_secs_f64(table.start_s),
            warm_up: Duration::from_secs_f64(table.warm_up_s),
            duration: Duration::from_secs_f64(table.seconds),
        })
    }
}
