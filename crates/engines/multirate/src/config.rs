//! Settings of the engine: the table `[protocol.multirate]` in configuration files.

use crate::parameters::{Given, Parameters};
use crate::policy::Policy;
use ncmesh_engine::time::Duration;
use serde::Deserialize;

/// Settings of multirate multicast. `policy`, `v`, `theta`, `slot_ms` and `report_ms` must be the
/// same on all nodes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MultirateConfig {
    /// Control policy: `mmu_w`, `mmu`, `mmu_q` or `mmt`. Default `mmu_w`.
    pub policy: Policy,
    /// V, the weight of utility against backlog, packets. Where a link is full a queue holds about
    /// V theta packets. Above 0; default 60.
    pub v: f64,
    /// The steepest slope that any receiver's utility may have, per Mbit/s. Above 0; default 4.
    pub theta: f64,
    /// Packets that the fastest link carries in a slot (mu_max). 1 to 100,000; default 12.
    pub mu_max: u32,
    /// Most packets that enter a stream in a slot (A_max); others wait at the source. 1 to 100,000;
    /// default 8.
    pub a_max: u32,
    /// Packets dropped at once (d_max). Default: the least allowed, `a_max + mu_max`.
    pub d_max: Option<u32>,
    /// Gap to the optimum that is allowed for (epsilon), packets per slot. Default: 0.05 `mu_max`.
    pub epsilon: Option<f64>,
    /// Length of a virtual slot, ms. 1 to 10,000; default 5.
    pub slot_ms: u32,
    /// Time between reports of backlogs, ms. 10 to 60,000; default 100.
    pub report_ms: u32,
    /// Time without a packet after which an empty queue is removed, s. 1 to 3,600; default 10.
    pub idle_s: u32,
    /// Neighbours, by name or id, whose links share no radio with others. Default: none.
    pub wired: Vec<String>,
}

impl Default for MultirateConfig {
    fn default() -> Self {
        Self {
            policy: Policy::MmuW,
            // Three times d_max. With less, queues drop what links could carry.
            v: 60.0,
            theta: 4.0,
            // 27 and 18 Mbit/s in packets of 1,400 bytes.
            mu_max: 12,
            a_max: 8,
            d_max: None,
            epsilon: None,
            slot_ms: 5,
            report_ms: 100,
            idle_s: 10,
            wired: Vec::new(),
        }
    }
}

/// Default epsilon in units of mu_max. Pressure settles within some tens of seconds with it.
const DEFAULT_EPSILON: f64 = 0.05;

impl MultirateConfig {
    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// One line that names the setting and the range.
    pub fn check(&self) -> Result<(), String> {
        let whole = |name: &str, value: u32, least: u32, most: u32, unit: &str| {
            if (least..=most).contains(&value) {
                return Ok(());
            }
            Err(format!("{name} = {value}: allowed is {least} to {most} {unit}"))
        };
        whole("mu_max", self.mu_max, 1, 100_000, "packets")?;
        whole("a_max", self.a_max, 1, 100_000, "packets")?;
        whole("slot_ms", self.slot_ms, 1, 10_000, "ms")?;
        whole("report_ms", self.report_ms, 10, 60_000, "ms")?;
        whole("idle_s", self.idle_s, 1, 3600, "s")?;
        self.parameters().map(drop)
    }

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
