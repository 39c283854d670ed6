//! Settings of the engine: the table `[protocol.multirate]` in configuration files.

use crate::parameters::{Given, Parameters};
use crate::policy::Policy;
use ncmesh_engine::time::Duration;

ncmesh_engine::settings! {
    /// Settings of multirate multicast. `policy`, `v`, `theta`, `slot_ms` and `report_ms` must be
    /// the same on all nodes.
    #[derive(Clone, Debug, PartialEq)]
    pub struct MultirateConfig {
        /// Control policy. `mmu_w`: a radio serves the pair of next hop and stream with the largest
        /// rate times backlog. `mmu`: each link by itself. `mmu_q`: without drop queues. `mmt`:
        /// maximises the sum of rates; receivers have no utilities.
        pub policy: Policy = Policy::MmuW;
        /// V, the weight of utility against backlog. A full link's queue holds `v` times the slope
        /// of the utility at that rate, or `v` times `theta` below a minimum rate: this is the
        /// delay of a hop. Use at least a few `d_max`, or queues drop what links could carry.
        /// Larger is nearer to the optimum.
        // Three times d_max. With less, queues drop what links could carry.
        pub v: f64 = 60.0, above 0, unit "packets";
        /// Steepest slope that any receiver's utility may have, per Mbit/s.
        pub theta: f64 = 4.0, above 0;
        /// Packets that the fastest link carries in a slot (mu_max).
        // 27 Mbit/s in packets of 1,400 bytes.
        pub mu_max: u32 = 12, within 1..=100_000, unit "packets";
        /// Most packets that enter a stream in a slot (A_max). Up to 1,024 more wait at the source,
        /// the base layer first.
        // 18 Mbit/s in packets of 1,400 bytes.
        pub a_max: u32 = 8, within 1..=100_000, unit "packets";
        /// Packets dropped at once (d_max).
        pub d_max: Option<u32> = None, absent "`a_max + mu_max`",
            allowed "`a_max + mu_max` packets or more";
        /// Gap to the optimum that is allowed for (epsilon). Larger settles sooner.
        pub epsilon: Option<f64> = None, absent "0.05 `mu_max`", above 0, unit "packets per slot";
        /// Length of a virtual slot: how long a decision holds.
        pub slot_ms: u32 = 5, within 1..=10_000, unit "ms";
        /// Time between reports of backlogs, of about 80 bytes.
        pub report_ms: u32 = 100, within 10..=60_000, unit "ms";
        /// Time without a packet after which an empty queue is removed.
        pub idle_s: u32 = 10, within 1..=3600, unit "s";
        /// Neighbours reached by cable, whose links share no radio with others.
        pub wired: Vec<String> = Vec::new(), allowed "a list of names or ids";
    }
}

/// Default epsilon in units of mu_max. Pressure settles within some tens of seconds with it.
const DEFAULT_EPSILON: f64 = 0.05;

impl MultirateConfig {
    /// Returns the policy's parameters (Table I).
    pub(crate) fn parameters(&self) -> Result<Parameters, String> {
        let given = Given {
            v: self.v,
            d_max: self.d_max,
            epsilon: Some(self.epsilon.unwrap_or(DEFAULT_EPSILON * f64::from(self.mu_max))),
            zeta: None,
            a_max: self.a_max,
            mu_max: self.mu_max,
            // MMT drops from a backlog of V on (18), which is V theta with theta = 1.
            theta: if self.policy.has_utilities() { self.theta } else { 1.0 },
        };

        Parameters::derive(&given).map_err(|e| e.to_string())
    }

    pub(crate) fn slot(&self) -> Duration {
        Duration::from_millis(self.slot_ms.into())
    }

    pub(crate) fn report_period(&self) -> Duration {
        Duration::from_millis(self.report_ms.into())
    }

    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_s.into())
    }
}
