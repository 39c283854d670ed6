//! Settings of link measurement.

use ncmesh_engine::time::{Duration, seconds};
use serde::Deserialize;

/// `[link]` in configuration files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkConfig {
    /// Seconds between hellos when nothing changes.
    pub hello_s: f64,
    /// Number of quick hellos after a start.
    pub quick_hellos: u16,
    /// Seconds between quick hellos.
    pub quick_hello_s: f64,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self { hello_s: 1.0, quick_hellos: 16, quick_hello_s: 0.25 }
    }
}

impl LinkConfig {
    /// Returns the time after its start at which a node has measured its neighbours.
    #[must_use]
    pub fn settling_time(&self) -> Duration {
        seconds(self.quick_hello_s * f64::from(self.quick_hellos))
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
        in_range("hello_s", self.hello_s, 0.01, 30.0)?;
        in_range("quick_hello_s", self.quick_hello_s, 0.01, self.hello_s)
    }
}
