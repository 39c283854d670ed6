//! Loss of each link without interference, for planning and routing tables.
//!
//! Where losses are given, they are returned. Where radios have positions, the loss is the integral
//! of the reception model over the distribution of the fading power. It is evaluated numerically:
//! the delivery probability as a staircase over power in steps of [`STEP_DB`], each rise weighted
//! with the probability that the power exceeds it.

use super::radio::mean_powers;
use crate::config::{ChannelConfig, LinkKind, MediumConfig, RadioConfig};
use crate::error::MediumError;
use crate::loss_matrix::LossMatrix;
use crate::power::{Power, ratio_of_db};
use crate::reception::SinrModel;
use crate::types::RadioId;

/// Step of the integration over power, dB.
const STEP_DB: f64 = 0.05;

/// Range of the integration, dB above the least power. Beyond it every model decodes every frame.
const SPAN_DB: f64 = 60.0;

impl MediumConfig {
    /// Returns the loss of a frame of `bytes` on each link without interference.
    ///
    /// Links that deliver less than one frame in a million may be missing.
    ///
    /// # Errors
    /// Any [`MediumError`] about a setting.
    pub fn expected_loss(&self, bytes: usize) -> Result<LossMatrix, MediumError> {
        self.validate()?;
        let radio = match &self.channel {
            ChannelConfig::Links(links) => {
                // Cables do not lose frames.
                let mut loss = links.loss.clone();
                for ((from, to), kind) in &self.links {
                    if matches!(kind, LinkKind::Wire { .. }) {
                        loss.set(*from, *to, 0.0)?;
                    }
                }
                return Ok(loss);
            }
            ChannelConfig::Radio(radio) => radio,
        };

        let steps = self.delivery_steps(radio, bytes);
        let mut loss = LossMatrix::new(radio.positions.len());
        for (from, list) in mean_powers(radio, self.seed).into_iter().enumerate() {
            // A step counts as far as fading lifts the mean power to it.
            for (to, mean) in list {
                let part = |&(units, rise): &(f64, f64)| rise * radio.fading.exceeds(units / mean);
                let delivery: f64 = steps.iter().map(part).sum();
                loss.set(RadioId(from), RadioId(to as usize), (1.0 - delivery).clamp(0.0, 1.0))?;
            }
        }

        Ok(loss)
    }

    /// Returns the delivery probability of a frame as a staircase over its power: the power of each
    /// step in units, and the rise of the probability there. The rises add up to 1.
    fn delivery_steps(&self, radio: &RadioConfig, bytes: usize) -> Vec<(f64, f64)> {
        let model = SinrModel::new(&self.reception, self.phy, self.bit_rate_bps);
        let airtime_ns = self.phy.airtime_ns(bytes + self.mac_overhead_bytes, self.bit_rate_bps);
        let delivery = |units: f64| {
            let signal = Power::from_units(units);
            libm::exp(-model.expected_errors(signal, Power::ZERO, 0..airtime_ns, false))
        };

        // The first step is at the least power that is received at all. Each later rise is put
        // into the middle of its step.
        let least = Power::from_dbm(radio.rx_threshold_dbm).units().max(model.sensitivity_units());
        let mut steps = vec![(least, delivery(least.ceil()))];
        let mut before = steps[0].1;
        for step in 1..=(SPAN_DB / STEP_DB) as u32 {
            let middle = least * ratio_of_db((f64::from(step) - 0.5) * STEP_DB);
            let now = delivery(least * ratio_of_db(f64::from(step) * STEP_DB));
            if now > before {
                steps.push((middle, now - before));
                before = now;
            }
        }

        steps
    }
}
