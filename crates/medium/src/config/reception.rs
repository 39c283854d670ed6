//! Settings of reception.

use crate::error::MediumError;

/// Rule that decides whether a frame is decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceptionModel {
    /// The frame is decoded if the SINR is never below a threshold.
    Threshold {
        /// The least SINR, dB.
        sinr_db: f64,
    },
    /// The frame is decoded if no bit is wrong. Bit errors are drawn with the bit error probability
    /// of the modulation at the SINR (IEEE 802.15.2-2003; Proakis, "Digital Communications").
    BitErrors,
}

/// How radios receive overlapping frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReceptionConfig {
    /// Rule that decides whether a frame is decoded.
    pub model: ReceptionModel,
    /// The least SINR at which a radio detects a preamble, dB.
    pub preamble_sinr_db: f64,
    /// The SINR at which a new frame captures a receiver that is receiving another frame, dB; no
    /// capture if `None`. Of frames that begin within 4 us of each other a radio receives the
    /// strongest in any case.
    pub capture_db: Option<f64>,
    /// Noise figure of the receivers over thermal noise, dB; no noise at all if `None`.
    pub noise_figure_db: Option<f64>,
}

impl Default for ReceptionConfig {
    fn default() -> Self {
        Self {
            model: ReceptionModel::Threshold { sinr_db: 10.0 },
            preamble_sinr_db: 4.0,
            capture_db: None,
            noise_figure_db: None,
        }
    }
}

impl ReceptionConfig {
    /// Checks all settings of reception.
    pub(super) fn validate(&self) -> Result<(), MediumError> {
        let in_range = |db: f64| (-30.0..=100.0).contains(&db);
        let threshold_db = match self.model {
            ReceptionModel::Threshold { sinr_db } => Some(sinr_db),
            ReceptionModel::BitErrors => None,
        };

        let fault = if !threshold_db.is_none_or(in_range) {
            "the SINR threshold must be -30 to 100 dB"
        } else if !in_range(self.preamble_sinr_db) {
            "the preamble's SINR threshold must be -30 to 100 dB"
        } else if !self.capture_db.is_none_or(in_range) {
            "the capture ratio must be -30 to 100 dB"
        } else if !self.noise_figure_db.is_none_or(in_range) {
            "the noise figure must be -30 to 100 dB"
        } else {
            return Ok(());
        };

        Err(MediumError::BadPropagation { fault })
    }
}
