//! Whether a frame can be read at a signal to interference and noise ratio.

use crate::config::{MediumError, ReceptionConfig, ReceptionModel};
use crate::phy::{Modulation, Phy};
use crate::power::{Power, ratio_of_db, units_of_dbm};

mod bit_errors;

pub use bit_errors::bit_error_probability;

/// A receiver recognises a preamble within this time; the strongest of those that begin within it wins, ns.
pub(crate) const PREAMBLE_DETECTION_NS: u64 = 4_000;

/// Thermal noise of 290 K in 1 Hz, dBm.
const THERMAL_DBM: f64 = -173.98;

/// A validated reception model, as ratios and units.
pub(crate) struct Reception {
    model: ReceptionModel,
    sinr: f64,
    preamble_sinr: f64,
    capture: Option<f64>,
    noise: f64,
    phy: Phy,
}

impl Reception {
    /// The model of `config` for `phy`.
    pub(crate) fn new(config: &ReceptionConfig, phy: Phy) -> Self {
        let sinr = match config.model {
            ReceptionModel::Threshold { sinr_db } => ratio_of_db(sinr_db),
            ReceptionModel::BitErrors => 0.0,
        };
        Self {
            model: config.model,
            sinr,
            preamble_sinr: ratio_of_db(config.preamble_sinr_db),
            capture: config.capture_db.map(ratio_of_db),
            noise: config.noise_figure_db.map_or(0.0, |figure_db| noise_units(&phy, figure_db)),
            phy,
        }
    }

    fn sinr(&self, signal: Power, interference: Power) -> f64 {
        signal.units() / (interference.units() + self.noise)
    }

    /// The power that noise alone demands of a frame, units.
    pub(crate) fn least_units(&self) -> f64 {
        self.noise * self.preamble_sinr.max(self.sinr)
    }

    /// Whether a frame is recognised as one.
    pub(crate) fn detects(&self, signal: Power, interference: Power) -> bool {
        self.sinr(signal, interference) >= self.preamble_sinr
    }

    /// Whether a receiver leaves the frame it is receiving for a new one.
    pub(crate) fn captures(&self, signal: Power, interference: Power) -> bool {
        self.capture.is_some_and(|ratio| self.sinr(signal, interference) >= ratio)
    }

    /// The probability that a part of a frame is read without error, from `from_ns` to `to_ns` after its
    /// beginning, sent at `rate_bps`.
    pub(crate) fn survives(
        &self,
        signal: Power,
        interference: Power,
        (from_ns, to_ns): (u64, u64),
        rate_bps: u64,
    ) -> f64 {
        let sinr = self.sinr(signal, interference);
        match self.model {
            ReceptionModel::Threshold { .. } => f64::from(u8::from(sinr >= self.sinr)),
            ReceptionModel::BitErrors => {
                let header = self.header_ns();
                let part = |(begin, end): (u64, u64), rate_bps: u64| {
                    let ns = to_ns.min(end).saturating_sub(from_ns.max(begin));
                    let bits = ns as f64 * 1e-9 * rate_bps as f64;
                    let p = bit_error_probability(self.phy.modulation, rate_bps, sinr);
                    if bits > 0.0 { libm::pow(1.0 - p, bits) } else { 1.0 }
                };
                let base_bps = self.phy.modulation.base_rate_bps();
                part(header, base_bps) * part((header.1, u64::MAX), rate_bps)
            }
        }
    }

    /// From when to when after its beginning a frame's header lasts, ns: 48 bits at 1 Mbit/s, or the SIGNAL
    /// symbol.
    fn header_ns(&self) -> (u64, u64) {
        let header_ns = match self.phy.modulation {
            Modulation::Dsss => 48_000,
            Modulation::Ofdm => 4_000,
        };
        (self.phy.preamble_ns.saturating_sub(header_ns), self.phy.preamble_ns)
    }
}

/// Thermal noise and the receiver's own in the channel's width, units.
fn noise_units(phy: &Phy, noise_figure_db: f64) -> f64 {
    let bandwidth_db = 10.0 * libm::log10(phy.modulation.bandwidth_hz());
    units_of_dbm(THERMAL_DBM + bandwidth_db + noise_figure_db)
}

impl ReceptionConfig {
    pub(crate) fn validate(&self) -> Result<(), MediumError> {
        let in_range = |db: f64| (-30.0..=100.0).contains(&db);
        let fault = if matches!(self.model, ReceptionModel::Threshold { sinr_db } if !in_range(sinr_db))
        {
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
