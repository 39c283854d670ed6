//! Errors of settings and calls.

use crate::types::{MAX_FRAME_BYTES, MAX_RADIOS, RadioId};

/// Error of a setting or a call. A call that returns it changes nothing, unless stated otherwise.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MediumError {
    /// The number of radios is 0 or too large.
    #[error("{radios} radios: must be 1 to {MAX_RADIOS}")]
    BadRadioCount {
        /// The number of radios.
        radios: usize,
    },
    /// The number of lists of listeners is not the number of radios.
    #[error("{lists} lists of listeners for {radios} radios")]
    BadListeners {
        /// The number of radios.
        radios: usize,
        /// The number of lists.
        lists: usize,
    },
    /// A setting of propagation or reception is out of range.
    #[error("medium: {fault}")]
    BadPropagation {
        /// The rule broken.
        fault: &'static str,
    },
    /// The losses cannot be set because radios have positions.
    #[error("losses cannot be set: radios here have positions, and power decides who hears whom")]
    NoLossMatrix,
    /// The radios cannot move because their links have given losses.
    #[error("radios cannot move: their losses are given, and positions decide nothing here")]
    NoPositions,
    /// The radio does not exist.
    #[error("{radio} does not exist: there are {radios}, numbered from 0")]
    UnknownRadio {
        /// The radio.
        radio: RadioId,
        /// The number of radios.
        radios: usize,
    },
    /// A link, a listener or a unicast frame is from a radio to itself.
    #[error("{radio} named as its own neighbour")]
    SelfLink {
        /// The radio.
        radio: RadioId,
    },
    /// The loss is outside 0 to 1.
    #[error("loss {loss} from {from} to {to}: must be within 0 to 1")]
    BadLoss {
        /// The sender.
        from: RadioId,
        /// The receiver.
        to: RadioId,
        /// The loss.
        loss: f64,
    },
    /// The loss matrix is not square.
    #[error("row {row} of the loss matrix has {length} entries, not {expected}")]
    RaggedMatrix {
        /// Number of the row, from 0.
        row: usize,
        /// Number of its entries.
        length: usize,
        /// Number of rows.
        expected: usize,
    },
    /// The bit rate is out of range.
    #[error("bit rate {bit_rate_bps} bit/s: must be 1 kbit/s to 10 Gbit/s")]
    BadBitRate {
        /// The bit rate, bit/s.
        bit_rate_bps: u64,
    },
    /// Settings of timing or MAC are out of range or contradict each other.
    #[error("medium timing: {fault}")]
    BadTiming {
        /// The rule broken.
        fault: &'static str,
    },
    /// The radio answers a grant that it does not have.
    #[error("{radio} answered without a grant")]
    NoGrant {
        /// The radio.
        radio: RadioId,
    },
    /// The frame is longer than the MAC carries. The grant that it answers counts as declined.
    #[error("frame of {bytes} bytes: at most {MAX_FRAME_BYTES} fit")]
    FrameTooLong {
        /// Length of the frame.
        bytes: usize,
    },
}
