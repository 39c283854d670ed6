//! Settings of the link state.

ncmesh_engine::settings! {
    /// `[route]` in configuration files.
    #[derive(Clone, Debug, PartialEq)]
    pub struct RouteConfig {
        /// Change of a delivery ratio that nodes nearby are told.
        pub change: f64 = 0.1, within 0.01..=1.0;
        /// Change of a delivery ratio that the whole mesh is told, if a path may depend on it.
        pub far_change: f64 = 0.2, within 0.01..=1.0, at_least "change";
        /// Least time between two announcements of a node.
        pub min_interval_s: f64 = 0.5, within 0.01..=60.0, unit "s";
        /// Least time between two announcements that only nodes nearby are told.
        pub near_interval_s: f64 = 3.0, within 0.01..=600.0, at_least "min_interval_s", unit "s";
        /// Time after which a node that no node has reached is forgotten.
        pub max_age_s: f64 = 60.0, within 1..=86_400, unit "s";
        /// Least delivery ratio of a link that is used.
        pub min_delivery: f64 = 0.05, within 0.001..=1.0;
    }
}
