//! The medium's settings and what can be wrong with them.

use crate::{LossMatrix, MAX_FRAME_BYTES, Phy, RadioId};

/// The most radios a medium takes.
pub const MAX_RADIOS: usize = 65_536;

/// The bit rates taken, in bit/s. The lowest still lets the longest frame end within 20 s.
const BIT_RATES: std::ops::RangeInclusive<u64> = 1_000..=10_000_000_000;

/// Who senses a sender's energy, and so defers to it and loses overlapping frames to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sense {
    /// Two radios sense each other if frames can pass between them in either direction.
    #[default]
    Audible,
    /// Every radio senses every other: one collision domain.
    Everyone,
    /// `lists[sender]` names who senses that sender. Who can hear a sender senses it too, listed or not.
    Listeners(Vec<Vec<RadioId>>),
}

/// Everything a medium needs to know. Validated by [`Medium::new`](crate::Medium::new).
#[derive(Clone, Debug, PartialEq)]
pub struct MediumConfig {
    /// The number of radios, 1 to [`MAX_RADIOS`], and the size of `loss`.
    pub radios: usize,
    /// Loss probability of every directed link.
    pub loss: LossMatrix,
    /// Who senses whom.
    pub sense: Sense,
    /// Bit rate of all data frames, bit/s.
    pub bit_rate_bps: u64,
    /// Interframe spaces, slots, windows and frame timing.
    pub phy: Phy,
    /// Bytes that the MAC adds to each of our frames: 802.11 header 24, LLC/SNAP 8, FCS 4.
    pub mac_overhead_bytes: usize,
    /// Airtime of an acknowledgment, ns.
    pub ack_airtime_ns: u64,
    /// How many times a unicast frame is sent at most, the first time included (dot11ShortRetryLimit).
    pub retry_limit: u32,
    /// Whether unicast frames are delivered to others than their destination too, as a monitor-mode radio
    /// would hear them. Off by default: Linux does not hand them to a station's socket.
    pub overhear_unicast: bool,
    /// Names all random draws.
    pub seed: u64,
}

impl MediumConfig {
    /// 802.11b with long preamble and usual settings, seed 1.
    pub fn dot11b(loss: LossMatrix, bit_rate_bps: u64) -> Self {
        Self::with_phy(Phy::DOT11B, loss, bit_rate_bps)
    }

    /// 802.11a (and pure 802.11g) with usual settings, seed 1.
    pub fn dot11a(loss: LossMatrix, bit_rate_bps: u64) -> Self {
        Self::with_phy(Phy::DOT11A, loss, bit_rate_bps)
    }

    /// Usual settings over `phy`, seed 1.
    pub fn with_phy(phy: Phy, loss: LossMatrix, bit_rate_bps: u64) -> Self {
        Self {
            radios: loss.radios(),
            loss,
            sense: Sense::Audible,
            bit_rate_bps,
            phy,
            mac_overhead_bytes: 36,
            ack_airtime_ns: phy.ack_airtime_ns(bit_rate_bps),
            retry_limit: 7,
            overhear_unicast: false,
            seed: 1,
        }
    }

    /// Checks all settings, as [`Medium::new`](crate::Medium::new) does.
    ///
    /// # Errors
    /// Any [`MediumError`] about a setting.
    pub fn validate(&self) -> Result<(), MediumError> {
        if self.radios == 0 || self.radios > MAX_RADIOS || self.radios != self.loss.radios() {
            return Err(MediumError::BadRadioCount {
                radios: self.radios,
                rows: self.loss.radios(),
            });
        }
        if !BIT_RATES.contains(&self.bit_rate_bps) {
            return Err(MediumError::BadBitRate { bit_rate_bps: self.bit_rate_bps });
        }
        self.validate_timing()?;
        match &self.sense {
            Sense::Listeners(lists) => self.validate_listeners(lists),
            Sense::Audible | Sense::Everyone => Ok(()),
        }
    }

    fn validate_timing(&self) -> Result<(), MediumError> {
        let phy = &self.phy;
        let second = 1_000_000_000;
        let fault = if phy.sifs_ns >= phy.difs_ns {
            "SIFS must be shorter than DIFS"
        } else if phy.slot_ns == 0 || phy.sifs_ns == 0 {
            "slot and SIFS must be longer than 0"
        } else if [phy.difs_ns, phy.slot_ns, phy.preamble_ns, self.ack_airtime_ns]
            .iter()
            .any(|&ns| ns > second)
        {
            "no slot, space, preamble or ACK may last more than 1 s"
        } else if phy.cw_min > phy.cw_max || phy.cw_max > 65_535 {
            "the contention window must satisfy cw_min <= cw_max <= 65535"
        } else if self.ack_airtime_ns == 0 {
            "an ACK must take time"
        } else if self.retry_limit == 0 || self.retry_limit > 255 {
            "the retry limit must be 1 to 255"
        } else if self.mac_overhead_bytes > MAX_FRAME_BYTES {
            "the MAC overhead must be no more than the longest frame"
        } else {
            return Ok(());
        };
        Err(MediumError::BadTiming { fault })
    }

    fn validate_listeners(&self, lists: &[Vec<RadioId>]) -> Result<(), MediumError> {
        if lists.len() != self.radios {
            return Err(MediumError::BadRadioCount { radios: self.radios, rows: lists.len() });
        }
        for (sender, list) in lists.iter().enumerate() {
            if let Some(&radio) = list.iter().find(|radio| radio.0 >= self.radios) {
                return Err(MediumError::UnknownRadio { radio, radios: self.radios });
            }
            if list.contains(&RadioId(sender)) {
                return Err(MediumError::SelfLink { radio: RadioId(sender) });
            }
        }
        Ok(())
    }
}

/// What is wrong with a setting or a call. Nothing changes where one is returned, unless it says so.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MediumError {
    /// Radio count is 0, too large, or does not match the matrix or list given with it.
    #[error("{radios} radios with {rows} rows: both must be equal and from 1 to {MAX_RADIOS}")]
    BadRadioCount {
        /// The radios announced.
        radios: usize,
        /// The rows given.
        rows: usize,
    },
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
