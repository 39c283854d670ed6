//! Settings of neighbour discovery.

use super::schedule::Schedule;
use ncmesh_engine::time::{Duration, seconds};
use serde::Deserialize;

/// `[link]` in configuration files. The defaults are those of the Pacifier paper (IV-A), with quick
/// probes after a start.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkConfig {
    /// Seconds between probes.
    pub probe_period_s: f64,
    /// Seconds of probes over which delivery is measured.
    pub probe_window_s: f64,
    /// Bytes of a probe frame, sealed; at most the radio's MTU.
    pub probe_size: usize,
    /// Number of quick probes after a start.
    pub fast_probes: u16,
    /// Seconds between quick probes.
    pub fast_period_s: f64,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            probe_period_s: 1.0,
            probe_window_s: 600.0,
            probe_size: 1500,
            fast_probes: 20,
            fast_period_s: 0.25,
        }
    }
}

impl LinkConfig {
    /// Returns the time after its start at which a node has measured its neighbours.
    #[must_use]
    pub fn settling_time(&self) -> Duration {
        seconds(self.fast_period_s * f64::from(self.fast_probes))
    }

    pub(super) fn schedule(&self) -> Schedule {
        Schedule {
            quick: self.fast_probes,
            quick_period: seconds(self.fast_period_s),
            period: seconds(self.probe_period_s),
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let in_range = |name: &str, v: f64, low: f64, high: f64| {
            if v >= low && v <= high {
                Ok(())
            } else {
                Err(format!("{name} = {v}: allowed is {low} to {high} seconds"))
            }
        };
        in_range("probe_period_s", self.probe_period_s, 0.01, 60.0)?;
        in_range("fast_period_s", self.fast_period_s, 0.01, 60.0)?;
        in_range("probe_window_s", self.probe_window_s, 10.0 * self.probe_period_s, 86_400.0)?;
        if self.probe_size < 64 || self.probe_size > 65_507 {
            return Err(format!("probe_size = {}: allowed is 64 to 65507 bytes", self.probe_size));
        }
        Ok(())
    }
}
