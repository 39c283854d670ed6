//! `[limits]`: the memory that a node may use for others.

use ncmesh_engine::file::FileLimits;

ncmesh_engine::settings! {
    /// `[limits]`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LimitsConfig {
        /// Machine for which the bounds are meant, see [limits](#limits).
        pub profile: Machine = Machine::Host;
    }
}

ncmesh_engine::choices! {
    /// Machine for which bounds are meant.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Machine {
        /// One with memory to spare.
        Host = "host",
        /// A router with 64 MB.
        Router = "router",
    }
}

impl Machine {
    /// Returns the limits on the state that a node keeps for files.
    #[must_use]
    pub fn file_limits(self) -> FileLimits {
        match self {
            Self::Host => FileLimits::default(),
            Self::Router => FileLimits::ROUTER,
        }
    }
}
