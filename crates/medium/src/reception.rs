//! Decoding at a signal to interference and noise ratio (SINR).
//!
//! Two models decide whether a frame is decoded. In the threshold model a frame is decoded if the
//! SINR stays above a fixed ratio from its first to its last bit. In the bit error model it is
//! decoded if no bit is wrong. Each part of the frame between two changes of the interference has
//! an expected number of bit errors, which follows from the bit error probability of the modulation
//! at that SINR. The frame is error-free with probability exp(-sum). Interference counts as
//! Gaussian noise.

use std::ops::Range;

use crate::config::{ReceptionConfig, ReceptionModel};
use crate::phy::{Modulation, Phy};
use crate::power::{Power, ratio_of_db, units_of_dbm};

mod bit_errors;
mod error_rate;

use error_rate::ErrorRate;

/// Time in which a receiver detects a preamble, ns. The strongest frame that begins within it wins.
pub(crate) const PREAMBLE_DETECTION_NS: u64 = 4_000;

/// Thermal noise of 290 K in 1 Hz, dBm.
const THERMAL_DBM: f64 = -173.98;

/// Bit errors per second as functions of the SINR.
struct ErrorRates {
    /// Error rate of the header.
    header: ErrorRate,
    /// Error rate of a data frame's body.
    data: ErrorRate,
    /// Error rate of a control frame's body.
    control: ErrorRate,
}

/// A validated reception model in linear ratios and power units.
pub(crate) struct SinrModel {
    /// At this SINR and above there are no errors.
    error_free_sinr: f64,
    /// The power of a signal together with the most noise and interference that it tolerates
    /// without errors, as a multiple of the signal.
    tolerated_ratio: f64,
    preamble_sinr: f64,
    capture_ratio: Option<f64>,
    /// Noise power, units.
    noise: f64,
    phy: Phy,
    /// `None` for the threshold model.
    bit_errors: Option<ErrorRates>,
}

impl SinrModel {
    /// Creates the model of `config` for `phy` and data frames at `rate_bps`.
    pub(crate) fn new(config: &ReceptionConfig, phy: Phy, rate_bps: u64) -> Self {
        // A frame's parts have different rates. It is surely error-free at the SINR at which the
        // most sensitive part is.
        let rate = |rate_bps: u64| ErrorRate::new(phy.modulation, rate_bps);
        let (error_free_sinr, bit_errors) = match config.model {
            ReceptionModel::Threshold { sinr_db } => (ratio_of_db(sinr_db), None),
            ReceptionModel::BitErrors => {
                let rates = ErrorRates {
                    header: rate(phy.modulation.base_rate_bps()),
                    data: rate(rate_bps),
                    control: rate(phy.control_rate_bps(rate_bps)),
                };
                let error_free =
                    [&rates.header, &rates.data, &rates.control].map(ErrorRate::error_free_sinr);
                (error_free.into_iter().fold(0.0, f64::max), Some(rates))
            }
        };

        Self {
            error_free_sinr,
            tolerated_ratio: 1.0 + 1.0 / error_free_sinr,
            bit_errors,
            preamble_sinr: ratio_of_db(config.preamble_sinr_db),
            capture_ratio: config.capture_db.map(ratio_of_db),
            noise: config.noise_figure_db.map_or(0.0, |figure_db| noise_units(&phy, figure_db)),
            phy,
        }
    }

    /// Returns whether the SINR is at least `ratio`.
    fn reaches(&self, ratio: f64, signal: Power, interference: Power) -> bool {
        signal.units() >= ratio * (interference.units() + self.noise)
    }

    /// Returns the least power of a frame that is received without interference, units.
    pub(crate) fn sensitivity_units(&self) -> f64 {
        let needed = if self.bit_errors.is_some() { 0.0 } else { self.error_free_sinr };
        self.noise * self.preamble_sinr.max(needed)
    }

    /// Returns whether a radio detects the preamble of a frame.
    pub(crate) fn detects_preamble(&self, signal: Power, interference: Power) -> bool {
        self.reaches(self.preamble_sinr, signal, interference)
    }

    /// Returns whether a new frame captures a receiver that is receiving another one.
    pub(crate) fn captures(&self, signal: Power, interference: Power) -> bool {
        self.capture_ratio.is_some_and(|ratio| self.reaches(ratio, signal, interference))
    }

    /// Returns whether capture is enabled.
    pub(crate) fn has_capture(&self) -> bool {
        self.capture_ratio.is_some()
    }

    /// Returns the power of all frames together up to which a reception of `signal` has no errors
    /// and its receiver is not captured.
    pub(crate) fn harmless_power(&self, signal: Power) -> Power {
        // With capture any stronger frame may end the reception, so none is harmless.
        if self.has_capture() {
            return Power::ZERO;
        }
        Power::from_units(signal.units() * self.tolerated_ratio - self.noise)
    }

    /// Returns the expected number of bit errors in the part `part_ns` of a frame, which counts
    /// from the frame's start. The part is error-free with probability exp(-errors).
    pub(crate) fn expected_errors(
        &self,
        signal: Power,
        interference: Power,
        part_ns: Range<u64>,
        control: bool,
    ) -> f64 {
        // Most calls end here. In the threshold model a lower SINR spoils the frame at once.
        if self.reaches(self.error_free_sinr, signal, interference) {
            return 0.0;
        }
        let Some(rates) = &self.bit_errors else {
            return f64::INFINITY;
        };

        // The header is sent at the lowest rate, the body at the rate of the frame. The preamble
        // before the header has no bits.
        let sinr = signal.units() / (interference.units() + self.noise);
        let body = if control { &rates.control } else { &rates.data };
        let header_ns = overlap(&part_ns, &self.header_interval_ns());
        let body_ns = part_ns.end - part_ns.start.max(self.phy.preamble_ns).min(part_ns.end);
        let errors = |ns: u64, rate: &ErrorRate| {
            if ns > 0 { ns as f64 * 1e-9 * rate.per_second(sinr) } else { 0.0 }
        };

        errors(header_ns, &rates.header) + errors(body_ns, body)
    }

    /// Returns when the PHY header begins and ends, ns after the start of the frame: 48 bits at
    /// 1 Mbit/s for DSSS, the SIGNAL symbol for OFDM.
    fn header_interval_ns(&self) -> Range<u64> {
        let header_ns = match self.phy.modulation {
            Modulation::Dsss => 48_000,
            Modulation::Ofdm => 4_000,
        };
        self.phy.preamble_ns.saturating_sub(header_ns)..self.phy.preamble_ns
    }
}

/// Returns the length of the intersection of two intervals, ns.
fn overlap(a: &Range<u64>, b: &Range<u64>) -> u64 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

/// Returns the power of thermal noise and receiver noise in the channel's bandwidth, units.
fn noise_units(phy: &Phy, noise_figure_db: f64) -> f64 {
    let bandwidth_db = 10.0 * libm::log10(phy.modulation.bandwidth_hz());
    units_of_dbm(THERMAL_DBM + bandwidth_db + noise_figure_db)
}
