//! The table `[[stream]]`: live layered streams and their receivers.
//!
//! The types ending in `Table` mirror the keys of the file. [`Reader::stream`] checks them and
//! returns a [`Stream`].

use super::quantity::{self, Quantity};
use super::reader::{Reader, TIMES, find, index_by_name};
use super::{Node, ScenarioError};
use ncmesh_engine::stream::{LAYERS, UtilityConfig};
use ncmesh_engine::time::Duration;
use serde::Deserialize;
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamTable {
    group: Spanned<String>,
    from: Spanned<String>,
    layers: Vec<LayerTable>,
    packet: Option<usize>,
    receivers: Vec<ReceiverTable>,
    #[serde(default)]
    start_s: f64,
    #[serde(default)]
    warm_up_s: f64,
    #[serde(default = "default_seconds")]
    seconds: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerTable {
    name: String,
    #[serde(deserialize_with = "quantity::bit_rate")]
    rate: Quantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReceiverTable {
    node: Spanned<String>,
    #[serde(default)]
    utility: UtilityShape,
    min_rate: Option<RateOf>,
    #[serde(default)]
    join_s: f64,
    leave_s: Option<f64>,
}

#[derive(Deserialize)]
struct RateOf(#[serde(deserialize_with = "quantity::bit_rate")] Quantity);

/// The key `utility`: a name, or a table with settings.
#[derive(Deserialize)]
#[serde(untagged)]
enum UtilityShape {
    Name(String),
    Table(UtilityConfig),
}

impl Default for UtilityShape {
    fn default() -> Self {
        Self::Name("linear".into())
    }
}

/// A measurement lasts a minute by default.
fn default_seconds() -> f64 {
    60.0
}

impl UtilityShape {
    /// Returns the settings of the utility, with `min_rate` as its minimum.
    fn config(&self, min_rate: Option<&RateOf>) -> UtilityConfig {
        // Utilities are functions of Mbit/s.
        let mut config = match self {
            Self::Name(name) => UtilityConfig { name: name.clone(), ..UtilityConfig::default() },
            Self::Table(config) => config.clone(),
        };
        if let Some(RateOf(rate)) = min_rate {
            config.minimum = Some(rate.0 as f64 / 1e6);
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

        // Layers, rates and times.
        if table.layers.is_empty() || table.layers.len() > LAYERS {
            return fail("`layers` must be 1 to 4, the base first");
        }
        if table.packet == Some(0) || table.layers.iter().any(|layer| layer.rate.0 == 0) {
            return fail("`packet` and every `rate` must be above 0");
        }
        let times = [table.start_s, table.warm_up_s, table.seconds];
        let of_receivers = table.receivers.iter().flat_map(|r| [Some(r.join_s), r.leave_s]);
        if times.into_iter().chain(of_receivers.flatten()).any(|s| !TIMES.contains(&s))
            || table.seconds == 0.0
        {
            return fail("times must be 0 to 1e9 s, `seconds` above 0");
        }

        // Each receiver must be another node.
        let mut receivers: Vec<StreamReceiver> = Vec::new();
        for receiver in &table.receivers {
            let node = find(&index, receiver.node.as_ref(), &self.place(&receiver.node))?;
            if node == from || receivers.iter().any(|other| other.node == node) {
                let message = "a receiver must not be the source, nor listed twice";
                return Err(ScenarioError::value(self.place(&receiver.node), message));
            }
            receivers.push(StreamReceiver {
                node,
                utility: receiver.utility.config(receiver.min_rate.as_ref()),
                join: Duration::from_secs_f64(receiver.join_s),
                leave: receiver.leave_s.map(Duration::from_secs_f64),
            });
        }
        if receivers.is_empty() {
            return fail("`receivers` must name at least one node");
        }

        let [start, warm_up, duration] = times.map(Duration::from_secs_f64);
        let layers = table.layers.iter();
        let layers = layers.map(|l| Layer { name: l.name.clone(), rate_bps: l.rate.0 }).collect();
        let (group, packet) = (table.group.get_ref().clone(), table.packet);
        Ok(Stream { group, from, layers, packet, receivers, start, warm_up, duration })
    }
}
