//! What can be wrong with a setting or a call.

use super::MAX_RADIOS;
use crate::{MAX_FRAME_BYTES, RadioId};

/// What is wrong with a setting or a call. Nothing changes where one is returned, unless it says so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MediumError {
    /// Radio count is 0 or too large.
    #[error("{radios} radios: must be 1 to {MAX_RADIOS}")]
    BadRadioCount {
        /// The radios announced.
        radios: usize,
    },
    /// Lists of listeners that do not match the radios.
    #[error("{lists} lists of listeners for {radios} radios")]
    BadListeners {
        /// The radios.
        radios: usize,
        /// The lists given.
        lists: usize,
    },
    /// Settings of propagation or reception that cannot be.
    #[error("medium: {fault}")]
    BadPropagation {
        /// The rule broken.
        fault: &'static str,
    },
    /// A loss set where power decides.
    #[error("losses cannot be set: radios here have positions, and power decides who hears whom")]
    NoLossMatrix,
    /// A radio that does not exist.
    #[error("{radio} does not exist: there are {radios}, numbered from 0")]
    UnknownRadio {
        /// The one named.
        radio: RadioId,
        /// How many there are.
        radios: usize,
    },
    /// A link, listener or unicast frame from a radio to itself.
    #[error("{radio} named as its own neighbour")]
    SelfLink {
        /// The radio.
        radio: RadioId,
    },
    /// A loss outside 0 to 1.
    #[error("loss {loss} from {from} to {to}: must be within 0 to 1")]
    BadLoss {
        /// The sender.
        from: RadioId,
        /// The receiver.
        to: RadioId,
        /// The value refused.
        loss: f64,
    },
    /// A loss matrix that is not square.
    #[error("row {row} of the loss matrix has {length} entries, not {expected}")]
    RaggedMatrix {
        /// The row, from 0.
        row: usize,
        /// Its entries.
        length: usize,
        /// The number of rows.
        expected: usize,
    },
    /// A bit rate out of range.
    #[error("bit rate {bit_rate_bps} bit/s: must be 1 kbit/s to 10 Gbit/s")]
    BadBitRate {
        /// The value refused, bit/s.
        bit_rate_bps: u64,
    },
    /// Timing or MAC settings that contradict each other.
    #[error("medium timing: {fault}")]
    BadTiming {
        /// The rule broken.
        fault: &'static str,
    },
    /// An answer from a radio that was granted nothing.
    #[error("{radio} answered without a grant")]
    NoGrant {
        /// The radio.
        radio: RadioId,
    },
    /// A frame longer than a MAC carries. The grant it answered counts as declined.
    #[error("frame of {bytes} bytes: at most {MAX_FRAME_BYTES} fit")]
    FrameTooLong {
        /// Its length.
        bytes: usize,
    },
}
