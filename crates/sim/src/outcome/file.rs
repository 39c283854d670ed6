//! Result of a file transfer.

use schemars::JsonSchema;
use serde::Serialize;

/// Result of a file transfer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TransferOutcome {
    /// Size of the file, bytes.
    pub bytes: u64,
    /// Result of each receiver, in the scenario's order.
    pub receivers: Vec<ReceiverOutcome>,
    /// Payload bytes of the source's packets, divided by the size of the file.
    pub source_redundancy: f64,
    /// Nodes that the source listed as forwarders.
    pub forwarders: Vec<String>,
}

/// Result of a file transfer at one receiver.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReceiverOutcome {
    /// Name of the receiver.
    pub node: String,
    /// Whether it has the whole file, byte for byte.
    pub verified: bool,
    /// Bytes that it has.
    pub bytes: u64,
    /// Time from the start of the transfer until it had the whole file, s. Null if it never had.
    pub seconds: Option<f64>,
    /// Size of the file divided by that time, bit/s. Null if it never had the whole file.
    pub throughput_bps: Option<f64>,
}
