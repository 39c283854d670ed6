//! Results of live streams.

use ncmesh_console::schema::QueueValues;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of live streams.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StreamsOutcome {
    /// Result of each stream, in the scenario's order.
    pub streams: Vec<StreamOutcome>,
    /// Every queue of every stream.
    pub queues: Vec<StreamQueueOutcome>,
    /// Processor time of each daemon while the streams ran, as a share of one core, by node. Lab
    /// only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpu: BTreeMap<String, f64>,
}

/// Result of one stream during its measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StreamOutcome {
    /// Group that the stream was sent to.
    pub group: String,
    /// Name of the source.
    pub from: String,
    /// Length of the packets, bytes.
    pub packet_bytes: usize,
    /// Packets that the source accepted, by layer.
    pub taken: Vec<u64>,
    /// Packets that the source refused because its queue was full.
    pub refused: u64,
    /// Length of the measurement, s.
    pub seconds: f64,
    /// Result of each receiver, in the scenario's order.
    pub receivers: Vec<StreamReceiverOutcome>,
}

/// Result of one receiver during the measurement of its stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StreamReceiverOutcome {
    /// Name of the receiver.
    pub node: String,
    /// Rate of the packets that arrived, bit/s.
    pub rate_bps: f64,
    /// Result of each layer.
    pub layers: Vec<StreamLayerOutcome>,
    /// Packets that arrived with wrong bytes, or twice.
    pub corrupt: u64,
    /// Mean time from acceptance at the source to arrival, s. Null if nothing arrived.
    pub mean_delay_s: Option<f64>,
    /// Whole seconds of the measurement of which every packet of the base arrived. Simulator only.
    pub whole_base_s: Option<u64>,
    /// Rate over time.
    #[schemars(extend("x-stored" = false))]
    pub series: StreamSeries,
    /// Latest reason that its node reported for a rate below the requested one. Null without one.
    pub problem: Option<String>,
}

/// Result of one layer at one receiver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StreamLayerOutcome {
    /// Name of the layer.
    pub name: String,
    /// Packets that arrived.
    pub delivered: u64,
    /// Rate of these packets, bit/s.
    pub rate_bps: f64,
    /// Packets that arrived, divided by the packets that the source accepted.
    pub share: f64,
    /// Packets that arrived after a later one of the layer. Simulator only.
    pub out_of_order: Option<u64>,
    /// Median of the time from acceptance at the source to arrival, s. Simulator only; null if
    /// nothing arrived.
    pub delay_p50_s: Option<f64>,
    /// The same of the slowest of 100 packets.
    pub delay_p99_s: Option<f64>,
}

/// Rate of a receiver over time, from the beginning of the stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StreamSeries {
    /// End of each sample, s since the beginning of the stream.
    pub seconds: Vec<f64>,
    /// Rate during the sample, bit/s.
    pub rate_bps: Vec<f64>,
}

/// A queue of a stream, sampled every second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StreamQueueOutcome {
    /// Node that has the queue.
    pub node: String,
    /// Group of the stream.
    pub group: String,
    /// Next hop.
    pub to: String,
    /// Receivers downstream (m), in the last sample.
    pub receivers: u64,
    /// Maximum length of the queue, packets (Q).
    pub most_held: u64,
    /// Maximum length of its drop queue, packets (D).
    pub most_drop_queue: f64,
    /// Packets sent by layer, since the queue exists.
    pub sent: Vec<u64>,
    /// Packets dropped by layer, since the queue exists.
    pub dropped: Vec<u64>,
    /// Number of these for which there was no room, by layer. The time of the others was over.
    pub no_room: Vec<u64>,
    /// Packets that the radio gave up on, since the queue exists.
    pub lost: u64,
}

impl StreamQueueOutcome {
    /// Takes a sample of the queue.
    pub fn sample(&mut self, queue: QueueValues) {
        // Backlogs are kept as maxima. The other values are totals or states, of which the latest
        // sample counts.
        self.most_held = self.most_held.max(queue.held.iter().sum());
        self.most_drop_queue = self.most_drop_queue.max(queue.drop_queue);
        self.receivers = queue.receivers;
        self.sent = queue.sent;
        self.dropped = queue.dropped;
        self.no_room = queue.no_room;
        self.lost = queue.lost;
    }
}
