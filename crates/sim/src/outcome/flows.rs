//! Results of flows through a tunnel.

use ncmesh_console::schema::CodingValues;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Results of flows through a tunnel.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlowsOutcome {
    /// Result of each flow, in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    /// Packets that each node coded across flows from the start of the first flow to the end of the
    /// last, by name. Absent for schemes that do not code across flows.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub coding: BTreeMap<String, CodingOutcome>,
    /// Packets of all flows over time, if sampling was requested. Lab only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

/// Result of one flow during its measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FlowOutcome {
    /// Name of the source.
    pub from: String,
    /// Name of the destination.
    pub to: String,
    /// `udp` or `tcp`.
    pub protocol: String,
    /// Length of the packets, bytes. Of TCP, that of full segments.
    pub packet_bytes: usize,
    /// Packets of the source that the scheme took from its gateway. Simulator only.
    pub taken: Option<u64>,
    /// Further packets of the source: dropped by its gateway, or still waiting there. Simulator
    /// only.
    pub refused: Option<u64>,
    /// Packets that arrived intact. Of TCP in the lab, full segments for the bytes that arrived.
    pub delivered: u64,
    /// Number of those packets that arrived after a later one. Simulator only.
    pub disordered: Option<u64>,
    /// Packets that arrived with wrong bytes, or twice; of TCP, bytes. Simulator only.
    pub corrupt: Option<u64>,
    /// Length of the measurement, s.
    pub seconds: f64,
    /// Bits of the packets that arrived, divided by that time, bit/s. TCP counts payload only.
    pub throughput_bps: f64,
    /// Packets that arrived, for each slot of that time. Simulator with slotted access only.
    pub packets_per_slot: Option<f64>,
    /// Data frames of the flow that the destination heard.
    pub heard: u64,
    /// Number of those frames that were innovative.
    pub innovative: u64,
    /// Mean time from the source's sending a packet to its delivery, s. Simulator, UDP only.
    pub mean_delay_s: Option<f64>,
    /// Share of the offered packets that did not arrive. Lab, UDP only.
    pub loss: Option<f64>,
    /// Mean deviation of the packets' delay (RFC 3550), s. Lab, UDP only.
    pub jitter_s: Option<f64>,
    /// Median round-trip time of pings before any flow began, s, if it was measured. Lab only.
    pub idle_rtt_s: Option<f64>,
    /// Statistics of TCP, if the flow is a TCP connection.
    pub tcp: Option<TcpOutcome>,
    /// Values over time. Empty in the lab.
    #[schemars(extend("x-stored" = false))]
    pub series: FlowSeries,
}

/// Statistics of a TCP connection during the measurement of its flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TcpOutcome {
    /// Congestion control. Null if the lab's kernel chose it.
    pub congestion: Option<String>,
    /// Payload of a full segment, bytes.
    pub segment_bytes: usize,
    /// Payload that arrived in order, bytes.
    pub bytes: u64,
    /// Segments with data that the source sent, including retransmissions. In the lab, full
    /// segments for the bytes sent plus retransmissions.
    pub segments: u64,
    /// Number of those segments that repeated bytes sent before.
    pub retransmissions: u64,
    /// Segments with data that arrived. In the lab, those that were not retransmissions.
    pub arrived: u64,
    /// Share of the segments with data that did not arrive. Null if none was sent.
    pub loss: Option<f64>,
    /// Mean round-trip time, s. In the simulator, of segments sent once while none was
    /// retransmitted (Karn).
    pub rtt_s: Option<f64>,
    /// Shortest round-trip time, s. Simulator only.
    pub min_rtt_s: Option<f64>,
    /// Time from the start of the flow until everything had arrived, s, if the flow has a size.
    /// Simulator only.
    pub finished_s: Option<f64>,
}

/// Packets that a node coded across flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CodingOutcome {
    /// Its counters.
    #[serde(flatten)]
    pub values: CodingValues,
    /// Best hold time at the end, mean over the directions, s. Null if the scheme determines none.
    pub hold_s: Option<f64>,
    /// Neighbours that the node did not code for at the end, each with the reason.
    pub stopped: Vec<String>,
}

/// A flow over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FlowSeries {
    /// Time of each sample, s since the start of the flow.
    pub seconds: Vec<f64>,
    /// Packets delivered by then.
    pub delivered: Vec<u64>,
    /// Innovative frames that the destination had heard by then.
    pub innovative: Vec<u64>,
    /// Packets that each node still had to send, by name: MC2's credits, otherwise the length of
    /// the queue.
    pub credits: BTreeMap<String, Vec<u64>>,
}

/// Delivered packets of all flows over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Samples {
    /// Time of each sample, s since the start of the first flow.
    pub seconds: Vec<f64>,
    /// For each flow, in the scenario's order: packets that its destination had delivered to its
    /// host by then.
    pub delivered: Vec<Vec<u64>>,
}
