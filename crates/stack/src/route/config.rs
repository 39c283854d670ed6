//! Settings of the link state.

use serde::Deserialize;

/// `[route]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouteConfig {
    /// Seconds between repetitions of an unchanged link state.
    pub refresh_s: f64,
    /// Least seconds between two announcements of changes.
    pub min_interval_s: f64,
    /// Change of a delivery ratio that is announced before the next repetition.
    pub change: f64,
    /// Seconds after which link state that was not repeated is dropped.
    pub max_age_s: f64,
    /// Least delivery ratio of a link that is used.
    pub min_delivery: f64,
}

impl Default for RouteConfig {
    fn default() -> Self {
        Self {
            refresh_s: 10.0,
            min_interval_s: 1.0,
            change: 0.1,
            max_age_s: 45.0,
            min_delivery: 0.05,
        }
    }
}

impl RouteConfig {
    /// Checks the values.
    ///
    /// # Errors
    /// One line that names the setting and says what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let in_range = |name: &str, v: f64, low: f64, high: f64| {
            if v >= low && v <= high {
                Ok(())
            } else {
                Err(format!("{name} = {v}: allowed is {low} to {high}"))
            }
        };
        in_range("refresh_s", self.refresh_s, 0.1, 3600.0)?;
        in_range("min_interval_s", self.min_interval_s, 0.01, self.refresh_s)?;
        in_range("change", self.change, 0.01, 1.0)?;
        in_range("max_age_s", self.max_age_s, 2.0 * self.refresh_s, 86_400.0)?;
        in_range("min_delivery", self.min_delivery, 0.001, 1.0)
    }
}
