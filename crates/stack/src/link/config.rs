//! Settings of link measurement.

use ncmesh_engine::time::{Duration, seconds};

ncmesh_engine::settings! {
    /// `[link]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct LinkConfig {
        /// Longest time between two hellos, which holds when nothing changes. Above 32 neighbours
        /// it grows with their number.
        pub hello_s: f64 = 1.0, within 0.01..=30.0, unit "s";
        /// Quick hellos after a start.
        pub quick_hellos: u16 = 16, within 0..=u16::MAX, unit "hellos";
        /// Time between quick hellos.
        pub quick_hello_s: f64 = 0.25, within 0.01..=30.0, at_most "hello_s", unit "s";
    }
}

impl LinkConfig {
    /// Returns the time after its start at which a node has measured its neighbours.
    #[must_use]
    pub fn settling_time(&self) -> Duration {
        seconds(self.quick_hello_s * f64::from(self.quick_hellos))
    }
}
