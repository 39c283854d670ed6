//! Settings of the link state.

use serde::Deserialize;

/// `[route]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouteConfig {
    /// Change of a delivery ratio that nodes nearby are told.
    pub change: f64,
    /// Change of a delivery ratio that the whole mesh is told.
    pub far_change: f64,
    /// Least seconds between two announcements of a node.
    pub min_interval_s: f64,
    /// The same of announcements that only nodes nearby are told.
    pub near_interval_s: f64,
    /// Seconds after which a node that nobody reaches any more is forgotten.
    pub max_age_s: f64,
    /// Least delivery ratio of a link that is used.
    pub min_delivery: f64,
}

impl Default for RouteConfig {
    fn default() -> Self {
        Self {
            change: 0.1,
            far_change: 0.2,
            min_interval_s: 0.5,
            near_interval_s: 3.0,
            max_age_s: 60.0,
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
        in_range("change", self.change, 0.01, 1.0)?;
        in_range("far_change", self.far_change, self.change, 1.0)?;
        in_range("min_interval_s", self.min_interval_s, 0.01, 60.0)?;
        in_range("near_interval_s", self.near_interval_s, self.min_interval_s, 600.0)?;
        in_range("max_age_s", self.max_age_s, 1.0, 86_400.0)?;
        in_range("min_delivery", self.min_delivery, 0.001, 1.0)
    }
}
