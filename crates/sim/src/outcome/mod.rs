//! Results of runs, in the simulator and between the daemons of the lab.
//!
//! Every field of a result is declared here and nowhere else. [`schema`] describes them as a JSON
//! schema, with the doc comments as descriptions. From it come the types in Python, the columns of
//! Parquet files and the page `docs/reference/results.md`.

mod file;
mod flows;
mod sharing;
mod streams;

use ncmesh_stack::Usage;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

pub use file::{ReceiverOutcome, TransferOutcome};
pub use flows::{CodingOutcome, FlowOutcome, FlowSeries, FlowsOutcome, Samples, TcpOutcome};
pub use sharing::SharingOutcome;
pub use streams::{
    StreamLayerOutcome, StreamOutcome, StreamQueueOutcome, StreamReceiverOutcome, StreamSeries,
    StreamsOutcome,
};

/// Result of a run: receivers of a file, flows, live streams, or several of these.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Outcome {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scheme. Of several services, that of each, such as `file=cascade,tunnel=braid`.
    pub scheme: String,
    /// Version of ncmesh.
    pub version: String,
    /// Time from the start of the transfer, or of the first flow or stream, to the end of the last,
    /// s of the mesh's clock.
    pub seconds: f64,
    /// Data packets that all nodes sent.
    pub transmissions: u64,
    /// Use of the channel by each node since it started, by name.
    pub nodes: BTreeMap<String, Usage>,
    /// Result of each service that had traffic.
    #[serde(flatten)]
    pub services: ServiceOutcomes,
    /// How services shared the channel. Null if one ran alone.
    pub sharing: Option<SharingOutcome>,
    /// Trace of the simulator. `None` in the lab.
    #[serde(flatten)]
    pub trace: Option<TraceOutcome>,
    /// State of the lab. `None` in the simulator.
    #[serde(flatten)]
    pub lab: Option<LabOutcome>,
}

/// Result of each service. A service without traffic in the run has none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ServiceOutcomes {
    /// Results of file transfers.
    #[serde(flatten)]
    pub transfer: Option<TransferOutcome>,
    /// Results of flows of packets.
    #[serde(flatten)]
    pub flows: Option<FlowsOutcome>,
    /// Results of live streams.
    #[serde(flatten)]
    pub streams: Option<StreamsOutcome>,
}

/// Identity of a simulated run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TraceOutcome {
    /// Seed of all random draws. Simulator only.
    pub seed: u64,
    /// Whether frames were encrypted. If not, a null cipher added as many bytes. Simulator only.
    pub sealed: bool,
    /// Hash over every frame sent, heard and reported, hexadecimal. Simulator only.
    pub trace_hash: String,
    /// Number of events that the hash covers. Simulator only.
    pub events: u64,
}

/// State of the lab's emulated channel at the end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LabOutcome {
    /// Mean lag of the emulated channel behind the wall clock, ms. Lab only.
    pub lag_mean_ms: f64,
    /// Largest lag of the emulated channel, ms. Lab only.
    pub lag_max_ms: f64,
    /// Frames on the air, of every kind. Lab only.
    pub frames: u64,
    /// Directory of the daemons, if it was kept. Lab only.
    pub dir: Option<PathBuf>,
}

impl Outcome {
    /// Returns the result of `services` by `scheme`, of a run without trace and lab.
    #[must_use]
    pub fn new(
        scenario: &str,
        scheme: &str,
        seconds: f64,
        nodes: BTreeMap<String, Usage>,
        services: ServiceOutcomes,
    ) -> Self {
        Self {
            scenario: scenario.to_owned(),
            scheme: scheme.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            seconds,
            transmissions: nodes.values().map(|usage| usage.transmissions).sum(),
            nodes,
            services,
            sharing: None,
            trace: None,
            lab: None,
        }
    }

    /// Returns the results of file transfers, if the run had any.
    #[must_use]
    pub fn transfer(&self) -> Option<&TransferOutcome> {
        self.services.transfer.as_ref()
    }

    /// Returns the results of flows, if the run had any.
    #[must_use]
    pub fn flows(&self) -> Option<&FlowsOutcome> {
        self.services.flows.as_ref()
    }

    /// Returns the results of streams, if the run had any.
    #[must_use]
    pub fn streams(&self) -> Option<&StreamsOutcome> {
        self.services.streams.as_ref()
    }
}

/// Returns the JSON schema of an [`Outcome`] as it is serialized.
#[must_use]
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Outcome>()
}
