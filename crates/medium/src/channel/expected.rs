//! What frames would meet if nobody else sent.

use super::field::mean_powers;
use crate::config::{ChannelConfig, LinkKind, MediumConfig, RadioConfig};
use crate::power::{Power, ratio_of_db};
use crate::reception::Reception;
use crate::{LossMatrix, MediumError, RadioId};

/// The step in which the distribution of power is gone through, dB.
const STEP_DB: f64 = 0.05;

/// Where even the steepest reception model has long become certain, dB above the least power.
const SPAN_DB: f64 = 60.0;

impl MediumConfig {
    /// The loss of a frame of `bytes` on each link without interference: what is given, or what power, fading
    /// and the reception model make of it. Links that lose all but one frame in a million may be left out.
    ///
    /// # Errors
    /// Any [`MediumError`] about a setting.
    pub fn expected_loss(&self, bytes: usize) -> Result<LossMatrix, MediumError> {
        self.validate()?;
        let radio = match &self.channel {
            ChannelConfig::Links(links) => return self.with_wires(links.loss.clone()),
            ChannelConfig::Radio(radio) => radio,
        };
        let steps = self.steps(radio, bytes);
        let mut loss = LossMatrix::new(radio.positions.len());
        for (from, list) in mean_powers(radio, self.seed).into_iter().enumerate() {
            for (to, mean) in list {
                let part = |&(units, gain): &(f64, f64)| gain * radio.fading.exceeds(units / mean);
                let delivery: f64 = steps.iter().map(part).sum();
                loss.set(RadioId(from), RadioId(to as usize), (1.0 - delivery).clamp(0.0, 1.0))?;
            }
        }
        Ok(loss)
    }

    /// Losses of the air, and what goes by cable.
    fn with_wires(&self, mut loss: LossMatrix) -> Result<LossMatrix, MediumError> {
        let mut wires = self.links.iter().filter(|(_, kind)| matches!(kind, LinkKind::Wire { .. }));
        wires.try_for_each(|((from, to), _)| loss.set(*from, *to, 0.0))?;
        Ok(loss)
    }

    /// The probability of reading a frame as a staircase over its power: (units, rise), all rises adding up
    /// to 1.
    fn steps(&self, radio: &RadioConfig, bytes: usize) -> Vec<(f64, f64)> {
        let reception = Reception::new(&self.reception, self.phy, self.bit_rate_bps);
        let airtime_ns = self.phy.airtime_ns(bytes + self.mac_overhead_bytes, self.bit_rate_bps);
        let least = Power::from_dbm(radio.rx_threshold_dbm).units().max(reception.least_units());
        let read = |units: f64| {
            let signal = Power::from_units(units);
            libm::exp(-reception.errors(signal, Power::ZERO, (0, airtime_ns), false))
        };
        let mut steps = vec![(least, read(least.ceil()))];
        let mut before = steps[0].1;
        for step in 1..=(SPAN_DB / STEP_DB) as u32 {
            let middle = least * ratio_of_db((f64::from(step) - 0.5) * STEP_DB);
            let now = read(least * ratio_of_db(f64::from(step) * STEP_DB));
            if now > before {
                steps.push((middle, now - before));
                before = now;
            }
        }
        steps
    }
}
