//! Whether a frame can be read at a signal to interference and noise ratio.

use crate::config::{MediumError, ReceptionConfig, ReceptionModel};
use crate::phy::{Modulation, Phy};
use crate::power::{Power, ratio_of_db, units_of_dbm};

mod bit_errors;
mod error_rate;

pub use bit_errors::bit_error_probability;
use error_rate::ErrorRate;

/// A receiver recognises a preamble within this time; the strongest of those that begin within it wins, ns.
pub(crate) const PREAMBLE_DETECTION_NS: u64 = 4_000;

/// Thermal noise of 290 K in 1 Hz, dBm.
const THERMAL_DBM: f64 = -173.98;

/// Errors per second by SINR.
struct Rates {
    /// Of the header.
    base: ErrorRate,
    /// Of what follows in our frames.
    data: ErrorRate,
    /// Of what follows in the MAC's own.
    control: ErrorRate,
}

/// A validated reception model, as ratios and units.
pub(crate) struct Reception {
    /// From this SINR on there are no errors.
    certain: f64,
    /// A signal and what it then tolerates, noise included, to the signal.
    with_tolerated: f64,
    preamble_sinr: f64,
    capture: Option<f64>,
    noise: f64,
    phy: Phy,
    bit_errors: Option<Rates>,
}

impl Reception {
    /// The model of `config` for `phy` and frames at `rate_bps`.
    pub(crate) fn new(config: &ReceptionConfig, phy: Phy, rate_bps: u64) -> Self {
        let rate = |rate_bps: u64| ErrorRate::new(phy.modulation, rate_bps);
        let (certain, bit_errors) = match config.model {
            ReceptionModel::Threshold { sinr_db } => (ratio_of_db(sinr_db), None),
            ReceptionModel::BitErrors => {
                let (base_bps, control_bps) =
                    (phy.modulation.base_rate_bps(), phy.control_rate_bps(rate_bps));
                let rates = Rates {
                    base: rate(base_bps),
                    data: rate(rate_bps),
                    control: rate(control_bps),
                };
                let certain =
                    [&rates.base, &rates.data, &rates.control].map(ErrorRate::certain_from);
                (certain.into_iter().fold(0.0, f64::max), Some(rates))
            }
        };
        Self {
            certain,
            with_tolerated: 1.0 + 1.0 / certain,
            bit_errors,
            preamble_sinr: ratio_of_db(config.preamble_sinr_db),
            capture: config.capture_db.map(ratio_of_db),
            noise: config.noise_figure_db.map_or(0.0, |figure_db| noise_units(&phy, figure_db)),
            phy,
        }
    }

    /// Whether the SINR is at least `ratio`.
    fn reaches(&self, ratio: f64, signal: Power, interference: Power) -> bool {
        signal.units() >= ratio * (interference.units() + self.noise)
    }

    /// The power that noise alone demands of a frame, units.
    pub(crate) fn least_units(&self) -> f64 {
        let needed = if self.bit_errors.is_some() { 0.0 } else { self.certain };
        self.noise * self.preamble_sinr.max(needed)
    }

    /// Whether a frame is recognised as one.
    pub(crate) fn detects(&self, signal: Power, interference: Power) -> bool {
        self.reaches(self.preamble_sinr, signal, interference)
    }

    /// Whether a receiver leaves the frame it is receiving for a new one.
    pub(crate) fn captures(&self, signal: Power, interference: Power) -> bool {
        self.capture.is_some_and(|ratio| self.reaches(ratio, signal, interference))
    }

    /// Whether it may ever do so.
    pub(crate) fn may_capture(&self) -> bool {
        self.capture.is_some()
    }

    /// The power of all frames together up to which they neither cost one of them, `signal`, an error nor
    /// capture its receiver.
    pub(crate) fn calm_up_to(&self, signal: Power) -> Power {
        if self.may_capture() {
            return Power::ZERO;
        }
        Power::from_units(signal.units() * self.with_tolerated - self.noise)
    }

    /// How many errors are to be expected in a part of a frame, from `from_ns` to `to_ns` after its beginning:
    /// it is read without any with probability exp(-errors).
    pub(crate) fn errors(
        &self,
        signal: Power,
        interference: Power,
        (from_ns, to_ns): (u64, u64),
        control: bool,
    ) -> f64 {
        if self.reaches(self.certain, signal, interference) {
            return 0.0;
        }
        let sinr = signal.units() / (interference.units() + self.noise);
        match &self.bit_errors {
            None => f64::INFINITY,
            Some(rates) => {
                let body = if control { &rates.control } else { &rates.data };
                let header_ns = overlap((from_ns, to_ns), self.header_ns());
                let rest_ns = to_ns - from_ns.max(self.phy.preamble_ns).min(to_ns);
                let part = |ns: u64, rate: &ErrorRate| {
                    if ns > 0 { ns as f64 * 1e-9 * rate.at(sinr) } else { 0.0 }
                };
                part(header_ns, &rates.base) + part(rest_ns, body)
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

/// How much of `a` lies in `b`, both from and to, ns.
fn overlap(a: (u64, u64), b: (u64, u64)) -> u64 {
    a.1.min(b.1).saturating_sub(a.0.max(b.0))
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
