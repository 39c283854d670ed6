//! Result of file transfers.

use schemars::JsonSchema;
use serde::Serialize;

/// Result of file transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct TransferOutcome {
    /// Size of the files, bytes.
    pub bytes: u64,
    /// Result of each receiver of each file, in the scenario's order.
    pub receivers: Vec<ReceiverOutcome>,
    /// Payload bytes of the sources' packets, divided by the size of the files.
    pub source_redundancy: f64,
    /// Nodes that the sources listed as forwarders.
    pub forwarders: Vec<String>,
}

impl TransferOutcome {
    /// Returns the result of several files, from the result of each.
    #[must_use]
    pub fn of_files(files: Vec<Self>) -> Self {
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let sent: f64 = files.iter().map(|file| file.source_redundancy * file.bytes as f64).sum();

        // A single file keeps its figure, unchanged by the rounding of a mean.
        let redundancy = match files.as_slice() {
            [only] => only.source_redundancy,
            _ => sent / bytes.max(1) as f64,
        };

        let mut all = Self { bytes, source_redundancy: redundancy, ..Self::default() };
        for (index, file) in files.into_iter().enumerate() {
            let receivers = file.receivers.into_iter();
            all.receivers.extend(receivers.map(|r| ReceiverOutcome { file: index as u64, ..r }));
            let listed = file.forwarders.into_iter();

            // A node that forwards several files is listed once.
            let new: Vec<_> = listed.filter(|node| !all.forwarders.contains(node)).collect();
            all.forwarders.extend(new);
        }
        all
    }
}

/// Result of a file transfer at one receiver.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ReceiverOutcome {
    /// Index of its file in the scenario, from 0.
    pub file: u64,
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
